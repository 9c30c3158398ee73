package io.spanprof;

/**
 * Where the fields of a thread's object lie. Made by the build's target record_layout from
 * include/spanprof/internal; do not edit.
 */
final class RecordLayout {
  /** The native library's must be the same. */
  static final int VERSION = 1015393187;

  // The thread's object: byte offsets.
  static final int OBJECT_BYTES = 896;
  static final int SPAN_ID = 0;
  static final int ROOT_SPAN_ID = 8;
  static final int CHECKSUM = 16;  // 0 while a write goes on
  static final int TAG_PAIRS = 24;  // tags[10], four bytes each
  static final int TAG_COUNT = 10;
  static final int TRACE_ID_HIGH = 64;
  static final int TRACE_ID_LOW = 72;
  static final int TRACE_FLAGS = 80;  // four bytes
  static final int ATTENTION = 84;  // four bytes
  static final int SLOT_ADDRESS = 88;
  static final int SLOT_WORD = 96;
  static final int MARK = 104;
  static final int OTEL_ATTRIBUTES_SIZE = 112;  // four bytes

  // Its OTEP 4947 record: byte offsets in the object.
  static final int OTEL_TRACE_ID = 128;  // W3C byte order
  static final int OTEL_SPAN_ID = 144;  // W3C byte order
  static final int OTEL_STATE = 152;  // valid, flags, attributes size: four bytes
  static final int OTEL_LOCAL_ROOT = 158;  // sixteen hex digits
  static final int OTEL_LOCAL_ROOT_ENTRY_BYTES = 18;
  static final int OTEL_STATE_FLAGS_SHIFT = 8;
  static final int OTEL_STATE_SIZE_SHIFT = 16;

  // The slot that other processes read: byte offsets.
  static final int SLOT_BYTES = 32;
  static final int SLOT_TRACE_ID_HIGH = 0;
  static final int SLOT_TRACE_ID_LOW = 8;
  static final int SLOT_SPAN_ID = 16;
  static final int SLOT_OWN_WORD = 24;
  static final long SLOT_BEGIN_WRITE = 0x0000000100000001L;  // added to an idle word
  static final long SLOT_FINISH_WRITE = 0x0000000200000000L;  // added to an idle word

  // Values.
  static final int ATTENTION_OUTSIDE = 1;  // publish to slot and record
  static final int ATTENTION_TRACE = 2;  // a trace id or flags are set
  static final int ATTENTION_TIMED = 4;  // latencies are measured
  static final int ATTENTION_STALE = 8;  // of before a shutdown
  static final long FIRST_MARK = 0x0000000000000002L;
  static final long MARK_STEP = 0x0000000000000004L;
  static final long CHECKSUM_FACTOR = 0x9E3779B97F4A7C15L;

  private RecordLayout() {}
}
