#pragma once

// The profile model: what every sampler fills and every format reads. There is one.
//
// Everything that repeats is stored once and referred to by a number: strings, mappings, functions,
// frames, stacks (each one a frame on top of another stack), contexts, threads. Number 0 always
// means "none". A sample is then a few numbers, its time and its weight.
//
//   Profile profile;
//   StackId stack = kNone;
//   for (frame : outermost first) stack = profile.AddStack(stack, profile.AddFrame(frame));
//   // or, with all frames at hand: profile.AddStack(frame_ids)
//   profile.AddSample({.time_ns = now, .thread = profile.AddThread(tid, "worker-1"),
//                      .context = profile.AddContext(context), .stack = stack,
//                      .kind = SampleKind::kCpu, .count = 1, .value = 10'000'000});
//
// Not for signal handlers, and one thread at a time. Not for copying either: Select() makes a copy.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spanprof::profile {

using StringId = uint32_t;
using MappingId = uint32_t;
using FunctionId = uint32_t;
using FrameId = uint32_t;
using StackId = uint32_t;
using ContextId = uint32_t;
using ThreadId = uint32_t;

inline constexpr uint32_t kNone = 0;
inline constexpr unsigned kTagCount = 10;

// A file that was mapped executable: what native addresses are relative to.
struct Mapping {
  uint64_t start = 0;  // address in the process
  uint64_t end = 0;
  uint64_t file_offset = 0;
  StringId path = kNone;
  StringId build_id = kNone;  // lower-case hex
  bool operator==(const Mapping&) const = default;
};

struct Function {
  StringId name = kNone;         // for people: demangled, or as the runtime calls it
  StringId system_name = kNone;  // as the linker knows it; kNone if it is the same
  StringId file = kNone;
  uint32_t start_line = 0;
  bool operator==(const Function&) const = default;
};

enum class FrameKind : uint8_t {
  kNative,
  kKernel,
  kJava,
  kJavaScript,
  kRuby,
  kRust,
  kMarker,  // not code: a note such as "[stack truncated]" or "[GC]"
};

struct Frame {
  FrameKind kind = FrameKind::kNative;
  bool inlined = false;         // into the frame below it, at the same address
  MappingId mapping = kNone;    // native frames; kept even when a function is known
  uint64_t address = 0;         // the ELF virtual address in the mapped file; else the pc, or 0
  FunctionId function = kNone;  // kNone: not symbolised
  uint32_t line = 0;
  uint32_t column = 0;
  bool operator==(const Frame&) const = default;
};

struct Stack {
  StackId parent = kNone;  // the caller's stack; kNone: this is the outermost frame
  FrameId frame = kNone;
  bool operator==(const Stack&) const = default;
};

// Who the work was for. The endpoint is not here: it is looked up by the local root when a profile
// is written, because it is often known only when the request ends.
struct Context {
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;
  uint64_t root_span_id = 0;
  std::array<StringId, kTagCount> tags{};  // by position of Profile::attribute_names
  bool operator==(const Context&) const = default;
};

// A thread's name at the time of the sample: the same thread appears again under a new name.
struct Thread {
  uint32_t tid = 0;
  StringId name = kNone;
  bool operator==(const Thread&) const = default;
};

enum class SampleKind : uint8_t { kCpu, kWall, kAllocation, kLock };
inline constexpr unsigned kSampleKindCount = 4;

enum class ThreadState : uint8_t { kUnknown, kRunning, kSleeping, kWaiting, kBlocked };

struct Sample {
  uint64_t time_ns = 0;  // Unix time
  ThreadId thread = kNone;
  ContextId context = kNone;  // kNone: no span was active
  StackId stack = kNone;
  SampleKind kind = SampleKind::kCpu;
  ThreadState state = ThreadState::kUnknown;
  bool folded = false;  // stands for several samples of its minute; time_ns is the minute's start
  uint64_t count = 1;   // how many samples this stands for
  uint64_t value = 0;   // kCpu, kWall, kLock: nanoseconds; kAllocation: bytes
  bool operator==(const Sample&) const = default;
};

struct Attribute {
  std::string key;
  std::string value;
  bool operator==(const Attribute&) const = default;
};

// What is known of a sampler: what was asked for, and what the kernel really gave.
struct Period {
  uint64_t requested_ns = 0;
  uint64_t actual_ns = 0;
  bool operator==(const Period&) const = default;
};

class Profile {
 public:
  // Bytes that samples and tables may take together. The tables get at most three quarters of it.
  // For the moment in which one of them grows, its old copy stands beside the new one.
  //
  // When the samples do not fit, those with equal (thread, context, stack, kind, state) within the
  // same minute are merged, the oldest first; "profile.folded_samples" counts how many fewer there
  // are. If all of them differ, they lose first their context, then stack and thread, at last
  // everything but the kind, again the oldest first; "profile.coarsened_samples" counts how many
  // did. The sums of count and value of each kind are always kept.
  static constexpr size_t kDefaultMaxMemory = size_t{64} << 20;
  static constexpr size_t kMinMaxMemory = size_t{32} << 10;  // less than this is taken as this

  explicit Profile(size_t max_memory = kDefaultMaxMemory);
  ~Profile();
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;

  // ---- Filling ----
  // Each returns the number of the equal one that is there already, or of the new one. When memory
  // has run out they return kNone and count "profile.table_full", and AddSample folds. A number
  // that refers to nothing is taken as kNone and counted as "profile.bad_reference".
  StringId Intern(std::string_view text);
  MappingId AddMapping(const Mapping& mapping);
  FunctionId AddFunction(const Function& function);
  FrameId AddFrame(const Frame& frame);
  StackId AddStack(StackId parent, FrameId frame);  // `parent` itself if there is no frame
  // All of a stack, the outermost frame first. kNone if any part of it did not fit, where the loop
  // above would leave a stack that begins in its middle.
  StackId AddStack(std::span<const FrameId> outermost_first);
  ContextId AddContext(const Context& context);             // kNone for an empty one
  ThreadId AddThread(uint32_t tid, std::string_view name);  // kNone for 0 without a name
  void AddSample(const Sample& sample);
  void SetEndpoint(uint64_t root_span_id, std::string_view endpoint);
  void AddToCounter(std::string_view name, uint64_t amount);

  // ---- Reading ----
  // Index 0 of each table is the empty one.
  std::string_view Text(StringId id) const;
  const std::vector<Mapping>& mappings() const;
  const std::vector<Function>& functions() const;
  const std::vector<Frame>& frames() const;
  const std::vector<Stack>& stacks() const;
  const std::vector<Context>& contexts() const;
  const std::vector<Thread>& threads() const;
  const std::vector<Sample>& samples() const;
  size_t string_count() const;
  // kNone: not known.
  StringId EndpointOf(uint64_t root_span_id) const;
  const std::map<uint64_t, StringId>& endpoints() const;
  const std::map<std::string, uint64_t, std::less<>>& counters() const;
  // The frames of a stack, innermost first.
  std::vector<FrameId> FramesOf(StackId stack) const;
  size_t memory_used() const;
  size_t max_memory() const;

  // ---- Of the whole profile ----
  uint64_t start_time_ns = 0;  // Unix time
  uint64_t duration_ns = 0;
  std::vector<Attribute> resource;                 // service.name, host.name, process.pid, ...
  std::vector<std::string> attribute_names;        // names of Context::tags, by position
  std::array<Period, kSampleKindCount> periods{};  // by SampleKind; zero: not sampled

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace spanprof::profile
