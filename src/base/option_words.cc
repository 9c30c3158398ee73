#include "base/option_words.h"

#include <cstddef>

namespace spanprof {
namespace {

constexpr std::string_view kEscapable = ",;\\ ";
constexpr std::string_view kBlanks = " \t\r\n\v\f";

bool IsOneOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// True if an odd number of backslashes stands before `index`.
bool IsEscaped(std::string_view text, std::size_t index) {
  bool escaped = false;
  while (index > 0 && text[index - 1] == '\\') {
    escaped = !escaped;
    --index;
  }
  return escaped;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsOneOf(text.front(), kBlanks)) text.remove_prefix(1);
  while (!text.empty() && IsOneOf(text.back(), kBlanks) && !IsEscaped(text, text.size() - 1)) {
    text.remove_suffix(1);
  }
  return text;
}

// Returns where the separator is next, from `start` on; npos if nowhere.
std::size_t FindUnescaped(std::string_view text, char separator, std::size_t start) {
  for (std::size_t i = start; i < text.size(); ++i) {
    if (text[i] == separator) return i;
    if (text[i] == '\\') ++i;
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string_view> SplitEscaped(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = FindUnescaped(text, separator, start);
    if (end == std::string_view::npos) break;
    pieces.push_back(Trim(text.substr(start, end - start)));
    start = end + 1;
  }
  pieces.push_back(Trim(text.substr(start)));
  return pieces;
}

KeyAndValue SplitAtFirst(std::string_view text, char separator) {
  const std::size_t at = FindUnescaped(text, separator, 0);
  if (at == std::string_view::npos) return {Trim(text), std::nullopt};
  return {Trim(text.substr(0, at)), Trim(text.substr(at + 1))};
}

std::optional<std::string> UnescapeOption(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      if (i == text.size() || !IsOneOf(text[i], kEscapable)) return std::nullopt;
    }
    plain += text[i];
  }
  return plain;
}

std::string EscapeOption(std::string_view text, OptionPosition position) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_an_end = i == 0 || i + 1 == text.size();
    const bool needs_escape = text[i] == '\\' || text[i] == ',' ||
                              (text[i] == ';' && position == OptionPosition::kListItem) ||
                              (text[i] == ' ' && at_an_end);
    if (needs_escape) escaped += '\\';
    escaped += text[i];
  }
  return escaped;
}

}  // namespace spanprof
