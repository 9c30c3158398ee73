// Any bytes as the published memory of a process: table, records, process context, ELF images.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "collect/fuzzed_memory.h"
#include "collect/node_thread_context.h"
#include "collect/otel_record.h"
#include "collect/process_context_reader.h"
#include "collect/process_maps.h"
#include "collect/slot_table_discovery.h"
#include "collect/slot_table_reader.h"
#include "collect/thread_local_variable.h"

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
  if (const auto variable = FindThreadLocal(target.memory, maps, kOtelThreadSymbol)) {
    (void)ThreadLocalAddress(target.memory, *variable, FuzzedMemory::Address(1));
  }
  // As if the first region were the variable of a thread of Node.js.
  const NodeLayout layout = {32, 8, 24, 16};
  const NodeReading reading = ReadNodeContext(target.memory, layout, FuzzedMemory::Address(0));
  if (reading.outcome == NodeOutcome::kRecord) (void)ParseOtelRecord(reading.record());
  return 0;
}
