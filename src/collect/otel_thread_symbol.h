#pragma once

// Whether a process carries the OTEP 4947 symbol `otel_thread_ctx_v1`, by which a publisher that is
// not spanprof announces its thread records.
//
// The symbol is looked up in the loaded image, in the target's memory: no file is opened, so it
// works for deleted files and in other mount namespaces. The image is hostile: each module costs at
// most a fixed number of small reads.

#include <cstdint>
#include <optional>
#include <string>

#include "collect/process_maps.h"
#include "collect/remote_memory.h"

namespace spanprof::collect {

inline constexpr char kOtelThreadSymbol[] = "otel_thread_ctx_v1";

// The name of the mapped file that defines the symbol as a thread-local variable.
[[nodiscard]] std::optional<std::string> FindOtelThreadSymbol(MemoryReader& memory,
                                                              const ProcessMaps& maps);

// The same for one module, whose ELF header is at `address`.
[[nodiscard]] bool ModuleHasOtelThreadSymbol(MemoryReader& memory, uint64_t address);

}  // namespace spanprof::collect
