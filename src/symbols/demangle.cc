#include "symbols/demangle.h"

#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <optional>

#include "base/printable_text.h"
#include "symbols/rust_names.h"

namespace spanprof::symbols {
namespace {

constexpr std::size_t kMaxMangledBytes = 4096;
constexpr std::size_t kMaxPlainBytes = 16384;

std::string Printable(std::string_view text) {
  if (IsUtf8(text) && !HasControlCharacter(text)) return std::string(text);
  std::string clean(text);
  for (char& c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) c = '?';
  }
  return clean;
}

std::optional<std::string> DemangleCpp(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return std::nullopt;
  return std::string(text.get()).substr(0, kMaxPlainBytes);
}

}  // namespace

PlainName Demangle(std::string_view mangled) {
  const std::string_view whole = mangled;
  // perf map files and some tools add an at-sign and a version.
  mangled = mangled.substr(0, mangled.find('@'));
  if (mangled.size() <= kMaxMangledBytes) {
    if (const auto rust = DemangleRustV0(mangled)) return {Printable(*rust), NameLanguage::kRust};
    if (mangled.starts_with("_Z")) {
      if (const auto cpp = DemangleCpp(std::string(mangled))) {
        if (const auto rust = CleanRustLegacy(*cpp)) return {Printable(*rust), NameLanguage::kRust};
        return {Printable(*cpp), NameLanguage::kCpp};
      }
    }
  }
  return {Printable(whole.substr(0, kMaxPlainBytes)), NameLanguage::kOther};
}

}  // namespace spanprof::symbols
