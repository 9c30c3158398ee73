package io.spanprof;

import java.util.concurrent.Executor;

/**
 * Runs each task with the context of the thread that submitted it. When a task ends, the thread
 * that ran it has the context from before, so a reused thread never shows the last task's span.
 */
public final class ContextExecutor implements Executor {
  private final Executor delegate;

  private ContextExecutor(Executor delegate) {
    this.delegate = delegate;
  }

  public static Executor wrap(Executor executor) {
    if (executor == null) throw new NullPointerException("executor");
    return new ContextExecutor(executor);
  }

  @Override
  public void execute(Runnable task) {
    delegate.execute(ContextSnapshot.capture().wrap(task));
  }
}
