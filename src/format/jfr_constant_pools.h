#pragma once

// The constant pools of a chunk that is written.
//
// What events refer to gets its key by how often they do, so that the keys which are written most
// take one byte.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.h"
#include "format/jfr_frame_pools.h"
#include "format/jfr_pool_bytes.h"
#include "format/jfr_schema.h"
#include "profile/profile.h"

namespace spanprof::format::jfr {

class ConstantPoolWriter {
 public:
  ConstantPoolWriter(const profile::Profile& profile, JfrContext context);

  uint64_t Thread(profile::ThreadId id) const { return threads_.keys[id]; }
  uint64_t StackTrace(profile::StackId id) const { return stacks_.keys[id]; }
  uint64_t Context(profile::ContextId id) const { return contexts_.keys[id]; }
  static uint64_t State(profile::ThreadState state) { return static_cast<uint64_t>(state) + 1; }
  // The key of a sample's value and whether it was folded.
  uint64_t Value(const profile::Sample& sample) const;
  // Whether a sample has a context with this root, and so its endpoint is written with it.
  bool HasRoot(uint64_t root_span_id) const;

  // The fields of spanprof.Context, for the pool or in the event itself.
  void WriteContext(const profile::Context& context, Output& out);

  // Writes the checkpoint event. Pools without entries are left out: the JDK refuses them.
  void WriteCheckpoint(uint64_t start_ticks, Output& out) const;

 private:
  struct Keys {
    std::vector<uint64_t> keys;    // by the model's number
    std::vector<uint32_t> in_use;  // the model's numbers, by key
  };
  using ValueKey = std::pair<uint64_t, bool>;

  template <class NumberOf>
  Keys KeysByUse(size_t table_size, NumberOf number_of) const;
  void AddValues();
  void AddThreads();
  void WriteText(profile::StringId text, Output& out);
  std::array<const PoolBytes*, kPoolCount> pools() const;

  const profile::Profile& profile_;
  unsigned attribute_count_;
  Keys threads_;
  Keys stacks_;
  Keys contexts_;
  std::vector<std::pair<ValueKey, uint64_t>> value_keys_;  // sorted
  std::vector<uint64_t> roots_;                            // sorted

  TextPool strings_;
  FramePools frames_;
  PoolBytes thread_pool_;
  PoolBytes state_pool_;
  PoolBytes context_pool_;
  PoolBytes value_pool_{.first_key = kFirstValueKey};
};

}  // namespace spanprof::format::jfr
