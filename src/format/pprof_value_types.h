#pragma once

// What the values of a pprof file's samples are: of ours, Go's, Datadog's and other people's files.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace spanprof::format::pprof {

struct ValueType {
  std::string_view type;
  std::string_view unit;
};

// Where one value of a sample goes.
struct ValueMeaning {
  std::optional<profile::SampleKind> kind;  // absent: nowhere
  bool is_count = false;
  uint64_t scale = 1;  // to nanoseconds or bytes
};

// One for each type, in order. If none is known, the first is taken for CPU samples.
std::vector<ValueMeaning> MeaningsOf(const std::vector<ValueType>& types);

// Of a time: how many nanoseconds; of a size: how many bytes; 1 for what is not known.
uint64_t ScaleOf(std::string_view unit);

}  // namespace spanprof::format::pprof
