#pragma once

// The file formats: one pair of files each, writing from the profile model and reading back into
// it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "base/result.h"
#include "profile/profile.h"

namespace spanprof::format {

// How exact the times of samples are in pprof, which has no place for them but a label on each, so
// that samples which differ in nothing else cannot be written as one. OTLP and JFR always have
// them.
enum class SampleTimes {
  kAuto,    // kExact up to kMaxExactTimes samples, beyond that kMinute
  kExact,   // to the nanosecond
  kMinute,  // samples of a minute that differ in nothing else are written as one, as Profile folds
};
inline constexpr size_t kMaxExactTimes = 100'000;

struct WriteOptions {
  std::vector<LabelScheme> labels;  // further label names besides ours, for other people's backends
  JfrContext jfr_context = JfrContext::kPool;
  SampleTimes sample_times = SampleTimes::kAuto;  // pprof
  // Folded, which can hold only one kind. Absent: cpu if there is any, else the first that is
  // there.
  std::optional<profile::SampleKind> kind;
};

// Files are hostile input. A reader refuses what would need more than this.
struct ReadLimits {
  size_t max_memory = size_t{1} << 30;        // of the profile, and again of tables while reading
  size_t max_uncompressed = size_t{1} << 30;  // of a compressed file
};

// The names of labels and attributes that hold the context, in every format that has names.
inline constexpr std::string_view kTraceIdLabel = "trace_id";               // 32 hex digits
inline constexpr std::string_view kSpanIdLabel = "span_id";                 // 16 hex digits
inline constexpr std::string_view kRootSpanIdLabel = "local_root_span_id";  // 16 hex digits
inline constexpr std::string_view kEndpointLabel = "endpoint";
inline constexpr std::string_view kThreadNameLabel = "thread_name";
inline constexpr std::string_view kThreadIdLabel = "thread_id";
inline constexpr std::string_view kThreadStateLabel = "thread_state";

// By the file name's end: .pb.gz .pprof .pb (pprof), .otlp, .folded .txt, .jfr, .html, .json.gz
// .firefox.json (Firefox Profiler), .perfetto-trace .pftrace (Perfetto). EINVAL names them all.
Result<OutputFormat> FormatOfFile(std::string_view path);
// By the first bytes, for reading. The more of the file is given, the surer: OTLP and pprof that is
// not compressed are told apart by their top-level fields.
Result<OutputFormat> FormatOfBytes(std::string_view bytes);

// One dispatcher over all of them.
Result<std::string> WriteProfile(const profile::Profile& profile, OutputFormat format,
                                 const WriteOptions& options);
Result<profile::Profile> ReadProfile(std::string_view bytes, OutputFormat format,
                                     const ReadLimits& limits);

// pprof: gzip'ed profile.proto, with one value pair (count and nanoseconds or bytes) a sample kind.
Result<std::string> WritePprof(const profile::Profile& profile, const WriteOptions& options);
Result<profile::Profile> ReadPprof(std::string_view bytes, const ReadLimits& limits);
// OTLP profiles (v1development): an ExportProfilesServiceRequest, not compressed.
Result<std::string> WriteOtlp(const profile::Profile& profile, const WriteOptions& options);
Result<profile::Profile> ReadOtlp(std::string_view bytes, const ReadLimits& limits);
// Folded stacks: "outer;inner value" lines.
Result<std::string> WriteFolded(const profile::Profile& profile, const WriteOptions& options);
Result<profile::Profile> ReadFolded(std::string_view bytes, const ReadLimits& limits);
// JFR: one finished chunk. Chunks may be put one behind the other in a file.
Result<std::string> WriteJfr(const profile::Profile& profile, const WriteOptions& options);
Result<profile::Profile> ReadJfr(std::string_view bytes, const ReadLimits& limits);
// To look at, not to read back.
Result<std::string> WriteHtml(const profile::Profile& profile, const WriteOptions& options);
Result<std::string> WriteFirefox(const profile::Profile& profile, const WriteOptions& options);
Result<std::string> WritePerfetto(const profile::Profile& profile, const WriteOptions& options);

}  // namespace spanprof::format
