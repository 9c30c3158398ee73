#include "format/jfr_pool_index.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <tuple>

namespace spanprof::format::jfr {
namespace {

auto OrderOf(const PoolEntry& entry) { return std::tuple(entry.type, entry.key); }

}  // namespace

Result<PoolIndex> PoolIndex::Read(std::string_view bytes, const Metadata& metadata,
                                  const std::vector<EventSpan>& checkpoints, size_t max_memory) {
  PoolIndex index;
  // A vector that grows is there twice for a moment.
  const size_t max_entries = max_memory / (2 * sizeof(PoolEntry));
  for (const EventSpan& checkpoint : checkpoints) {
    if (Result<void> read = index.ReadCheckpoint(bytes, metadata, checkpoint, max_entries); !read) {
      return tl::make_unexpected(read.error());
    }
  }
  std::sort(index.entries_.begin(), index.entries_.end(),
            [](const PoolEntry& a, const PoolEntry& b) {
              return std::tuple(OrderOf(a), a.offset) < std::tuple(OrderOf(b), b.offset);
            });
  return index;
}

Result<void> PoolIndex::ReadCheckpoint(std::string_view bytes, const Metadata& metadata,
                                       const EventSpan& checkpoint, size_t max_entries) {
  const auto fail = [&checkpoint](int code, const std::string& what) {
    return Fail(code, "JFR checkpoint at byte " + std::to_string(checkpoint.begin) + ": " + what);
  };
  Input input(bytes, checkpoint.fields, checkpoint.end);
  input.Varint();  // start
  input.Varint();  // duration
  input.Varint();  // offset of the next checkpoint: they are all found without it
  input.Byte();    // flags
  const uint64_t pool_count = input.Varint();
  for (uint64_t i = 0; i < pool_count && !input.failed(); ++i) {
    const uint64_t type_id = input.Varint();
    const std::optional<uint32_t> type = metadata.FindId(type_id);
    if (!type) return fail(EBADMSG, "a pool of the unknown type " + std::to_string(type_id));
    const uint64_t count = input.Varint();
    for (uint64_t j = 0; j < count && !input.failed(); ++j) {
      const uint64_t key = input.Varint();
      const size_t offset = input.position();
      metadata.Skip(*type, input);
      if (entries_.size() >= max_entries) return fail(EFBIG, "more constants than memory allows");
      entries_.push_back({.type = *type, .key = key, .offset = offset, .end = input.position()});
    }
  }
  if (input.failed()) return fail(EBADMSG, "its pools do not fit it");
  return {};
}

std::optional<size_t> PoolIndex::Find(uint32_t type, uint64_t key) const {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), std::tuple(type, key),
      [](const PoolEntry& entry, const auto& wanted) { return OrderOf(entry) < wanted; });
  if (found == entries_.end() || found->type != type || found->key != key) return std::nullopt;
  return static_cast<size_t>(found - entries_.begin());
}

}  // namespace spanprof::format::jfr
