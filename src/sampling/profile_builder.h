#pragma once

// Fills a profile from raw samples: program counters become frames of their mappings, contexts and
// stacks are stored once. Runs on the sampler's thread; Cut may be called from others.

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/elf_mapping.h"
#include "context/core.h"
#include "profile/profile.h"
#include "sampling/sampler.h"

namespace spanprof::sampling {

class ProfileBuilder final : public SampleSink {
 public:
  ProfileBuilder(const context::Core& core, size_t max_memory);

  void Take(const RawSample& sample) override;
  void TakeAsleep(uint32_t tid, uint64_t monotonic_ns, uint64_t count, uint64_t value) override;

  // What was gathered so far, with endpoints and counters; the next profile starts empty.
  profile::Profile Cut(Sampler& sampler);
  // The same, and goes on gathering: for a dump in between.
  profile::Profile Copy(const Sampler& sampler);

 private:
  struct LastWallSample {
    profile::ThreadId thread = profile::kNone;
    profile::ContextId context = profile::kNone;
    profile::StackId stack = profile::kNone;
  };

  void StartAfresh();
  void Complete(profile::Profile& profile, const Sampler& sampler) const;
  profile::FrameId FrameOf(uint64_t pc);
  profile::StackId StackOf(const RawSample& sample);
  profile::ContextId ContextOf(const RawSample& sample);
  const ElfMapping* FindMapping(uint64_t pc);
  uint64_t UnixTime(uint64_t monotonic_ns) const { return monotonic_ns + unix_offset_ns_; }

  const context::Core& core_;
  const size_t max_memory_;
  std::mutex mutex_;
  profile::Profile profile_;
  uint64_t unix_offset_ns_ = 0;
  std::vector<ElfMapping> mappings_;  // sorted by start
  bool mappings_stale_ = true;
  std::unordered_map<uint64_t, profile::FrameId> frames_;
  std::unordered_map<uint32_t, profile::StringId> tags_;  // by dictionary id
  std::unordered_map<uint32_t, LastWallSample> last_wall_;
};

}  // namespace spanprof::sampling
