#include "sampling/profile_builder.h"

#include <algorithm>
#include <time.h>
#include <unistd.h>

#include "context/counters.h"
#include "profile/profile_query.h"

namespace spanprof::sampling {
namespace {

uint64_t Now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

ProfileBuilder::ProfileBuilder(const context::Core& core, size_t max_memory,
                               std::vector<ResourceAttribute> resource)
    : core_(core), max_memory_(max_memory), resource_(std::move(resource)), profile_(max_memory) {
  StartAfresh();
}

void ProfileBuilder::StartAfresh() {
  profile_ = profile::Profile(max_memory_);
  frames_.emplace(symboliser_, profile_);
  runtime_frames_.clear();
  tags_.clear();
  last_wall_.clear();
  contexts_looked_at_ = 0;
  without_endpoint_.clear();
  // Taken anew each time, so that a clock that was set right shows in the next profile.
  const uint64_t unix_now = Now(CLOCK_REALTIME);
  unix_offset_ns_ = unix_now - Now(CLOCK_MONOTONIC);
  profile_.start_time_ns = unix_now;
}

void ProfileBuilder::AfterDrain() {
  mappings_are_current_ = false;
  const std::lock_guard<std::mutex> lock(mutex_);
  LookForEndpoints();
}

// The table of endpoints has room for the latest requests only, and a profile may span many more:
// an endpoint is taken over soon after it is set, and once more when the profile is cut.
void ProfileBuilder::LookForEndpoints() {
  const std::vector<profile::Context>& contexts = profile_.contexts();
  for (; contexts_looked_at_ < contexts.size(); ++contexts_looked_at_) {
    const uint64_t root = contexts[contexts_looked_at_].root_span_id;
    if (root != 0 && profile_.EndpointOf(root) == profile::kNone) without_endpoint_.push_back(root);
  }
  // Of requests that never get one, the oldest are given up.
  constexpr size_t kMaxWaiting = 65536;
  if (without_endpoint_.size() > kMaxWaiting) {
    without_endpoint_.erase(without_endpoint_.begin(), without_endpoint_.begin() + kMaxWaiting / 2);
  }
  std::erase_if(without_endpoint_, [this](uint64_t root) {
    const uint32_t endpoint = core_.FindEndpoint(root);
    if (endpoint == 0) return false;
    profile_.SetEndpoint(root, core_.TagValue(endpoint));
    return true;
  });
}

void ProfileBuilder::FollowMappings() {
  if (mappings_are_current_) return;
  mappings_are_current_ = true;
  const CodeMap& code_map = Sampler::Instance().code_map();
  const uint64_t refreshes = code_map.statistics().refreshes;
  if (refreshes == code_map_refreshes_) return;
  code_map_refreshes_ = refreshes;
  symboliser_.SetMappings(code_map.Mappings());
}

profile::StackId ProfileBuilder::StackOf(const RawSample& sample) {
  profile::StackId stack = profile::kNone;
  if (!sample.complete) {
    // Where a stack breaks off, its root says why: such samples stand apart and are not lost.
    const std::string why = Sampler::Instance().walker().FailureName(sample.walk_failure);
    profile::Function function;
    function.name = profile_.Intern("[" + why + "]");
    profile::Frame marker;
    marker.kind = profile::FrameKind::kMarker;
    marker.function = profile_.AddFunction(function);
    stack = profile_.AddStack(stack, profile_.AddFrame(marker));
    profile_.AddToCounter("unwind." + why, 1);
  }
  for (unsigned i = sample.depth; i-- > 0;) {
    const uint64_t word = sample.pcs()[i];
    if (IsRuntimeFrame(word)) {
      stack = profile_.AddStack(stack, RuntimeFrameOf(word));
    } else {
      // All but the innermost are return addresses.
      stack = profile_.AddStack(stack, frames_->AddFrame(i == 0 ? word : word - 1));
    }
  }
  return stack;
}

profile::FrameId ProfileBuilder::RuntimeFrameOf(uint64_t word) {
  const auto [entry, is_new] = runtime_frames_.try_emplace(word, profile::kNone);
  if (!is_new) return entry->second;
  const RuntimeFrame described = Sampler::Instance().runtime()->Describe(word);
  profile::Function function;
  function.name = profile_.Intern(described.name);
  function.file = profile_.Intern(described.file);
  profile::Frame frame;
  frame.kind = described.kind;
  frame.inlined = described.inlined;
  frame.function = profile_.AddFunction(function);
  frame.line = described.line;
  entry->second = profile_.AddFrame(frame);
  return entry->second;
}

profile::ThreadId ProfileBuilder::ThreadOf(const RawSample& sample) {
  Runtime* const runtime = Sampler::Instance().runtime();
  if (runtime == nullptr) return profile_.AddThread(sample.tid, sample.thread_name);
  return profile_.AddThread(
      sample.tid, runtime->ThreadName(sample.tid, sample.monotonic_ns, sample.thread_name));
}

profile::ContextId ProfileBuilder::ContextOf(const RawSample& sample) {
  if (sample.context_status == ContextStatus::kInProgress) {
    profile_.AddToCounter("context.in_progress", 1);
  } else if (sample.context_status == ContextStatus::kTorn) {
    profile_.AddToCounter("context.torn", 1);
  }
  if (sample.context_status != ContextStatus::kPresent) return profile::kNone;
  profile::Context context;
  context.trace_id_high = sample.context.trace_id_high;
  context.trace_id_low = sample.context.trace_id_low;
  context.span_id = sample.context.span_id;
  context.root_span_id = sample.context.root_span_id;
  for (unsigned i = 0; i < profile::kTagCount; ++i) {
    const uint32_t id = sample.context.tags[i];
    if (id == 0) continue;
    const auto [tag, is_new] = tags_.try_emplace(id, profile::kNone);
    if (is_new) tag->second = profile_.Intern(core_.TagValue(id));
    context.tags[i] = tag->second;
  }
  return profile_.AddContext(context);
}

void ProfileBuilder::Take(const RawSample& raw) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FollowMappings();
  profile::Sample sample;
  sample.time_ns = UnixTime(raw.monotonic_ns);
  sample.thread = ThreadOf(raw);
  sample.context = ContextOf(raw);
  sample.stack = StackOf(raw);
  sample.kind = profile::SampleKind{raw.kind};
  sample.state = profile::ThreadState{raw.state};
  sample.count = raw.count;
  sample.value = raw.value;
  profile_.AddSample(sample);
  if (sample.kind == profile::SampleKind::kWall) {
    last_wall_[raw.tid] = {sample.thread, sample.context, sample.stack, sample.state};
  }
}

void ProfileBuilder::TakeAsleep(uint32_t tid, uint64_t monotonic_ns, uint64_t count,
                                uint64_t value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  profile::Sample sample;
  sample.time_ns = UnixTime(monotonic_ns);
  sample.kind = profile::SampleKind::kWall;
  sample.state = profile::ThreadState::kSleeping;
  sample.count = count;
  sample.value = value;
  const auto last = last_wall_.find(tid);
  if (last == last_wall_.end()) {
    // Its sample went into the profile before this one, or found no room.
    sample.thread = profile_.AddThread(tid, "");
    profile_.AddToCounter("sampler.asleep_without_stack", 1);
  } else {
    sample.thread = last->second.thread;
    sample.context = last->second.context;
    sample.stack = last->second.stack;
    // A runtime may know better what it sleeps for.
    using profile::ThreadState;
    const ThreadState then = last->second.state;
    if (then == ThreadState::kWaiting || then == ThreadState::kBlocked) sample.state = then;
  }
  profile_.AddSample(sample);
}

void ProfileBuilder::Complete(profile::Profile& profile, const Sampler& sampler) const {
  profile.duration_ns = Now(CLOCK_REALTIME) - profile.start_time_ns;
  const context::Configuration* configuration = core_.configuration();
  if (configuration != nullptr) profile.attribute_names = configuration->attribute_names;
  for (const ResourceAttribute& attribute :
       configuration != nullptr ? configuration->resource : resource_) {
    profile.resource.push_back({attribute.key, attribute.value});
  }
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) profile.resource.push_back({"host.name", host});
  profile.resource.push_back({"process.pid", std::to_string(getpid())});
  if (const Runtime* runtime = sampler.runtime(); runtime != nullptr) {
    for (const ResourceAttribute& attribute : runtime->resource()) {
      profile.resource.push_back({attribute.key, attribute.value});
    }
  }
  const SamplerOptions& options = sampler.options();
  profile.periods[static_cast<unsigned>(profile::SampleKind::kCpu)] = {
      options.cpu_interval_ns, sampler.actual_cpu_interval_ns()};
  profile.periods[static_cast<unsigned>(profile::SampleKind::kWall)] = {
      options.wall_interval_ns, sampler.actual_wall_interval_ns()};
  // Late binding: what the tracer has told us by now.
  for (const profile::Context& context : profile.contexts()) {
    if (const uint32_t endpoint = core_.FindEndpoint(context.root_span_id); endpoint != 0) {
      profile.SetEndpoint(context.root_span_id, core_.TagValue(endpoint));
    }
  }
}

ProfileBuilder::Counters ProfileBuilder::AllCounters(const Sampler& sampler, const Counters& more) {
  Counters counters = more;
  for (const auto& [name, value] : sampler.counters()) counters[name] += value;
  if (const Runtime* runtime = sampler.runtime(); runtime != nullptr) {
    for (const auto& [name, value] : runtime->counters()) counters[name] += value;
  }
  for (unsigned i = 0; context::CounterName(i) != nullptr; ++i) {
    counters[std::string("context.") + context::CounterName(i)] += context::CounterValue(i);
  }
  return counters;
}

void ProfileBuilder::AddNewCounts(profile::Profile& profile, const Counters& counters) const {
  for (const auto& [name, value] : counters) {
    const auto before = counters_at_cut_.find(name);
    const uint64_t seen = before == counters_at_cut_.end() ? 0 : before->second;
    if (value > seen) profile.AddToCounter(name, value - seen);
  }
}

profile::Profile ProfileBuilder::Cut(Sampler& sampler, const Counters& more) {
  // Before the lock: the sampler's thread holds its own lock while it waits for ours.
  sampler.ForgetWallSamples();
  Counters counters = AllCounters(sampler, more);
  const std::lock_guard<std::mutex> lock(mutex_);
  profile::Profile finished = std::move(profile_);
  StartAfresh();
  Complete(finished, sampler);
  AddNewCounts(finished, counters);
  counters_at_cut_ = std::move(counters);
  return finished;
}

profile::Profile ProfileBuilder::Copy(const Sampler& sampler, const Counters& more) {
  const Counters counters = AllCounters(sampler, more);
  const std::lock_guard<std::mutex> lock(mutex_);
  profile::Profile copy(max_memory_);
  profile::Merge(copy, profile_);
  copy.start_time_ns = profile_.start_time_ns;
  Complete(copy, sampler);
  AddNewCounts(copy, counters);
  return copy;
}

}  // namespace spanprof::sampling
