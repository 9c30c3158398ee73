#include "base/option_table.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/http_url.h"
#include "base/option_lists.h"
#include "base/option_words.h"
#include "base/printable_text.h"
#include "base/quantity.h"

namespace spanprof {
namespace {

using std::chrono::nanoseconds;

// In the order of their enums.
constexpr std::array<std::string_view, 4> kCommands = {"start", "stop", "dump", "status"};
constexpr std::array<std::string_view, 2> kContextStorages = {"profiler", "otel"};
constexpr std::array<std::string_view, 2> kOffOn = {"off", "on"};
constexpr std::array<std::string_view, 2> kLogTargets = {"stderr", "none"};
constexpr std::array<std::string_view, 7> kFormats = {"jfr",  "pprof",   "otlp",    "folded",
                                                      "html", "firefox", "perfetto"};
constexpr std::array<std::string_view, 2> kLabelSchemes = {"datadog", "pyroscope"};
constexpr std::array<std::string_view, 2> kForkPolicies = {"follow", "quiet"};
constexpr std::array<std::string_view, 2> kJavaWalkers = {"hotspot", "asgct"};
constexpr std::array<std::string_view, 2> kJfrContexts = {"pool", "flat"};

// The parse and write functions of the rows, by the type of the member they serve.

template <auto kMember>
Result<void> ParseChoice(const OptionSpec& spec, std::string_view value, Options& options) {
  using Choice = typename std::remove_reference_t<decltype(options.*kMember)>::value_type;
  const Result<std::string> plain = UnescapeValue(spec, value);
  if (!plain) return tl::make_unexpected(plain.error());
  const Result<std::size_t> index = FindChoice(spec, *plain, *plain);
  if (!index) return tl::make_unexpected(index.error());
  options.*kMember = static_cast<Choice>(*index);
  return {};
}

template <auto kMember>
void WriteChoice(const OptionSpec& spec, const Options& options, std::vector<std::string>& values) {
  const auto& member = options.*kMember;
  if (!member) return;
  const auto index = static_cast<std::size_t>(*member);
  if (index < spec.choices.size()) values.emplace_back(spec.choices[index]);
}

template <auto kMember>
Result<void> ParseNumber(const OptionSpec& spec, std::string_view value, Options& options) {
  using Number = typename std::remove_reference_t<decltype(options.*kMember)>::value_type;
  std::optional<std::uint64_t> number;
  if constexpr (std::is_same_v<Number, nanoseconds>) {
    const std::optional<nanoseconds> duration = ParseDuration(value);
    if (!duration) return Refuse(spec, value, " is not a duration");
    number = static_cast<std::uint64_t>(duration->count());
  } else if (spec.kind == OptionKind::kSize) {
    number = ParseSize(value);
    if (!number) return Refuse(spec, value, " is not a size");
  } else {
    std::uint64_t parsed = 0;
    const char* const begin = value.data();
    const char* const end = begin + value.size();
    const auto [rest, error] = std::from_chars(begin, end, parsed);
    if (error == std::errc::invalid_argument || rest != end) {
      return Refuse(spec, value, " is not a whole number");
    }
    if (error != std::errc()) parsed = std::numeric_limits<std::uint64_t>::max();
    number = parsed;
  }
  if (Result<void> check = CheckRange(spec, value, *number); !check) return check;
  if constexpr (std::is_same_v<Number, nanoseconds>) {
    options.*kMember = nanoseconds(static_cast<std::int64_t>(*number));
  } else {
    options.*kMember = static_cast<Number>(*number);
  }
  return {};
}

template <auto kMember>
void WriteNumber(const OptionSpec& spec, const Options& options, std::vector<std::string>& values) {
  const auto& member = options.*kMember;
  if (!member) return;
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*member)>, nanoseconds>) {
    values.push_back(FormatDuration(*member));
  } else {
    values.push_back(spec.kind == OptionKind::kSize ? FormatSize(*member)
                                                    : std::to_string(*member));
  }
}

template <auto kMember>
Result<void> ParseText(const OptionSpec& spec, std::string_view value, Options& options) {
  Result<std::string> plain = UnescapeValue(spec, value);
  if (!plain) return tl::make_unexpected(plain.error());
  if (Result<void> check = CheckText(spec, *plain, *plain, "", spec.max); !check) {
    return check;
  }
  options.*kMember = *std::move(plain);
  return {};
}

// A path is bytes to the kernel, so it need not be UTF-8.
template <auto kMember>
Result<void> ParsePath(const OptionSpec& spec, std::string_view value, Options& options) {
  Result<std::string> plain = UnescapeValue(spec, value);
  if (!plain) return tl::make_unexpected(plain.error());
  if (plain->size() > spec.max) {
    return Refuse(spec, *plain, " is longer than " + std::to_string(spec.max) + " bytes");
  }
  if (HasControlCharacter(*plain)) return Refuse(spec, *plain, " has a control character");
  options.*kMember = *std::move(plain);
  return {};
}

template <auto kMember>
void WriteText(const OptionSpec&, const Options& options, std::vector<std::string>& values) {
  const auto& member = options.*kMember;
  if (!member) return;
  values.push_back(EscapeOption(*member, OptionPosition::kWholeValue));
}

// A URL, with otlp+ or pprof+ before it to say what is posted there; or `otlp`, which leaves the
// address to OpenTelemetry's variables.
Result<void> ParseUrl(const OptionSpec& spec, std::string_view value, Options& options) {
  Result<std::string> plain = UnescapeValue(spec, value);
  if (!plain) return tl::make_unexpected(plain.error());
  if (plain->size() > spec.max) {
    return Refuse(spec, *plain, " is longer than " + std::to_string(spec.max) + " bytes");
  }
  std::string_view address = *plain;
  for (const std::string_view prefix : {"otlp+", "pprof+"}) {
    if (!address.starts_with(prefix)) continue;
    address.remove_prefix(prefix.size());
    break;
  }
  if (const Result<HttpUrl> url = ParseHttpUrl(address); !url && *plain != "otlp") {
    return Fail(url.error().code, Seen(spec, *plain) + " " + url.error().message, url.error().hint);
  }
  options.to = *std::move(plain);
  return {};
}

// Sets the format that one of the words jfr and format= asks for, unless the other asked for
// another.
Result<void> SetFormat(OutputFormat format, Options& options) {
  const OutputFormat before = options.format.value_or(format);
  options.format = format;
  if (before == format) return {};
  const OutputFormat other = before == OutputFormat::kJfr ? format : before;
  return Fail(EINVAL,
              "jfr and format=" + Quoted(kFormats[static_cast<std::size_t>(other)]) +
                  " contradict each other",
              "jfr is short for format=jfr: leave one of them out");
}

Result<void> ParseJfr(const OptionSpec&, std::string_view, Options& options) {
  return SetFormat(OutputFormat::kJfr, options);
}

void WriteNothing(const OptionSpec&, const Options&, std::vector<std::string>&) {}

Result<void> ParseFormat(const OptionSpec& spec, std::string_view value, Options& options) {
  const Result<std::string> plain = UnescapeValue(spec, value);
  if (!plain) return tl::make_unexpected(plain.error());
  const Result<std::size_t> index = FindChoice(spec, *plain, *plain);
  if (!index) return tl::make_unexpected(index.error());
  return SetFormat(static_cast<OutputFormat>(*index), options);
}

constexpr std::uint64_t Nanoseconds(nanoseconds duration) {
  return static_cast<std::uint64_t>(duration.count());
}

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals

constexpr std::array kTable = {
    // The context core.
    OptionSpec{.name = "ctxstorage",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::context_storage>,
               .write = WriteChoice<&Options::context_storage>,
               .example = "otel",
               .choices = kContextStorages,
               .meaning = "Where contexts are published: for the profiler in this process only, or "
                          "also for readers of OpenTelemetry contexts in other processes"},
    OptionSpec{.name = "ctxslots",
               .kind = OptionKind::kInteger,
               .parse = ParseNumber<&Options::context_slots>,
               .write = WriteNumber<&Options::context_slots>,
               .example = "65536",
               .min = 1,
               .max = 4194304,
               .meaning = "Slots of the context table that ctxstorage=otel publishes"},
    OptionSpec{.name = "attributes",
               .kind = OptionKind::kText,
               .parse = ParseAttributes,
               .write = WriteAttributes,
               .example = "http.route;tenant",
               .max = kMaxAttributes,
               .accepts = "up to 10 names of 1 to 128 bytes between semicolons",
               .meaning = "Names of the tags that a context carries; the position is the tag slot"},
    OptionSpec{.name = "latency",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::latency>,
               .write = WriteChoice<&Options::latency>,
               .example = "on",
               .choices = kOffOn,
               .meaning = "Keep histograms of how long context writes and reads take"},
    OptionSpec{.name = "log",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::log>,
               .write = WriteChoice<&Options::log>,
               .example = "none",
               .choices = kLogTargets,
               .meaning = "Where warnings go"},

    // The resource.
    OptionSpec{.name = "service",
               .kind = OptionKind::kText,
               .parse = ParseText<&Options::service>,
               .write = WriteText<&Options::service>,
               .example = "checkout",
               .max = kMaxTextBytes,
               .accepts = "a name",
               .meaning = "The resource attribute service.name; without it OTEL_SERVICE_NAME, then "
                          "OTEL_RESOURCE_ATTRIBUTES, then unknown_service:EXECUTABLE"},
    OptionSpec{.name = "version",
               .kind = OptionKind::kText,
               .parse = ParseText<&Options::version>,
               .write = WriteText<&Options::version>,
               .example = "1.4.2",
               .max = kMaxTextBytes,
               .accepts = "a text",
               .meaning = "The resource attribute service.version"},
    OptionSpec{.name = "environment",
               .kind = OptionKind::kText,
               .parse = ParseText<&Options::environment>,
               .write = WriteText<&Options::environment>,
               .example = "production",
               .max = kMaxTextBytes,
               .accepts = "a text",
               .meaning = "The resource attribute deployment.environment.name"},
    OptionSpec{.name = "resource",
               .kind = OptionKind::kText,
               .parse = ParseResource,
               .write = WriteResource,
               .example = "team=payments;zone=b",
               .max = 128,
               .accepts = "key=value between semicolons",
               .adds_up = true,
               .meaning =
                   "More resource attributes, over those of OTEL_RESOURCE_ATTRIBUTES; may be "
                   "given several times"},

    // The samplers.
    OptionSpec{.name = "cpu",
               .kind = OptionKind::kDuration,
               .parse = ParseNumber<&Options::cpu>,
               .write = WriteNumber<&Options::cpu>,
               .example = "10ms",
               .min = Nanoseconds(100us),
               .max = Nanoseconds(10s),
               .meaning = "Sample each thread after this much CPU time; a number without a unit is "
                          "nanoseconds. 10ms where neither cpu= nor wall= is given"},
    OptionSpec{.name = "wall",
               .kind = OptionKind::kDuration,
               .parse = ParseNumber<&Options::wall>,
               .write = WriteNumber<&Options::wall>,
               .example = "50ms",
               .min = Nanoseconds(1ms),
               .max = Nanoseconds(10s),
               .meaning = "Sample threads at this interval, whether they run or wait"},
    OptionSpec{.name = "threads",
               .kind = OptionKind::kInteger,
               .parse = ParseNumber<&Options::wall_threads>,
               .write = WriteNumber<&Options::wall_threads>,
               .example = "16",
               .min = 1,
               .max = 4096,
               .meaning = "Threads that wall= samples at each tick"},
    OptionSpec{.name = "maxmem",
               .kind = OptionKind::kSize,
               .parse = ParseNumber<&Options::max_memory>,
               .write = WriteNumber<&Options::max_memory>,
               .example = "64m",
               .min = std::uint64_t{1} << 20,
               .max = std::uint64_t{1} << 40,
               .meaning = "Memory that the profile under way may take; samples that do not fit are "
                          "folded by the minute, which is counted"},
    OptionSpec{.name = "maxcpu",
               .kind = OptionKind::kInteger,
               .parse = ParseNumber<&Options::max_cpu_percent>,
               .write = WriteNumber<&Options::max_cpu_percent>,
               .example = "2",
               .min = 0,
               .max = 100,
               .meaning = "Percent of the CPU that sampling may take: it becomes less frequent "
                          "where it would take more, which is counted. 0: no limit. 2 in Ruby, "
                          "otherwise 0"},
    OptionSpec{.name = "fork",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::fork>,
               .write = WriteChoice<&Options::fork>,
               .example = "quiet",
               .choices = kForkPolicies,
               .meaning = "Whether a forked child goes on being profiled"},

    // What only a runtime has.
    OptionSpec{.name = "alloc",
               .kind = OptionKind::kSize,
               .parse = ParseNumber<&Options::allocation>,
               .write = WriteNumber<&Options::allocation>,
               .example = "512k",
               .min = 1024,
               .max = std::uint64_t{1} << 30,
               .meaning = "JVM, Ruby: a sample about every so many allocated bytes"},
    OptionSpec{.name = "lock",
               .kind = OptionKind::kDuration,
               .parse = ParseNumber<&Options::lock>,
               .write = WriteNumber<&Options::lock>,
               .example = "1ms",
               .max = Nanoseconds(1h),
               .meaning = "JVM: a sample for each wait for a lock that takes at least this long"},
    OptionSpec{.name = "vthreads",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::virtual_threads>,
               .write = WriteChoice<&Options::virtual_threads>,
               .example = "on",
               .choices = kOffOn,
               .meaning = "JVM: contexts follow virtual threads when these are mounted and "
                          "unmounted, which makes each switch dearer"},
    OptionSpec{.name = "walker",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::java_walker>,
               .write = WriteChoice<&Options::java_walker>,
               .example = "asgct",
               .choices = kJavaWalkers,
               .meaning = "JVM: walk its stacks by reading its structures, or by its own "
                          "AsyncGetCallTrace"},

    // The sinks.
    OptionSpec{
        .name = "file",
        .kind = OptionKind::kText,
        .parse = ParsePath<&Options::file>,
        .write = WriteText<&Options::file>,
        .example = "profile.jfr",
        .max = kMaxTextBytes,
        .accepts = "a path",
        .meaning = "Write the profile to this file; %t in its name is the time, %p the process "
                   "id, %n a counter"},
    OptionSpec{.name = "format",
               .kind = OptionKind::kChoice,
               .parse = ParseFormat,
               .write = WriteChoice<&Options::format>,
               .example = "pprof",
               .choices = kFormats,
               .meaning = "Format of the profile"},
    OptionSpec{.name = "jfr",
               .kind = OptionKind::kFlag,
               .parse = ParseJfr,
               .write = WriteNothing,
               .meaning = "Short for format=jfr"},
    OptionSpec{.name = "jfrcontext",
               .kind = OptionKind::kChoice,
               .parse = ParseChoice<&Options::jfr_context>,
               .write = WriteChoice<&Options::jfr_context>,
               .example = "flat",
               .choices = kJfrContexts,
               .meaning = "How JFR has contexts: once each in a constant pool, or as fields of "
                          "every sample"},
    OptionSpec{
        .name = "to",
        .kind = OptionKind::kText,
        .parse = ParseUrl,
        .write = WriteText<&Options::to>,
        .example = "http://localhost:4318",
        .max = kMaxTextBytes,
        .accepts = "an http or https URL, with otlp+ or pprof+ before it; or otlp",
        .meaning = "Post profiles to this address, as OTLP unless it begins with pprof+; otlp "
                   "alone: to OTEL_EXPORTER_OTLP_ENDPOINT"},
    OptionSpec{.name = "every",
               .kind = OptionKind::kDuration,
               .parse = ParseNumber<&Options::every>,
               .write = WriteNumber<&Options::every>,
               .example = "1m",
               .min = Nanoseconds(1s),
               .max = Nanoseconds(24h),
               .meaning = "Cut, write and send a profile at this interval"},
    OptionSpec{.name = "spool",
               .kind = OptionKind::kText,
               .parse = ParsePath<&Options::spool>,
               .write = WriteText<&Options::spool>,
               .example = "/var/spool/spanprof",
               .max = kMaxTextBytes,
               .accepts = "a directory",
               .meaning = "Keep profiles that could not be sent yet here"},
    OptionSpec{.name = "header",
               .kind = OptionKind::kText,
               .parse = ParseHeader,
               .write = WriteHeaders,
               .example = "X-Scope-OrgID:tenant",
               .max = 64,
               .accepts = "Name:value",
               .adds_up = true,
               .is_secret = true,
               .meaning = "Header of each request to the address of to=; may be given several "
                          "times"},
    OptionSpec{.name = "labels",
               .kind = OptionKind::kChoiceList,
               .parse = ParseLabels,
               .write = WriteLabels,
               .example = "datadog;pyroscope",
               .choices = kLabelSchemes,
               .meaning = "Label pprof samples also by the names that these products look for; "
                          "several between semicolons"},
};

}  // namespace

std::span<const OptionSpec> OptionTable() { return kTable; }

std::span<const std::string_view> CommandNames() { return kCommands; }

}  // namespace spanprof
