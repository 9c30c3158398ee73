#include "agent/record_layout_java.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <spanprof/internal/thread_context.hpp>

namespace spanprof::jvm {
namespace {

using internal::Slot;
using internal::ThreadContext;
using internal::ThreadRecord;

struct Constant {
  std::string_view type;
  std::string_view name;
  uint64_t value;
  std::string_view comment;
};

struct Group {
  std::string_view title;
  std::vector<Constant> constants;
};

std::vector<Group> Groups() {
  constexpr size_t kOtel = offsetof(ThreadContext, otel_record);
  return {
      {"The thread's object: byte offsets.",
       {
           {"int", "OBJECT_BYTES", sizeof(ThreadContext), ""},
           {"int", "SPAN_ID", offsetof(ThreadRecord, span_id), ""},
           {"int", "ROOT_SPAN_ID", offsetof(ThreadRecord, root_span_id), ""},
           {"int", "CHECKSUM", offsetof(ThreadRecord, checksum), "0 while a write goes on"},
           {"int", "TAG_PAIRS", offsetof(ThreadRecord, tag_pairs), "tags[10], four bytes each"},
           {"int", "TAG_COUNT", internal::kTagCount, ""},
           {"int", "TRACE_ID_HIGH", offsetof(ThreadContext, trace_id_high), ""},
           {"int", "TRACE_ID_LOW", offsetof(ThreadContext, trace_id_low), ""},
           {"int", "TRACE_FLAGS", offsetof(ThreadContext, trace_flags), "four bytes"},
           {"int", "ATTENTION", offsetof(ThreadContext, attention), "four bytes"},
           {"int", "SLOT_ADDRESS", offsetof(ThreadContext, slot), ""},
           {"int", "SLOT_WORD", offsetof(ThreadContext, slot_word), ""},
           {"int", "MARK", offsetof(ThreadContext, mark), ""},
           {"int", "OTEL_ATTRIBUTES_SIZE", offsetof(ThreadContext, otel_attributes_size),
            "four bytes"},
       }},
      {"Its OTEP 4947 record: byte offsets in the object.",
       {
           {"int", "OTEL_TRACE_ID", kOtel + internal::kOtelTraceIdOffset, "W3C byte order"},
           {"int", "OTEL_SPAN_ID", kOtel + internal::kOtelSpanIdOffset, "W3C byte order"},
           {"int", "OTEL_STATE", kOtel + internal::kOtelValidOffset,
            "valid, flags, attributes size: four bytes"},
           {"int", "OTEL_LOCAL_ROOT", kOtel + internal::kOtelAttributesOffset + 2,
            "sixteen hex digits"},
           {"int", "OTEL_LOCAL_ROOT_ENTRY_BYTES", internal::kLocalRootEntryBytes, ""},
           {"int", "OTEL_STATE_FLAGS_SHIFT", 8, ""},
           {"int", "OTEL_STATE_SIZE_SHIFT", 16, ""},
       }},
      {"The slot that other processes read: byte offsets.",
       {
           {"int", "SLOT_BYTES", sizeof(Slot), ""},
           {"int", "SLOT_TRACE_ID_HIGH", offsetof(Slot, trace_id_high), ""},
           {"int", "SLOT_TRACE_ID_LOW", offsetof(Slot, trace_id_low), ""},
           {"int", "SLOT_SPAN_ID", offsetof(Slot, span_id), ""},
           {"int", "SLOT_OWN_WORD", offsetof(Slot, word), ""},
           {"long", "SLOT_BEGIN_WRITE", internal::kSlotBeginWrite, "added to an idle word"},
           {"long", "SLOT_FINISH_WRITE", internal::kSlotFinishWrite, "added to an idle word"},
       }},
      {"Values.",
       {
           {"int", "ATTENTION_OUTSIDE", internal::kAttentionOutside, "publish to slot and record"},
           {"int", "ATTENTION_TRACE", internal::kAttentionTrace, "a trace id or flags are set"},
           {"int", "ATTENTION_TIMED", internal::kAttentionTimed, "latencies are measured"},
           {"int", "ATTENTION_STALE", internal::kAttentionStale, "of before a shutdown"},
           {"long", "FIRST_MARK", internal::kFirstManagedMark, ""},
           {"long", "MARK_STEP", internal::kManagedMarkStep, ""},
           // Its factor: the second product is 0.
           {"long", "CHECKSUM_FACTOR", internal::RecordChecksum(1, 0), ""},
       }},
  };
}

std::string Literal(const Constant& constant) {
  if (constant.type == "int") return std::to_string(constant.value);
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[(constant.value >> shift) & 0xF];
  return "0x" + digits + "L";
}

}  // namespace

int RecordLayoutVersion() {
  uint32_t hash = 2166136261u;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 16777619u; };
  for (const Group& group : Groups()) {
    for (const Constant& constant : group.constants) {
      for (const char c : constant.name) add(static_cast<unsigned char>(c));
      for (int shift = 0; shift < 64; shift += 8) {
        add(static_cast<unsigned char>(constant.value >> shift));
      }
    }
  }
  return static_cast<int>(hash & 0x7FFFFFFF);
}

std::string RecordLayoutJava() {
  std::string text =
      "package io.spanprof;\n"
      "\n"
      "/**\n"
      " * Where the fields of a thread's object lie. Made by the build's target record_layout "
      "from\n"
      " * include/spanprof/internal; do not edit.\n"
      " */\n"
      "final class RecordLayout {\n"
      "  /** The native library's must be the same. */\n"
      "  static final int VERSION = ";
  text += std::to_string(RecordLayoutVersion()) + ";\n";
  for (const Group& group : Groups()) {
    text += "\n  // " + std::string(group.title) + "\n";
    for (const Constant& constant : group.constants) {
      text += "  static final " + std::string(constant.type) + " " + std::string(constant.name) +
              " = " + Literal(constant) + ";";
      if (!constant.comment.empty()) text += "  // " + std::string(constant.comment);
      text += "\n";
    }
  }
  text += "\n  private RecordLayout() {}\n}\n";
  return text;
}

}  // namespace spanprof::jvm
