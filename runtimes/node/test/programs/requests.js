'use strict';
// Many requests at once, each of which runs a function that is named after its context, by every means that
// JavaScript has to go on later. What a sample says of its context can so be checked against its stack.
//   node requests.js attach|set|run SAMPLES PROFILE [SETTINGS]
// Settings, as JSON: threads, of workers that end and are started again; restarts, for a recording after the other, into
// PROFILE.0.pb.gz, PROFILE.1.pb.gz, ...; neighbour, an addon that uses SIGPROF too. With --expose-gc it collects often.

const { AsyncLocalStorage } = require('async_hooks');
const { Readable, Transform } = require('stream');
const { pipeline } = require('stream/promises');
const { MessageChannel, Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const spanprof = require('../..');

const [way, wanted, file, settings = '{}'] = isMainThread ? process.argv.slice(2) : [workerData];
const { threads = 0, restarts = false, neighbour } = JSON.parse(settings);
const KINDS = 16;
const LANES = 24;
const REQUESTS_OF_A_WORKER = 200;

const requests = new AsyncLocalStorage(); // What a tracer would have.
const other = new AsyncLocalStorage(); // Of somebody else in the program.

let garbage = [];
function work(amount) {
  let sum = 0;
  const made = [];
  for (let i = 0; i < amount; ++i) {
    sum = Math.imul(sum ^ i, 0x5bd1e995);
    if (i % 40 === 0) made.push({ sum, text: 'item' + sum });
  }
  garbage.push(made);
  if (garbage.length > 100) garbage = [];
  return sum;
}

// A function each, so that its name in a stack is that of its context.
const handlers = Array.from({ length: KINDS }, (_, kind) =>
  new Function('work', `return function request_${kind}(amount) { return work(amount) + ${kind}; }`)(work));

const spanOf = (kind) => (kind + 1).toString(16).padStart(16, '0');
const contextOf = (kind, number) =>
  ({ traceId: (number + 1).toString(16).padStart(32, '0'), spanId: spanOf(kind), rootSpanId: spanOf(kind) });

const later = {
  microtask: () => null,
  promise: () => new Promise((resolve) => Promise.resolve().then(() => queueMicrotask(resolve))),
  timer: () => new Promise((resolve) => setTimeout(resolve, 1)),
  immediate: () => new Promise((resolve) => setImmediate(resolve)),
  tick: () => new Promise((resolve) => process.nextTick(resolve)),
};

// Messages come back through a port: the answer is awaited in the continuation that asked.
function startEcho() {
  const { port1, port2 } = new MessageChannel();
  const waiting = new Map();
  port2.on('message', (message) => port2.postMessage(message));
  port1.on('message', (number) => {
    waiting.get(number)();
    waiting.delete(number);
  });
  let next = 0;
  return {
    ask: () => new Promise((resolve) => {
      waiting.set(++next, resolve);
      port1.postMessage(next);
    }),
    close: () => port1.close(),
  };
}

async function handle(kind, number, echo) {
  const run = (amount) => handlers[kind](amount);
  for (const wait of Object.values(later)) {
    run(8000);
    await wait();
    run(4000);
    other.run(number, () => run(2000));
    await other.run(kind, async () => {
      await null;
      run(2000);
    });
  }
  await echo.ask();
  run(3000);
  if (number % 8 === 0) {
    const double = new Transform({ transform(chunk, _encoding, done) { run(2000); done(null, chunk); } });
    await pipeline(Readable.from(['a', 'b', 'c']), double, async (source) => {
      for await (const _chunk of source) run(2000);
    });
  }
  if (number % 50 === 0) globalThis.gc?.();
  other.enterWith({ left: number });
  run(2000);
}

function enter(kind, number, echo) {
  const context = contextOf(kind, number);
  if (way === 'attach') {
    if (number % 3 === 0) {
      return other.run(number, async () => {
        requests.enterWith(context);
        await handle(kind, number, echo);
      });
    }
    return requests.run(context, handle, kind, number, echo);
  }
  if (way === 'run') return spanprof.runWithContext(context, handle, kind, number, echo);
  return other.run(number, async () => {
    spanprof.setContext(context);
    await handle(kind, number, echo);
  });
}

async function serve(enough) {
  if (way === 'attach') spanprof.attach(requests, (store) => store);
  const echo = startEcho();
  let number = 0;
  const lane = async () => {
    while (!enough(number)) {
      const kind = ++number % KINDS;
      await enter(kind, number, echo);
      await later.immediate();
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  echo.close();
}

let done = false;

// One after the other, until all is done.
async function keepWorker() {
  while (!done) {
    const worker = new Worker(__filename, { workerData: way });
    await new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject));
  }
}

// Gives the counters of all recordings together.
async function record() {
  const sums = {};
  const samples = (counters) => counters['node.samples'] ?? 0;
  for (let number = 0; !done; ++number) {
    spanprof.start({ cpu: '200us', file: restarts ? `${file}.${number}.pb.gz` : file });
    if (restarts) await new Promise((resolve) => setTimeout(resolve, (number % 5) * 100));
    else while (samples(spanprof.status().counters) < wanted) await later.timer();
    await spanprof.stop();
    for (const [name, value] of Object.entries(spanprof.status().counters)) sums[name] = (sums[name] ?? 0) + value;
    done = samples(sums) >= wanted;
  }
  return sums;
}

async function main() {
  if (neighbour !== undefined) require(neighbour).startTimer();
  const workers = Array.from({ length: threads }, keepWorker);
  const [counters] = await Promise.all([record(), serve(() => done), ...workers]);
  const { way: used } = spanprof.status();
  process.stdout.write(JSON.stringify({ way: used, counters }));
}

if (isMainThread) main();
else serve((number) => number >= REQUESTS_OF_A_WORKER);
