#include "coroutine/export_tables.h"

#include <initializer_list>
#include <set>
#include <utility>

#include "coroutine/coroutine_history.h"
#include "format/format_text.h"

namespace spanprof::coroutine {
namespace {

constexpr ColumnType kInteger = ColumnType::kInteger;
constexpr ColumnType kText = ColumnType::kText;

constexpr Column kTargetColumns[] = {
    {"id", kInteger}, {"pid", kInteger}, {"name", kText}, {"start_ticks", kInteger}};
constexpr Column kThreadColumns[] = {{"target", kInteger}, {"tid", kInteger}};
constexpr Column kPlaceColumns[] = {{"target", kInteger}, {"id", kInteger},  {"file", kText},
                                    {"line", kInteger},   {"col", kInteger}, {"function", kText}};
constexpr Column kCoroutineColumns[] = {
    {"id", kInteger},         {"target", kInteger},    {"probe_id", kInteger},
    {"name", kText},          {"title", kText},        {"adopted", kInteger},
    {"birth_ns", kInteger},   {"status", kText},       {"since_ns", kInteger},
    {"place", kInteger},      {"tid", kInteger},       {"resumes", kInteger},
    {"migrations", kInteger}, {"run_ns", kInteger},    {"longest_run_ns", kInteger},
    {"awaits", kInteger},     {"awaited_by", kInteger}};
constexpr Column kEventColumns[] = {
    {"id", kInteger},        {"time_ns", kInteger}, {"target", kInteger}, {"tid", kInteger},
    {"coroutine", kInteger}, {"kind", kText},       {"place", kInteger},  {"awaited", kInteger}};
constexpr Column kWaitColumns[] = {
    {"coroutine", kInteger}, {"target", kInteger},   {"place", kInteger}, {"begin_ns", kInteger},
    {"end_ns", kInteger},    {"ready_ns", kInteger}, {"tid", kInteger}};
constexpr Column kCounterColumns[] = {{"name", kText}, {"value", kInteger}};

constexpr const char* kPlaceIndexes[] = {"target, id"};
constexpr const char* kCoroutineIndexes[] = {"id", "status", "name"};
constexpr const char* kEventIndexes[] = {"time_ns", "coroutine, time_ns", "target, tid, time_ns"};
constexpr const char* kWaitIndexes[] = {"coroutine, begin_ns", "target, place"};

enum : std::size_t { kTargets, kThreads, kPlaces, kCoroutines, kEvents, kWaits, kCounters };

constexpr Table kTables[] = {
    {"targets", kTargetColumns, {}},          {"threads", kThreadColumns, {}},
    {"places", kPlaceColumns, kPlaceIndexes}, {"coroutines", kCoroutineColumns, kCoroutineIndexes},
    {"events", kEventColumns, kEventIndexes}, {"waits", kWaitColumns, kWaitIndexes},
    {"counters", kCounterColumns, {}}};

// Databases have signed numbers; those of ours that do not fit come from a hostile recording.
TableValue Number(uint64_t value) { return static_cast<int64_t>(value); }
TableValue NumberOrNull(uint64_t value) {
  return value == 0 ? TableValue() : TableValue(static_cast<int64_t>(value));
}
// Coroutines are numbered from 1 on.
TableValue CoroutineNumber(std::size_t index) { return static_cast<int64_t>(index + 1); }
TableValue CoroutineNumber(const std::optional<std::size_t>& index) {
  return index ? CoroutineNumber(*index) : TableValue();
}

// A text that every database takes; it has to live until its row was taken.
std::string Clean(std::string_view text) {
  std::string clean = format::ToUtf8(text);
  std::erase(clean, '\0');
  return clean;
}

// The first error ends the rest.
class Rows {
 public:
  explicit Rows(TableSink& sink) : sink_(&sink) {}

  void Begin(std::size_t table) {
    if (problem_) problem_ = sink_->Begin(kTables[table]);
  }
  void Add(std::initializer_list<TableValue> values) {
    if (problem_) problem_ = sink_->Row({values.begin(), values.size()});
  }
  void End(std::size_t table) {
    if (problem_) problem_ = sink_->End(kTables[table]);
  }
  [[nodiscard]] const Result<void>& problem() const { return problem_; }

 private:
  TableSink* sink_;
  Result<void> problem_;
};

// A database takes one table at a time, so the recording is read once for each of the large ones.
class ThreadObserver : public HistoryObserver {
 public:
  void OnEvent(const CoroutineHistory& history, const HistoryEvent& event) override {
    threads.emplace(history.coroutines()[event.coroutine].target, event.tid);
  }
  std::set<std::pair<uint32_t, uint64_t>> threads;
};

class EventObserver : public HistoryObserver {
 public:
  explicit EventObserver(Rows& rows) : rows_(&rows) {}
  void OnEvent(const CoroutineHistory& history, const HistoryEvent& event) override {
    rows_->Add({Number(event.number), Number(event.nanoseconds),
                Number(history.coroutines()[event.coroutine].target), Number(event.tid),
                CoroutineNumber(event.coroutine), std::string_view(EventKindText(event.kind)),
                NumberOrNull(event.place), CoroutineNumber(event.awaited)});
  }

 private:
  Rows* rows_;
};

class WaitObserver : public HistoryObserver {
 public:
  explicit WaitObserver(Rows& rows) : rows_(&rows) {}
  void OnWait(const CoroutineHistory& history, const HistoryWait& wait) override {
    rows_->Add({CoroutineNumber(wait.coroutine),
                Number(history.coroutines()[wait.coroutine].target), NumberOrNull(wait.place),
                Number(wait.begin), Number(wait.end), NumberOrNull(wait.ready), Number(wait.tid)});
  }

 private:
  Rows* rows_;
};

void AddTargets(const CoroutineHistory& history, Rows& rows) {
  rows.Begin(kTargets);
  for (const TargetInfo& target : history.targets()) {
    const std::string name = Clean(target.name);
    rows.Add({Number(target.target), Number(target.pid), std::string_view(name),
              Number(target.start_ticks)});
  }
  rows.End(kTargets);
}

void AddThreads(const ThreadObserver& seen, Rows& rows) {
  rows.Begin(kThreads);
  for (const auto& [target, tid] : seen.threads) rows.Add({Number(target), Number(tid)});
  rows.End(kThreads);
}

void AddPlaces(const CoroutineHistory& history, Rows& rows) {
  rows.Begin(kPlaces);
  for (const auto& [key, place] : history.places()) {
    const std::string file = Clean(place.file);
    const std::string function = Clean(place.function);
    rows.Add({Number(place.target), Number(place.place), std::string_view(file), Number(place.line),
              Number(place.column), std::string_view(function)});
  }
  rows.End(kPlaces);
}

void AddCoroutines(const CoroutineHistory& history, Rows& rows) {
  rows.Begin(kCoroutines);
  for (std::size_t i = 0; i < history.coroutines().size(); ++i) {
    const Coroutine& each = history.coroutines()[i];
    const std::string name = Clean(each.name);
    const std::string title = Clean(history.CoroutineText(each));
    rows.Add({CoroutineNumber(i), Number(each.target), Number(each.probe_id),
              std::string_view(name), std::string_view(title), Number(each.adopted ? 1 : 0),
              Number(each.birth), std::string_view(StatusText(each.status)), Number(each.since),
              NumberOrNull(each.place), NumberOrNull(each.tid), Number(each.resumes),
              Number(each.migrations), Number(each.run_nanoseconds), Number(each.longest_run),
              CoroutineNumber(each.awaits), CoroutineNumber(each.awaited_by)});
  }
  rows.End(kCoroutines);
}

void AddCounters(const CoroutineHistory& history, Rows& rows) {
  rows.Begin(kCounters);
  for (const auto& [counter, value] : history.counters()) {
    const std::string name = Clean(counter);
    rows.Add({std::string_view(name), Number(value)});
  }
  rows.End(kCounters);
}

}  // namespace

std::span<const Table> ExportedTables() { return kTables; }

Result<void> ExportTables(const std::string& path, TableSink& sink) {
  ThreadObserver threads;
  const Result<CoroutineHistory> history = CoroutineHistory::Read(path, &threads);
  if (!history) return tl::make_unexpected(history.error());
  Rows rows(sink);
  AddTargets(*history, rows);
  AddThreads(threads, rows);
  AddPlaces(*history, rows);
  AddCoroutines(*history, rows);
  rows.Begin(kEvents);
  EventObserver events(rows);
  if (auto read = CoroutineHistory::Read(path, &events); !read) {
    return tl::make_unexpected(read.error());
  }
  rows.End(kEvents);
  rows.Begin(kWaits);
  WaitObserver waits(rows);
  if (auto read = CoroutineHistory::Read(path, &waits); !read) {
    return tl::make_unexpected(read.error());
  }
  // Those that have not ended.
  for (std::size_t i = 0; i < history->coroutines().size(); ++i) {
    const Coroutine& each = history->coroutines()[i];
    if (each.status != CoroutineStatus::kSuspended) continue;
    rows.Add({CoroutineNumber(i),
              Number(each.target),
              NumberOrNull(each.place),
              Number(each.since),
              {},
              {},
              {}});
  }
  rows.End(kWaits);
  AddCounters(*history, rows);
  return rows.problem();
}

}  // namespace spanprof::coroutine
