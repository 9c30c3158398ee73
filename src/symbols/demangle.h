#pragma once

// A symbol's name for people: C++ and Rust names demangled, anything else as it is, and always
// printable UTF-8. Any thread; not for a signal handler.

#include <string>
#include <string_view>

namespace spanprof::symbols {

enum class NameLanguage { kOther, kCpp, kRust };

struct PlainName {
  std::string text;
  NameLanguage language = NameLanguage::kOther;
};

// Names of more than 4096 bytes stay mangled: the C++ demangler may take very long over them.
[[nodiscard]] PlainName Demangle(std::string_view mangled);

}  // namespace spanprof::symbols
