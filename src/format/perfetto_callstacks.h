#pragma once

// The interned data of a sequence of Perfetto samples: call stacks, frames, mappings, strings. They
// are written once, in front of the first sample that needs them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "profile/profile.h"

namespace spanprof::format {

// Perfetto writes each call stack in full, where the model shares what is common. After this many
// frames, further stacks are cut to their innermost kMaxFramesOfCutStack.
inline constexpr size_t kMaxCallstackFrames = 10'000'000;
inline constexpr size_t kMaxFramesOfCutStack = 4;

class PerfettoCallstacks {
 public:
  explicit PerfettoCallstacks(const profile::Profile& profile,
                              size_t max_frames = kMaxCallstackFrames);

  // The number of the call stack, having added to `interned_data` (an InternedData message) what a
  // reader does not know of it yet. 0 for no stack.
  uint64_t Intern(profile::StackId stack, std::string& interned_data);
  size_t stacks_cut() const { return stacks_cut_; }

 private:
  uint64_t Frame(profile::FrameId id, protozero::pbf_writer& out);
  uint64_t MappingOf(const profile::Frame& frame, protozero::pbf_writer& out);
  // Numbers are of one kind of string: `field` of InternedData.
  uint64_t Text(uint32_t field, std::string_view text, protozero::pbf_writer& out);

  const profile::Profile& profile_;
  size_t frames_left_;
  size_t stacks_cut_ = 0;
  std::vector<bool> has_stack_;
  std::vector<bool> has_frame_;
  std::vector<bool> has_mapping_;
  std::unordered_map<uint32_t, std::unordered_map<std::string, uint64_t>> texts_;  // by field
};

}  // namespace spanprof::format
