#pragma once

// What a Profile holds behind its interface: the tables, the samples, and the memory they may take.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/hashing.h"
#include "profile/interning_table.h"
#include "profile/profile.h"
#include "profile/string_table.h"

namespace spanprof::profile {

struct HashOfItem {
  uint64_t operator()(const Mapping& m) const {
    return HashValues(m.start, m.end, m.file_offset, m.path, m.build_id);
  }
  uint64_t operator()(const Function& f) const {
    return HashValues(f.name, f.system_name, f.file, f.start_line);
  }
  uint64_t operator()(const Frame& f) const {
    return HashValues(f.kind, f.inlined, f.mapping, f.address, f.function, f.line, f.column);
  }
  uint64_t operator()(const Stack& s) const {
    return HashValues(uint64_t{s.parent} << 32 | s.frame);
  }
  uint64_t operator()(const Context& c) const {
    static_assert(kTagCount == 10);
    return HashValues(c.trace_id_high, c.trace_id_low, c.span_id, c.root_span_id, c.tags[0],
                      c.tags[1], c.tags[2], c.tags[3], c.tags[4], c.tags[5], c.tags[6], c.tags[7],
                      c.tags[8], c.tags[9]);
  }
  uint64_t operator()(const Thread& t) const { return HashValues(uint64_t{t.tid} << 32 | t.name); }
};

struct Profile::Tables {
  explicit Tables(size_t memory_limit);

  size_t TableMemory() const;
  size_t TotalMemory() const { return TableMemory() + samples.capacity() * sizeof(Sample); }

  // Whether a table may grow by so many bytes. Folds samples to make room.
  bool MayGrow(size_t bytes);
  // Whether there is room for one more sample. Folds and coarsens samples to make it.
  bool MakeRoomForSample();

  template <class T>
  uint32_t Add(InterningTable<T, HashOfItem>& table, const T& item);
  StringId Intern(std::string_view text);
  void Count(std::string_view name, uint64_t amount);
  // The number if it is in the table, else kNone.
  template <class T>
  uint32_t Checked(const InterningTable<T, HashOfItem>& table, uint32_t id);
  StringId CheckedText(StringId id);

  size_t max_memory;
  StringTable strings;
  InterningTable<Mapping, HashOfItem> mappings;
  InterningTable<Function, HashOfItem> functions;
  InterningTable<Frame, HashOfItem> frames;
  InterningTable<Stack, HashOfItem> stacks;
  InterningTable<Context, HashOfItem> contexts;
  InterningTable<Thread, HashOfItem> threads;
  std::vector<Sample> samples;
  std::map<uint64_t, StringId> endpoints;
  std::map<std::string, uint64_t, std::less<>> counters;

  size_t map_bytes;          // of endpoints and counters, as far as can be known
  size_t own_counters = 0;   // how many of the counters are ours
  bool stuck = false;        // folding makes no room any more
  size_t fold_again_at = 0;  // folding was of no use when there were fewer samples than this

 private:
  bool GrowSamples();
  void ApplyFold(size_t goal, bool may_coarsen);
};

}  // namespace spanprof::profile
