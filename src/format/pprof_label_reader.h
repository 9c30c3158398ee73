#pragma once

// Reads the labels of pprof samples, whoever wrote them: ours, Datadog's, Pyroscope's; what is none
// of these becomes a tag.

#include <cstdint>
#include <string_view>
#include <vector>

#include <tsl/robin_map.h>

#include "profile/profile.h"

namespace spanprof::format::pprof {

class LabelReader {
 public:
  // `strings` is the file's string table. Tag names that the profile has already are matched.
  LabelReader(const std::vector<std::string_view>& strings, profile::Profile& profile)
      : strings_(strings), profile_(profile) {}

  void BeginSample() { seen_ = {}; }
  // Numbers as they are in the file: positions in the string table, and the number.
  void Add(uint64_t key, uint64_t text, uint64_t number);
  // Sets thread, context, state, time and folded.
  void EndSample(profile::Sample& sample);

 private:
  enum class Role : uint8_t {
    kTraceId,
    kTraceIdHigh,
    kTraceIdLow,
    kSpanId,
    kRootSpanId,
    kEndpoint,
    kThreadName,
    kThreadId,
    kState,
    kTime,
    kMinute,
    kOtherSpanId,
    kOtherRootSpanId,
    kOtherEndpoint,
    kOtherThreadName,
    kOtherThreadId,
    kOtherTime,
    kTag,
    kUnknownNumber,
    kNoPlace,
  };
  struct Meaning {
    Role role = Role::kNoPlace;
    unsigned position = 0;  // of a tag
  };
  // What one sample's labels say. Names of others count only where ours are absent.
  struct Seen {
    profile::Context context;
    uint64_t other_span_id = 0, other_root_span_id = 0;
    std::string_view endpoint, other_endpoint;
    std::string_view thread_name, other_thread_name;
    uint64_t thread_id = 0, other_thread_id = 0;
    profile::ThreadState state = profile::ThreadState::kUnknown;
    uint64_t time = 0, minute = 0, other_time = 0;
  };

  Meaning MeaningOf(uint64_t key, bool is_text);
  Meaning MeaningOfTag(std::string_view name);
  std::string_view Text(uint64_t index) const {
    return index < strings_.size() ? strings_[index] : std::string_view();
  }
  uint64_t ReadId(std::string_view text, uint64_t number, bool is_ours);
  void ReadTraceId(std::string_view text);

  const std::vector<std::string_view>& strings_;
  profile::Profile& profile_;
  tsl::robin_map<uint64_t, Meaning> meanings_;  // by key, with the lowest bit: is a text
  Seen seen_;
};

}  // namespace spanprof::format::pprof
