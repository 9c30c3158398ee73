// A profiler whose samples carry the trace, span and tags that were active at that instant.
//
//   const spanprof = require('spanprof');
//   spanprof.start({wall: '10ms', cpu: true, file: 'profile.pb.gz'});
//   spanprof.attach(tracerStorage, (store) => ({traceId: store.traceId, spanId: store.spanId}));
//   ...
//   await spanprof.stop();
//
// Where the addon could not be had, every call is there and does nothing; status() says why.

import { AsyncLocalStorage, AsyncResource } from 'async_hooks';
import { isMainThread, threadId } from 'worker_threads';
import type { Binding, ContextWay, NativeContext } from './binding';
import { copyOf } from './context_copy';
import { loadAddon } from './load_addon';
import { nothing } from './nothing';
import { optionText } from './options';
import type { StartOptions } from './options';
import { contextList, idText, tagList } from './sample_context';
import type { SampleContext } from './sample_context';
import { SlotContexts } from './slot_contexts';
import { SourceMaps } from './source_maps';

export type { ContextWay, SampleContext, StartOptions };

export interface Status {
  version: string;
  /** Whether there is an addon. Without it nothing is recorded. */
  addon: boolean;
  /** Why there is no addon, or why contexts come the way they do. */
  reason: string;
  recording: boolean;
  /** Whether this thread is being sampled. */
  sampling: boolean;
  /** How contexts come to samples in this thread. */
  way: ContextWay;
  attached: boolean;
  /** What readers outside the process see of contexts. */
  outsideReaders: string;
  /** Contexts of setContext() and runWithContext() that are alive in this thread, where the addon has memory for them:
   * in async context frames. */
  liveContexts: number;
  /** What was given up or dropped, by reason, since the recording began. */
  counters: Record<string, number>;
}

const loaded = loadAddon();
const native: Binding =
  loaded.binding !== undefined ? (loaded.binding as Binding) : nothing(loaded.reason ?? 'there is no addon');
const { version } = require('../package.json') as { version: string };

let sourceMaps: SourceMaps | undefined;
let attachedStorage: AsyncLocalStorage<unknown> | undefined;

// How contexts come to samples: in frames, with a storage of our own, or by a slot. Made when a context is first
// spoken of.
type Contexts =
  | { storage: AsyncLocalStorage<NativeContext | undefined>; slot?: undefined }
  | { slot: SlotContexts };
let contexts: Contexts | undefined;

// Tries a storage without a trace. run() alone leaves the storage's key in the caller's frame, which makes every
// frame that is copied from it larger, for good.
function whileProbing<Result>(storage: AsyncLocalStorage<unknown>, probe: object, check: () => Result): Result {
  return new AsyncResource('spanprof').runInAsyncScope(() => storage.run(probe, check));
}

function ourContexts(): Contexts {
  if (contexts !== undefined) return contexts;
  const storage = new AsyncLocalStorage<NativeContext | undefined>();
  const probe = {} as NativeContext;
  const framed = whileProbing(storage as AsyncLocalStorage<unknown>, probe, () => native.useOwnStorage(storage, probe));
  contexts = framed ? { storage } : { slot: new SlotContexts(native) };
  return contexts;
}

/** Starts a recording of the process. Worker threads that have loaded this module take part. */
export function start(options: StartOptions = {}): void {
  useSourceMaps(options.sourcemaps !== false);
  native.start(optionText(options));
}

/** The same with an option string, as in the variable SPANPROF. */
export function startText(text: string): void {
  useSourceMaps(true);
  native.start(text);
}

function useSourceMaps(wanted: boolean): void {
  sourceMaps = wanted ? new SourceMaps() : undefined;
  native.setSourceMapper(wanted ? (url, line, column, name) => sourceMaps?.map(url, line, column, name) : undefined);
}

/** Ends the recording. Its last profile has been written and sent when the promise is resolved. */
export function stop(): Promise<void> {
  return new Promise((resolve, reject) => {
    native.stop((error) => (error === undefined ? resolve() : reject(new Error(error))));
  });
}

/** Ends the recording, if there is one, and has written it when it returns: for the end of a process, which need not
 * call it. */
export function stopSync(): void {
  native.stopSync();
}

/** Writes what was recorded so far, and goes on. Gives the file's path. */
export function dump(file: string): Promise<string> {
  return new Promise((resolve, reject) => {
    native.dump(file, (error, path) => (error === undefined ? resolve(path ?? file) : reject(new Error(error))));
  });
}

/**
 * Samples carry what `describe` makes of the store that `storage` has at that instant. Setting and switching stores
 * costs nothing more than without a profiler.
 *
 * `describe` is called once for each distinct store, up to a few seconds after the sample. So this is for stores that
 * do not change after they are set, such as OpenTelemetry's contexts: of one that changes, samples from before the
 * change are told as it is after it. Use setContext() or runWithContext() then.
 *
 * In this thread only: each worker attaches its own storage.
 */
export function attach<Store>(
  storage: AsyncLocalStorage<Store>,
  describe: (store: Store) => SampleContext | undefined,
): void {
  if (!(storage instanceof AsyncLocalStorage)) throw new TypeError('attach() needs an AsyncLocalStorage');
  if (typeof describe !== 'function') throw new TypeError('attach() needs a function that describes a store');
  if (attachedStorage !== undefined) throw new Error('a storage is attached already; call detach() first');
  const read = (store: unknown) => contextList(describe(store as Store));
  const any = storage as AsyncLocalStorage<unknown>;
  const { slot } = ourContexts();
  if (slot === undefined) {
    const probe = {};
    whileProbing(any, probe, () => native.attach(any, probe, read));
  } else {
    native.attachSlot(read);
    slot.follow(any);
  }
  attachedStorage = any;
}

export function attached(): boolean {
  return attachedStorage !== undefined;
}

export function detach(): void {
  if (attachedStorage === undefined) return;
  contexts?.slot?.forget(attachedStorage);
  native.detach();
  attachedStorage = undefined;
}

function contextOf(context: SampleContext | undefined): NativeContext | undefined {
  if (context === undefined || context === null) return undefined;
  return native.newContext(
    context.traceId,
    idText(context.spanId),
    idText(context.rootSpanId),
    context.endpoint,
    tagList(context.tags),
  );
}

/** Sets the context of what runs from here on, and of all that it starts. Undefined: none. */
export function setContext(context: SampleContext | undefined): void {
  const ours = ourContexts();
  if (ours.slot === undefined) ours.storage.enterWith(contextOf(context));
  else ours.slot.enter(copyOf(context));
}

/** Calls the function with a context, which all that it starts inherits. */
export function runWithContext<Result, Values extends unknown[]>(
  context: SampleContext | undefined,
  callback: (...values: Values) => Result,
  ...values: Values
): Result {
  const ours = ourContexts();
  if (ours.slot === undefined) return ours.storage.run(contextOf(context), callback, ...values);
  return ours.slot.run(copyOf(context), callback, values);
}

/** The route or operation of all spans under a local root, at any time before the profile is written. */
export function setEndpoint(rootSpanId: string | bigint, name: string): void {
  native.setEndpoint(idText(rootSpanId) ?? '', name);
}

/** What works here, why, and what was given up. */
export function status(): Status {
  const now = native.status();
  return {
    version,
    addon: loaded.binding !== undefined,
    reason: now.reason,
    recording: now.recording,
    sampling: now.sampling,
    way: now.way,
    attached: attachedStorage !== undefined,
    outsideReaders: outsideReaders(now.outsideReaders),
    liveContexts: now.liveContexts,
    counters: { ...now.counters, ...sourceMaps?.counters() },
  };
}

function outsideReaders(ofContexts: string): string {
  if (attachedStorage === undefined) return ofContexts;
  return `${ofContexts}; of attach() nothing: its stores are objects of the program`;
}

function threadName(): string {
  if (isMainThread) return 'main';
  const { threadName: given } = require('worker_threads') as { threadName?: string };
  // What Node.js calls every worker that was given no name.
  return given && given !== 'WorkerThread' ? given : `worker ${threadId}`;
}

// A thread that has loaded the module takes part in every recording of the process, whichever thread calls start(). The
// process ends with its main thread.
useSourceMaps(true);
process.on('exit', isMainThread ? stopSync : () => native.leave());
native.join(threadName());
