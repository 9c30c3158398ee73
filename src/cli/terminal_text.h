#pragma once

// Text of another process, made safe for a terminal. Any thread may call it.

#include <string>
#include <string_view>

namespace spanprof::cli {

// Escapes control characters, bytes that are not UTF-8, backslashes, and the characters that change
// the direction of text. With `separators` spaces and `=` too, so that `name=value` pairs on one
// line can be told apart.
enum class Separators { kKeep, kEscape };
[[nodiscard]] std::string TerminalText(std::string_view text,
                                       Separators separators = Separators::kKeep);

}  // namespace spanprof::cli
