#include "coroutine/function_name.h"

namespace spanprof::coroutine {

std::string AuthorsFunctionName(std::string_view function) {
  constexpr std::string_view kNothing = "void ";
  const std::size_t mangled = function.find("::_Z");
  const std::size_t open = function.find('(');
  if (!function.starts_with(kNothing) || mangled == std::string_view::npos || open > mangled) {
    return std::string(function);
  }
  const std::string_view whole_name = function.substr(kNothing.size(), open - kNothing.size());
  const std::string_view signature = function.substr(open + 1, mangled - open - 1);
  const std::size_t scope = whole_name.rfind("::");
  if (scope == std::string_view::npos) return std::string(signature);
  return std::string(whole_name.substr(0, scope + 2)) + std::string(signature);
}

std::string ResumeFunctionName(std::string_view symbol) {
  symbol = symbol.substr(0, symbol.find(" [clone"));
  const std::size_t mangled = symbol.find("::_Z");
  if (mangled == std::string_view::npos) return std::string(symbol);
  // The name, a parenthesis, and the name again with its parameters.
  for (std::size_t open = symbol.find('('); open < mangled; open = symbol.find('(', open + 1)) {
    const std::string_view inner = symbol.substr(open + 1, mangled - open - 1);
    if (open != 0 && inner.starts_with(symbol.substr(0, open))) return std::string(inner);
  }
  return std::string(symbol);
}

}  // namespace spanprof::coroutine
