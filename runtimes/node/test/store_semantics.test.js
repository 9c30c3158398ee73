'use strict';
// What a sample's context says, for each way to give one.

const assert = require('node:assert');
const test = require('node:test');
const { of, total } = require('./checked_profile');
const { assertEndedWell, runText } = require('./child_process');

const SPAN = (digit) => `000000000000000${digit}`;
const spansOf = (samples) => [...new Set(samples.map(({ labels }) => labels.span_id))];

test('a context is all that was given: ids, endpoint, tags, thread', async () => {
  const ended = await runText(`
    spanprof.start({wall: '1ms', cpu: true, file});
    spanprof.runWithContext({traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: 'f067aa0ba902b7', rootSpanId: 0x1234n,
      endpoint: 'GET /cart', tags: {tenant: 'm\\u00fcller', region: 'eu'}}, named('labelled'), 200);
    spanprof.runWithContext({spanId: 0x77n, rootSpanId: 0x77n}, named('late_endpoint'), 100);
    spanprof.setEndpoint(0x77n, 'POST /order');
  `);
  assertEndedWell(ended);
  const [sample] = of(of(ended.samples(), 'labelled'), 'burnFor');
  assert.deepStrictEqual(
    ['trace_id', 'span_id', 'local_root_span_id', 'endpoint', 'tenant', 'region', 'thread_name']
      .map((name) => sample.labels[name]),
    ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7', '0000000000001234', 'GET /cart', 'm\u00fcller', 'eu', 'main']);
  assert.strictEqual(sample.files[sample.functions.indexOf('burnFor')], require.resolve('./programs/burn.js'));
  assert.strictEqual(sample.lines[sample.functions.indexOf('burnFor')], 4);
  assert.strictEqual(of(ended.samples(), 'late_endpoint')[0].labels.endpoint, 'POST /order');
});

test('contexts are inherited, and left behind', async () => {
  const ended = await runText(`
    const {AsyncLocalStorage} = require('async_hooks');
    const other = new AsyncLocalStorage();
    spanprof.start({wall: '1ms', file});
    (async () => {
      named('burned_before')(150);
      await spanprof.runWithContext({spanId: '1'}, async () => {
        await null;
        await other.run('x', async () => { await null; named('nested')(150); });
        spanprof.runWithContext({spanId: '2'}, named('inner'), 150);
        named('outer_again')(150);
        spanprof.setContext({spanId: '3'});
        await new Promise((resolve) => setTimeout(resolve, 1));
        named('was_set')(150);
        spanprof.setContext(undefined);
        named('taken_away')(150);
      });
      named('burned_after')(150);
    })();
  `);
  assertEndedWell(ended);
  const expected = { burned_before: undefined, nested: SPAN(1), inner: SPAN(2), outer_again: SPAN(1), was_set: SPAN(3),
    taken_away: undefined, burned_after: undefined };
  for (const [name, span] of Object.entries(expected)) {
    const samples = of(ended.samples(), name);
    assert.ok(total(samples) > 0, name);
    assert.deepStrictEqual(spansOf(samples), [span], name);
  }
});

test('a context that was set counts before that of an attached storage', async () => {
  const ended = await runText(`
    const {AsyncLocalStorage} = require('async_hooks');
    const tracer = new AsyncLocalStorage();
    spanprof.start({wall: '1ms', file});
    spanprof.attach(tracer, (store) => store);
    tracer.run({spanId: '1'}, () => {
      named('attached')(150);
      spanprof.runWithContext({spanId: '2'}, named('set'), 150);
      named('attached_again')(150);
    });
  `);
  assertEndedWell(ended);
  const expected = { attached: SPAN(1), set: SPAN(2), attached_again: SPAN(1) };
  for (const [name, span] of Object.entries(expected)) {
    assert.deepStrictEqual(spansOf(of(ended.samples(), name)), [span], name);
  }
});

test('attach() is for stores that do not change: one that does is told as it is later', async () => {
  const ended = await runText(`
    const {AsyncLocalStorage} = require('async_hooks');
    const tracer = new AsyncLocalStorage();
    spanprof.start({wall: '1ms', file});
    let asked = 0;
    spanprof.attach(tracer, (store) => { ++asked; return {spanId: store.span}; });
    tracer.run({span: '1'}, () => {
      named('as_one')(150);
      tracer.getStore().span = '2';
      named('as_two')(150);
    });
    spanprof.runWithContext({spanId: '3'}, () => {
      named('as_three')(150);
      spanprof.setContext({spanId: '4'});
      named('as_four')(150);
    });
    process.on('exit', () => process.stdout.write(String(asked)));
  `);
  assertEndedWell(ended);
  const expected = { as_one: SPAN(2), as_two: SPAN(2), as_three: SPAN(3), as_four: SPAN(4) };
  for (const [name, span] of Object.entries(expected)) {
    assert.deepStrictEqual(spansOf(of(ended.samples(), name)), [span], name);
  }
  assert.strictEqual(ended.stdout, '1');
});

test('a function of attach() that throws or answers nonsense is counted, and harms nobody', async () => {
  const ended = await runText(`
    const {AsyncLocalStorage} = require('async_hooks');
    const tracer = new AsyncLocalStorage();
    (async () => {
      spanprof.start({wall: '1ms', file});
      spanprof.attach(tracer, (store) => {
        if (store === 'throws') throw new Error('not told to anybody');
        if (store === 'nonsense') return {spanId: 'no digits'};
        return store === 'nothing' ? undefined : {spanId: '5'};
      });
      for (const store of ['throws', 'nonsense', 'nothing', 'good']) tracer.run(store, named(store + '_store'), 150);
      await spanprof.stop();
      process.stdout.write(JSON.stringify(spanprof.status().counters));
    })();
  `);
  assertEndedWell(ended);
  assert.strictEqual(ended.stderr, '');
  const counters = JSON.parse(ended.stdout);
  assert.ok(counters['node.describe_threw'] > 0 && counters['node.describe_answer_refused'] > 0, ended.stdout);
  for (const [name, span] of Object.entries({ throws: undefined, nonsense: undefined, nothing: undefined, good: SPAN(5) })) {
    assert.deepStrictEqual(spansOf(of(ended.samples(), `${name}_store`)), [span], name);
  }
});

for (const [what, inMain] of [['the main thread', true], ['a worker', false]]) {
  for (const [how, action] of [
    ['calls stopSync()', 'spanprof.stopSync()'],
    ['calls stop()', "spanprof.stop().then(() => parent('stopped'))"],
    ['calls detach()', 'spanprof.detach()'],
    ['calls dump()', "spanprof.dump(file + '.dump.pb.gz').then(() => parent('dumped'))"],
    ['exits', 'process.exit(4)'],
  ]) {
    test(`a function of attach() that ${how} in ${what} harms nobody`, async () => {
      const ended = await runText(`
        const {AsyncLocalStorage} = require('async_hooks');
        const parent = (text) => process.stdout.write(text);
        function work() {
          const tracer = new AsyncLocalStorage();
          let asked = 0;
          spanprof.attach(tracer, (store) => {
            if (asked++ === 0) ${action};
            return {spanId: store.span};
          });
          for (let i = 0; i < 20; ++i) tracer.run({span: String(i + 1)}, named('in_span_' + i), 10);
          // Only the first dump, or the end, makes it ask.
          spanprof.dump(file + '.first.pb.gz').catch(() => {}).then(() => named('afterwards')(50));
        }
        if (isMainThread) {
          spanprof.start({wall: '1ms', file});
          if (${inMain}) work();
          else new Worker(__filename, {argv: [file]}).on('exit', (status) => { process.exitCode = status; });
        } else {
          work();
        }
      `);
      assertEndedWell(ended, how === 'exits' ? 4 : 0);
      // The profile is there, and what it has is true.
      for (const { functions, labels } of ended.samples()) {
        const name = functions.find((text) => text.startsWith('in_span_'));
        if (name === undefined || labels.span_id === undefined) continue;
        assert.strictEqual(labels.span_id, String(Number(name.slice('in_span_'.length)) + 1).padStart(16, '0'));
      }
    });
  }
}

test('a garbage collection is the time of the context that it began in', async () => {
  const ended = await runText(`
    const live = Array.from({length: 300000}, (_, i) => ({i}));
    spanprof.start({wall: '1ms', file});
    for (const span of ['1', '2']) {
      spanprof.runWithContext({spanId: span, tags: {phase: span}}, () => {
        const end = Date.now() + 300;
        while (Date.now() < end) gc();
      });
    }
    live.length = 0;
  `, { options: ['--expose-gc'] });
  assertEndedWell(ended);
  const collections = ended.samples().filter(({ functions, labels }) =>
    functions[0] === '(garbage collector)' && labels.span_id !== undefined);
  assert.ok(total(collections) > 0);
  assert.deepStrictEqual(spansOf(collections).sort(), [SPAN(1), SPAN(2)]);
  // One context ended before the other began.
  const times = (span) => collections.filter(({ labels }) => labels.span_id === span)
    .map(({ labels }) => Number(labels.end_timestamp_ns ?? labels.time_ns ?? 0));
  if (times(SPAN(1)).every((time) => time > 0)) {
    assert.ok(Math.max(...times(SPAN(1))) < Math.min(...times(SPAN(2))));
  }
});

test('the memory of a context goes with it, and so do the stores of samples', async () => {
  const ended = await runText(`
    const {AsyncLocalStorage} = require('async_hooks');
    const tracer = new AsyncLocalStorage();
    (async () => {
      spanprof.start({wall: '1ms', file});
      spanprof.attach(tracer, (store) => ({spanId: store.span}));
      const weak = [];
      for (let i = 0; i < 20; ++i) {
        const store = {span: '1'};
        weak.push(new WeakRef(store));
        await tracer.run(store, async () => { await null; named('attached')(10); });
      }
      for (let i = 0; i < 200000; ++i) {
        spanprof.runWithContext({spanId: '1', tags: {number: String(i)}}, () => {});
        if (i % 10000 === 0) await new Promise(setImmediate);
      }
      const most = spanprof.status().liveContexts;
      await spanprof.stop();
      for (let i = 0; i < 3; ++i) { await new Promise(setImmediate); gc(); }
      process.stdout.write(JSON.stringify({most, left: spanprof.status().liveContexts,
        stores: weak.filter((reference) => reference.deref() !== undefined).length}));
    })();
  `, { options: ['--expose-gc'] });
  assertEndedWell(ended);
  const { most, left, stores } = JSON.parse(ended.stdout);
  assert.ok(most < 200000, ended.stdout);
  assert.ok(left <= 2, ended.stdout);
  assert.ok(stores <= 1, ended.stdout);
});
