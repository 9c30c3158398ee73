'use strict';
// A recording from its start to its end, however that comes.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { assertBurned, of, total } = require('./checked_profile');
const { assertEndedWell, newFolder, runNode, runText } = require('./child_process');
const { readSamples } = require('./package/read_profile');

test('a program that just ends has its profile', async () => {
  const ended = await runText(`
    spanprof.start({wall: '1ms', cpu: true, file});
    named('at_the_end')(200);
  `);
  assertEndedWell(ended);
  assert.strictEqual(ended.stderr, '');
  assertBurned(ended.samples(), 'at_the_end', 200);
});

test('so has one that calls process.exit() in the middle', async () => {
  const ended = await runText(`
    spanprof.start({wall: '1ms', file});
    setInterval(() => {}, 1000);
    Promise.resolve().then(() => { named('before_exit')(200); process.exit(7); });
  `);
  assertEndedWell(ended, 7);
  assertBurned(ended.samples(), 'before_exit', 200);
});

test('and one that ends by an exception', async () => {
  const ended = await runText(`
    spanprof.start({wall: '1ms', file});
    setTimeout(() => { named('before_throw')(200); throw new Error('the program is broken'); }, 1);
  `);
  assertEndedWell(ended, 1);
  assert.match(ended.stderr, /the program is broken/);
  assertBurned(ended.samples(), 'before_throw', 200);
});

test('and one that exits while stop() is under way, or within a collection of samples', async () => {
  const ended = await runText(`
    spanprof.start({wall: '1ms', file});
    named('stopping')(200);
    spanprof.dump(file + '.dump.pb.gz');
    spanprof.stop();
    process.exit(0);
  `);
  assertEndedWell(ended);
  assertBurned(ended.samples(), 'stopping', 200);
});

test('stopSync() may come before an answer to stop(), which still comes', async () => {
  const ended = await runText(`
    spanprof.start({wall: '1ms', file});
    named('stopped_twice')(100);
    spanprof.stop().then(() => process.stdout.write('answered'));
    spanprof.stopSync();
  `);
  assertEndedWell(ended);
  assert.strictEqual(ended.stdout, 'answered');
  assertBurned(ended.samples(), 'stopped_twice', 100);
});

test('workers are sampled from where they load the module, and end in every way', async () => {
  const ended = await runText(`
    const ways = {
      returns: () => named('worker_returns')(150),
      exits: () => { named('worker_exits')(150); process.exit(3); },
      throws: () => { named('worker_throws')(150); throw new Error('expected'); },
      terminated: () => { for (;;) named('worker_terminated')(10); },
      waits: () => { named('worker_waits')(150); setInterval(() => {}, 1000); parentPort.postMessage('done'); },
    };
    async function main() {
      spanprof.start({wall: '1ms', file});
      for (let round = 0; round < 2; ++round) {
        await Promise.all(Object.keys(ways).map((way) => new Promise((resolve) => {
          const worker = new Worker(__filename, {workerData: way, argv: [file]});
          worker.on('error', () => {});
          worker.on('exit', resolve);
          worker.on('message', () => worker.terminate());
          if (way === 'terminated') setTimeout(() => worker.terminate(), 400);
        })));
      }
      await spanprof.stop();
    }
    if (isMainThread) main(); else ways[require('worker_threads').workerData]();
  `);
  assertEndedWell(ended);
  const samples = ended.samples();
  for (const way of ['returns', 'exits', 'throws', 'waits']) {
    assertBurned(samples, `worker_${way}`, 150);
  }
  const threads = new Set(samples.map(({ labels }) => labels.thread_name));
  assert.ok(threads.has('main') && threads.size > 5, [...threads].join());
});

test('the process may exit while workers run', async () => {
  const ended = await runText(`
    if (isMainThread) {
      spanprof.start({wall: '1ms', file});
      const workers = Array.from({length: 3}, () => new Worker(__filename, {argv: [file]}));
      let ready = 0;
      for (const worker of workers) worker.on('message', () => { if (++ready === 3) process.exit(0); });
    } else {
      const work = named('worker_goes_on');
      work(150);
      parentPort.postMessage('ready');
      setInterval(() => work(5), 6);
    }
  `);
  assertEndedWell(ended);
  assertBurned(ended.samples(), 'worker_goes_on', 150);
});

for (const [what, inMain, inWorker] of [
  ['the worker goes on', '', "parentPort.postMessage('recorded'); setInterval(() => {}, 1000);"],
  ['the worker has ended', '', "setTimeout(() => parentPort.postMessage('recorded'), 1);"],
  ['the main thread has loaded the module too', 'spanprof.status();', "parentPort.postMessage('recorded'); setInterval(() => {}, 1000);"],
]) {
  test(`a recording that a worker started is written when the main thread ends it all: ${what}`, async () => {
    const folder = newFolder();
    const file = path.join(folder, 'profile.pb.gz');
    const program = path.join(folder, 'app.js');
    fs.writeFileSync(program, `
      const { Worker, isMainThread, parentPort } = require('worker_threads');
      const load = () => require(${JSON.stringify(path.resolve(__dirname, '..'))});
      if (isMainThread) {
        ${inMain === '' ? '' : `const spanprof = load(); ${inMain}`}
        const worker = new Worker(__filename);
        worker.on('${what === 'the worker has ended' ? 'exit' : 'message'}', () => process.exit(5));
      } else {
        const spanprof = load();
        const { named } = require(${JSON.stringify(path.join(__dirname, 'programs', 'burn.js'))});
        spanprof.start({wall: '1ms', file: ${JSON.stringify(file)}});
        spanprof.runWithContext({spanId: '1'}, named('in_worker'), 150);
        ${inWorker}
      }
    `);
    assertEndedWell(await runNode([program]), 5);
    const samples = readSamples(file);
    assertBurned(samples, 'in_worker', 150);
    assert.ok(of(samples, 'in_worker').every(({ labels }) => labels.span_id === '0000000000000001'));
  });
}

test('a recording can be started and stopped again and again', async () => {
  const ended = await runText(`
    (async () => {
      const work = named('again');
      for (let i = 0; i < 20; ++i) {
        spanprof.start({wall: '1ms', cpu: true, file: i === 19 ? file : file + i + '.pb.gz'});
        work(20);
        if (i % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        work(20);
        await spanprof.stop();
      }
      process.stdout.write(JSON.stringify(spanprof.status()));
    })();
  `);
  assertEndedWell(ended);
  assert.strictEqual(JSON.parse(ended.stdout).recording, false);
  for (let i = 0; i < 19; ++i) {
    const samples = readSamples(`${ended.file}${i}.pb.gz`);
    assert.ok(total(of(samples, 'again')) > 0, `recording ${i}`);
  }
  assert.ok(total(of(ended.samples(), 'again')) > 0);
});

test('dump() writes what there is, and the recording goes on', async () => {
  const ended = await runText(`
    (async () => {
      spanprof.start({wall: '1ms', file});
      named('before_dump')(150);
      const path = await spanprof.dump(file + '.dump.pb.gz');
      named('after_dump')(150);
      await spanprof.stop();
      process.stdout.write(path);
    })();
  `);
  assertEndedWell(ended);
  const dumped = readSamples(ended.stdout);
  assertBurned(dumped, 'before_dump', 150);
  assert.strictEqual(total(of(dumped, 'after_dump')), 0);
  const all = ended.samples();
  assertBurned(all, 'before_dump', 150);
  assertBurned(all, 'after_dump', 150);
});

test('with every= there is a profile at each interval, and none of the samples twice', async () => {
  const ended = await runText(`
    (async () => {
      spanprof.start({wall: '1ms', every: '1s', file: require('path').join(require('path').dirname(file), 'part-%n.pb.gz')});
      for (let i = 0; i < 260; ++i) {
        named('all_the_time')(10);
        await new Promise(setImmediate);
      }
      await spanprof.stop();
      process.stdout.write(JSON.stringify(spanprof.status().counters));
    })();
  `);
  assertEndedWell(ended);
  const parts = fs.readdirSync(ended.folder).filter((name) => name.startsWith('part-'));
  assert.ok(parts.length >= 3, parts.join());
  const inParts = parts.map((name) => total(readSamples(path.join(ended.folder, name))));
  const counted = JSON.parse(ended.stdout)['node.samples'];
  assert.strictEqual(inParts.reduce((sum, count) => sum + count), counted);
});

test('what cannot be done is refused, with the reason', async () => {
  const ended = await runText(`
    const messages = [];
    const say = (error) => messages.push(error.message);
    const attempt = (action) => { try { action(); } catch (error) { say(error); } };
    (async () => {
      await spanprof.stop().catch(say);
      attempt(() => spanprof.start({wall: '1ms', cpu: '2ms', file}));
      attempt(() => spanprof.start({wall: 'often', file}));
      attempt(() => spanprof.start({lock: '1ms', file}));
      attempt(() => spanprof.start({wall: '1ms', file: '/no/such/folder/profile.pb.gz'}));
      spanprof.start({wall: '1ms', file});
      attempt(() => spanprof.start({wall: '1ms', file}));
      attempt(() => spanprof.attach({}, () => undefined));
      attempt(() => spanprof.setContext({spanId: 'no digits'}));
      await spanprof.dump('/no/such/folder/dump.pb.gz').catch(say);
      await spanprof.stop();
      process.stdout.write(JSON.stringify(messages));
    })();
  `);
  assertEndedWell(ended);
  const expected = [/nothing is being recorded/, /two different intervals/, /wall=/, /lock=/, /\/no\/such\/folder/,
    /under way already/, /AsyncLocalStorage/, /spanId is not 16 hexadecimal digits/, /\/no\/such\/folder/];
  const messages = JSON.parse(ended.stdout);
  assert.strictEqual(messages.length, expected.length, messages.join('\n'));
  messages.forEach((message, index) => assert.match(message, expected[index]));
});

test("V8's own profiler can run beside ours", async () => {
  const ended = await runText(`
    (async () => {
      const session = new (require('inspector').Session)();
      session.connect();
      const post = (method) => new Promise((resolve, reject) =>
        session.post(method, (error, answer) => (error ? reject(error) : resolve(answer))));
      await post('Profiler.enable');
      await post('Profiler.start');
      spanprof.start({wall: '1ms', file});
      spanprof.runWithContext({spanId: '1'}, named('both'), 200);
      await spanprof.stop();
      named('inspector_alone')(100);
      const {profile} = await post('Profiler.stop');
      process.stdout.write(JSON.stringify(profile.nodes.map((node) => node.callFrame.functionName)));
    })();
  `);
  assertEndedWell(ended);
  const seen = JSON.parse(ended.stdout);
  assert.ok(seen.includes('both') && seen.includes('inspector_alone'));
  const samples = of(ended.samples(), 'both');
  assert.ok(total(samples) > 0);
  assert.ok(samples.every(({ labels }) => labels.span_id === '0000000000000001'));
});

test('allocations are sampled where they are made', async () => {
  const ended = await runText(`
    (async () => {
      const keep = [];
      function allocates() {
        for (let i = 0; i < 20000; ++i) keep.push({text: 'x' + i, list: [i, i, i]});
        keep.length = 0;
      }
      spanprof.start({alloc: '16k', file});
      for (let i = 0; i < 20; ++i) {
        allocates();
        await new Promise(setImmediate);
      }
      await spanprof.stop();
    })();
  `);
  assertEndedWell(ended);
  const samples = of(ended.samples(), 'allocates');
  assert.ok(samples.length > 0);
  // 20 times 20,000 times at least two objects of 32 bytes or more.
  const bytes = samples.reduce((sum, { values }) => sum + values[values.length - 1], 0);
  assert.ok(bytes > 10e6, `${bytes} bytes`);
});
