#pragma once

// What a language runtime (the JVM, Ruby) adds to the sampler: a walker of its stacks, and what its
// frames and threads are called. Everything else is the core's. One a process.
//
// A frame of the runtime stands in a walked stack in the place of a pc, as one word with the top
// bit set, which no address of a program has. What the other bits say is the runtime's own
// business: the sampler keeps the word, and asks for its name when the buffer is emptied.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/resource_attributes.h"
#include "base/result.h"
#include "profile/profile.h"
#include "sampling/stack_walker.h"

namespace spanprof::sampling {

inline constexpr uint64_t kRuntimeFrame = uint64_t{1} << 63;

constexpr bool IsRuntimeFrame(uint64_t word) { return (word & kRuntimeFrame) != 0; }

struct RuntimeFrame {
  profile::FrameKind kind = profile::FrameKind::kMarker;
  bool inlined = false;  // into the frame below it
  std::string name;
  std::string file;
  uint32_t line = 0;
};

// Something that a runtime reports on the thread that it happened on.
struct RuntimeEvent {
  profile::SampleKind kind = profile::SampleKind::kAllocation;
  profile::ThreadState state = profile::ThreadState::kRunning;
  uint64_t value = 0;
  const uint64_t* frames = nullptr;  // the innermost first
  unsigned depth = 0;
};

class RuntimeEvents {
 public:
  // False: nothing is being recorded, or there was no room, which is counted.
  virtual bool RecordEvent(const RuntimeEvent& event) = 0;

 protected:
  ~RuntimeEvents() = default;
};

class CodeMap;

// The runtime may come with another copy of this library than the one that samples: it uses what it
// is given here and no Sampler of its own.
class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  // ---- SIGNAL-SAFE ----
  [[nodiscard]] virtual const StackWalker& walker() const = 0;
  // Of the calling thread, for a wall sample.
  [[nodiscard]] virtual profile::ThreadState CurrentThreadState() const {
    return profile::ThreadState::kUnknown;
  }
  // Another number whenever the state of the thread may have changed. A thread that has hardly run
  // since its last wall sample is taken to be where it was, unless this says otherwise.
  [[nodiscard]] virtual uint64_t StateMark(uint32_t /*tid*/) const { return 0; }
  // Whether the context that the calling thread has published belongs to what it runs. False while
  // the runtime switches to another fiber and its hook has not run yet: the sample carries none.
  // The runtime counts these.
  [[nodiscard]] virtual bool ContextIsCurrent() const { return true; }

  // Whether threads that run get their wall samples from timers of their CPU clocks. That is
  // cheaper than to be asked by the sampler's thread, which then only looks after those that do not
  // run; but such a timer is looked at once a tick of the kernel.
  [[nodiscard]] virtual bool wall_by_cpu_timers() const { return false; }

  // What sampling may take of the CPU where maxcpu= was not given, in percent; 0: what it takes.
  [[nodiscard]] virtual unsigned default_max_cpu_percent() const { return 0; }

  // ---- Around a recording, on its thread ----
  // Before the sampler starts. The map is of the process's native code, for a walker that joins
  // native frames with the runtime's.
  virtual Result<void> Prepare(const Options& options, const CodeMap& native_code) = 0;
  // The sampler has started: what the options ask for of allocations and locks may come to it.
  virtual Result<void> StartEvents(const Options& options, RuntimeEvents& events) = 0;
  // No event comes to the sampler after it.
  virtual void StopEvents() = 0;

  // ---- On the sampler's thread ----
  virtual void EnterSamplerThread() = 0;
  virtual void LeaveSamplerThread() = 0;
  // Within a tenth of a second of the sample.
  virtual RuntimeFrame Describe(uint64_t frame) = 0;
  // The runtime's name of a thread at that time; `os_name` if it has none.
  virtual std::string ThreadName(uint32_t tid, uint64_t monotonic_ns, const char* os_name) = 0;

  // ---- For a profile that is finished ----
  // Each as it stands since the start.
  virtual std::map<std::string, uint64_t> counters() const = 0;
  // telemetry.sdk.language, process.runtime.name and so on.
  virtual std::vector<ResourceAttribute> resource() const = 0;
};

}  // namespace spanprof::sampling
