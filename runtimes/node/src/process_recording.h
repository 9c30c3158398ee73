#pragma once

// The recording of the process: what the samplers of its threads gave, and where it goes. A thread
// of its own cuts, writes and sends, so that no thread of JavaScript waits for a disk.
//
// V8's samples can only be fetched by the thread they are of. So whoever wants a profile wakes all
// threads that take part, and waits for their answers, but not for ever: one that does not come to
// its event loop in time is counted, and its samples are in the next profile.
//
// All members may be called by any thread.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/options.h"
#include "base/result.h"
#include "profile/profile.h"
#include "recording/recording_output.h"
#include "recording_settings.h"

namespace spanprof::node {

// A thread of JavaScript.
class Participant {
 public:
  // There is something to do: start, cut or stop. Any thread; does not wait.
  virtual void Wake() = 0;
  // A request of this thread was answered. Any thread; does not wait.
  virtual void Complete(uint64_t ticket, Result<std::string> answer) = 0;

 protected:
  ~Participant() = default;
};

class ProcessRecording {
 public:
  static ProcessRecording& Instance();

  // EBUSY: one is under way. EINVAL: options that Node.js has nothing for.
  Result<void> Start(std::string_view text, const std::vector<ResourceAttribute>& runtime);
  RecordingSettings settings();

  void Join(Participant* participant);
  // It has nothing more to give; what it asked for is still answered.
  void Leave(Participant* participant);
  // The same, and it is about to be gone: after this nobody calls it.
  void Forget(Participant* participant);
  // What a participant has to answer to with Flushed, once it has given what it has.
  uint64_t flush_wanted();
  void Add(uint64_t generation, const profile::Profile& part);
  void Flushed(Participant* participant, uint64_t flush);

  // The answer goes to Participant::Complete.
  void Stop(Participant* caller, uint64_t ticket);
  void Dump(Participant* caller, uint64_t ticket, std::string file);
  // For the end of the process: returns when all is written, or after kExitBound. The caller has
  // left, for it cannot answer meanwhile.
  void StopAndWait();

  void SetEndpoint(uint64_t root_span_id, std::string_view name);
  std::map<std::string, uint64_t> counters();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Task {
    bool stop = false;
    std::string file;
    Participant* caller = nullptr;
    uint64_t ticket = 0;
  };
  struct Run;

  ProcessRecording() = default;
  static void* ThreadMain(void* recording);
  void Work(Run& run);
  void WaitForThreads(std::unique_lock<std::mutex>& lock, SteadyTime deadline);
  void Answer(const Task& task, Result<std::string> answer);
  Result<std::string> DumpNow(std::unique_lock<std::mutex>& lock, Run& run,
                              const std::string& file);
  // All since the last profile.
  static profile::Profile Gathered(Run& run);
  profile::Profile Finished(Run& run, profile::Profile profile);
  Result<void> WriteLast(std::unique_lock<std::mutex>& lock, Run& run);

  std::mutex mutex_;
  std::condition_variable changed_;
  RecordingSettings settings_;
  std::map<Participant*, uint64_t> participants_;  // with the last flush that each answered
  uint64_t flush_ = 0;
  std::deque<Task> tasks_;
  std::unique_ptr<Run> run_;                        // there as long as the thread
  std::unique_ptr<profile::Profile> last_profile_;  // of a recording without file= and to=
  std::unordered_map<uint64_t, std::string> endpoints_;
  std::deque<uint64_t> endpoint_order_;
  std::map<std::string, uint64_t> counters_;
};

}  // namespace spanprof::node
