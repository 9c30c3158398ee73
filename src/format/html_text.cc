#include "format/html_text.h"

#include <algorithm>
#include <cstddef>

#include "format/format_text.h"

namespace spanprof::format {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsInvisible(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || code == 0x061C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code <= 0xE007F);
}

// Of a text that is UTF-8.
size_t LengthOfCharacter(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

uint32_t CodeOfCharacter(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]);
  uint32_t code = static_cast<unsigned char>(character[0]) & (0xFFu >> (character.size() + 1));
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 63u);
  return code;
}

void AppendEscape(std::string& out, uint32_t code) {
  out += "\\u";
  if (code > 0xFFFF) out += kHexDigits[code >> 16 & 15];
  for (int shift = 12; shift >= 0; shift -= 4) out += kHexDigits[code >> shift & 15];
}

}  // namespace

std::string VisibleText(std::string_view text, size_t max_bytes) {
  // What is cut off need not be looked at; a character takes four bytes at most.
  const std::string utf8 = ToUtf8(text.substr(0, std::min(text.size(), max_bytes + 4)));
  std::string out;
  for (std::string_view rest = utf8; !rest.empty();) {
    const std::string_view character = rest.substr(0, LengthOfCharacter(rest[0]));
    if (utf8.size() - rest.size() + character.size() > max_bytes) {
      out += "\xE2\x80\xA6";
      break;
    }
    const uint32_t code = CodeOfCharacter(character);
    if (IsInvisible(code)) {
      AppendEscape(out, code);
    } else {
      out += character;
    }
    rest.remove_prefix(character.size());
  }
  return out;
}

void AppendJsonText(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : ToUtf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F || c == '<' || c == '>' || c == '&') {
      AppendEscape(out, byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string HtmlEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view part = bytes.substr(at, 3);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < part.size() ? static_cast<unsigned char>(part[i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += i <= part.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

void AppendVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

}  // namespace spanprof::format
