#pragma once

// The frames that handlers have seen. What rb_profile_frames gives are objects of the VM (a method
// entry or an instruction sequence), which may be collected, and whose name only the VM can tell,
// to a thread that holds its lock. So a handler puts each into this table once, and a sample has
// its number; the table keeps the object alive, and a Ruby thread of ours fills in the names.
//
// Intern is SIGNAL-SAFE. Name, Mark, Update and Clear are for a thread that holds the VM's lock.
// Description is for any thread.
//
// An object stays here until the next recording begins: were it let go, another one could come to
// lie at its address, and would be taken for it.

#include <atomic>
#include <cstdint>
#include <string>

#include "ruby_api.h"

namespace spanprof::ruby {

struct FrameDescription {
  std::string name;
  std::string file;
  uint32_t first_line = 0;  // of the method
};

class FrameTable {
 public:
  static constexpr uint32_t kPlaces = 1u << 16;
  static constexpr uint32_t kMaxFrames = kPlaces / 4 * 3;  // so that probing stays short
  static constexpr uint32_t kFull = 0xFFFFFFFFu;

  FrameTable() = default;
  FrameTable(const FrameTable&) = delete;
  FrameTable& operator=(const FrameTable&) = delete;

  // SIGNAL-SAFE. The object's number, or kFull, which is counted.
  uint32_t Intern(VALUE frame) noexcept;

  // Null: not named yet, or no such number.
  [[nodiscard]] const FrameDescription* Description(uint32_t number) const;

  // Calls `describe(VALUE)`, which returns a new FrameDescription, for each that has no name yet.
  template <class Describe>
  void Name(Describe describe) {
    const uint32_t count = count_.load(std::memory_order_acquire);
    while (named_ < count) {
      const uint32_t listed = list_[named_].load(std::memory_order_acquire);
      if (listed == 0) return;  // its handler is just about to write it
      Place& place = places_[listed - 1];
      place.description.store(describe(place.frame.load(std::memory_order_relaxed)),
                              std::memory_order_release);  // pairs with Description's load
      ++named_;
    }
  }

  // The garbage collector's two questions: what is kept alive, and what has moved.
  void Mark() const;
  void Update();

  // No handler may be at work.
  void Clear();

  [[nodiscard]] uint32_t size() const { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<VALUE> frame{0};
    std::atomic<const FrameDescription*> description{nullptr};
  };

  Place places_[kPlaces];
  // Those in use in the order in which they came, each plus 1: what has to be marked or named.
  std::atomic<uint32_t> list_[kMaxFrames] = {};
  std::atomic<uint32_t> count_{0};
  std::atomic<uint64_t> refused_{0};
  uint32_t named_ = 0;
};

}  // namespace spanprof::ruby
