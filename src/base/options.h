#pragma once

// The option string, the same for every runtime: spanprof_init() and spanprof_start(), the variable
// SPANPROF, -agentpath of a JVM, Ruby and Node.js.
//
//   start,cpu=1ms,ctxstorage=otel,attributes=http.route;tenant,jfr,file=profile.jfr
//
// Words are separated by commas: a command (first, optional), flags, and `key=value`. Spaces around
// words, keys, values and items of lists do not count, nor do empty words. A backslash makes a
// comma, a semicolon, a backslash or a space an ordinary character: `file=a\,b`. A key may be given
// once, except header= and resource=, which add up.
//
//   Result<Options> options = ParseOptions("ctxstorage=otel,ctxslots=1024");
//   if (!options) return options.error();
//   const std::uint32_t slots = options->context_slots.value_or(kDefaultContextSlots);
//
// What was not given stays absent, so that a later string can be told from one that repeats a
// default. Nothing here throws on bad input or depends on the locale. Any thread may call these
// functions; none is for a signal handler.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spanprof {

enum class Command { kNone, kStart, kStop, kDump, kStatus };
enum class ContextStorage { kProfiler, kOtel };
enum class LogTarget { kStderr, kNone };
enum class OutputFormat { kJfr, kPprof, kOtlp, kFolded, kHtml, kFirefox, kPerfetto };
enum class LabelScheme { kDatadog, kPyroscope };  // whose names pprof labels have besides ours
enum class ForkPolicy { kFollow, kQuiet };
enum class JfrContext { kPool, kFlat };

inline constexpr ContextStorage kDefaultContextStorage = ContextStorage::kProfiler;
inline constexpr std::uint32_t kDefaultContextSlots = 65536;
inline constexpr bool kDefaultLatency = false;
inline constexpr LogTarget kDefaultLog = LogTarget::kStderr;
inline constexpr std::uint32_t kDefaultWallThreads = 16;
inline constexpr std::chrono::nanoseconds kDefaultEvery = std::chrono::minutes(1);
inline constexpr std::uint64_t kDefaultMaxMemory = std::uint64_t{64} << 20;
inline constexpr ForkPolicy kDefaultFork = ForkPolicy::kFollow;
inline constexpr JfrContext kDefaultJfrContext = JfrContext::kPool;

inline constexpr std::size_t kMaxAttributes = 10;  // the tag slots of a context record
inline constexpr std::size_t kMaxAttributeBytes = 128;

struct ResourceAttribute {
  std::string key;
  std::string value;
  bool operator==(const ResourceAttribute&) const = default;
};

// How the JVM's stacks are walked: by our own reading of its structures, or by its own function.
enum class JavaWalker : std::uint8_t { kHotspot, kAsgct };

struct HttpHeader {
  std::string name;
  std::string value;  // may be a secret: never log it
  bool operator==(const HttpHeader&) const = default;
};

struct Options {
  Command command = Command::kNone;

  // The context core.
  std::optional<ContextStorage> context_storage;  // ctxstorage=
  std::optional<std::uint32_t> context_slots;     // ctxslots=
  std::vector<std::string> attributes;            // the position is the tag slot; empty: not given
  std::optional<bool> latency;
  std::optional<LogTarget> log;

  // The resource; see resource_attributes.h for how these join the environment's.
  std::optional<std::string> service;
  std::optional<std::string> version;
  std::optional<std::string> environment;
  std::vector<ResourceAttribute> resource;

  // The samplers. Absent: that sampler was not asked for.
  std::optional<std::chrono::nanoseconds> cpu;
  std::optional<std::chrono::nanoseconds> wall;
  std::optional<std::uint32_t> wall_threads;     // threads=
  std::optional<std::uint64_t> max_memory;       // maxmem=, in bytes
  std::optional<std::uint32_t> max_cpu_percent;  // maxcpu=
  std::optional<ForkPolicy> fork;

  // What only a runtime has (src/sampling/runtime.h).
  std::optional<std::uint64_t> allocation;       // alloc=: a sample each so many bytes
  std::optional<std::chrono::nanoseconds> lock;  // lock=: waits that take longer than this
  std::optional<bool> virtual_threads;           // vthreads=
  std::optional<JavaWalker> java_walker;         // walker=

  // The sinks.
  std::optional<std::string> file;
  std::optional<OutputFormat> format;  // the flag jfr sets kJfr
  std::optional<std::string> to;
  std::optional<std::chrono::nanoseconds> every;
  std::optional<std::string> spool;
  std::vector<HttpHeader> headers;  // header=
  std::vector<LabelScheme> labels;
  std::optional<JfrContext> jfr_context;  // jfrcontext=

  bool operator==(const Options&) const = default;
};

// Parses an option string. The error names the option, the value seen (shortened, escaped, and not
// at all where it may be a secret) and what is accepted; its code is EINVAL.
[[nodiscard]] Result<Options> ParseOptions(std::string_view text);

// Returns the option string of `options`, for a child process: ParseOptions() of it gives equal
// options, if these hold only values which ParseOptions() could have made. It holds the headers,
// and so perhaps a secret: pass it on, never log it.
[[nodiscard]] std::string ToString(const Options& options);

struct OptionDescription {
  std::string name;
  std::string values;         // what may follow the `=`; empty for a flag
  std::string default_value;  // empty if there is none
  std::string meaning;
};

// Describes each option, in the order of the documentation. The commands are not among them.
[[nodiscard]] std::vector<OptionDescription> DescribeOptions();

// Renders the descriptions: as rows `| name | values | default | meaning |` of a markdown table,
// without its head, and as the text of a help command, 100 columns wide.
[[nodiscard]] std::string OptionsAsMarkdownRows();
[[nodiscard]] std::string OptionsAsHelp();

}  // namespace spanprof
