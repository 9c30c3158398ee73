#include "export/spool_file.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <system_error>
#include <zlib.h>

namespace spanprof::sending {
namespace {

constexpr std::string_view kFirstLine = "spanprof spool 1\n";

std::uint32_t Checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string ToHex(std::uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(value));
  return text.data();
}

// Takes the line `name value` off the front; absent if it is not that line.
std::optional<std::string_view> TakeLine(std::string_view& bytes, std::string_view name) {
  const std::size_t end = bytes.substr(0, 64).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  if (!line.starts_with(name) || line.substr(name.size(), 1) != " ") return std::nullopt;
  return line.substr(name.size() + 1);
}

template <class Number>
bool ParseNumber(std::optional<std::string_view> text, Number& number, int base = 10) {
  if (!text || text->empty()) return false;
  const char* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number, base);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

tl::unexpected<Error> Broken(const char* problem) {
  return Fail(EINVAL, std::string("a file of the spool ") + problem);
}

}  // namespace

std::string WriteSpoolFile(const Report& report) {
  std::string file(kFirstLine);
  file += "format ";
  file += report.format == OutputFormat::kPprof ? "pprof" : "otlp";
  file += "\ntime " + std::to_string(report.time_ns);
  file += "\nsize " + std::to_string(report.bytes.size());
  file += "\ncrc32 " + ToHex(Checksum(report.bytes)) + "\n\n";
  return file += report.bytes;
}

Result<Report> ReadSpoolFile(std::string_view bytes) {
  if (!bytes.starts_with(kFirstLine)) return Broken("does not begin like one");
  bytes.remove_prefix(kFirstLine.size());
  Report report;
  const auto format = TakeLine(bytes, "format");
  if (format == "pprof") {
    report.format = OutputFormat::kPprof;
  } else if (format != "otlp") {
    return Broken("has no format of pprof or otlp");
  }
  if (!ParseNumber(TakeLine(bytes, "time"), report.time_ns)) return Broken("has no time");
  std::uint64_t size = 0;
  if (!ParseNumber(TakeLine(bytes, "size"), size)) return Broken("has no size");
  std::uint32_t checksum = 0;
  if (!ParseNumber(TakeLine(bytes, "crc32"), checksum, 16)) return Broken("has no checksum");
  if (!bytes.starts_with('\n')) return Broken("has no end of its head");
  bytes.remove_prefix(1);
  if (bytes.size() != size) return Broken("is cut off or has something behind its end");
  if (Checksum(bytes) != checksum) return Broken("was changed: its checksum is wrong");
  report.bytes = bytes;
  return report;
}

}  // namespace spanprof::sending
