package io.spanprof;

import java.util.concurrent.Callable;

/** A task with the context that it is to run under. One of its two halves is null. */
final class ContextTask<T> implements Runnable, Callable<T> {
  private final ContextSnapshot context;
  private final Runnable runnable;
  private final Callable<T> callable;

  ContextTask(ContextSnapshot context, Runnable runnable, Callable<T> callable) {
    if (runnable == null && callable == null) throw new NullPointerException("task");
    this.context = context;
    this.runnable = runnable;
    this.callable = callable;
  }

  @Override
  public void run() {
    try (ContextScope scope = context.open()) {
      runnable.run();
    }
  }

  @Override
  public T call() throws Exception {
    try (ContextScope scope = context.open()) {
      return callable.call();
    }
  }
}
