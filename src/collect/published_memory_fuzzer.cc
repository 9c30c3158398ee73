// Any bytes as the published memory of a process: table, records, process context, ELF images.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "collect/fuzzed_memory.h"
#include "collect/otel_record.h"
#include "collect/otel_thread_symbol.h"
#include "collect/process_context_reader.h"
#include "collect/process_maps.h"
#include "collect/slot_table_discovery.h"
#include "collect/slot_table_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spanprof::collect;  // NOLINT(google-build-using-namespace)
  constexpr uint32_t kPid = 1;
  FuzzedMemory target(std::span(data, size));
  const ProcessMaps maps = ParseProcessMaps(target.maps);
  const SlotTableSearch search = FindSlotTable(target.memory, maps, kPid);
  if (search.table) {
    SlotTableReader reader(target.memory, *search.table, {1, 2, 3, 5, 70000});
    for (const uint32_t tid : {1u, 2u, 3u, 5u, 4194303u}) {
      const SlotReading reading = reader.Read(tid);
      // Every slot of a valid table is in memory.
      if (reading.outcome == SlotOutcome::kUnreadable) std::abort();
      if (reading.has_record && reading.outcome != SlotOutcome::kRead) std::abort();
      if (reading.has_record) (void)ParseOtelRecord(reading.record);
    }
  }
  const ProcessContextReading process = ReadProcessContext(target.memory, maps);
  if (process.context && !process.found) std::abort();
  (void)FindOtelThreadSymbol(target.memory, maps);
  return 0;
}
