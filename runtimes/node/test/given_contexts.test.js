'use strict';
// What setContext() and runWithContext() keep of a context, and what they refuse, with the async context frame and
// without it: there the addon has a record of it, here it reads a copy later.

const assert = require('node:assert');
const test = require('node:test');
const { of, total } = require('./checked_profile');
const { assertEndedWell, runText } = require('./child_process');

const MAJOR = Number(process.versions.node.split('.')[0]);
const FRAME = { name: 'with the frame', options: MAJOR >= 24 ? [] : ['--experimental-async-context-frame'] };
const SLOT = { name: 'without the frame', options: MAJOR >= 24 ? ['--no-async-context-frame'] : [] };

for (const { name, options } of MAJOR >= 22 ? [FRAME, SLOT] : [SLOT]) {
  test(`a context stays as it was given, whatever becomes of the object: ${name}`, async () => {
    const ended = await runText(`
      const context = {traceId: '1', spanId: '2', rootSpanId: 3n, endpoint: 'GET /a', tags: {tenant: 'a', region: 'eu'}};
      const change = () => Object.assign(context,
        {traceId: '8', spanId: '9', rootSpanId: 9n, endpoint: 'GET /b', tags: Object.assign(context.tags, {tenant: 'b'})});
      spanprof.start({wall: '1ms', file});
      spanprof.setContext(context);
      change();
      named('was_set')(150);
      spanprof.runWithContext(context, () => {
        context.spanId = 'a';
        delete context.tags.region;
        named('was_run')(150);
      });
    `, { options });
    assertEndedWell(ended);
    const labels = ['trace_id', 'span_id', 'local_root_span_id', 'endpoint', 'tenant', 'region'];
    for (const [function_, expected] of Object.entries({
      was_set: ['1'.padStart(32, '0'), '2'.padStart(16, '0'), '3'.padStart(16, '0'), 'GET /a', 'a', 'eu'],
      was_run: ['8'.padStart(32, '0'), '9'.padStart(16, '0'), '9'.padStart(16, '0'), 'GET /b', 'b', 'eu'],
    })) {
      const samples = of(ended.samples(), function_);
      assert.ok(total(samples) > 0, function_);
      for (const sample of samples) assert.deepStrictEqual(labels.map((label) => sample.labels[label]), expected);
    }
  });

  test(`ids that are none are refused at once, and the context stays: ${name}`, async () => {
    const ended = await runText(`
      spanprof.start({wall: '1ms', file});
      spanprof.setContext({spanId: '1', rootSpanId: 'ABCdef'});
      const said = [
        {traceId: 'x'}, {traceId: '1'.repeat(33)}, {traceId: 1n}, {traceId: null},
        {spanId: 'no digits'}, {spanId: '1'.repeat(17)}, {spanId: 5}, {spanId: '0x1'}, {spanId: '\\u0131'},
        {rootSpanId: 'g'}, {rootSpanId: {}}, {spanId: '1', rootSpanId: '-1'},
      ].flatMap((context) => [() => spanprof.setContext(context), () => spanprof.runWithContext(context, () => {})])
        .map((call) => { try { call(); return 'taken'; } catch ({message}) { return message; } });
      process.stdout.write(JSON.stringify(said));
      for (const id of ['', '0', 'F'.repeat(16)]) {
        spanprof.runWithContext({traceId: id, spanId: id, rootSpanId: id}, () => {});
      }
      named('afterwards')(150);
    `, { options });
    assertEndedWell(ended);
    const expected = ['traceId is not 32', 'spanId is not 16', 'rootSpanId is not 16']
      .flatMap((text, index) => Array(2 * [4, 5, 3][index]).fill(`${text} hexadecimal digits`));
    assert.deepStrictEqual(JSON.parse(ended.stdout), expected);
    const samples = of(ended.samples(), 'afterwards');
    assert.ok(total(samples) > 0);
    for (const { labels } of samples) {
      assert.deepStrictEqual([labels.span_id, labels.local_root_span_id], ['0000000000000001', '0000000000abcdef']);
    }
  });

  test(`a worker that is terminated leaves its contexts: ${name}`, async () => {
    const ended = await runText(`
      if (isMainThread) {
        spanprof.start({wall: '1ms', file});
        const worker = new Worker(__filename, {argv: [file]});
        worker.on('message', () => setTimeout(() => worker.terminate(), 300));
      } else {
        spanprof.setContext({spanId: '5', rootSpanId: 5n, tags: {tenant: 'a'}});
        parentPort.postMessage('begins');
        for (;;) named('in_worker')(10);
      }
    `, { options });
    assertEndedWell(ended);
    const samples = of(ended.samples(), 'in_worker');
    assert.ok(total(samples) > 0);
    for (const { labels } of samples) {
      assert.deepStrictEqual([labels.span_id, labels.local_root_span_id, labels.tenant],
        ['0000000000000005', '0000000000000005', 'a']);
    }
  });
}
