// Any text as /proc/PID/maps: what is parsed is ascending and disjoint.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/process_maps.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spanprof::collect;  // NOLINT(google-build-using-namespace)
  const ProcessMaps maps = ParseProcessMaps({reinterpret_cast<const char*>(data), size});
  uint64_t end = 0;
  for (std::size_t i = 0; i < maps.mappings.size(); ++i) {
    const Mapping& mapping = maps.mappings[i];
    if (mapping.start < end || mapping.start >= mapping.end) std::abort();
    end = mapping.end;
    if (ContiguousEnd(maps, i) < mapping.end) std::abort();
    if (HasPublishedName(mapping, "OTEL_CTX") && mapping.name.size() < 8) std::abort();
    if (FileBaseName(mapping).size() > mapping.name.size()) std::abort();
  }
  return 0;
}
