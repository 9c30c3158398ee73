#include "coroutine/postgres_script.h"

#include "coroutine/export_tables.h"

namespace spanprof::coroutine {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

// As COPY's text format has it. A backslash that is not doubled could end the data, and what
// follows would be run.
void AppendCopyText(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        out += c;
    }
  }
}

std::string ColumnList(const Table& table, bool with_types) {
  std::string list;
  for (const Column& column : table.columns) {
    if (!list.empty()) list += ", ";
    list += '"';
    list += column.name;
    list += '"';
    if (with_types) list += column.type == ColumnType::kInteger ? " bigint" : " text";
  }
  return list;
}

class PostgresScript : public TableSink {
 public:
  explicit PostgresScript(const std::function<Result<void>(std::string_view)>& take)
      : take_(&take) {
    text_ =
        "\\set ON_ERROR_STOP on\n"
        "SET client_encoding = 'UTF8';\n"
        "BEGIN;\n";
  }

  Result<void> Begin(const Table& table) override {
    text_ += "CREATE TABLE " + std::string(table.name) + " (" + ColumnList(table, true) + ");\n";
    text_ +=
        "COPY " + std::string(table.name) + " (" + ColumnList(table, false) + ") FROM stdin;\n";
    return {};
  }

  Result<void> Row(std::span<const TableValue> values) override {
    bool is_first = true;
    for (const TableValue& value : values) {
      if (!is_first) text_ += '\t';
      is_first = false;
      if (const auto* number = std::get_if<int64_t>(&value)) {
        text_ += std::to_string(*number);
      } else if (const auto* text = std::get_if<std::string_view>(&value)) {
        AppendCopyText(text_, *text);
      } else {
        text_ += "\\N";
      }
    }
    text_ += '\n';
    return text_.size() < kPieceBytes ? Result<void>() : Pass();
  }

  Result<void> End(const Table& table) override {
    text_ += "\\.\n";
    for (const char* columns : table.indexed) {
      text_ += "CREATE INDEX ON " + std::string(table.name) + " (" + columns + ");\n";
    }
    return Pass();
  }

  Result<void> Finish() {
    text_ += "COMMIT;\n";
    return Pass();
  }

 private:
  Result<void> Pass() {
    Result<void> taken = (*take_)(text_);
    text_.clear();
    return taken;
  }

  const std::function<Result<void>(std::string_view)>* take_;
  std::string text_;
};

}  // namespace

Result<void> ExportPostgres(const std::string& path,
                            const std::function<Result<void>(std::string_view)>& take) {
  PostgresScript script(take);
  if (auto exported = ExportTables(path, script); !exported) return exported;
  return script.Finish();
}

}  // namespace spanprof::coroutine
