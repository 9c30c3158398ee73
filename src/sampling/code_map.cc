#include "sampling/code_map.h"

#include <algorithm>
#include <new>
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

CodeMap::CodeMap(CodeMapOptions options) : options_(options) {}

CodeMap::~CodeMap() { delete current_.load(); }

CodeMap::KnownObject* CodeMap::FindKnown(const LoadedObject& object) {
  for (KnownObject& known : known_) {
    if (known.bias == object.bias && known.code_begin == object.code_begin &&
        known.code_end == object.code_end && known.header_address == object.header_address) {
      return &known;
    }
  }
  return nullptr;
}

CodeMap::KnownObject CodeMap::Examine(const LoadedObject& object, std::size_t room) {
  KnownObject known{.bias = object.bias,
                    .code_begin = object.code_begin,
                    .code_end = object.code_end,
                    .header_address = object.header_address,
                    .build_id = ReadBuildId(object),
                    .table = nullptr};
  const std::vector<std::byte> header = ReadEhFrameHeader(object);
  if (header.empty()) return known;
  const std::string key = ContentKey(object, header, known.build_id);
  if (const auto found = tables_by_content_.find(key); found != tables_by_content_.end()) {
    known.table = found->second;
    return known;
  }
  const EhFrameTable made = ReadUnwindTable(object, header, room);
  statistics_.broken_functions += made.broken_functions;
  statistics_.unsupported_rows += made.unsupported_rows;
  if (made.truncated) ++statistics_.objects_over_limit;
  known.table = made.table;
  // One that was cut short by the others' memory is made again when there may be more room.
  if (made.table != nullptr && !made.truncated) {
    tables_by_content_.emplace(key, made.table);
    spare_tables_.push_back(key);
  }
  return known;
}

std::vector<CodeMap::KnownObject> CodeMap::ExamineAll(const LoadedObjects& loaded) {
  // As long as nothing was unloaded, what is at the same address is the same object.
  const bool same_addresses = loaded.unloads == seen_unloads_;
  std::vector<KnownObject> objects;
  std::size_t bytes = 0;
  for (const LoadedObject& object : loaded.objects) {
    if (object.code_end == 0) continue;
    KnownObject* known = same_addresses ? FindKnown(object) : nullptr;
    const std::size_t room = options_.max_table_bytes - std::min(bytes, options_.max_table_bytes);
    objects.push_back(known != nullptr ? *known : Examine(object, room));
    if (objects.back().table != nullptr) bytes += objects.back().table->memory_bytes();
  }
  return objects;
}

Result<void> CodeMap::Refresh() {
  const std::lock_guard lock(mutex_);
  seen_unknown_pcs_ = unknown_pcs_.load(std::memory_order_relaxed);
  const LoadedObjects loaded = ListLoadedObjects();
  Result<std::vector<ElfMapping>> mappings = ListExecutableMappings();
  if (!mappings) return tl::make_unexpected(std::move(mappings.error()));
  std::vector<KnownObject> objects = ExamineAll(loaded);

  auto snapshot = std::make_unique<CodeSnapshot>();
  snapshot->regions.reserve(mappings->size());
  for (ElfMapping& mapping : *mappings) {
    CodeRegion region{.start = mapping.start, .end = mapping.end, .bias = 0, .table = nullptr};
    for (const KnownObject& object : objects) {
      if (mapping.start >= object.bias + object.code_end ||
          mapping.end <= object.bias + object.code_begin) {
        continue;
      }
      region.bias = object.bias;
      region.table = object.table.get();
      mapping.bias = object.bias;
      mapping.has_bias = true;
      mapping.build_id = object.build_id;
      break;
    }
    snapshot->regions.push_back(region);
  }
  statistics_.regions = snapshot->regions.size();
  statistics_.objects = objects.size();
  statistics_.tables = 0;
  statistics_.table_bytes = 0;
  statistics_.objects_without_table = 0;
  for (const KnownObject& object : objects) {
    if (object.table == nullptr) {
      ++statistics_.objects_without_table;
      continue;
    }
    ++statistics_.tables;
    statistics_.table_bytes += object.table->memory_bytes();
    snapshot->tables.push_back(object.table);
  }
  ++statistics_.refreshes;
  known_ = std::move(objects);
  seen_loads_ = loaded.loads;
  seen_unloads_ = loaded.unloads;
  Remember(std::move(*mappings));
  Publish(std::move(snapshot));
  return {};
}

bool CodeMap::RefreshIfNeeded() {
  {
    const std::lock_guard lock(mutex_);
    FreeRetired();
    const bool loader_changed = CountLoaderChanges() != seen_loads_ + seen_unloads_;
    const bool met_unknown =
        unknown_pcs_.load(std::memory_order_relaxed) != seen_unknown_pcs_;
    if (current_.load() != nullptr && !loader_changed && !met_unknown) return false;
  }
  return Refresh().has_value();
}

void CodeMap::Publish(std::unique_ptr<CodeSnapshot> snapshot) {
  // Pairs with the load of Reader's constructor.
  const CodeSnapshot* old = current_.exchange(snapshot.release());
  if (old != nullptr) {
    retired_.push_back({.snapshot = std::unique_ptr<const CodeSnapshot>(old),
                        .not_seen = NativeReaderGate::AllCounters()});
  }
  FreeRetired();
}

void CodeMap::FreeRetired() {
  std::erase_if(retired_, [this](Retired& retired) {
    retired.not_seen = gate_.Remaining(retired.not_seen);
    return retired.not_seen == 0;
  });
  statistics_.waiting_snapshots = retired_.size();
  // Tables that only the cache still has: keep the youngest few of them.
  std::size_t unused = 0;
  for (auto key = spare_tables_.rbegin(); key != spare_tables_.rend(); ++key) {
    const auto entry = tables_by_content_.find(*key);
    if (entry == tables_by_content_.end() || entry->second.use_count() > 1) continue;
    if (++unused > kSpareTables) tables_by_content_.erase(entry);
  }
  std::erase_if(spare_tables_,
                [this](const std::string& key) { return !tables_by_content_.contains(key); });
}

void CodeMap::Remember(std::vector<ElfMapping> mappings) {
  for (ElfMapping& old : mappings_) {
    const bool still_there = std::find(mappings.begin(), mappings.end(), old) != mappings.end();
    if (!still_there) former_mappings_.push_front(std::move(old));
  }
  while (former_mappings_.size() > kFormerMappings) former_mappings_.pop_back();
  mappings_ = std::move(mappings);
}

std::vector<ElfMapping> CodeMap::Mappings() const {
  const std::lock_guard lock(mutex_);
  std::vector<ElfMapping> all = mappings_;
  all.insert(all.end(), former_mappings_.begin(), former_mappings_.end());
  return all;
}

CodeMapStatistics CodeMap::statistics() const {
  const std::lock_guard lock(mutex_);
  CodeMapStatistics statistics = statistics_;
  statistics.unknown_pcs = unknown_pcs_.load(std::memory_order_relaxed);
  return statistics;
}

void CodeMap::ResetAfterFork() {
  // A thread that is no more may have held the mutex, and others may have been inside.
  new (&mutex_) std::mutex();
  gate_.Reset();
}

}  // namespace spanprof::sampling
