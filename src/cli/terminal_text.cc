#include "cli/terminal_text.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "base/printable_text.h"

namespace spanprof::cli {
namespace {

// The length of the UTF-8 sequence that `text` starts with; 0 if there is none.
std::size_t SequenceLength(std::string_view text) {
  for (std::size_t length = 1; length <= std::min<std::size_t>(text.size(), 4); ++length) {
    if (IsUtf8(text.substr(0, length))) return length;
  }
  return 0;
}

// U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F and U+FEFF: they have no width, break the
// line, or turn the direction of what follows.
bool IsInvisible(std::string_view sequence) {
  if (sequence.size() != 3) return false;
  const auto second = static_cast<unsigned char>(sequence[1]);
  const auto third = static_cast<unsigned char>(sequence[2]);
  if (sequence[0] == '\xEF') return second == 0xBB && third == 0xBF;
  if (sequence[0] != '\xE2') return false;
  if (second == 0x80) return (third >= 0x8B && third <= 0x8F) || (third >= 0xA8 && third <= 0xAE);
  return second == 0x81 && third >= 0xA0 && third <= 0xAF;
}

void AppendEscaped(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  }
}

}  // namespace

std::string TerminalText(std::string_view text, Separators separators) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
    const bool separator =
        separators == Separators::kEscape && (sequence == " " || sequence == "=");
    if (length == 0 || separator || HasControlCharacter(sequence) || IsInvisible(sequence)) {
      AppendEscaped(out, sequence);
    } else if (sequence == "\\") {
      out += "\\\\";
    } else {
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

}  // namespace spanprof::cli
