#pragma once

// Carries table entries from one profile into another, each when it is first needed.

#include <array>
#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace spanprof::profile {

class TableCopy {
 public:
  // Where a tag of `from` goes in `into`, by position; kNoPosition: nowhere.
  using TagPositions = std::array<unsigned, kTagCount>;
  static constexpr unsigned kNoPosition = kTagCount;

  // Both have to outlive this.
  TableCopy(const Profile& from, Profile& into, const TagPositions& positions);

  // The number in `into` of what has the number `id` in `from`. kNone if it did not fit.
  StringId Text(StringId id);
  MappingId ToMapping(MappingId id);
  FunctionId ToFunction(FunctionId id);
  FrameId ToFrame(FrameId id);
  StackId ToStack(StackId id);
  ContextId ToContext(ContextId id);
  ThreadId ToThread(ThreadId id);
  Sample ToSample(const Sample& sample);

 private:
  static constexpr uint32_t kNotYet = ~uint32_t{0};
  using Numbers = std::vector<uint32_t>;  // by the number in `from`

  const Profile& from_;
  Profile& into_;
  TagPositions positions_;
  Numbers texts_, mappings_, functions_, frames_, stacks_, contexts_, threads_;
};

}  // namespace spanprof::profile
