#pragma once

// A context snapshot as a table for people and as JSON for programs. The names and values in it
// come from another process: both forms stay well-formed and harmless whatever they are.

#include <string>

#include "collect/context_snapshot.h"

namespace spanprof::cli {

enum class ThreadFilter { kWithContext, kAll };

// One JSON document, without a newline at its end; `indent` < 0 puts it on one line.
[[nodiscard]] std::string ContextJson(const collect::ContextSnapshot& snapshot, ThreadFilter filter,
                                      int indent);

// Lines of text, each with its newline.
[[nodiscard]] std::string ContextTable(const collect::ContextSnapshot& snapshot,
                                       ThreadFilter filter);

}  // namespace spanprof::cli
