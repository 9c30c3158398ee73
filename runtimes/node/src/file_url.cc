#include "file_url.h"

namespace spanprof::node {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string PathOfUrl(std::string_view url) {
  constexpr std::string_view kScheme = "file://";
  if (!url.starts_with(kScheme)) return std::string(url);
  const std::string_view encoded = url.substr(kScheme.size());
  std::string path;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const int high = encoded[i] == '%' && i + 2 < encoded.size() ? HexDigit(encoded[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(encoded[i + 2]) : -1;
    if (low >= 0) {
      path += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      path += encoded[i];
    }
  }
  return path;
}

}  // namespace spanprof::node
