// What the addon gives to the rest of the package. Types only: where there is no addon, nothing.ts has the
// same shape.

// Which way contexts come to samples in this thread.
export type ContextWay = 'async-context-frame' | 'atomic-slot' | 'none';

export interface NativeStatus {
  recording: boolean;
  // This thread is being sampled.
  sampling: boolean;
  way: ContextWay;
  // Why it is that way, for people.
  reason: string;
  // What readers outside the process see of this thread's contexts, for people.
  outsideReaders: string;
  // Contexts of setContext and runWithContext that are alive in this thread.
  liveContexts: number;
  counters: Record<string, number>;
}

export interface SourcePosition {
  file: string;
  line?: number;
  column?: number;
  name?: string;
}

export type SourceMapper = (
  url: string,
  line: number,
  column: number,
  name: string,
) => SourcePosition | undefined;

// The store of our own AsyncLocalStorage: its memory is the addon's.
export type NativeContext = { readonly __spanprofContext: unique symbol };

// Gives [traceId, spanId, rootSpanId, endpoint, tag names and values in turn], each a text or undefined, or
// undefined where there is no context.
export type StoreReader = (store: unknown) => ReadonlyArray<string | undefined> | undefined;

export type Done = (error: string | undefined, path?: string) => void;

// Calls throw an Error with the reason, unless they say otherwise.
export interface Binding {
  // Starts a recording of the process, with the option string of SPANPROF.
  start(options: string): void;
  stop(done: Done): void;
  // For the end of a process: has written, or given up, when it returns.
  stopSync(): void;
  dump(file: string, done: Done): void;
  recording(): boolean;
  // This thread takes part in recordings under this name.
  join(threadName: string): void;
  // No JavaScript will run in this thread any more: takes over what it recorded.
  leave(): void;

  // To be called inside storage.run(probe, ...), once a thread. Whether frames can be read: if not, contexts
  // come through setSlot, and status() says why.
  useOwnStorage(storage: object, probe: unknown): boolean;
  // To be called inside storage.run(probe, ...).
  attach(storage: object, probe: unknown, read: StoreReader): void;
  // Frames cannot be read: what setSlot gets is a store of the attached storage.
  attachSlot(read: StoreReader): void;
  detach(): void;
  // Frames cannot be read: objects with this prototype, which setSlot gets, are contexts (context_copy.ts).
  useContextCopies(prototype: object): void;
  setSlot(store: unknown): void;

  // A context with its own memory; tags are names and values in turn. Undefined, and counted: too many of them
  // are alive.
  newContext(
    traceId: string | undefined,
    spanId: string | undefined,
    rootSpanId: string | undefined,
    endpoint: string | undefined,
    tags: ReadonlyArray<string> | undefined,
  ): NativeContext | undefined;
  setEndpoint(rootSpanId: string, name: string): void;

  setSourceMapper(mapper: SourceMapper | undefined): void;
  // Converts what V8 has sampled in this thread up to now.
  cut(): void;
  status(): NativeStatus;
}
