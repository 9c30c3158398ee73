'use strict';
// The rows: ways to give a context to samples. A tracer keeps its active span in an AsyncLocalStorage anyway, so
// every row does that too; what a row costs more is what its way costs.
//
//   start(micros)     begins to sample, or does nothing
//   stop()            ends it, with the profile written
//   run(span, fn)     runs fn, and all that it awaits, in the span
//   enter(span)       the same from here on
//   tables            those that have the row, if not all: calls, loads, memory
//   options           of Node.js, for this row

const { AsyncLocalStorage } = require('async_hooks');
const path = require('path');

const tracer = new AsyncLocalStorage();
const nothing = () => {};
const plainRun = (span, fn) => tracer.run(span, fn);
const plainEnter = (span) => tracer.enterWith(span);

// Loaded when a row begins: the others are measured without them.
let spanprof;
let peer;
let pprof;

function loadOurs() {
  spanprof = require('../../runtimes/node');
}

function loadTheirs() {
  peer = require(require.resolve('@datadog/pprof', { paths: [process.env.SPANPROF_NODE_PEERS || '/'] }));
  pprof = peer.time;
}

const PROFILE = path.join(process.env.SPANPROF_BENCH_FOLDER || '/dev/shm', `spanprof-bench-${process.pid}.pb.gz`);

function startOurs(micros) {
  loadOurs();
  spanprof.start({ cpu: `${micros}us`, wall: `${micros}us`, file: PROFILE });
}

async function stopOurs() {
  await spanprof.stop();
  require('fs').rmSync(PROFILE, { force: true });
}

function startTheirs(options) {
  return (micros) => {
    loadTheirs();
    pprof.start({ intervalMicros: micros, withContexts: true, collectCpuTime: true, ...options });
  };
}

async function stopTheirs() {
  const profile = pprof.stop(false, ({ context }) => ({ ...context?.context }));
  await peer.encode(profile);
}

const contextOf = (span) => ({ spanId: span.spanId, rootSpanId: span.rootSpanId });

// The context is given inside the tracer's span: for a function, or from here on.
function running(start, stop, runWithContext) {
  return { start, stop, run: (span, fn) => tracer.run(span, () => runWithContext(contextOf(span), fn)) };
}

function setting(start, stop, setContext) {
  return {
    start,
    stop,
    run: (span, fn) => tracer.run(span, () => {
      setContext(contextOf(span));
      return fn();
    }),
    enter: (span) => {
      tracer.enterWith(span);
      setContext(contextOf(span));
    },
  };
}

function following(start, stop) {
  return { start, stop, run: plainRun, enter: plainEnter };
}

const setTheirs = (context) => pprof.setContext(context);
const setOurs = (context) => spanprof.setContext(context);

function startAttached(micros) {
  startOurs(micros);
  spanprof.attach(tracer, contextOf);
}

// V8's profiler by itself, as the inspector has it: what every sampler of JavaScript costs at least.
let session;
const post = (method, parameters) => new Promise((resolve, reject) =>
  session.post(method, parameters, (error, answer) => (error ? reject(error) : resolve(answer))));

function startV8(micros) {
  session = new (require('inspector').Session)();
  session.connect();
  post('Profiler.enable');
  post('Profiler.setSamplingInterval', { interval: micros });
  post('Profiler.start');
}

async function stopV8() {
  JSON.stringify(await post('Profiler.stop'));
}

// Where Node.js keeps no frame with a continuation there is one slot for the thread. Ours is refilled by an async hook
// when another continuation begins; a slot that is only set is right until then, so no load runs with it.
const WITHOUT_FRAME = process.allowedNodeEnvironmentFlags.has('--async-context-frame') ? ['--no-async-context-frame'] : [];
const onlyCalls = (way) => ({ ...way, run: undefined, tables: ['calls'], options: WITHOUT_FRAME });

const WAYS = {
  'no profiler': following(nothing, nothing),
  "V8's profiler alone": { ...following(startV8, stopV8), tables: ['loads'] },
  'spanprof, no contexts': following(startOurs, stopOurs),
  'spanprof attach': following(startAttached, stopOurs),
  'spanprof runWithContext': running(startOurs, stopOurs, (context, fn) => spanprof.runWithContext(context, fn)),
  'spanprof setContext': setting(startOurs, stopOurs, setOurs),
  'pprof, no contexts': following(startTheirs({ withContexts: false, collectCpuTime: false }), stopTheirs),
  'pprof runWithContext': running(startTheirs({ useCPED: true }), stopTheirs, (context, fn) => pprof.runWithContext(context, fn)),
  'pprof setContext': setting(startTheirs({ useCPED: true }), stopTheirs, setTheirs),
  'no profiler, one slot': onlyCalls(following(nothing, nothing)),
  'spanprof attach, one slot': onlyCalls(following(startAttached, stopOurs)),
  'spanprof setContext, one slot': onlyCalls(setting(startOurs, stopOurs, setOurs)),
  'pprof setContext, one slot': onlyCalls(setting(startTheirs({ useCPED: false }), stopTheirs, setTheirs)),
};

// Where peers are not installed, their rows are left out.
function hasPeer() {
  try {
    loadTheirs();
    return true;
  } catch {
    return false;
  }
}

function spans(count) {
  return Array.from({ length: count }, (_, index) => ({
    spanId: (0x1000000000000000n + BigInt(index)).toString(16),
    rootSpanId: '1000000000000000',
  }));
}

module.exports = { WAYS, hasPeer, spans };
