#include "sampling/code_map.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "sampling/native_object_table.h"

namespace spanprof::sampling {
namespace {

constexpr std::size_t kSpareTables = 16;
constexpr std::size_t kFormerMappings = 1024;

// Tells contents apart: not against an adversary, who would only spoil the stacks through his own
// code.
std::string ContentKey(const LoadedObject& object, std::span<const std::byte> header,
                       const std::string& build_id) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  return build_id + '/' + std::to_string(std::hash<std::string_view>()(text)) + '/' +
         std::to_string(header.size()) + '/' + std::to_string(object.code_begin) + '/' +
         std::to_string(object.code_end);
}

}  // namespace

CodeMap::CodeMap(CodeMapOptions options) : options_(options), state_(std::make_unique<State>()) {}

CodeMap::~CodeMap() { delete current_.load(); }

CodeMap::KnownObject CodeMap::Examine(State& state, const LoadedObject& object, std::size_t room) {
  KnownObject known{.bias = object.bias,
                    .code_begin = object.code_begin,
                    .code_end = object.code_end,
                    .header_address = object.header_address,
                    .build_id = ReadBuildId(object),
                    .table = nullptr};
  const std::vector<std::byte> header = ReadEhFrameHeader(object);
  if (header.empty()) return known;
  const std::string key = ContentKey(object, header, known.build_id);
  const auto found = state.tables_by_content.find(key);
  if (found != state.tables_by_content.end()) {
    known.table = found->second;
    return known;
  }
  const EhFrameTable made = ReadUnwindTable(object, header, room);
  state.statistics.broken_functions += made.broken_functions;
  state.statistics.unsupported_rows += made.unsupported_rows;
  if (made.truncated) ++state.statistics.objects_over_limit;
  known.table = made.table;
  // One that was cut short for lack of room is not kept for when there may be more.
  if (made.table != nullptr && !made.truncated) {
    state.tables_by_content.emplace(key, made.table);
    state.table_keys.push_back(key);
  }
  return known;
}

std::vector<CodeMap::KnownObject> CodeMap::ExamineAll(State& state,
                                                      const LoadedObjects& loaded) const {
  const auto find_known = [&state](const LoadedObject& object) -> const KnownObject* {
    for (const KnownObject& known : state.known) {
      if (known.bias == object.bias && known.code_begin == object.code_begin &&
          known.code_end == object.code_end && known.header_address == object.header_address) {
        return &known;
      }
    }
    return nullptr;
  };
  // As long as nothing was unloaded, what is at the same address is the same object.
  const bool same_addresses = loaded.unloads == state.seen_unloads;
  std::vector<KnownObject> objects;
  std::size_t bytes = 0;
  for (const LoadedObject& object : loaded.objects) {
    if (object.code_end == 0) continue;
    const KnownObject* known = same_addresses ? find_known(object) : nullptr;
    const std::size_t room = options_.max_table_bytes - std::min(bytes, options_.max_table_bytes);
    objects.push_back(known != nullptr ? *known : Examine(state, object, room));
    if (objects.back().table != nullptr) bytes += objects.back().table->memory_bytes();
  }
  std::sort(objects.begin(), objects.end(), [](const KnownObject& a, const KnownObject& b) {
    return a.bias + a.code_begin < b.bias + b.code_begin;
  });
  return objects;
}

// Also tells each mapping its object's bias and build id.
std::unique_ptr<CodeSnapshot> CodeMap::MakeSnapshot(State& state,
                                                    std::vector<ElfMapping>& mappings) {
  CodeMapStatistics& statistics = state.statistics;
  auto snapshot = std::make_unique<CodeSnapshot>();
  snapshot->signal_returns = ListSignalReturns();
  snapshot->fiber_start = FindFiberStart();
  snapshot->regions.reserve(mappings.size());
  for (ElfMapping& mapping : mappings) {
    CodeRegion region{.start = mapping.start, .end = mapping.end, .bias = 0, .table = nullptr};
    // The last object that starts before the mapping's end.
    auto object = std::partition_point(state.known.begin(), state.known.end(),
                                       [&mapping](const KnownObject& known) {
                                         return known.bias + known.code_begin < mapping.end;
                                       });
    if (object != state.known.begin()) {
      --object;
      if (mapping.start < object->bias + object->code_end) {
        region.bias = mapping.bias = object->bias;
        region.table = object->table.get();
        mapping.has_bias = true;
        mapping.build_id = object->build_id;
      }
    }
    snapshot->regions.push_back(region);
  }
  statistics.regions = snapshot->regions.size();
  statistics.objects = state.known.size();
  statistics.table_bytes = 0;
  for (const KnownObject& object : state.known) {
    if (object.table == nullptr) continue;
    statistics.table_bytes += object.table->memory_bytes();
    snapshot->tables.push_back(object.table);
  }
  statistics.tables = snapshot->tables.size();
  statistics.objects_without_table = statistics.objects - statistics.tables;
  return snapshot;
}

Result<void> CodeMap::Refresh() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  // Before the look at the loader and the maps: what comes after it is a reason for the next.
  state.seen_unknown_pcs = unknown_pcs_.load(std::memory_order_relaxed);
  const LoadedObjects loaded = ListLoadedObjects();
  Result<std::vector<ElfMapping>> mappings = ListExecutableMappings();
  if (!mappings) return tl::make_unexpected(std::move(mappings.error()));
  state.known = ExamineAll(state, loaded);
  state.seen_loads = loaded.loads;
  state.seen_unloads = loaded.unloads;
  ++state.statistics.refreshes;
  Publish(state, MakeSnapshot(state, *mappings));
  Remember(state, std::move(*mappings));
  return {};
}

bool CodeMap::RefreshIfNeeded() {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    FreeRetired(state);
    const bool loader_changed = CountLoaderChanges() != state.seen_loads + state.seen_unloads;
    const bool met_unknown = unknown_pcs_.load(std::memory_order_relaxed) != state.seen_unknown_pcs;
    if (current_.load() != nullptr && !loader_changed && !met_unknown) return false;
  }
  return Refresh().has_value();
}

void CodeMap::Publish(State& state, std::unique_ptr<CodeSnapshot> snapshot) {
  // Pairs with the load of Reader's constructor.
  const CodeSnapshot* old = current_.exchange(snapshot.release());
  if (old != nullptr) {
    state.retired.push_back({.snapshot = std::unique_ptr<const CodeSnapshot>(old),
                             .not_seen = NativeReaderGate::AllCounters()});
  }
  FreeRetired(state);
}

void CodeMap::FreeRetired(State& state) const {
  std::erase_if(state.retired, [this](Retired& retired) {
    retired.not_seen = gate_.Remaining(retired.not_seen);
    return retired.not_seen == 0;
  });
  state.statistics.waiting_snapshots = state.retired.size();
  // Of the tables that only the cache still has, the youngest few stay: a plugin may come back.
  std::size_t unused = 0;
  for (auto key = state.table_keys.rbegin(); key != state.table_keys.rend(); ++key) {
    const auto entry = state.tables_by_content.find(*key);
    if (entry->second.use_count() == 1 && ++unused > kSpareTables) {
      state.tables_by_content.erase(entry);
    }
  }
  std::erase_if(state.table_keys, [&state](const std::string& key) {
    return !state.tables_by_content.contains(key);
  });
}

void CodeMap::Remember(State& state, std::vector<ElfMapping> mappings) {
  for (ElfMapping& old : state.mappings) {
    const auto now = std::partition_point(
        mappings.begin(), mappings.end(),
        [&old](const ElfMapping& mapping) { return mapping.start < old.start; });
    const bool still_there = now != mappings.end() && *now == old;
    if (!still_there) state.former_mappings.push_front(std::move(old));
  }
  if (state.former_mappings.size() > kFormerMappings) {
    state.former_mappings.resize(kFormerMappings);
  }
  state.mappings = std::move(mappings);
}

std::vector<ElfMapping> CodeMap::Mappings() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<ElfMapping> all = state_->mappings;
  all.insert(all.end(), state_->former_mappings.begin(), state_->former_mappings.end());
  return all;
}

CodeMapStatistics CodeMap::statistics() const {
  const std::lock_guard lock(state_->mutex);
  CodeMapStatistics statistics = state_->statistics;
  statistics.unknown_pcs = unknown_pcs_.load(std::memory_order_relaxed);
  return statistics;
}

void CodeMap::ResetAfterFork() {
  // The threads that were inside are not here; their counts would keep old snapshots for ever.
  gate_.Reset();
  // One of them may have been in the middle of a refresh. Then its state is left as it is, the
  // published snapshot stays in use, and the next refresh starts from nothing.
  if (state_->mutex.try_lock()) {
    state_->mutex.unlock();
    return;
  }
  (void)state_.release();
  state_ = std::make_unique<State>();
}

}  // namespace spanprof::sampling
