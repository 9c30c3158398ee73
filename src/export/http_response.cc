#include "export/http_response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace spanprof::sending {
namespace {

constexpr std::int64_t kMaxRetryAfter = std::int64_t{24} * 3600;
constexpr std::size_t kMaxStatusLine = 1024;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool EqualIgnoringCase(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() &&
         std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
         });
}

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Digits only, and all of them; a number that does not fit is the greatest.
std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) return std::nullopt;
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc::result_out_of_range) return UINT64_MAX;
  return number;
}

// "Sun, 06 Nov 1994 08:49:37 GMT", the only form that may be sent.
std::optional<std::time_t> ParseDate(std::string_view text) {
  constexpr std::string_view kShape = "???, 00 ??? 0000 00:00:00 GMT";
  if (text.size() != kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == '?') continue;
    if (kShape[i] == '0' ? !IsDigit(text[i]) : text[i] != kShape[i]) return std::nullopt;
  }
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::size_t month = kMonths.find(text.substr(8, 3));
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  const auto number = [text](std::size_t position, std::size_t size) {
    return static_cast<int>(*ParseNumber(text.substr(position, size)));
  };
  std::tm utc{};
  utc.tm_mday = number(5, 2);
  utc.tm_mon = static_cast<int>(month / 3);
  utc.tm_year = number(12, 4) - 1900;
  utc.tm_hour = number(17, 2);
  utc.tm_min = number(20, 2);
  utc.tm_sec = number(23, 2);
  return timegm(&utc);
}

std::optional<std::chrono::seconds> ParseRetryAfter(std::string_view value, std::time_t now) {
  std::int64_t seconds = 0;
  if (const auto number = ParseNumber(value)) {
    seconds = static_cast<std::int64_t>(std::min<std::uint64_t>(*number, kMaxRetryAfter));
  } else if (const auto date = ParseDate(value)) {
    seconds = std::clamp<std::int64_t>(*date - now, 0, kMaxRetryAfter);
  } else {
    return std::nullopt;
  }
  return std::chrono::seconds(seconds);
}

// Cuts the line before `\n`, without a `\r`; absent if there is no end of a line yet.
std::optional<std::string_view> NextLine(std::string_view bytes, std::size_t& offset) {
  const std::size_t end = bytes.find('\n', offset);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = bytes.substr(offset, end - offset);
  if (line.ends_with('\r')) line.remove_suffix(1);
  offset = end + 1;
  return line;
}

// Returns the status, or 0 if this is no status line: "HTTP/1.1 200 OK".
int ParseStatusLine(std::string_view line) {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || !IsDigit(line[7]) || line[8] != ' ') {
    return 0;
  }
  if (line.size() > 12 && line[12] != ' ') return 0;
  const auto status = ParseNumber(line.substr(9, 3));
  return status && *status >= 100 && *status <= 599 ? static_cast<int>(*status) : 0;
}

// True as long as `bytes` could be the beginning of a status line.
bool CouldBeStatusLine(std::string_view bytes) {
  constexpr std::string_view kBegin = "HTTP/1.";
  const std::size_t size = std::min(bytes.size(), kBegin.size());
  return bytes.substr(0, size) == kBegin.substr(0, size) && bytes.size() <= kMaxStatusLine;
}

void ParseField(std::string_view line, std::time_t now, HttpResponse& response) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;  // not our business
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trim(line.substr(colon + 1));
  if (EqualIgnoringCase(name, "content-length")) {
    if (!response.body_size) response.body_size = ParseNumber(value);
  } else if (EqualIgnoringCase(name, "transfer-encoding")) {
    response.chunked = true;
  } else if (EqualIgnoringCase(name, "retry-after")) {
    if (!response.retry_after) response.retry_after = ParseRetryAfter(value, now);
  }
}

bool ReadVarint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

ParsedResponse ParseHttpResponse(std::string_view bytes, std::time_t now) {
  std::size_t offset = 0;
  while (true) {
    HttpResponse response;
    const std::string_view rest = bytes.substr(offset);
    const auto status_line = NextLine(bytes, offset);
    if (!status_line) {
      return {CouldBeStatusLine(rest) ? ResponseState::kIncomplete : ResponseState::kGarbage, {}};
    }
    response.status = ParseStatusLine(*status_line);
    if (response.status == 0) return {ResponseState::kGarbage, {}};
    while (true) {
      const auto line = NextLine(bytes, offset);
      if (!line) return {ResponseState::kIncomplete, {}};
      if (line->empty()) break;
      ParseField(*line, now, response);
    }
    if (response.status < 200) continue;
    response.body_offset = offset;
    if (response.chunked) response.body_size.reset();
    if (response.status == 204 || response.status == 304) {
      response.body_size = 0;
      response.chunked = false;
    }
    return {ResponseState::kComplete, response};
  }
}

bool SaysPartialSuccess(std::string_view body) {
  // Field 1 of the answer is a message whose field 1 is the number of profiles that were refused.
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  if (!ReadVarint(body, tag) || tag != ((1U << 3) | 2U) || !ReadVarint(body, size)) return false;
  std::string_view message = body.substr(0, std::min<std::uint64_t>(size, body.size()));
  std::uint64_t rejected = 0;
  return ReadVarint(message, tag) && tag == (1U << 3) && ReadVarint(message, rejected) &&
         rejected != 0;
}

}  // namespace spanprof::sending
