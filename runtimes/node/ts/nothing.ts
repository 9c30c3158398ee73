// What stands in for the addon where there is none: every call is there, and does nothing. It is said once, when a
// recording is asked for, and always by status().

import type { Binding, NativeContext } from './binding';

export function nothing(reason: string): Binding {
  const context = Object.freeze({}) as unknown as NativeContext;
  let warned = false;
  return {
    start() {
      if (warned) return;
      warned = true;
      process.stderr.write(`spanprof: nothing is recorded: ${reason}\n`);
    },
    stop: (done) => done(undefined),
    stopSync() {},
    dump: (_file, done) => done(undefined),
    recording: () => false,
    join() {},
    leave() {},
    useOwnStorage: () => true,
    attach() {},
    attachSlot() {},
    detach() {},
    useContextCopies() {},
    setSlot() {},
    newContext: () => context,
    setEndpoint() {},
    setSourceMapper() {},
    cut() {},
    status: () => ({
      recording: false,
      sampling: false,
      way: 'none',
      reason,
      outsideReaders: 'see nothing: there is no addon',
      liveContexts: 0,
      counters: {},
    }),
  };
}
