// Any bytes as a thread record.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "collect/otel_record.h"
#include <spanprof/internal/records.hpp>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spanprof::collect;  // NOLINT(google-build-using-namespace)
  const auto record = ParseOtelRecord(std::as_bytes(std::span(data, size)));
  if (!record) return 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < record->attributes.size(); ++i) {
    if (i != 0 && record->attributes[i - 1].key >= record->attributes[i].key) std::abort();
    bytes += 2 + record->attributes[i].value.size();
    if (AttributeName(record->attributes[i].key, {}).empty()) std::abort();
  }
  if (bytes > spanprof::internal::kOtelMaxAttributesBytes) std::abort();
  const std::vector<std::string> keys = {"a", spanprof::internal::kLocalRootKey};
  for (const LocalRootValue& root : {LocalRoot(*record, keys), LocalRoot(*record, {})}) {
    if (root.malformed && root.span_id != 0) std::abort();
  }
  return 0;
}
