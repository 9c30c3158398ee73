package io.spanprof;

/**
 * A context that is active until this is closed. Closing gives back the ids, the trace and the tags
 * from before, whatever was set in between. For try-with-resources: scopes nest, and are closed by
 * the thread that opened them. Closing twice, or on another thread, does nothing.
 */
public final class ContextScope implements AutoCloseable {
  private final Thread opener;
  private final ThreadContext context;
  private final ContextSnapshot parent;
  private boolean isOpen = true;

  ContextScope(Thread opener, ThreadContext context, ContextSnapshot parent) {
    this.opener = opener;
    this.context = context;
    this.parent = parent;
  }

  @Override
  public void close() {
    if (!isOpen || Thread.currentThread() != opener) return;
    isOpen = false;
    context.replace(parent);
  }
}
