#pragma once

// A table in which equal items are stored once and get a number, counted from 1. Number 0 is the
// default-constructed item and is always there.
//
// The table does not grow unasked: a caller that keeps to a budget asks BytesToAdd() first. Growing
// copies, so for that moment the old and the new copy of one table exist side by side.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tsl/robin_set.h>

namespace spanprof::profile {

// HashOf is a function object: uint64_t operator()(const T&) const.
template <class T, class HashOf>
class InterningTable {
 public:
  InterningTable() : items_(1), ids_(0, Hash{&items_}, Equal{&items_}) {
    ids_.max_load_factor(kMaxLoad);
    ids_.insert(0);
  }
  // The index points into the items.
  InterningTable(const InterningTable&) = delete;
  InterningTable& operator=(const InterningTable&) = delete;

  const std::vector<T>& items() const { return items_; }

  std::optional<uint32_t> Find(const T& item) const {
    const auto found = ids_.find(item);
    if (found == ids_.end()) return std::nullopt;
    return *found;
  }

  // How many bytes memory() will grow by when one more item is added.
  size_t BytesToAdd() const {
    size_t bytes = 0;
    if (items_.size() == items_.capacity()) {
      bytes += (NextCapacity() - items_.capacity()) * sizeof(T);
    }
    if (IndexIsFull()) bytes += std::max<size_t>(ids_.bucket_count(), kMinBuckets) * kBucketBytes;
    return bytes;
  }

  // Adds an item which Find() did not find.
  uint32_t Add(const T& item) {
    if (items_.size() == items_.capacity()) items_.reserve(NextCapacity());
    if (IndexIsFull()) ids_.rehash(std::max<size_t>(ids_.bucket_count() * 2, kMinBuckets));
    const auto id = static_cast<uint32_t>(items_.size());
    items_.push_back(item);
    ids_.insert(id);
    return id;
  }

  bool Contains(uint32_t id) const { return id < items_.size(); }

  size_t memory() const {
    return items_.capacity() * sizeof(T) + ids_.bucket_count() * kBucketBytes;
  }

 private:
  // The index holds numbers only; both functors look the item up, or take it as it is.
  struct Hash {
    const std::vector<T>* items;
    size_t operator()(const T& item) const { return HashOf{}(item); }
    size_t operator()(uint32_t id) const { return HashOf{}((*items)[id]); }
  };
  struct Equal {
    using is_transparent = void;
    const std::vector<T>* items;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t id, const T& item) const { return (*items)[id] == item; }
    bool operator()(const T& item, uint32_t id) const { return (*items)[id] == item; }
  };
  using Index = tsl::robin_set<uint32_t, Hash, Equal, std::allocator<uint32_t>, true>;

  static constexpr float kMaxLoad = 0.75F;
  static constexpr size_t kMinBuckets = 16;
  static constexpr size_t kMinItems = 16;
  static constexpr size_t kBucketBytes =
      sizeof(tsl::detail_robin_hash::bucket_entry<uint32_t, true>);

  size_t NextCapacity() const {
    return std::max(kMinItems, items_.capacity() + items_.capacity() / 2);
  }
  bool IndexIsFull() const {
    return static_cast<float>(items_.size() + 1) >
           kMaxLoad * static_cast<float>(ids_.bucket_count());
  }

  std::vector<T> items_;
  Index ids_;
};

}  // namespace spanprof::profile
