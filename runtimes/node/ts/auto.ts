// node -r spanprof/auto app.js, or --import spanprof/auto: records the whole program, as the variable SPANPROF says,
// without a change to it. Samples carry OpenTelemetry's spans if the program uses it. No profiler is a reason for a
// program not to run.

import { isMainThread } from 'worker_threads';
import { startText, status, stopSync } from './index';
import { follow } from './opentelemetry';

const DEFAULT_OPTIONS = 'cpu=10ms,wall=10ms,file=spanprof-%p.pb.gz';
// Those that end a program unless it handles them.
const ENDING_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

// Where the program has a handler of its own, it decides what happens, and the profile is written when it exits.
// Where it has none, the profile is written, and then the signal does what it would have done.
function writeBeforeEndingSignals(): void {
  for (const signal of ENDING_SIGNALS) {
    const handler = (): void => {
      if (process.listeners(signal).some((listener) => listener !== handler)) return;
      writeProfile();
      process.removeListener(signal, handler);
      process.kill(process.pid, signal);
    };
    process.on(signal, handler);
  }
}

function writeProfile(): void {
  try {
    if (status().recording) stopSync();
  } catch (error) {
    warn('the last profile was not written', error);
  }
}

function warn(what: string, error: unknown): void {
  process.stderr.write(`spanprof: ${what}: ${error instanceof Error ? error.message : String(error)}\n`);
}

// A worker takes part in the recording of its process by loading the package.
try {
  if (isMainThread) {
    startText(process.env['SPANPROF']?.trim() || DEFAULT_OPTIONS);
    if (status().recording) writeBeforeEndingSignals();
  }
  follow();
} catch (error) {
  warn('nothing is recorded', error);
}
