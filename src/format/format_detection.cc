#include "format/format_detection.h"

#include <cctype>
#include <cerrno>

#include <protozero/pbf_reader.hpp>

#include "format/gzip.h"

namespace spanprof::format {
namespace {

constexpr size_t kPrefix = 4096;

bool BeginsWith(std::string_view bytes, std::string_view start) {
  return bytes.substr(0, start.size()) == start;
}

// Both are protobuf, and both begin with field 1, a message. But of pprof that is a pair of
// numbers, and of OTLP it holds messages; and only pprof has fields beyond 2 at the top, the string
// table for one. A file may be cut off here: then what came before decides.
enum class Protobuf { kPprof, kOtlp, kNeither };
Protobuf DetectProtobuf(std::string_view bytes) {
  Protobuf guess = Protobuf::kNeither;
  try {
    protozero::pbf_reader top(bytes.data(), bytes.size());
    while (top.next()) {
      if (top.tag() > 15) return Protobuf::kNeither;
      if (top.tag() > 2) {
        top.skip();  // which fails if this is not protobuf at all
        return Protobuf::kPprof;
      }
      if (top.wire_type() != protozero::pbf_wire_type::length_delimited) return Protobuf::kNeither;
      const bool is_first_field = top.tag() == 1;  // reading forgets the tag
      protozero::pbf_reader message = top.get_message();
      if (!is_first_field || !message.next()) continue;
      const bool is_number = message.wire_type() == protozero::pbf_wire_type::varint;
      if (is_number && message.tag() <= 2) return Protobuf::kPprof;
      if (is_number || message.tag() > 3) return Protobuf::kNeither;
      guess = Protobuf::kOtlp;
    }
    // Nothing but fields 1 and 2: an OTLP request, be it without a resource.
    if (!bytes.empty()) guess = Protobuf::kOtlp;
  } catch (const protozero::exception&) {
    return guess;
  }
  return guess;
}

// A line that ends in a space and a number, without control characters.
bool IsFolded(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  size_t digits = 0;
  while (digits < line.size() && line[line.size() - 1 - digits] >= '0' &&
         line[line.size() - 1 - digits] <= '9') {
    ++digits;
  }
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') return false;
  }
  return digits > 0 && digits < line.size() && line[line.size() - 1 - digits] == ' ';
}

}  // namespace

Result<OutputFormat> DetectFormat(std::string_view bytes) {
  if (bytes.empty()) return Fail(EINVAL, "the file is empty");
  if (IsGzip(bytes)) {
    const std::string inside = DecompressPrefix(bytes, kPrefix);
    if (BeginsWith(inside, "{")) return OutputFormat::kFirefox;
    if (DetectProtobuf(inside) == Protobuf::kOtlp) {
      return Fail(EINVAL, "the file is gzip'ed OTLP", "decompress it first: gunzip FILE");
    }
    return OutputFormat::kPprof;
  }
  if (BeginsWith(bytes, std::string_view("FLR\0", 4))) return OutputFormat::kJfr;
  if (BeginsWith(bytes, "<!DOCTYPE") || BeginsWith(bytes, "<!doctype")) return OutputFormat::kHtml;
  if (BeginsWith(bytes, "{")) return OutputFormat::kFirefox;
  if (IsFolded(bytes)) return OutputFormat::kFolded;
  switch (DetectProtobuf(bytes)) {
    case Protobuf::kPprof:
      return OutputFormat::kPprof;
    case Protobuf::kOtlp:
      return OutputFormat::kOtlp;
    case Protobuf::kNeither:
      break;
  }
  return Fail(EINVAL, "the file is in none of the formats that can be read",
              "give pprof, OTLP, JFR or folded stacks");
}

}  // namespace spanprof::format
