package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class ProfilerModeTest extends ContextContract {
  @BeforeAll
  static void initialise() throws Exception {
    JavaProfiler.getInstance().execute(OPTIONS);
  }

  @Test
  void nothingIsPublishedOutside() {
    ThreadContext.current().put(1, 2);
    assertFalse(ThreadContext.isOtelMode());
    assertNull(LibraryView.ofThread(Native.threadId()));
  }
}
