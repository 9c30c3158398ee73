#include "collect/context_snapshot.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "base/printable_text.h"
#include "collect/access_error.h"
#include "collect/node_thread_context.h"
#include "collect/otel_record.h"
#include "collect/process_context_reader.h"
#include "collect/process_maps.h"
#include "collect/slot_table_discovery.h"
#include "collect/slot_table_reader.h"
#include "collect/stopped_threads.h"
#include "collect/thread_local_variable.h"

namespace spanprof::collect {
namespace {

constexpr char kCoreName[] = "SPANPROF_CORE";

int ErrorNumber(ReadStatus status) {
  if (status == ReadStatus::kNotPermitted) return EPERM;
  if (status == ReadStatus::kNoSuchProcess) return ESRCH;
  return EIO;
}

// How spanprof is in the process, if it is.
enum class Presence { kAbsent, kLoaded, kLoadedByNode, kInitialised };

Presence FindSpanprof(const ProcessMaps& maps) {
  Presence presence = Presence::kAbsent;
  for (const Mapping& mapping : maps.mappings) {
    if (HasPublishedName(mapping, kCoreName)) return Presence::kInitialised;
    if (FileBaseName(mapping).starts_with("libspanprof")) presence = Presence::kLoaded;
  }
  return presence;
}

std::string ProcessText(pid_t pid) { return "process " + std::to_string(pid); }

Error NothingPublished(pid_t pid, Presence presence, const SlotTableSearch& search) {
  const std::string process = ProcessText(pid);
  if (search.invalid_tables != 0) {
    const std::string why =
        search.refusal ? HeaderRefusalText(*search.refusal) : "its header cannot be read";
    return {ENODATA, process + " has a context table that this command cannot read: " + why,
            "use a spanprof command of the same version as the library in the process"};
  }
  if (search.stale_tables != 0) {
    return {ENODATA,
            process +
                " publishes no contexts of its own: its table is the one of its parent, "
                "inherited through a fork that spanprof was not told of (_Fork, clone)",
            "its contexts can be read as soon as it sets one"};
  }
  constexpr char kRestart[] =
      "restart with ctxstorage=otel, for example spanprof_init(\"ctxstorage=otel\")";
  if (presence == Presence::kInitialised) {
    return {ENODATA,
            process +
                " publishes no contexts for readers outside it: its spanprof was started "
                "with ctxstorage=profiler, the default",
            kRestart};
  }
  if (presence == Presence::kLoadedByNode) {
    return {ENODATA,
            process +
                " has a library for contexts of Node.js loaded but publishes none: none was set "
                "yet, or "
                "this Node.js has no async context frame, or only attach() is used, whose stores "
                "are the program's own",
            "use setContext() or runWithContext(); status().outsideReaders says what the process "
            "itself knows"};
  }
  if (presence == Presence::kLoaded) {
    return {ENODATA,
            process +
                " has spanprof loaded but publishes no contexts: it was started with "
                "ctxstorage=profiler, the default, or spanprof_init was not called",
            kRestart};
  }
  return {ENODATA,
          process +
              " publishes no contexts: spanprof is not loaded in it, and it has no "
              "DD_OTEL_CTX table, no OTEL_CTX process context and no otel_thread_ctx_v1",
          "start it with spanprof's library for its runtime, or link libspanprof, and "
          "ctxstorage=otel"};
}

// Turns slots and records into contexts, and counts what cannot be one.
class ThreadInterpreter {
 public:
  ThreadInterpreter(std::vector<std::string> key_map, ContextCounters& counters)
      : key_map_(std::move(key_map)), counters_(counters) {}

  // A name that was not there when the map was read may be there now.
  [[nodiscard]] bool NeedsNewerKeyMap(std::span<const std::byte> bytes) const {
    const auto record = ParseOtelRecord(bytes);
    return record && !record->attributes.empty() &&
           record->attributes.back().key >= key_map_.size();
  }
  void SetKeyMap(std::vector<std::string> key_map) { key_map_ = std::move(key_map); }

  void TakeRecord(const OtelRecord& record, ThreadContextSnapshot& thread) {
    if (record.truncated) counters_.Add(ContextCounter::kTruncatedRecord);
    thread.source = RecordKind::kOtep4947;
    thread.trace_id_high = record.trace_id_high;
    thread.trace_id_low = record.trace_id_low;
    thread.span_id = record.span_id;
    const LocalRootValue root = LocalRoot(record, key_map_);
    if (root.malformed) counters_.Add(ContextCounter::kMalformedRoot);
    thread.root_span_id = root.span_id;
    const auto root_key = LocalRootKey(key_map_);
    for (const OtelAttribute& attribute : record.attributes) {
      if (root_key == attribute.key) continue;
      if (attribute.key >= key_map_.size()) counters_.Add(ContextCounter::kUnknownKey);
      thread.attributes[AttributeName(attribute.key, key_map_)] = attribute.value;
    }
  }

  void Interpret(const SlotReading& reading, ThreadContextSnapshot& thread) {
    if (!Accept(reading.outcome)) return;
    if (reading.bad_record_pointer) counters_.Add(ContextCounter::kBadRecordPointer);
    if (reading.has_record && TakeRecord(reading, thread)) return;
    TakeSlot(reading, thread);
  }

  void Interpret(const NodeReading& reading, ThreadContextSnapshot& thread) {
    switch (reading.outcome) {
      case NodeOutcome::kRecord:
        // One that is not valid is of a context that has ended.
        if (const auto record = ParseOtelRecord(reading.record())) TakeRecord(*record, thread);
        break;
      case NodeOutcome::kUnreadable:
      case NodeOutcome::kMalformed:
        counters_.Add(ContextCounter::kMalformedFrame);
        break;
      case NodeOutcome::kNoContext:
      case NodeOutcome::kNothingPublished:
        break;
    }
  }

 private:
  bool Accept(SlotOutcome outcome) {
    switch (outcome) {
      case SlotOutcome::kRead:
        return true;
      case SlotOutcome::kNeverWritten:
        counters_.Add(ContextCounter::kNeverWritten);
        break;
      case SlotOutcome::kInProgress:
        counters_.Add(ContextCounter::kInProgress);
        break;
      case SlotOutcome::kChanged:
        counters_.Add(ContextCounter::kChanged);
        break;
      case SlotOutcome::kCollision:
        counters_.Add(ContextCounter::kCollision);
        break;
      case SlotOutcome::kStaleOwner:
        counters_.Add(ContextCounter::kStaleOwner);
        break;
      case SlotOutcome::kForeignOwner:
        counters_.Add(ContextCounter::kForeignOwner);
        break;
      case SlotOutcome::kUnreadable:
        counters_.Add(ContextCounter::kUnreadableSlot);
        break;
    }
    return false;
  }

  // False: the record says nothing that can be trusted, look at the slot.
  bool TakeRecord(const SlotReading& reading, ThreadContextSnapshot& thread) {
    const auto record = ParseOtelRecord(reading.record);
    if (!record) {
      if (reading.span_id == 0) return true;  // no context is active
      counters_.Add(ContextCounter::kRecordNotValid);
      return false;
    }
    // Both were written under one publication, so a record of another span is another thread's.
    if (record->span_id != reading.span_id) {
      counters_.Add(ContextCounter::kRecordMismatch);
      return false;
    }
    TakeRecord(*record, thread);
    return true;
  }

  void TakeSlot(const SlotReading& reading, ThreadContextSnapshot& thread) {
    thread.source = RecordKind::kSlotTable;
    thread.span_id = reading.span_id;
    if (reading.trace_id_high != 0) {
      thread.trace_id_high = reading.trace_id_high;
      thread.trace_id_low = reading.trace_id_low;
    } else {
      // A trace id of 64 bits or a local root: only the publisher knows.
      thread.root_span_id = reading.trace_id_low;
    }
    thread.unsequenced = !reading.sequenced;
    if (thread.unsequenced) counters_.Add(ContextCounter::kUnsequenced);
  }

  std::vector<std::string> key_map_;
  ContextCounters& counters_;
};

// Reads all threads into the snapshot. Fails only if the process cannot be read any more.
std::optional<ReadStatus> ReadThreads(MemoryReader& memory, const ProcessMaps& maps,
                                      const SlotTable& table, const std::vector<Task>& tasks,
                                      std::vector<std::string> key_map, ContextSnapshot& snapshot) {
  std::vector<uint32_t> live_tids;
  live_tids.reserve(tasks.size());
  for (const Task& task : tasks) live_tids.push_back(task.namespace_tid);
  SlotTableReader reader(memory, table, std::move(live_tids));
  ThreadInterpreter interpreter(std::move(key_map), snapshot.counters);
  bool refreshed = false;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const SlotReading reading = reader.Read(tasks[i].namespace_tid);
    const bool lost_access =
        reading.status == ReadStatus::kNotPermitted || reading.status == ReadStatus::kNoSuchProcess;
    if (lost_access) return reading.status;
    if (!refreshed && reading.has_record && interpreter.NeedsNewerKeyMap(reading.record)) {
      refreshed = true;
      auto newer = ReadProcessContext(memory, maps);
      if (newer.context) interpreter.SetKeyMap(std::move(newer.context->key_map));
    }
    interpreter.Interpret(reading, snapshot.threads[i]);
  }
  return std::nullopt;
}

// Threads of Node.js: what they publish is V8's memory, which may only be read while they stand.
void ReadNodeThreads(MemoryReader& memory, const ProcessMaps& maps, const ProcessContext& process,
                     ContextSnapshot& snapshot) {
  const auto layout = CompleteNodeLayout(process.node);
  if (!layout) {
    snapshot.notes.push_back("the contexts of Node.js cannot be read: " + layout.error().message);
    return;
  }
  const auto variable = FindThreadLocal(memory, maps, kNodeThreadSymbol);
  if (!variable || variable->access == ThreadLocalVariable::Access::kUnknown) {
    snapshot.notes.push_back(
        "the contexts of Node.js cannot be read: " +
        (variable
             ? Quoted(variable->module) + " does not say where it keeps otel_thread_ctx_nodejs_v1"
             : "no library in the process has otel_thread_ctx_nodejs_v1"));
    return;
  }
  std::vector<pid_t> tids;
  for (const ThreadContextSnapshot& thread : snapshot.threads) tids.push_back(thread.tid);
  std::vector<NodeReading> readings;
  std::vector<pid_t> owners;
  const StopCounts stops = LookAtStoppedThreads(tids, [&](pid_t tid, uint64_t thread_pointer) {
    const auto address = ThreadLocalAddress(memory, *variable, thread_pointer);
    if (!address) return;
    const NodeReading reading = ReadNodeContext(memory, *layout, *address);
    if (reading.outcome == NodeOutcome::kNothingPublished) return;
    owners.push_back(tid);
    readings.push_back(reading);
  });
  snapshot.counters.Add(ContextCounter::kNotStopped, stops.refused + stops.too_late);

  ThreadInterpreter interpreter(process.key_map, snapshot.counters);
  const auto needs_newer = [&](const NodeReading& reading) {
    return reading.outcome == NodeOutcome::kRecord &&
           interpreter.NeedsNewerKeyMap(reading.record());
  };
  if (std::any_of(readings.begin(), readings.end(), needs_newer)) {
    auto newer = ReadProcessContext(memory, maps);
    if (newer.context) interpreter.SetKeyMap(std::move(newer.context->key_map));
  }
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const auto thread = std::find_if(snapshot.threads.begin(), snapshot.threads.end(),
                                     [&](const auto& each) { return each.tid == owners[i]; });
    interpreter.Interpret(readings[i], *thread);
  }
}

}  // namespace

std::string_view RecordKindName(RecordKind kind) {
  switch (kind) {
    case RecordKind::kSlotTable:
      return "slot_table";
    case RecordKind::kOtep4947:
      return "otep_4947";
    case RecordKind::kOtep4719:
      break;
  }
  return "otep_4719";
}

Result<ContextSnapshot> ReadContextSnapshot(const ProcessDirectory& directory, MemoryReader& memory,
                                            std::string_view command) {
  const pid_t pid = directory.pid();
  const auto no_access = [&](int code) {
    return tl::make_unexpected(ExplainAccessError(pid, code, command));
  };
  const auto text = directory.ReadFile("maps", kMaxMapsBytes);
  if (!text) return no_access(text.error().code);
  const ProcessMaps maps = ParseProcessMaps(text->text);
  if (maps.mappings.empty()) {
    return Fail(ENODATA, ProcessText(pid) + " has no memory: it is a kernel thread or has ended",
                "give the number of a running program");
  }
  ContextSnapshot snapshot;
  snapshot.pid = pid;
  snapshot.counters.Add(ContextCounter::kMalformedMapLine, maps.malformed_lines);
  if (maps.truncated || text->truncated) snapshot.counters.Add(ContextCounter::kMapsTruncated);

  const SlotTableSearch search = FindSlotTable(memory, maps, directory.namespace_pid());
  if (search.status != ReadStatus::kOk) return no_access(ErrorNumber(search.status));
  snapshot.counters.Add(ContextCounter::kStaleTable, search.stale_tables);
  snapshot.counters.Add(ContextCounter::kInvalidTable, search.invalid_tables);
  if (search.scan_truncated) snapshot.counters.Add(ContextCounter::kScanTruncated);

  ProcessContextReading process = ReadProcessContext(memory, maps);
  if (!process.context &&
      (process.context.error().code == EPERM || process.context.error().code == ESRCH)) {
    return no_access(process.context.error().code);
  }
  Presence presence = FindSpanprof(maps);
  if (presence == Presence::kAbsent && FindThreadLocal(memory, maps, kNodeThreadSymbol)) {
    presence = Presence::kLoadedByNode;
  }
  const bool is_node = process.context && IsNodeSchema(process.context->schema_version);
  const bool has_records = is_node || (search.table && search.table->record_pointers != 0);
  if (search.table) snapshot.records.push_back(RecordKind::kSlotTable);
  if (has_records) snapshot.records.push_back(RecordKind::kOtep4947);
  if (!has_records && presence == Presence::kAbsent) {
    // Our own library has the symbol too, also while it publishes nothing through it.
    if (const auto variable = FindThreadLocal(memory, maps, kOtelThreadSymbol)) {
      snapshot.records.push_back(RecordKind::kOtep4947);
      snapshot.notes.push_back("otep_4947 is published by " + Quoted(variable->module) +
                               ", readable by a sampler only");
    }
  }
  if (process.context) {
    snapshot.records.push_back(RecordKind::kOtep4719);
    snapshot.resource = std::move(process.context->resource);
    snapshot.schema_version = process.context->schema_version;
    snapshot.counters.Add(ContextCounter::kDroppedAttribute, process.context->dropped_attributes);
  } else if (process.found) {
    snapshot.counters.Add(ContextCounter::kBadProcessContext);
    snapshot.notes.push_back(process.context.error().message);
  }
  if (snapshot.records.empty()) {
    return tl::make_unexpected(NothingPublished(pid, presence, search));
  }
  if (!search.table && !is_node && presence != Presence::kAbsent) {
    snapshot.notes.push_back(NothingPublished(pid, presence, search).message);
  }

  const auto tasks = directory.ListTasks();
  if (!tasks) return no_access(tasks.error().code);
  snapshot.threads.resize(tasks->size());
  for (std::size_t i = 0; i < tasks->size(); ++i) {
    snapshot.threads[i].tid = (*tasks)[i].tid;
    snapshot.threads[i].name = (*tasks)[i].name;
  }
  if (search.table) {
    auto key_map = process.context ? process.context->key_map : std::vector<std::string>();
    const auto lost =
        ReadThreads(memory, maps, *search.table, *tasks, std::move(key_map), snapshot);
    if (lost) return no_access(ErrorNumber(*lost));
  }
  if (is_node) ReadNodeThreads(memory, maps, *process.context, snapshot);
  return snapshot;
}

}  // namespace spanprof::collect
