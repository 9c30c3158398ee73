#include "process_recording.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "attribute_names.h"
#include "base/log.h"
#include "base/resource_attributes.h"
#include "context/platform.h"
#include "process_publication.h"
#include "profile/profile_query.h"

namespace spanprof::node {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr nanoseconds kThreadBound = std::chrono::seconds(1);
constexpr nanoseconds kSendBound = std::chrono::seconds(3);
constexpr nanoseconds kExitBound = std::chrono::seconds(5);
constexpr size_t kMaxEndpoints = 1 << 16;

uint64_t UnixNanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

// What belongs to one recording. The mutex guards `gathered`; the rest is the thread's.
struct ProcessRecording::Run {
  Run(Options given, const RecordingSettings& chosen)
      : options(std::move(given)),
        settings(chosen),
        gathered(chosen.max_memory),
        since_cut(chosen.max_memory),
        start_ns(UnixNanoseconds()) {}

  Options options;
  RecordingSettings settings;
  std::vector<ResourceAttribute> resource;
  std::unique_ptr<recording::RecordingOutput> output;
  profile::Profile gathered;   // since the last part or profile
  profile::Profile since_cut;  // parts since the last profile
  bool since_cut_is_empty = true;
  uint64_t start_ns;                                // of what is gathered
  std::map<std::string, uint64_t> output_counters;  // as they stood in the last profile

  // What was counted since the last profile, so that profiles add up.
  void AddOutputCounters(profile::Profile& profile) {
    for (const auto& [name, value] : output->counters()) {
      profile.AddToCounter(name, value - std::exchange(output_counters[name], value));
    }
  }
};

ProcessRecording& ProcessRecording::Instance() {
  // Never destroyed: its thread and the threads of workers may outlive main().
  static auto* const kRecording = new ProcessRecording();
  return *kRecording;
}

Result<void> ProcessRecording::Start(std::string_view text,
                                     const std::vector<ResourceAttribute>& runtime) {
  const Result<Options> options = ParseOptions(text);
  if (!options) return tl::make_unexpected(options.error());
  Result<RecordingSettings> settings = SettingsOf(*options);
  if (!settings) return tl::make_unexpected(settings.error());

  const std::lock_guard<std::mutex> lock(mutex_);
  if (run_ != nullptr) {
    return Fail(EBUSY,
                settings_.running ? "a recording is under way already"
                                  : "the last recording is still being written",
                "call stop() first, and wait for it");
  }
  auto run = std::make_unique<Run>(*options, *settings);
  Result<std::unique_ptr<recording::RecordingOutput>> output =
      recording::RecordingOutput::Open(*options);
  if (!output) return tl::make_unexpected(output.error());
  run->output = *std::move(output);
  run->resource = ReadResource(*options).attributes;
  run->resource.insert(run->resource.end(), runtime.begin(), runtime.end());
  ProcessPublication::Instance().SetResource(run->resource);
  for (const std::string& name : options->attributes) {
    (void)AttributeNames::Instance().PositionOf(name);
  }

  pthread_t thread;
  {
    const context::SignalBlocker no_signals;
    const int failed = pthread_create(&thread, nullptr, &ThreadMain, this);
    if (failed != 0) {
      return Fail(failed, "the recording's thread cannot be started",
                  "look at the limit of processes (ulimit -u)");
    }
  }
  pthread_detach(thread);
  // The last chance for a recording that no thread of JavaScript ends: a worker has started it, and
  // the main thread, with which the process goes, may not even have loaded us.
  // A forked child has no thread that could write.
  static const pid_t kOwner = getpid();
  [[maybe_unused]] static const int kAtExit = atexit([] {
    if (getpid() == kOwner) Instance().StopAndWait();
  });
  run_ = std::move(run);
  last_profile_.reset();
  counters_.clear();
  settings->generation = settings_.generation + 1;
  run_->settings = *settings;
  settings_ = *settings;
  for (const auto& [participant, flushed] : participants_) participant->Wake();
  return {};
}

RecordingSettings ProcessRecording::settings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return settings_;
}

void ProcessRecording::Join(Participant* participant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  participants_[participant] = flush_;
}

void ProcessRecording::Leave(Participant* participant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  participants_.erase(participant);
  changed_.notify_all();
}

void ProcessRecording::Forget(Participant* participant) {
  const std::lock_guard<std::mutex> lock(mutex_);
  participants_.erase(participant);
  for (Task& task : tasks_) {
    if (task.caller == participant) task.caller = nullptr;
  }
  changed_.notify_all();
}

uint64_t ProcessRecording::flush_wanted() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return flush_;
}

void ProcessRecording::Add(uint64_t generation, const profile::Profile& part) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, value] : part.counters()) counters_[name] += value;
  if (run_ == nullptr || generation != run_->settings.generation) {
    // It came to its event loop when the recording had been written.
    counters_["node.samples_too_late"] += part.samples().size();
    return;
  }
  profile::Merge(run_->gathered, part);
}

void ProcessRecording::Flushed(Participant* participant, uint64_t flush) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = participants_.find(participant);
  if (found == participants_.end()) return;
  found->second = std::max(found->second, flush);
  changed_.notify_all();
}

void ProcessRecording::Stop(Participant* caller, uint64_t ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Task task = {.stop = true, .file = {}, .caller = caller, .ticket = ticket};
  if (run_ == nullptr || !settings_.running) {
    Answer(task, Fail(ENODEV, "nothing is being recorded", "call start() first"));
    return;
  }
  settings_.running = false;
  tasks_.push_back(task);
  changed_.notify_all();
}

void ProcessRecording::Dump(Participant* caller, uint64_t ticket, std::string file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Task task = {.stop = false, .file = std::move(file), .caller = caller, .ticket = ticket};
  if (run_ != nullptr) {
    tasks_.push_back(task);
    changed_.notify_all();
  } else if (last_profile_ != nullptr) {
    Answer(task, recording::WriteProfileFile(*last_profile_, task.file, std::nullopt, {}));
  } else {
    Answer(task, Fail(ENODEV, "nothing is being recorded, and no profile is waiting to be written",
                      "call start() first"));
  }
}

void ProcessRecording::StopAndWait() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (run_ == nullptr) return;
  if (settings_.running) {
    settings_.running = false;
    tasks_.push_back({.stop = true, .file = {}, .caller = nullptr, .ticket = 0});
    changed_.notify_all();
  }
  changed_.wait_until(lock, steady_clock::now() + kExitBound, [this] { return run_ == nullptr; });
}

void ProcessRecording::SetEndpoint(uint64_t root_span_id, std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [endpoint, is_new] = endpoints_.try_emplace(root_span_id);
  endpoint->second = name;
  if (!is_new) return;
  endpoint_order_.push_back(root_span_id);
  if (endpoint_order_.size() <= kMaxEndpoints) return;
  endpoints_.erase(endpoint_order_.front());
  endpoint_order_.pop_front();
}

std::map<std::string, uint64_t> ProcessRecording::counters() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void ProcessRecording::Answer(const Task& task, Result<std::string> answer) {
  // Under the lock: a participant cannot go meanwhile.
  if (task.caller != nullptr) task.caller->Complete(task.ticket, std::move(answer));
}

void ProcessRecording::WaitForThreads(std::unique_lock<std::mutex>& lock, SteadyTime deadline) {
  const uint64_t flush = ++flush_;
  for (const auto& [participant, flushed] : participants_) participant->Wake();
  const auto all_answered = [this, flush] {
    return std::all_of(participants_.begin(), participants_.end(),
                       [flush](const auto& entry) { return entry.second >= flush; });
  };
  if (changed_.wait_until(lock, deadline, all_answered)) return;
  for (const auto& [participant, flushed] : participants_) {
    if (flushed < flush) ++counters_["node.thread_not_reached"];
  }
}

// Under the lock.
profile::Profile ProcessRecording::Finished(Run& run, profile::Profile profile) {
  profile.start_time_ns = run.start_ns;
  profile.duration_ns = UnixNanoseconds() - run.start_ns;
  profile.attribute_names = AttributeNames::Instance().names();
  profile.resource.clear();
  for (const ResourceAttribute& attribute : run.resource) {
    profile.resource.push_back({attribute.key, attribute.value});
  }
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) profile.resource.push_back({"host.name", host});
  profile.resource.push_back({"process.pid", std::to_string(getpid())});
  const auto interval = static_cast<uint64_t>(run.settings.interval_ns);
  const profile::Period period = {interval, interval};
  if (run.settings.cpu) profile.periods[static_cast<unsigned>(profile::SampleKind::kCpu)] = period;
  if (run.settings.wall)
    profile.periods[static_cast<unsigned>(profile::SampleKind::kWall)] = period;
  for (const profile::Context& context : profile.contexts()) {
    const auto endpoint = endpoints_.find(context.root_span_id);
    if (endpoint != endpoints_.end()) profile.SetEndpoint(endpoint->first, endpoint->second);
  }
  return profile;
}

profile::Profile ProcessRecording::Gathered(Run& run) {
  profile::Profile all(run.settings.max_memory);
  if (!run.since_cut_is_empty) profile::Merge(all, run.since_cut);
  profile::Merge(all, run.gathered);
  return all;
}

Result<std::string> ProcessRecording::DumpNow(std::unique_lock<std::mutex>& lock, Run& run,
                                              const std::string& file) {
  const profile::Profile profile = Finished(run, Gathered(run));
  lock.unlock();
  Result<std::string> path =
      recording::WriteProfileFile(profile, file, std::nullopt, run.output->write_options());
  lock.lock();
  return path;
}

Result<void> ProcessRecording::WriteLast(std::unique_lock<std::mutex>& lock, Run& run) {
  profile::Profile all = Gathered(run);
  run.AddOutputCounters(all);
  if (const auto late = counters_.find("node.thread_not_reached"); late != counters_.end()) {
    all.AddToCounter(late->first, late->second);
  }
  all = Finished(run, std::move(all));
  if (!run.options.file && !run.options.to) {
    last_profile_ = std::make_unique<profile::Profile>(std::move(all));
    return {};
  }
  lock.unlock();
  Result<void> written = run.output->TakeLastProfile(all, kSendBound);
  lock.lock();
  return written;
}

void* ProcessRecording::ThreadMain(void* recording) {
  pthread_setname_np(pthread_self(), "spanprof-rec");
  auto& self = *static_cast<ProcessRecording*>(recording);
  Run* run = nullptr;
  {
    const std::lock_guard<std::mutex> lock(self.mutex_);
    run = self.run_.get();
  }
  self.Work(*run);
  return nullptr;
}

void ProcessRecording::Work(Run& run) {
  const nanoseconds cut_interval(run.output->cut_interval_ns());
  const nanoseconds part_interval(run.output->part_interval_ns());
  const SteadyTime never = steady_clock::now() + std::chrono::hours(24 * 365);
  SteadyTime next_cut = cut_interval.count() == 0 ? never : steady_clock::now() + cut_interval;
  SteadyTime next_part = part_interval.count() == 0 ? never : steady_clock::now() + part_interval;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait_until(lock, std::min(next_cut, next_part), [this] { return !tasks_.empty(); });
    if (!tasks_.empty()) {
      WaitForThreads(lock, steady_clock::now() + kThreadBound);
      // The caller may have left meanwhile, and is then gone from the task.
      const bool stop = tasks_.front().stop;
      Result<std::string> answer;
      if (stop) {
        const Result<void> written = WriteLast(lock, run);
        if (!written) answer = tl::make_unexpected(written.error());
      } else {
        answer = DumpNow(lock, run, tasks_.front().file);
      }
      if (stop && !answer && tasks_.front().caller == nullptr) {
        LogWarning(run.options.log.value_or(kDefaultLog), TextOf(answer.error()));
      }
      Answer(tasks_.front(), std::move(answer));
      tasks_.pop_front();
      if (!stop) continue;
      for (const Task& task : std::exchange(tasks_, {})) {
        Answer(task, Fail(ENODEV, "the recording was stopped meanwhile"));
      }
      run_.reset();
      changed_.notify_all();
      return;
    }
    const SteadyTime now = steady_clock::now();
    if (now < std::min(next_cut, next_part)) continue;
    WaitForThreads(lock, now + kThreadBound);
    const bool cut = steady_clock::now() >= next_cut;
    profile::Profile part = std::exchange(run.gathered, profile::Profile(run.settings.max_memory));
    if (cut) run.AddOutputCounters(part);
    profile::Merge(run.since_cut, part);
    run.since_cut_is_empty = false;
    if (!cut) {
      part = Finished(run, std::move(part));
      lock.unlock();
      run.output->TakePart(part);
      lock.lock();
      next_part = steady_clock::now() + part_interval;
      continue;
    }
    const profile::Profile whole =
        Finished(run, std::exchange(run.since_cut, profile::Profile(run.settings.max_memory)));
    run.since_cut_is_empty = true;
    run.start_ns = UnixNanoseconds();
    lock.unlock();
    run.output->TakeProfile(whole);
    lock.lock();
    next_cut = std::max(next_cut + cut_interval, steady_clock::now());
    if (part_interval.count() != 0) next_part = steady_clock::now() + part_interval;
  }
}

}  // namespace spanprof::node
