#pragma once

// Texts stored once, in blocks that never move, so that a view of one stays valid.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "profile/hashing.h"
#include "profile/interning_table.h"

namespace spanprof::profile {

class StringTable {
 public:
  std::optional<uint32_t> Find(std::string_view text) const { return texts_.Find(text); }
  // How many bytes memory() will grow by when `text` is added.
  size_t BytesToAdd(std::string_view text) const;
  // Adds a text which Find() did not find.
  uint32_t Add(std::string_view text);

  // The empty text for a number that is not there.
  std::string_view Text(uint32_t id) const {
    return texts_.Contains(id) ? texts_.items()[id] : std::string_view();
  }
  size_t size() const { return texts_.items().size(); }
  size_t memory() const { return texts_.memory() + block_bytes_; }

 private:
  struct HashOfText {
    uint64_t operator()(std::string_view text) const { return HashText(text); }
  };

  size_t NextBlockSize(size_t text_size) const;

  InterningTable<std::string_view, HashOfText> texts_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;  // what is left of the newest ordinary block
  size_t free_size_ = 0;
  size_t ordinary_bytes_ = 0;  // of the ordinary blocks, for their growth
  size_t block_bytes_ = 0;     // of all blocks
};

}  // namespace spanprof::profile
