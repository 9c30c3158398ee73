#pragma once

// Rust's symbol names for people: the mangling of its own (v0, `_RNvCs...`), and the older one that
// looks like C++ with a hash at the end. Names come from files that nobody vouches for: the work
// and the length of what comes out are bounded. Any thread; not for a signal handler.

#include <optional>
#include <string>
#include <string_view>

namespace spanprof::symbols {

// nullopt if `mangled` is no v0 name, or a broken one.
[[nodiscard]] std::optional<std::string> DemangleRustV0(std::string_view mangled);

// `demangled` is what the C++ demangler made of a name. If that ends in Rust's hash, the name
// without it and with `$LT$`, `$u20$`, `..` and the like as they stand in the source; else nullopt.
[[nodiscard]] std::optional<std::string> CleanRustLegacy(std::string_view demangled);

}  // namespace spanprof::symbols
