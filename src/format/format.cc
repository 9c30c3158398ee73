#include "format/format.h"

#include <array>
#include <cerrno>
#include <exception>
#include <new>

#include "base/printable_text.h"
#include "format/format_detection.h"

namespace spanprof::format {
namespace {

struct Ending {
  std::string_view ending;
  OutputFormat format;
};

// The longer of two that both fit stands first.
constexpr std::array kEndings = {
    Ending{".pb.gz", OutputFormat::kPprof},
    Ending{".pprof", OutputFormat::kPprof},
    Ending{".pb", OutputFormat::kPprof},
    Ending{".otlp", OutputFormat::kOtlp},
    Ending{".folded", OutputFormat::kFolded},
    Ending{".txt", OutputFormat::kFolded},
    Ending{".jfr", OutputFormat::kJfr},
    Ending{".html", OutputFormat::kHtml},
    Ending{".json.gz", OutputFormat::kFirefox},
    Ending{".firefox.json", OutputFormat::kFirefox},
    Ending{".perfetto-trace", OutputFormat::kPerfetto},
    Ending{".pftrace", OutputFormat::kPerfetto},
};

// The model and the readers throw nothing of their own, but the standard library may.
template <class Call>
auto WithoutExceptions(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Fail(ENOMEM, "not enough memory for the profile");
  } catch (const std::exception& error) {
    return Fail(EINVAL, std::string("internal error: ") + error.what());
  }
}

}  // namespace

Result<OutputFormat> FormatOfFile(std::string_view path) {
  for (const Ending& candidate : kEndings) {
    if (path.ends_with(candidate.ending)) return candidate.format;
  }
  std::string all;
  for (const Ending& candidate : kEndings) {
    all += all.empty() ? "" : ", ";
    all += candidate.ending;
  }
  return Fail(EINVAL, "no format for the file name " + Quoted(path),
              "end the name in one of " + all + ", or give format=");
}

Result<OutputFormat> FormatOfBytes(std::string_view bytes) { return DetectFormat(bytes); }

Result<std::string> WriteProfile(const profile::Profile& profile, OutputFormat format,
                                 const WriteOptions& options) {
  return WithoutExceptions([&]() -> Result<std::string> {
    switch (format) {
      case OutputFormat::kPprof:
        return WritePprof(profile, options);
      case OutputFormat::kOtlp:
        return WriteOtlp(profile, options);
      case OutputFormat::kFolded:
        return WriteFolded(profile, options);
      case OutputFormat::kJfr:
        return WriteJfr(profile, options);
      case OutputFormat::kHtml:
        return WriteHtml(profile, options);
      case OutputFormat::kFirefox:
        return WriteFirefox(profile, options);
      case OutputFormat::kPerfetto:
        return WritePerfetto(profile, options);
    }
    return Fail(EINVAL, "no such format: " + std::to_string(static_cast<int>(format)));
  });
}

Result<profile::Profile> ReadProfile(std::string_view bytes, OutputFormat format,
                                     const ReadLimits& limits) {
  return WithoutExceptions([&]() -> Result<profile::Profile> {
    switch (format) {
      case OutputFormat::kPprof:
        return ReadPprof(bytes, limits);
      case OutputFormat::kOtlp:
        return ReadOtlp(bytes, limits);
      case OutputFormat::kFolded:
        return ReadFolded(bytes, limits);
      case OutputFormat::kJfr:
        return ReadJfr(bytes, limits);
      case OutputFormat::kHtml:
      case OutputFormat::kFirefox:
      case OutputFormat::kPerfetto:
        break;
    }
    return Fail(ENOTSUP, "this format is written, but not read",
                "read the profile that it was made from: pprof, OTLP, JFR or folded");
  });
}

}  // namespace spanprof::format
