#pragma once

// A recording as tables, for databases: what there was (targets, threads, places, coroutines), what
// happened (events, waits), and what was dropped (counters). docs/coroutines.md shows queries.
//
// Events and waits are handed on as they are read: memory grows with the number of coroutines, not
// with that of events.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace spanprof::coroutine {

enum class ColumnType { kInteger, kText };

struct Column {
  const char* name;
  ColumnType type;
};

struct Table {
  const char* name;
  std::span<const Column> columns;
  std::span<const char* const> indexed;  // lists of columns, each an index: "coroutine, time_ns"
};

[[nodiscard]] std::span<const Table> ExportedTables();

// Texts are valid during the call and well-formed UTF-8 without zero bytes.
using TableValue = std::variant<std::monostate, int64_t, std::string_view>;

// What takes the rows. Each table comes once, whole, in the order of ExportedTables().
class TableSink {
 public:
  virtual ~TableSink() = default;
  [[nodiscard]] virtual Result<void> Begin(const Table& table) = 0;
  [[nodiscard]] virtual Result<void> Row(std::span<const TableValue> values) = 0;
  [[nodiscard]] virtual Result<void> End(const Table& table) = 0;
};

[[nodiscard]] Result<void> ExportTables(const std::string& path, TableSink& sink);

}  // namespace spanprof::coroutine
