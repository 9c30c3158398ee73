#include "profile/profile_tables.h"

#include <algorithm>
#include <utility>

#include "profile/sample_fold.h"

namespace spanprof::profile {
namespace {

// A node of std::map: its colour and three pointers, the key and the value.
constexpr size_t kMapNodeBytes = 4 * sizeof(void*);
constexpr size_t kMinSampleStep = 64;
constexpr size_t kCounterNodeBytes = kMapNodeBytes + sizeof(std::string) + sizeof(uint64_t);
// Set aside for the counters that this file and profile.cc make, which must always find room.
constexpr size_t kMaxOwnCounters = 8;
constexpr size_t kOwnCounterBytes = kMaxOwnCounters * (kCounterNodeBytes + 32);

}  // namespace

Profile::Tables::Tables(size_t memory_limit)
    : max_memory(std::max(memory_limit, kMinMaxMemory)), map_bytes(kOwnCounterBytes) {}

size_t Profile::Tables::TableMemory() const {
  return strings.memory() + mappings.memory() + functions.memory() + frames.memory() +
         stacks.memory() + contexts.memory() + threads.memory() + map_bytes;
}

bool Profile::Tables::MayGrow(size_t bytes) {
  const size_t share = max_memory - max_memory / 4;
  const size_t table_memory = TableMemory();
  if (bytes > share || table_memory > share - bytes) return false;
  if (TotalMemory() <= max_memory - bytes) return true;
  // The samples are in the way. What they hold is not coarsened for the sake of a new table entry.
  if (samples.size() < fold_again_at) return false;
  const size_t before = samples.size();
  ApplyFold(before - before / 4, false);
  if (samples.size() > before - before / 8) fold_again_at = samples.size() + samples.size() / 4;
  std::vector<Sample> smaller;
  smaller.reserve(samples.size() + samples.size() / 16 + 1);
  smaller.assign(samples.begin(), samples.end());
  samples = std::move(smaller);
  return TotalMemory() <= max_memory - bytes;
}

bool Profile::Tables::GrowSamples() {
  const size_t capacity = samples.capacity();
  const size_t used = TotalMemory();
  const size_t fits = used < max_memory ? (max_memory - used) / sizeof(Sample) : 0;
  const size_t step = std::min(std::max(kMinSampleStep, capacity / 2), fits);
  if (step < std::max(kMinSampleStep, capacity / 8)) return false;
  samples.reserve(capacity + step);
  return true;
}

void Profile::Tables::ApplyFold(size_t goal, bool may_coarsen) {
  FoldResult sum;
  for (const FoldLevel level : kFoldLevels) {
    if (samples.size() <= goal || (level != FoldLevel::kExact && !may_coarsen)) break;
    const FoldResult result = FoldSamples(samples, level, goal);
    sum.folded_away += result.folded_away;
    sum.coarsened += result.coarsened;
  }
  if (sum.folded_away != 0) Count("profile.folded_samples", sum.folded_away);
  if (sum.coarsened != 0) Count("profile.coarsened_samples", sum.coarsened);
}

bool Profile::Tables::MakeRoomForSample() {
  if (samples.size() < samples.capacity() || (!stuck && GrowSamples())) return true;
  if (stuck) return false;
  ApplyFold(samples.size() - samples.size() / 4, true);
  // Counts near 2^64, which cannot be added up. Trying again with each sample would take for ever.
  stuck = samples.size() > samples.capacity() - samples.capacity() / 8;
  return samples.size() < samples.capacity();
}

StringId Profile::Tables::Intern(std::string_view text) {
  if (const auto found = strings.Find(text)) return *found;
  if (const size_t bytes = strings.BytesToAdd(text); bytes != 0 && !MayGrow(bytes)) {
    Count("profile.table_full", 1);
    return kNone;
  }
  return strings.Add(text);
}

void Profile::Tables::Count(std::string_view name, uint64_t amount) {
  const auto found = counters.find(name);
  if (found != counters.end()) {
    // A counter that is full stays full: starting again from 0 would be a lie.
    const uint64_t sum = found->second + amount;
    found->second = sum < amount ? ~uint64_t{0} : sum;
    return;
  }
  // Not through MayGrow(), which folds, which counts. Names are few, except in a hostile file.
  const bool is_ours = name.starts_with("profile.") && name.size() < 32;
  const size_t bytes =
      is_ours && own_counters < kMaxOwnCounters ? 0 : kCounterNodeBytes + name.size();
  if (bytes != 0 && (map_bytes + bytes > max_memory / 8 || TotalMemory() + bytes > max_memory)) {
    Count("profile.table_full", 1);
    return;
  }
  if (bytes == 0) ++own_counters;
  counters.emplace(name, amount);
  map_bytes += bytes;
}

StringId Profile::Tables::CheckedText(StringId id) {
  if (id < strings.size()) return id;
  Count("profile.bad_reference", 1);
  return kNone;
}

}  // namespace spanprof::profile
