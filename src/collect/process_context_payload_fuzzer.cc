// Any bytes as the payload of a process context.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/process_context_payload.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spanprof::collect;  // NOLINT(google-build-using-namespace)
  const auto context = ParseProcessContext({reinterpret_cast<const char*>(data), size});
  if (!context) return 0;
  if (context->key_map.size() > kMaxKeyMapEntries) std::abort();
  if (context->resource.size() > kMaxResourceAttributes) std::abort();
  for (const auto& [key, value] : context->resource) {
    if (key.empty()) std::abort();
    // Text of hex digits is twice the bytes, and separators follow each element.
    if (AttributeText(value).size() > 8 * size + 64) std::abort();
  }
  return 0;
}
