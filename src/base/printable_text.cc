#include "base/printable_text.h"

#include <cstddef>

namespace spanprof {
namespace {

constexpr std::size_t kQuotedBytes = 64;

unsigned ByteAt(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool IsContinuation(std::string_view text, std::size_t index) {
  return index < text.size() && (ByteAt(text, index) & 0xC0) == 0x80;
}

// Returns the length of the well-formed UTF-8 sequence at `index`, or 0 if there is none.
std::size_t SequenceLength(std::string_view text, std::size_t index) {
  const unsigned first = ByteAt(text, index);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !IsContinuation(text, index + 1)) return 0;
  if (first < 0xE0) return 2;
  const unsigned second = ByteAt(text, index + 1);
  if (!IsContinuation(text, index + 2)) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool too_high = first == 0xF4 && second > 0x8F;
  return overlong || too_high || !IsContinuation(text, index + 3) ? 0 : 4;
}

// `length` is SequenceLength(text, index).
bool IsControl(std::string_view text, std::size_t index, std::size_t length) {
  const unsigned first = ByteAt(text, index);
  if (first < 0x20 || first == 0x7F) return true;
  return length == 2 && first == 0xC2 && ByteAt(text, index + 1) < 0xA0;
}

void AppendHexEscape(std::string& out, unsigned byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\x";
  out += kDigits[(byte >> 4) & 0xF];
  out += kDigits[byte & 0xF];
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

bool HasControlCharacter(std::string_view text) {
  const bool utf8 = IsUtf8(text);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8 ? SequenceLength(text, i) : 1;
    if (IsControl(text, i, length)) return true;
    i += length;
  }
  return false;
}

std::string Quoted(std::string_view text) {
  std::string out = "'";
  std::size_t i = 0;
  while (i < text.size() && out.size() <= kQuotedBytes) {
    const std::size_t length = SequenceLength(text, i);
    if (length == 0) {
      AppendHexEscape(out, ByteAt(text, i));
      ++i;
      continue;
    }
    if (text[i] == '\\') {
      out += "\\\\";
    } else if (text[i] == '\n') {
      out += "\\n";
    } else if (text[i] == '\t') {
      out += "\\t";
    } else if (IsControl(text, i, length)) {
      for (std::size_t j = i; j < i + length; ++j) AppendHexEscape(out, ByteAt(text, j));
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  if (i < text.size()) out += "...";
  out += '\'';
  return out;
}

}  // namespace spanprof
