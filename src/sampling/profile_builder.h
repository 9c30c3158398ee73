#pragma once

// Fills a profile from raw samples: program counters become named frames, contexts and stacks are
// stored once. Runs on the sampler's thread; Cut and Copy may be called from others.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "context/core.h"
#include "profile/profile.h"
#include "sampling/sampler.h"
#include "symbols/native_symboliser.h"

namespace spanprof::sampling {

class ProfileBuilder final : public SampleSink {
 public:
  // `resource` describes the process while the core has no configuration that does.
  ProfileBuilder(const context::Core& core, size_t max_memory,
                 std::vector<ResourceAttribute> resource = {});

  void Take(const RawSample& sample) override;
  void TakeAsleep(uint32_t tid, uint64_t monotonic_ns, uint64_t count, uint64_t value) override;
  void AfterDrain() override;

  // What was gathered so far, with endpoints and counters; the next profile starts empty. A
  // counter is in a profile with what was added to it since the last cut, so that profiles add up.
  // `more`: counters of whoever asks, each as it stands since the start.
  using Counters = std::map<std::string, uint64_t>;
  profile::Profile Cut(Sampler& sampler, const Counters& more = {});
  // The same, and goes on gathering: for a dump in between.
  profile::Profile Copy(const Sampler& sampler, const Counters& more = {});

 private:
  struct LastWallSample {
    profile::ThreadId thread = profile::kNone;
    profile::ContextId context = profile::kNone;
    profile::StackId stack = profile::kNone;
    profile::ThreadState state = profile::ThreadState::kUnknown;
  };

  void StartAfresh();
  void Complete(profile::Profile& profile, const Sampler& sampler) const;
  static Counters AllCounters(const Sampler& sampler, const Counters& more);
  void AddNewCounts(profile::Profile& profile, const Counters& counters) const;
  void FollowMappings();
  void LookForEndpoints();
  profile::ThreadId ThreadOf(const RawSample& sample);
  profile::StackId StackOf(const RawSample& sample);
  profile::FrameId RuntimeFrameOf(uint64_t word);
  profile::ContextId ContextOf(const RawSample& sample);
  uint64_t UnixTime(uint64_t monotonic_ns) const { return monotonic_ns + unix_offset_ns_; }

  const context::Core& core_;
  const size_t max_memory_;
  const std::vector<ResourceAttribute> resource_;
  std::mutex mutex_;
  profile::Profile profile_;
  uint64_t unix_offset_ns_ = 0;
  symbols::NativeSymboliser symboliser_;
  std::optional<symbols::ProfileFrames> frames_;
  uint64_t code_map_refreshes_ = 0;
  bool mappings_are_current_ = false;
  Counters counters_at_cut_;
  std::unordered_map<uint64_t, profile::FrameId> runtime_frames_;
  std::unordered_map<uint32_t, profile::StringId> tags_;  // by dictionary id
  std::unordered_map<uint32_t, LastWallSample> last_wall_;
  size_t contexts_looked_at_ = 0;           // of the profile's, by LookForEndpoints
  std::vector<uint64_t> without_endpoint_;  // local roots of these that had none yet
};

}  // namespace spanprof::sampling
