#include "recording/recording.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <new>
#include <optional>
#include <pthread.h>
#include <utility>

#include "base/log.h"
#include "base/resource_attributes.h"
#include "context/core.h"
#include "context/platform.h"
#include "profile/profile_query.h"
#include "recording/recording_output.h"
#include "sampling/cpu_clock.h"
#include "sampling/profile_builder.h"
#include "sampling/sampler.h"

namespace spanprof::recording {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kDefaultCpuInterval = std::chrono::milliseconds(10);
// What the end of a program may have to wait for.
constexpr nanoseconds kExitBound = seconds(5);
constexpr nanoseconds kSendAtExitBound = seconds(3);
// Most forked children exec at once; a recording for them would be work for nothing.
constexpr nanoseconds kChildDelay = std::chrono::milliseconds(5);
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

using sampling::MonotonicNanoseconds;

sampling::SamplerOptions SamplerOptionsOf(const Options& options,
                                          const sampling::Runtime* runtime) {
  sampling::SamplerOptions result;
  if (options.cpu) result.cpu_interval_ns = static_cast<uint64_t>(options.cpu->count());
  if (options.wall) result.wall_interval_ns = static_cast<uint64_t>(options.wall->count());
  result.events = options.allocation || options.lock;
  if (!options.cpu && !options.wall && !result.events) {
    result.cpu_interval_ns = static_cast<uint64_t>(kDefaultCpuInterval.count());
  }
  result.wall_threads = options.wall_threads.value_or(kDefaultWallThreads);
  result.max_cpu_percent =
      options.max_cpu_percent.value_or(runtime == nullptr ? 0 : runtime->default_max_cpu_percent());
  result.wall_by_cpu_timers = runtime != nullptr && runtime->wall_by_cpu_timers();
  return result;
}

}  // namespace

// What is the recording's thread's own, once that has started.
struct Recording::Run {
  explicit Run(Options given)
      : options(std::move(given)),
        max_memory(options.max_memory.value_or(kDefaultMaxMemory)),
        builder(context::ThisCore(), max_memory, ReadResource(options).attributes),
        since_cut(max_memory) {}

  Result<void> StartSampling() {
    if (output == nullptr) {
      Result<std::unique_ptr<RecordingOutput>> opened = RecordingOutput::Open(options);
      if (!opened) return tl::make_unexpected(opened.error());
      output = *std::move(opened);
    }
    sampling::Sampler& sampler = sampling::Sampler::Instance();
    if (sampler.runtime() == nullptr && (options.allocation || options.lock)) {
      return Fail(ENOTSUP,
                  "alloc= and lock= are for runtimes that report such events, and this "
                  "process runs none that is known to spanprof",
                  "leave them out, or load the runtime's agent");
    }
    if (sampler.runtime() != nullptr) {
      if (Result<void> ready = sampler.runtime()->Prepare(options, sampler.code_map()); !ready)
        return ready;
    }
    const sampling::SamplerOptions sampler_options = SamplerOptionsOf(options, sampler.runtime());
    if (Result<void> started = sampler.Start(sampler_options, builder); !started) return started;
    if (sampler.runtime() == nullptr) return {};
    Result<void> events = sampler.runtime()->StartEvents(options, sampler);
    if (!events) sampler.Stop();
    return events;
  }

  // What was recorded since the last profile was cut, all of it.
  profile::Profile CutProfile() {
    profile::Profile part = builder.Cut(sampling::Sampler::Instance(), output->counters());
    if (since_cut_is_empty) return part;
    profile::Merge(since_cut, part);
    since_cut_is_empty = true;
    return std::exchange(since_cut, profile::Profile(max_memory));
  }

  void CutPart() {
    const profile::Profile part = builder.Cut(sampling::Sampler::Instance(), output->counters());
    output->TakePart(part);
    profile::Merge(since_cut, part);
    since_cut_is_empty = false;
  }

  Result<void> Dump(const std::string& file) {
    sampling::Sampler::Instance().Flush();
    profile::Profile now = last_profile
                               ? profile::Select(*last_profile, {})
                               : builder.Copy(sampling::Sampler::Instance(), output->counters());
    if (!since_cut_is_empty) {
      profile::Profile all = profile::Select(since_cut, {});
      profile::Merge(all, now);
      now = std::move(all);
    }
    const auto written = WriteProfileFile(now, file, std::nullopt, output->write_options());
    if (!written) return tl::make_unexpected(written.error());
    return {};
  }

  Result<void> Finish(nanoseconds bound) {
    sampling::Sampler& sampler = sampling::Sampler::Instance();
    if (sampler.runtime() != nullptr) sampler.runtime()->StopEvents();
    sampler.Stop();
    profile::Profile profile = CutProfile();
    // A forked child that was not sampled once has nothing to say.
    if (in_forked_child && profile.samples().empty()) return {};
    if (!options.file && !options.to) {
      last_profile = std::move(profile);
      return {};
    }
    return output->TakeLastProfile(profile, bound);
  }

  Options options;
  const size_t max_memory;
  sampling::ProfileBuilder builder;
  std::unique_ptr<RecordingOutput> output;
  profile::Profile since_cut;  // parts, where there are such
  bool since_cut_is_empty = true;
  bool in_forked_child = false;
  std::optional<profile::Profile> last_profile;

  // Between a call and the thread; whose turn it is, asked_ and answered_ say.
  struct {
    bool stop = false;
    std::string dump_file;
    Result<void> answer;
  } request;
};

Recording& Recording::Instance() {
  // Never destroyed: its thread may still run while the process exits.
  static Recording* const kRecording = new Recording();
  return *kRecording;
}

bool Recording::IsOfThisProcess() const {
  return pid_.load(std::memory_order_relaxed) == context::CurrentProcessId();
}

bool Recording::running() const { return state_.Get() != kIdle && IsOfThisProcess(); }

Result<void> Recording::Start(const Options& options) {
  const std::lock_guard<std::mutex> call(calls_);
  if (running()) {
    return Fail(EBUSY, "a recording is under way already", "call spanprof_stop first");
  }
  auto run = std::make_unique<Run>(options);
  // What is wrong with the options is better told here than found by the thread.
  Result<std::unique_ptr<RecordingOutput>> output = RecordingOutput::Open(options);
  if (!output) return tl::make_unexpected(output.error());
  run->output = *std::move(output);
  InstallForkHandlers();
  return StartThread(std::move(run));
}

Result<void> Recording::StartThread(std::unique_ptr<Run> run) {
  if (thread_.joinable()) thread_.join();  // of a recording that finished on its own
  last_run_.reset();
  run_ = std::move(run);
  pid_.store(context::CurrentProcessId(), std::memory_order_relaxed);
  finish_.store(false, std::memory_order_relaxed);
  state_.Set(kStarting);
  const uint32_t answered = answered_.Get();
  // Before the thread is there: in a forked child nobody waits for it, and somebody may ask before
  // it has come to its first look.
  const uint32_t asked = asked_.Get();
  try {
    // The thread gets no signal that is meant for the program.
    const context::SignalBlocker no_signals;
    thread_ = std::thread([this, asked, current = run_.get()] { ThreadMain(*current, asked); });
  } catch (const std::system_error& error) {
    state_.Set(kIdle);
    return Fail(error.code().value(), "the recording's thread cannot be started",
                "look at the limit of processes (ulimit -u)");
  }
  if (run_->in_forked_child) return {};  // the child does not wait
  while (answered_.Get() == answered) {
    answered_.WaitWhile(answered, MonotonicNanoseconds() + 1'000'000'000u);
  }
  Result<void> started = std::exchange(run_->request.answer, Result<void>());
  if (!started) thread_.join();
  return started;
}

void Recording::ThreadMain(Run& run, uint32_t seen) {
  pthread_setname_np(pthread_self(), "spanprof-rec");
  sampling::Sampler::Instance().IgnoreCurrentThread();
  if (run.in_forked_child) {
    asked_.WaitWhile(seen, MonotonicNanoseconds() + static_cast<uint64_t>(kChildDelay.count()));
    if (finish_.load(std::memory_order_acquire)) {
      state_.Set(kIdle);
      return;
    }
  }
  Result<void> started = run.StartSampling();
  if (!started) {
    if (run.in_forked_child) {
      LogWarning(run.options.log.value_or(kDefaultLog),
                 "a forked child is not recorded: " + TextOf(started.error()));
    }
    run.request.answer = std::move(started);
    state_.Set(kIdle);
    answered_.Increment();
    return;
  }
  state_.Set(kRunning);
  if (!run.in_forked_child) answered_.Increment();

  const uint64_t cut_interval = run.output->cut_interval_ns();
  const uint64_t part_interval = run.output->part_interval_ns();
  const uint64_t start = MonotonicNanoseconds();
  uint64_t next_cut = cut_interval == 0 ? kNever : start + cut_interval;
  uint64_t next_part = part_interval == 0 ? kNever : start + part_interval;
  for (;;) {
    if (finish_.load(std::memory_order_acquire)) {
      if (const Result<void> finished = run.Finish(kSendAtExitBound); !finished) {
        LogWarning(run.options.log.value_or(kDefaultLog), TextOf(finished.error()));
      }
      state_.Set(kIdle);
      return;
    }
    if (asked_.Get() != seen) {
      seen = asked_.Get();
      const bool stop = run.request.stop;
      run.request.answer = stop ? run.Finish(kSendAtExitBound) : run.Dump(run.request.dump_file);
      if (stop) state_.Set(kIdle);
      answered_.Increment();
      if (stop) return;
    }
    const uint64_t now = MonotonicNanoseconds();
    if (now >= next_cut) {
      run.output->TakeProfile(run.CutProfile());
      // Writing may have taken longer than the interval: then the next one is due at once, no more.
      next_cut = std::max(next_cut + cut_interval, MonotonicNanoseconds());
      if (part_interval != 0) next_part = MonotonicNanoseconds() + part_interval;
    } else if (now >= next_part) {
      run.CutPart();
      next_part = MonotonicNanoseconds() + part_interval;
    }
    const uint64_t wake = std::min({next_cut, next_part, now + 3'600'000'000'000u});
    if (wake > now && !finish_.load(std::memory_order_acquire)) asked_.WaitWhile(seen, wake);
  }
}

Result<void> Recording::Ask(bool stop, const std::string& dump_file) {
  run_->request.stop = stop;
  run_->request.dump_file = dump_file;
  const uint32_t answered = answered_.Get();
  asked_.Increment();
  // The thread may have finished on its own meanwhile: the process is about to exit.
  while (answered_.Get() == answered && state_.Get() != kIdle) {
    answered_.WaitWhile(answered, MonotonicNanoseconds() + 100'000'000u);
  }
  return std::exchange(run_->request.answer, Result<void>());
}

Result<void> Recording::Stop() {
  const std::lock_guard<std::mutex> call(calls_);
  if (!running()) return Fail(ENODEV, "nothing is being recorded", "call spanprof_start first");
  Result<void> stopped = Ask(true, "");
  thread_.join();
  last_run_ = std::move(run_);
  return stopped;
}

Result<void> Recording::Dump(const std::string& file) {
  const std::lock_guard<std::mutex> call(calls_);
  if (running()) return Ask(false, file);
  if (last_run_ != nullptr && last_run_->last_profile) return last_run_->Dump(file);
  return Fail(ENODEV, "nothing is being recorded, and no profile is waiting to be written",
              "call spanprof_start first");
}

void Recording::FinishBeforeExit() {
  if (!running()) return;
  const uint64_t deadline =
      MonotonicNanoseconds() + static_cast<uint64_t>(nanoseconds(kExitBound).count());
  finish_.store(true, std::memory_order_release);
  asked_.Increment();
  while (true) {
    const uint32_t state = state_.Get();
    if (state == kIdle || MonotonicNanoseconds() >= deadline) return;
    state_.WaitWhile(state, deadline);
  }
}

void Recording::Resume() {
  const std::lock_guard<std::mutex> call(calls_);
  if (state_.Get() != kIdle || run_ == nullptr || !IsOfThisProcess()) return;
  auto run = std::make_unique<Run>(run_->options);
  run->in_forked_child = run_->in_forked_child;
  (void)StartThread(std::move(run));
}

void Recording::InstallForkHandlers() {
  if (std::exchange(fork_handlers_installed_, true)) return;
  pthread_atfork(
      [] {
        Instance().running_at_fork_ = Instance().running();
        sampling::Sampler::Instance().PrepareFork();
      },
      [] { sampling::Sampler::Instance().FinishForkInParent(); },
      [] {
        sampling::Sampler::Instance().FinishForkInChild();
        Instance().ContinueInForkedChild();
      });
}

void Recording::ContinueInForkedChild() {
  // The parent's thread and whatever it was in the middle of are not here: nothing of it may be
  // touched or freed. Only the options do not change while a recording runs.
  new (&calls_) std::mutex();
  new (&thread_) std::thread();
  Run* const parents = run_.release();
  (void)last_run_.release();
  state_.Set(kIdle);
  if (!running_at_fork_ || parents == nullptr) return;
  if (parents->options.fork.value_or(kDefaultFork) == ForkPolicy::kQuiet) return;
  auto run = std::make_unique<Run>(parents->options);
  if (run->options.file) run->options.file = FileOfForkedChild(*run->options.file);
  run->in_forked_child = true;
  if (const Result<void> started = StartThread(std::move(run)); !started) {
    LogWarning(parents->options.log.value_or(kDefaultLog),
               "a forked child is not recorded: " + TextOf(started.error()));
  }
}

}  // namespace spanprof::recording
