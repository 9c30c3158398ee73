'use strict';
// Many requests at once, each of which runs a function that is named after its context, by every means that
// JavaScript has to go on later. What a sample says of its context can so be checked against its stack.
//   node requests.js attach|set|run SAMPLES PROFILE [threads]

const { AsyncLocalStorage } = require('async_hooks');
const { Readable, Transform } = require('stream');
const { pipeline } = require('stream/promises');
const { MessageChannel, Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const spanprof = require('../..');

const [way, wanted, file, threads] = isMainThread ? process.argv.slice(2) : workerData;
const KINDS = 16;
const LANES = 24;

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

const taken = () => spanprof.status().counters['node.samples'] ?? 0;

async function serve(enough) {
  if (way === 'attach') spanprof.attach(requests, (store) => store);
  const echo = startEcho();
  let number = 0;
  const lane = async () => {
    while (!enough()) {
      const kind = ++number % KINDS;
      await enter(kind, number, echo);
      await later.immediate();
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  echo.close();
}

async function main() {
  spanprof.start({ cpu: '200us', file });
  const workers = Array.from({ length: Number(threads ?? 0) }, () =>
    new Worker(__filename, { workerData: [way, wanted, file] }));
  await serve(() => taken() >= Number(wanted));
  for (const worker of workers) worker.postMessage('enough');
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))));
  await spanprof.stop();
  process.stdout.write(JSON.stringify(spanprof.status()));
}

if (isMainThread) {
  main();
} else {
  let enough = false;
  parentPort.once('message', () => { enough = true; });
  serve(() => enough);
}
