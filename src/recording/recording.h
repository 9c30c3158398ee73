#pragma once

// A recording: the sampler of this process, the profile that it fills, and where that goes. One a
// process at a time.
//
// Everything but sampling is done by a thread of its own: cutting profiles, writing, sending, and
// stopping. So whoever stops a recording, or ends the process, only has to wait for that thread,
// and not longer than it wants: FinishBeforeExit may be called where no lock may be taken.
//
// Fork: the child of a process that is recorded starts a recording of its own (fork=follow), into a
// file of its own, or none (fork=quiet). A child that nobody announces (vfork, _Fork, clone) has
// none, and its calls here do nothing.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/options.h"
#include "base/result.h"
#include "sampling/waitable_number.h"

namespace spanprof::recording {

class Recording {
 public:
  static Recording& Instance();

  // Without cpu= and wall=, CPU time is sampled every 10 ms. EBUSY: one is under way.
  Result<void> Start(const Options& options);
  // Writes and sends what is left. ENODEV: nothing is being recorded.
  Result<void> Stop();
  // Writes what was recorded since the start, or since the last profile of every=, and goes on.
  // After a recording without file= and to= has been stopped: what it recorded.
  Result<void> Dump(const std::string& file);
  bool running() const;

  // Stops and writes, as far as that can be done in kExitBound. SIGNAL-SAFE: it takes no lock.
  void FinishBeforeExit();
  // The process has not ended after all: an exec failed.
  void Resume();

 private:
  struct Run;
  enum State : uint32_t { kIdle, kStarting, kRunning };

  Recording() = default;
  Result<void> StartThread(std::unique_ptr<Run> run);
  Result<void> Ask(bool stop, const std::string& dump_file);
  void ThreadMain(Run& run, uint32_t seen);
  bool IsOfThisProcess() const;
  void InstallForkHandlers();
  void ContinueInForkedChild();

  // Held by a call of Start, Stop or Dump, never by the recording's thread.
  std::mutex calls_;
  std::unique_ptr<Run> run_;
  std::unique_ptr<Run> last_run_;  // stopped, and its profile is nowhere else
  std::thread thread_;
  std::atomic<uint32_t> pid_{0};
  sampling::WaitableNumber state_;
  sampling::WaitableNumber asked_;
  sampling::WaitableNumber answered_;
  std::atomic<bool> finish_{false};
  bool fork_handlers_installed_ = false;
  std::atomic<bool> running_at_fork_{false};
};

}  // namespace spanprof::recording
