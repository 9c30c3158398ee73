#include "coroutine/sqlite_file.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sqlite3.h>
#include <system_error>
#include <unistd.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "coroutine/export_tables.h"

namespace spanprof::coroutine {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, CloseStatement>;

class SqliteFile : public TableSink {
 public:
  SqliteFile(Database database, std::string name)
      : database_(std::move(database)), name_(std::move(name)) {}

  Result<void> Run(const std::string& sql) {
    if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
      return {};
    }
    return Problem();
  }

  Result<void> Begin(const Table& table) override {
    std::string columns;
    std::string places;
    for (const Column& column : table.columns) {
      columns += columns.empty() ? "" : ", ";
      columns += std::string("\"") + column.name + "\"" +
                 (column.type == ColumnType::kInteger ? " INTEGER" : " TEXT");
      places += places.empty() ? "?" : ", ?";
    }
    const std::string name = table.name;
    if (auto made = Run("CREATE TABLE " + name + " (" + columns + ")"); !made) return made;
    const std::string insert = "INSERT INTO " + name + " VALUES (" + places + ")";
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), insert.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      return Problem();
    }
    insert_.reset(statement);
    return {};
  }

  Result<void> Row(std::span<const TableValue> values) override {
    sqlite3_stmt* statement = insert_.get();
    int bound = SQLITE_OK;
    for (std::size_t i = 0; i < values.size() && bound == SQLITE_OK; ++i) {
      const int at = static_cast<int>(i) + 1;
      if (const auto* number = std::get_if<int64_t>(&values[i])) {
        bound = sqlite3_bind_int64(statement, at, *number);
      } else if (const auto* text = std::get_if<std::string_view>(&values[i])) {
        // The text lives until the row is stepped.
        bound = sqlite3_bind_text(statement, at, text->data(), static_cast<int>(text->size()),
                                  SQLITE_STATIC);
      } else {
        bound = sqlite3_bind_null(statement, at);
      }
    }
    if (bound != SQLITE_OK || sqlite3_step(statement) != SQLITE_DONE) return Problem();
    sqlite3_reset(statement);
    return {};
  }

  Result<void> End(const Table& table) override {
    insert_.reset();
    int number = 0;
    for (const char* columns : table.indexed) {
      const std::string name = std::string(table.name) + "_by_" + std::to_string(++number);
      const std::string index = "CREATE INDEX " + name + " ON " + table.name + " (" + columns + ")";
      if (auto made = Run(index); !made) return made;
    }
    return {};
  }

 private:
  [[nodiscard]] Result<void> Problem() const {
    return Fail(EIO, "the database " + Quoted(name_) +
                         " cannot be written: " + sqlite3_errmsg(database_.get()));
  }

  Database database_;
  std::string name_;
  Statement insert_;
};

Result<void> WriteDatabase(const std::string& path, const std::string& database) {
  // A link to the folder is the user's business; one in place of the file would be somebody else's.
  std::error_code not_found;
  const std::string whole_path = std::filesystem::canonical(database, not_found);
  sqlite3* opened = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
  const int status = sqlite3_open_v2(whole_path.c_str(), &opened, flags, nullptr);
  SqliteFile file(Database(opened), database);
  if (status != SQLITE_OK) {
    return Fail(
        EIO, "the database " + Quoted(database) + " cannot be opened: " + sqlite3_errstr(status));
  }
  // Nobody reads it before it is whole, and on failure it is removed: it needs no journal.
  if (auto set = file.Run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"); !set) return set;
  if (auto begun = file.Run("BEGIN"); !begun) return begun;
  if (auto exported = ExportTables(path, file); !exported) return exported;
  return file.Run("COMMIT");
}

}  // namespace

Result<void> ExportSqlite(const std::string& path, const std::string& database) {
  {
    const UniqueFd made(
        open(database.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!made.valid()) {
      const int error_number = errno;
      return Fail(error_number,
                  "the database " + Quoted(database) +
                      " cannot be made: " + std::generic_category().message(error_number),
                  error_number == EEXIST ? "give another name, or remove that file" : "");
    }
  }
  Result<void> written = WriteDatabase(path, database);
  if (!written) unlink(database.c_str());
  return written;
}

}  // namespace spanprof::coroutine
