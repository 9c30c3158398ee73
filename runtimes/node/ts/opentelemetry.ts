// Samples carry the active span of OpenTelemetry JS, without a change to the application:
//
//   require('spanprof/opentelemetry').follow();
//
// spanprof/auto does that by itself. OpenTelemetry's context manager keeps the active context in an AsyncLocalStorage,
// and a context never changes after it is made: that storage is attached, so a span costs nothing when it is
// entered, left or awaited. It does not matter whether OpenTelemetry is set up before or after.

import { AsyncLocalStorage } from 'async_hooks';
import { attach, detach, type SampleContext } from './index';
import { localRootOf, noteRoots, type OtelSpan, spanOf } from './opentelemetry_roots';

export interface FollowState {
  /** 'waiting': OpenTelemetry has registered no context manager yet. */
  spans: 'waiting' | 'attached' | 'refused';
  /** Whether samples know the local root of their span, and so the endpoint. */
  roots: 'waiting' | 'noted' | 'unknown';
  /** Why samples have no spans, or no roots. */
  reason?: string;
}

// Where every copy of @opentelemetry/api of this major version keeps what was registered.
const GLOBAL = Symbol.for('opentelemetry.js.api.1');
const INVALID_SPAN_ID = '0000000000000000';
const SERVER = 1;
const CONSUMER = 4;

const state: FollowState = { spans: 'waiting', roots: 'waiting' };
let following = false;

/** Waits for OpenTelemetry to be registered, or takes it as it is. Once is enough. */
export function follow(): void {
  if (following) return;
  following = true;
  watch(globalThis as Record<symbol, unknown>, GLOBAL, (api) => {
    if (typeof api !== 'object' || api === null) return;
    const registered = api as Record<string, unknown>;
    watch(registered, 'context', followContexts);
    watch(registered, 'trace', followTraces);
  });
}

export function followState(): FollowState {
  return { ...state };
}

/** What is published of a context of OpenTelemetry's. Runs when a profile is written. */
export function describeContext(context: unknown): SampleContext | undefined {
  const span = spanOf(context);
  if (span === undefined) return undefined;
  const { traceId, spanId } = span.spanContext();
  if (spanId === INVALID_SPAN_ID) return undefined;
  const root = localRootOf(span);
  if (root === undefined) return { traceId, spanId };
  const described: SampleContext = { traceId, spanId, rootSpanId: root.spanContext().spanId };
  const endpoint = endpointOf(root);
  if (endpoint !== undefined) described.endpoint = endpoint;
  return described;
}

// By OpenTelemetry's conventions the name of a server's span is "GET /route"; but the route is known only when a
// framework has found it, and not all of them change the name then.
function endpointOf(root: OtelSpan): string | undefined {
  if (root.kind !== SERVER && root.kind !== CONSUMER) return undefined;
  const name = typeof root.name === 'string' ? root.name : undefined;
  const route = root.attributes?.['http.route'];
  if (typeof route !== 'string' || route === '' || name?.includes(route)) return name;
  const method = root.attributes?.['http.request.method'] ?? root.attributes?.['http.method'];
  return typeof method === 'string' ? `${method} ${route}` : route;
}

function followContexts(manager: unknown): void {
  if (typeof manager !== 'object' || manager === null) return;
  const storage = Object.values(manager).find((value) => value instanceof AsyncLocalStorage) as
    | AsyncLocalStorage<unknown>
    | undefined;
  if (storage === undefined) {
    refuse(`the context manager ${nameOf(manager)} has no AsyncLocalStorage`);
    return;
  }
  try {
    if (state.spans === 'attached') detach(); // Another manager took the place of the one before.
    attach(storage, describeContext);
    state.spans = 'attached';
    delete state.reason;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(reason: string): void {
  state.spans = 'refused';
  state.reason = reason;
  process.stderr.write(`spanprof: samples will not have OpenTelemetry's spans: ${reason}\n`);
}

function followTraces(provider: unknown): void {
  if (typeof provider !== 'object' || provider === null) return;
  noteRoots(provider, (added) => {
    state.roots = added ? 'noted' : 'unknown';
    if (!added && state.spans !== 'refused') {
      state.reason = 'the tracer provider takes no span processor: samples have spans, but no local roots and endpoints';
    }
  });
}

function nameOf(value: object): string {
  return value.constructor?.name || 'without a name';
}

// Calls `seen` with the property's value, now if it has one and whenever it gets another. For its owner it stays a
// plain property: it can be read, set, listed and deleted as before.
function watch<K extends string | symbol>(object: Record<K, unknown>, key: K, seen: (value: unknown) => void): void {
  let value = object[key];
  const existed = Object.prototype.hasOwnProperty.call(object, key);
  const descriptor = Object.getOwnPropertyDescriptor(object, key);
  if (existed && descriptor?.configurable !== true) {
    seen(value);
    return;
  }
  Object.defineProperty(object, key, {
    configurable: true,
    enumerable: true,
    get: () => value,
    set: (next: unknown) => {
      if (next === value) return;
      value = next;
      seen(next);
    },
  });
  if (value !== undefined) seen(value);
}
