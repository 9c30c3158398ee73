// Fuzzes a file of the spool: what is read is written again as it was, byte for byte.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "export/spool_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using spanprof::sending::ReadSpoolFile;
  using spanprof::sending::WriteSpoolFile;
  const std::string bytes(data, data + size);
  if (const auto report = ReadSpoolFile(bytes)) {
    const auto again = ReadSpoolFile(WriteSpoolFile(*report));
    if (!again || again->bytes != report->bytes || again->time_ns != report->time_ns ||
        again->format != report->format) {
      std::abort();
    }
  } else if (report.error().message.empty()) {
    std::abort();
  }
  // A checksum is not found by chance, so one that fits comes too.
  const spanprof::sending::Report own{.format = spanprof::OutputFormat::kPprof,
                                      .time_ns = static_cast<std::int64_t>(size),
                                      .bytes = bytes};
  const auto read = ReadSpoolFile(WriteSpoolFile(own));
  if (!read || read->bytes != bytes) std::abort();
  return 0;
}
