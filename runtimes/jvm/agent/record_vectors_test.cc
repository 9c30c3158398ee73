// The C++ writer against the vectors that the Java writers have to meet too (RecordVectorsTest):
// after each call the same bytes. With SPANPROF_WRITE_VECTORS=FILE the bytes of this writer are
// added to a file instead, which is how the vectors were made.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <spanprof/context.hpp>

namespace spanprof::jvm {
namespace {

using internal::Slot;
using internal::ThreadContext;

std::string Hex(const void* memory, size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<const unsigned char*>(memory)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

// The record, then trace id, flags and attention; with ctxstorage=otel the first 96 bytes of the
// OTEP record, and the slot without its word.
std::string Bytes() {
  const ThreadContext& context = *spanprof_thread_v1;
  std::string text = Hex(&context.record, sizeof context.record);
  text += ' ' + Hex(&context.trace_id_high,
                    offsetof(ThreadContext, slot) - offsetof(ThreadContext, trace_id_high));
  if (spanprof_is_otel_mode() == 0) return text;
  text += ' ' + Hex(context.otel_record, 96);
  return text + ' ' + Hex(context.slot.load(), offsetof(Slot, word));
}

uint64_t NextId(std::istream& words) {
  std::string word;
  words >> word;
  return std::stoull(word, nullptr, 16);
}

void Carry(const std::string& call) {
  std::istringstream words(call);
  std::string name;
  words >> name;
  if (name == "put") {
    const uint64_t span = NextId(words);
    spanprof_context_set(span, NextId(words));
  } else if (name == "putOtel") {
    const uint64_t high = NextId(words);
    const uint64_t low = NextId(words);
    const uint64_t span = NextId(words);
    spanprof_context_set_trace(high, low, span, NextId(words));
  } else if (name == "tag") {
    unsigned slot = 0;
    std::string value;
    words >> slot >> value;
    ASSERT_EQ(spanprof_context_set_tag(slot, value.data(), value.size()), 0);
  } else if (name == "replace") {
    spanprof_context context = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
    context.trace_id_high = NextId(words);
    context.trace_id_low = NextId(words);
    context.span_id = NextId(words);
    context.root_span_id = NextId(words);
    context.trace_flags = static_cast<uint32_t>(NextId(words));
    for (unsigned i = 0; i < 2; ++i) context.tags[i] = static_cast<uint32_t>(NextId(words));
    ASSERT_EQ(spanprof_context_update(&context), 0);
  } else if (name == "clear") {
    spanprof_context_clear();
  } else {
    FAIL() << "what is " << call << "?";
  }
}

class RecordVectors : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Storage, RecordVectors, testing::Values("profiler", "otel"),
                         [](const auto& mode) { return std::string(mode.param); });

// A line a call: what it is, a colon, the bytes with ctxstorage=profiler, a bar, those with otel.
TEST_P(RecordVectors, EveryCallLeavesTheseBytes) {
  const std::string options = std::string("attributes=a;b,ctxstorage=") + GetParam();
  ASSERT_EQ(spanprof_init(options.c_str()), 0) << spanprof_error();
  std::ifstream file(SPANPROF_RECORD_VECTORS);
  ASSERT_TRUE(file.is_open()) << SPANPROF_RECORD_VECTORS;
  const char* made = getenv("SPANPROF_WRITE_VECTORS");
  int calls = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string call = line.substr(0, line.find(" : "));
    Carry(call);
    if (HasFatalFailure()) return;
    ++calls;
    if (made != nullptr) {
      std::ofstream(made, std::ios::app) << GetParam() << " : " << call << " : " << Bytes() << '\n';
      continue;
    }
    const size_t bar = line.find(" | ");
    ASSERT_NE(bar, std::string::npos) << line;
    const size_t first = call.size() + 3;
    const bool otel = GetParam() == std::string("otel");
    EXPECT_EQ(Bytes(), otel ? line.substr(bar + 3) : line.substr(first, bar - first)) << call;
  }
  EXPECT_GT(calls, 20);
}

}  // namespace
}  // namespace spanprof::jvm
