#pragma once

// All code of the process that a stack may go through, kept up to date off the hot path, and read
// by signal handlers without a lock.
//
//   CodeMap map({});
//   map.Refresh();                          // a background thread, and again now and then:
//   map.RefreshIfNeeded();                  // after dlopen, or when a handler met unknown code
//   ...
//   CodeMap::Reader reader(map);            // a signal handler
//   const CodeRegion* region = reader.Find(pc);
//
// A refresh makes a new CodeSnapshot and publishes it by one store. Old ones are freed when no
// handler can have them (NativeReaderGate). Snapshots have copies of what they need, so that an
// object being unloaded at any moment takes nothing from under a handler. Tables are shared between
// snapshots and found again by content, so that dlopen and dlclose of the same plugin a thousand
// times costs the memory of one.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/elf_mapping.h"
#include "base/result.h"
#include "sampling/native_code_snapshot.h"
#include "sampling/native_objects.h"
#include "sampling/native_reader_gate.h"

namespace spanprof::sampling {

struct CodeMapOptions {
  std::size_t max_table_bytes = std::size_t{64} << 20;  // of all tables together
};

struct CodeMapStatistics {
  std::size_t regions = 0;
  std::size_t objects = 0;
  std::size_t tables = 0;
  std::size_t table_bytes = 0;         // of the current snapshot
  std::size_t objects_over_limit = 0;  // whose tables did not fit, wholly or partly
  std::size_t objects_without_table = 0;
  std::size_t broken_functions = 0;
  std::size_t unsupported_rows = 0;
  std::size_t waiting_snapshots = 0;  // old ones that a handler may still use
  uint64_t refreshes = 0;
  uint64_t unknown_pcs = 0;  // met by handlers
};

class CodeMap {
 public:
  explicit CodeMap(CodeMapOptions options = {});
  // No handler may be inside, or come any more.
  ~CodeMap();
  CodeMap(const CodeMap&) = delete;
  CodeMap& operator=(const CodeMap&) = delete;

  // ---- Any thread, not a signal handler ----
  Result<void> Refresh();
  // True if it did.
  bool RefreshIfNeeded();
  // What is mapped now, then what was before and no more (the last 1024 of these): a pc of an older
  // sample may lie in it.
  [[nodiscard]] std::vector<ElfMapping> Mappings() const;
  [[nodiscard]] CodeMapStatistics statistics() const;

  // ---- Fork handlers ----
  // Before a fork, and after it in the parent and in the child: see HoldLoaderLists(), for which
  // they are. They wait for microseconds, not for a refresh.
  static void PrepareFork() { HoldLoaderLists(); }
  static void FinishFork() { ReleaseLoaderLists(); }
  // In the child, after FinishFork() and before its first sample.
  void ResetAfterFork();

  // ---- SIGNAL-SAFE ----
  class Reader {
   public:
    explicit Reader(const CodeMap& map) noexcept
        : map_(map), counter_(NativeReaderGate::CounterFor(this)) {
      map_.gate_.Enter(counter_);
      snapshot_ = map_.current_.load();  // pairs with the store of Publish()
    }
    ~Reader() { map_.gate_.Leave(counter_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Null: no known code. Remembers the last region, where the next frame usually is too.
    [[nodiscard]] const CodeRegion* Find(uint64_t pc) noexcept {
      if (last_ != nullptr && pc >= last_->start && pc < last_->end) return last_;
      const CodeRegion* found = snapshot_ == nullptr ? nullptr : snapshot_->Find(pc);
      if (found != nullptr) last_ = found;
      return found;
    }
    // Whether handlers return to `pc`, for a libc without call frame information.
    [[nodiscard]] bool IsSignalReturn(uint64_t pc) const noexcept {
      if (snapshot_ == nullptr) return false;
      for (const uint64_t address : snapshot_->signal_returns) {
        if (address == pc) return true;
      }
      return false;
    }
    // Whether `pc` is in the function that calls a fiber's first one.
    [[nodiscard]] bool IsFiberStart(uint64_t pc) const noexcept {
      return snapshot_ != nullptr && snapshot_->fiber_start != 0 &&
             pc - snapshot_->fiber_start < kFiberStartBytes;
    }
    // Counts a pc in no known code, which is a reason to refresh.
    void NoteUnknown() noexcept { map_.unknown_pcs_.fetch_add(1, std::memory_order_relaxed); }

   private:
    const CodeMap& map_;
    const unsigned counter_;
    const CodeSnapshot* snapshot_;
    const CodeRegion* last_ = nullptr;
  };

 private:
  // An object whose table was made, or could not be.
  struct KnownObject {
    uint64_t bias = 0;
    uint64_t code_begin = 0;
    uint64_t code_end = 0;
    uint64_t header_address = 0;
    std::string build_id;
    std::shared_ptr<const UnwindTable> table;
  };
  struct Retired {
    std::unique_ptr<const CodeSnapshot> snapshot;
    uint32_t not_seen = 0;  // counters of the gate
  };
  // What refreshing needs; no handler looks at it.
  struct State {
    std::mutex mutex;  // everything below
    std::vector<Retired> retired;
    std::vector<KnownObject> known;  // ascending by address
    std::unordered_map<std::string, std::shared_ptr<const UnwindTable>> tables_by_content;
    std::deque<std::string> table_keys;  // of tables_by_content, oldest first
    std::vector<ElfMapping> mappings;
    std::deque<ElfMapping> former_mappings;  // youngest first
    uint64_t seen_loads = 0;
    uint64_t seen_unloads = 0;
    uint64_t seen_unknown_pcs = 0;
    CodeMapStatistics statistics;
  };

  static KnownObject Examine(State& state, const LoadedObject& object, std::size_t room);
  std::vector<KnownObject> ExamineAll(State& state, const LoadedObjects& loaded) const;
  static std::unique_ptr<CodeSnapshot> MakeSnapshot(State& state,
                                                    std::vector<ElfMapping>& mappings);
  void Publish(State& state, std::unique_ptr<CodeSnapshot> snapshot);
  void FreeRetired(State& state) const;
  static void Remember(State& state, std::vector<ElfMapping> mappings);

  const CodeMapOptions options_;
  mutable NativeReaderGate gate_;
  std::atomic<const CodeSnapshot*> current_{nullptr};
  mutable std::atomic<uint64_t> unknown_pcs_{0};
  std::unique_ptr<State> state_;
};

}  // namespace spanprof::sampling
