#pragma once

// A thread-local variable that another process exports, found by its name: where publishers of
// thread contexts put what readers look for.
//
//   auto variable = FindThreadLocal(memory, maps, "otel_thread_ctx_v1");
//   auto address = ThreadLocalAddress(memory, *variable, thread_pointer);
//
// The symbol is looked up in the loaded image, in the target's memory: no file is opened, so it
// works for deleted files and in other mount namespaces. The image is hostile: each module costs at
// most a fixed number of small reads.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collect/process_maps.h"
#include "collect/remote_memory.h"

namespace spanprof::collect {

inline constexpr std::string_view kOtelThreadSymbol = "otel_thread_ctx_v1";
inline constexpr std::string_view kNodeThreadSymbol = "otel_thread_ctx_nodejs_v1";

struct ThreadLocalVariable {
  enum class Access : uint8_t {
    kUnknown,            // nothing in the module says how it reaches the variable
    kFromThreadPointer,  // `offset` from the thread's pointer
    kInBlock,            // `offset` in the thread's block of the module `module_id`
  };

  std::string module;  // the mapped file that defines it
  Access access = Access::kUnknown;
  int64_t offset = 0;
  uint64_t module_id = 0;
};

// The first module that defines a thread-local variable of that name.
[[nodiscard]] std::optional<ThreadLocalVariable> FindThreadLocal(MemoryReader& memory,
                                                                 const ProcessMaps& maps,
                                                                 std::string_view name);

// The same for one module, whose ELF header is at `address`. Its name is not filled in.
[[nodiscard]] std::optional<ThreadLocalVariable> FindThreadLocalInModule(MemoryReader& memory,
                                                                         uint64_t address,
                                                                         std::string_view name);

// Where the thread with this thread pointer has the variable. Nothing: it has none yet, or the
// access is not known.
[[nodiscard]] std::optional<uint64_t> ThreadLocalAddress(MemoryReader& memory,
                                                         const ThreadLocalVariable& variable,
                                                         uint64_t thread_pointer);

}  // namespace spanprof::collect
