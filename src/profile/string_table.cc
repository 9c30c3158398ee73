#include "profile/string_table.h"

#include <algorithm>
#include <cstring>

namespace spanprof::profile {
namespace {

constexpr size_t kMinBlock = size_t{4} << 10;
constexpr size_t kMaxBlock = size_t{256} << 10;
// A text longer than this gets a block of its own, so that little of a block is left unused.
constexpr size_t kMaxShared = size_t{1} << 10;

}  // namespace

size_t StringTable::NextBlockSize(size_t text_size) const {
  if (text_size <= free_size_) return 0;
  if (text_size > kMaxShared) return text_size;
  return std::clamp(ordinary_bytes_ / 2, kMinBlock, kMaxBlock);
}

size_t StringTable::BytesToAdd(std::string_view text) const {
  return texts_.BytesToAdd() + NextBlockSize(text.size());
}

uint32_t StringTable::Add(std::string_view text) {
  char* place = free_;
  if (const size_t block_size = NextBlockSize(text.size()); block_size != 0) {
    blocks_.emplace_back(new char[block_size]);
    block_bytes_ += block_size;
    place = blocks_.back().get();
    if (text.size() <= kMaxShared) {
      ordinary_bytes_ += block_size;
      free_ = place;
      free_size_ = block_size;
    }
  }
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  if (place == free_) {
    free_ += text.size();
    free_size_ -= text.size();
  }
  return texts_.Add(std::string_view(place, text.size()));
}

}  // namespace spanprof::profile
