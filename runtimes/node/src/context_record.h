#pragma once

// A context as bytes: the record of OTEP 4947, which readers outside the process know, and behind
// it the endpoint, which is ours alone. setContext makes one, an object of JavaScript points to it,
// and whoever samples reads it. A record does not change once it is made.
//
// Pure: no V8 here.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <spanprof/internal/records.hpp>

namespace spanprof::node {

// The texts are those of whoever made this.
struct ContextFields {
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;
  uint64_t root_span_id = 0;
  std::string_view endpoint;
  std::array<std::string_view, internal::kTagCount> tags;  // by position of the attribute's name

  bool empty() const;
};

inline constexpr size_t kMaxEndpointBytes = 255;
inline constexpr size_t kMaxContextBytes =
    internal::kOtelRecordBytes + 1 + kMaxEndpointBytes;  // record, length, endpoint

// What had to be left out, because a record has room for so much.
struct ContextCuts {
  unsigned tags = 0;
  unsigned endpoints = 0;
};

// Writes the record; returns how many bytes it has, at most kMaxContextBytes.
size_t EncodeContext(const ContextFields& fields, std::span<uint8_t, kMaxContextBytes> to,
                     ContextCuts* cuts);

// Nothing for bytes that are no such record. The texts point into `bytes`.
std::optional<ContextFields> DecodeContext(std::span<const uint8_t> bytes);

// Up to 16 or 32 hexadecimal digits, as trace contexts have them; an empty text is 0. False for any
// other: then the numbers mean nothing.
[[nodiscard]] bool ParseSpanId(std::string_view text, uint64_t* id);
[[nodiscard]] bool ParseTraceId(std::string_view text, uint64_t* high, uint64_t* low);

}  // namespace spanprof::node
