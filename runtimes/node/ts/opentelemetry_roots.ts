// Tells which span is the local root of another: the one that came into this process first, whose name or route is
// the endpoint of all that happens below it. A span of OpenTelemetry knows its parent's ids only, so a span
// processor of ours notes the root when a span starts.

/** What we use of a span of OpenTelemetry's SDK. Other tracers' spans may have less of it. */
export interface OtelSpan {
  spanContext(): { traceId: string; spanId: string; isRemote?: boolean };
  readonly name?: unknown;
  readonly kind?: unknown;
  readonly attributes?: Record<string, unknown>;
  [ROOT]?: OtelSpan;
}

export interface OtelContext {
  getValue(key: symbol): unknown;
}

/** The root of a span, kept at the span itself, so that it lives no longer than that. */
const ROOT = Symbol('spanprof.localRoot');
// As @opentelemetry/api makes it, whichever copies of it there are.
const SPAN_KEY = Symbol.for('OpenTelemetry Context Key SPAN');

export function spanOf(context: unknown): OtelSpan | undefined {
  const span = (context as OtelContext | undefined)?.getValue?.(SPAN_KEY) as OtelSpan | undefined;
  return typeof span?.spanContext === 'function' ? span : undefined;
}

/** The span itself where nothing is known. */
export function localRootOf(span: OtelSpan): OtelSpan | undefined {
  return span[ROOT];
}

const processor = {
  onStart(span: OtelSpan, parentContext: unknown): void {
    const parent = spanOf(parentContext);
    const isLocal = parent !== undefined && parent.spanContext().isRemote !== true;
    span[ROOT] = isLocal ? (parent[ROOT] ?? parent) : span;
  },
  onEnd(): void {},
  forceFlush: (): Promise<void> => Promise.resolve(),
  shutdown: (): Promise<void> => Promise.resolve(),
};

interface TracerProvider {
  addSpanProcessor?(processor: unknown): void;
  getDelegate?(): TracerProvider;
  setDelegate?(provider: TracerProvider): void;
  _activeSpanProcessor?: { _spanProcessors?: unknown };
}

/**
 * Adds the processor to a provider, now or, for the API's stand-in, when it gets the real one. False: this provider
 * takes none, and spans have no local root.
 */
export function noteRoots(provider: TracerProvider, done: (added: boolean) => void): void {
  const setDelegate = provider.setDelegate;
  if (typeof setDelegate !== 'function') {
    done(addProcessor(provider));
    return;
  }
  provider.setDelegate = function (this: TracerProvider, delegate: TracerProvider): void {
    setDelegate.call(this, delegate);
    done(addProcessor(delegate));
  };
  const delegate = provider.getDelegate?.();
  if (delegate && canTakeProcessor(delegate)) done(addProcessor(delegate));
}

function canTakeProcessor(provider: TracerProvider): boolean {
  return typeof provider.addSpanProcessor === 'function' || Array.isArray(provider._activeSpanProcessor?._spanProcessors);
}

// The SDK's versions 1 have a call for it. Later ones take processors when they are made only, so ours is added to
// the list that they keep.
function addProcessor(provider: TracerProvider): boolean {
  if (typeof provider.addSpanProcessor === 'function') {
    provider.addSpanProcessor(processor);
    return true;
  }
  const active = provider._activeSpanProcessor;
  const processors = active?._spanProcessors;
  if (!active || !Array.isArray(processors)) return false;
  if (!processors.includes(processor)) active._spanProcessors = [...(processors as unknown[]), processor];
  return true;
}
