'use strict';
// The rows: ways to give a context to samples. A tracer keeps its active span in an AsyncLocalStorage anyway, so
// every row does that too; what a row costs more is what its way costs.
//
//   start(micros)     begins to sample, or does nothing
//   stop()            ends it, with the profile written
//   run(span, fn)     runs fn, and all that it awaits, in the span
//   enter(span)       the same from here on

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

const WAYS = {
  'no profiler': following(nothing, nothing),
  'spanprof, no contexts': following(startOurs, stopOurs),
  'spanprof attach': following((micros) => {
    startOurs(micros);
    spanprof.attach(tracer, contextOf);
  }, stopOurs),
  'spanprof runWithContext': running(startOurs, stopOurs, (context, fn) => spanprof.runWithContext(context, fn)),
  'spanprof setContext': setting(startOurs, stopOurs, (context) => spanprof.setContext(context)),
  'pprof, no contexts': following(startTheirs({ withContexts: false, collectCpuTime: false }), stopTheirs),
  'pprof runWithContext': running(startTheirs({ useCPED: true }), stopTheirs, (context, fn) => pprof.runWithContext(context, fn)),
  'pprof setContext': setting(startTheirs({ useCPED: true }), stopTheirs, setTheirs),
  // One slot for the whole thread: right only until the next continuation, so no load runs with it.
  'pprof setContext, one slot': { ...setting(startTheirs({ useCPED: false }), stopTheirs, setTheirs), run: undefined },
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
