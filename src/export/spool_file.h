#pragma once

// One report in a file of the spool: a head of lines, an empty line, and the body as it is sent.
//
//   spanprof spool 1
//   format pprof            which kind of destination takes it: pprof or otlp
//   time 1794734372000000000
//   size 5120               of the body, in bytes
//   crc32 89abcdef          of the body
//
// No header of a request and no address is in it: those may be secret, and are those of whoever
// sends it. Pure functions; any thread may call them, none is for a signal handler.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/options.h"
#include "base/result.h"

namespace spanprof::sending {

// A finished profile.
struct Report {
  OutputFormat format = OutputFormat::kOtlp;  // kOtlp or kPprof
  std::int64_t time_ns = 0;                   // Unix, of the profile's beginning
  std::string bytes;                          // as WriteProfile() made them; gzip'ed in the spool
};

[[nodiscard]] std::string WriteSpoolFile(const Report& report);

// EINVAL with the reason for anything that WriteSpoolFile() did not make or that was cut or
// changed.
[[nodiscard]] Result<Report> ReadSpoolFile(std::string_view bytes);

}  // namespace spanprof::sending
