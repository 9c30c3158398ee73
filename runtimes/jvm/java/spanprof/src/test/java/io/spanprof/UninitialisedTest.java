package io.spanprof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class UninitialisedTest {
  private final JavaProfiler profiler = JavaProfiler.getInstance();

  @Test
  @Order(1)
  void callsKeepNothing() {
    assertTrue(profiler.isAvailable(), profiler.whyUnavailable());
    assertFalse(profiler.isInitialized());
    ThreadContext context = ThreadContext.current();
    try (ContextScope scope = context.open(1, 2)) {
      assertEquals(0, context.put(3, 4));
      assertEquals(0, context.putOtel(1, 2, 3, 4));
      assertFalse(context.setTag(0, "x"));
      assertFalse(context.setTag("tenant", "x"));
      assertFalse(context.putCustom(0, 0));
      assertEquals(0, context.getSpanId());
      assertEquals(0, context.getRootSpanId());
    }
    context.clear();
    assertFalse(profiler.setEndpoint(1, "/"));
    assertFalse(ThreadContext.isOtelMode());
    assertTrue(profiler.getStatus().length() > 0);
  }

  @Test
  @Order(2)
  void whatCannotBeUnderstoodOrDoneIsSaid() {
    IllegalArgumentException wrong =
        assertThrows(IllegalArgumentException.class, () -> profiler.execute("ctxstorage=attic"));
    assertTrue(wrong.getMessage().contains("attic"), wrong.getMessage());
    assertThrows(IllegalArgumentException.class, () -> profiler.execute(null));
    assertThrows(IllegalStateException.class, () -> profiler.execute("stop"));
    assertFalse(profiler.isInitialized());
  }

  @Test
  @Order(3)
  void aContextFromBeforeWorksOnceInitialised() throws Exception {
    ThreadContext context = ThreadContext.current();
    assertEquals(0, context.put(1, 2));
    profiler.execute("ctxstorage=otel,log=none");
    assertEquals(RecordWriter.checksum(3, 4), context.put(3, 4));
    assertEquals(3, LibraryView.ofThisThread().getSpanId());
    // A name that attributes= did not have is added.
    assertTrue(context.setTag("tenant", "acme"));
    assertEquals(profiler.internTag("acme"), LibraryView.ofThisThread().getTagId(0));
  }
}
