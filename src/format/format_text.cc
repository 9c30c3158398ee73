#include "format/format_text.h"

#include <charconv>

#include "base/printable_text.h"

namespace spanprof::format {
namespace {

template <int kBase>
std::optional<uint64_t> Parse(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, kBase);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

// How many bytes the character at the front takes; 0 if it is not UTF-8.
size_t CharacterLength(std::string_view text) {
  for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    if (IsUtf8(text.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

std::string ToUtf8(std::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    out += length != 0 ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(length != 0 ? length : 1);
  }
  return out;
}

std::optional<uint64_t> ParseHex(std::string_view text) {
  if (text.size() > 16) return std::nullopt;
  return Parse<16>(text);
}

std::optional<uint64_t> ParseDecimal(std::string_view text) { return Parse<10>(text); }

std::string EscapeKey(std::string_view key) {
  std::string out;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '=' && c != '%' && byte >= 0x20 && byte != 0x7F) {
      out += c;
      continue;
    }
    out += '%';
    out += "0123456789ABCDEF"[byte >> 4];
    out += "0123456789ABCDEF"[byte & 15];
  }
  return out;
}

std::string UnescapeKey(std::string_view key) {
  std::string out;
  for (size_t i = 0; i < key.size(); ++i) {
    const bool may_be_escape = key[i] == '%' && key.size() - i > 2;
    const auto code = may_be_escape ? ParseHex(key.substr(i + 1, 2)) : std::nullopt;
    if (code) {
      out += static_cast<char>(*code);
      i += 2;
    } else {
      out += key[i];
    }
  }
  return out;
}

}  // namespace spanprof::format
