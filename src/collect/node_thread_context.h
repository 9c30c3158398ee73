#pragma once

// The context of a thread of Node.js, read from outside while the thread stands still: from its
// thread-local variable through V8's map of stores to a record of OTEP 4947. docs/protocols.md has
// the way step by step.
//
// The memory is hostile: every address, size and index is checked, and no walk is longer than the
// table that it goes through.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "collect/process_context_payload.h"
#include "collect/remote_memory.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::collect {

[[nodiscard]] bool IsNodeSchema(std::string_view schema_version);

// What a process context does not tell is as the schema fixes it; the offset of a record may be
// left to the threads' variables. ENOTSUP: another layout than the ones that can be read.
[[nodiscard]] Result<NodeLayout> CompleteNodeLayout(NodeLayout told);

enum class NodeOutcome {
  kRecord,
  kNoContext,
  kNothingPublished,  // no thread of JavaScript, or none that has used a context
  kUnreadable,
  kMalformed,  // or nobody tells where in an object its record is
};

struct NodeReading {
  NodeOutcome outcome = NodeOutcome::kNothingPublished;
  std::array<std::byte, internal::kOtelRecordBytes> bytes{};
  std::size_t size = 0;

  [[nodiscard]] std::span<const std::byte> record() const { return std::span(bytes).first(size); }
};

// `variable` is the address of the thread's otel_thread_ctx_nodejs_v1.
[[nodiscard]] NodeReading ReadNodeContext(MemoryReader& memory, const NodeLayout& layout,
                                          uint64_t variable);

}  // namespace spanprof::collect
