#pragma once

// The grammar of the option string, without the options: words between commas, `key=value`, items
// between semicolons, and the backslash that makes `,` `;` `\` or a space an ordinary character.
//
// The functions cut views out of the string with its escapes still in place, so that a cut never
// falls on an escaped separator; UnescapeOption() is for the last, smallest piece. Any thread may
// call these; none is for a signal handler.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spanprof {

// Cuts `text` at each separator that no backslash precedes. The pieces are trimmed; there is always
// at least one.
[[nodiscard]] std::vector<std::string_view> SplitEscaped(std::string_view text, char separator);

struct KeyAndValue {
  std::string_view key;                   // all of the text, if there is no separator
  std::optional<std::string_view> value;  // what follows the first separator
};
[[nodiscard]] KeyAndValue SplitAtFirst(std::string_view text, char separator);

// Replaces the escapes by what they stand for; absent if a backslash stands before anything else.
[[nodiscard]] std::optional<std::string> UnescapeOption(std::string_view text);

// Returns `text` so that the functions above give it back whole. A semicolon is escaped only where
// it would end an item of a list.
enum class OptionPosition { kWholeValue, kListItem };
[[nodiscard]] std::string EscapeOption(std::string_view text, OptionPosition position);

}  // namespace spanprof
