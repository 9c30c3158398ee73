#include "collect/slot_table_discovery.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace spanprof::collect {
namespace {

using internal::SlotTableHeader;

constexpr uint32_t kKnownFeatures =
    internal::kFeatureSequencedWord | internal::kFeatureRecordPointers;
constexpr std::size_t kMaxNamedTables = 64;
// 256 MiB of 4 KiB pages. A scan makes the kernel map its zero page into memory that the target
// never touched, so it has to end somewhere.
constexpr std::size_t kMaxScannedPages = 65536;

using HeaderBytes = std::array<std::byte, sizeof(SlotTableHeader)>;

uint32_t Load32(std::span<const std::byte> bytes, std::size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

class Search {
 public:
  Search(MemoryReader& memory, uint32_t publisher_pid)
      : memory_(memory), publisher_pid_(publisher_pid) {}

  void TryNamed(uint64_t address, uint64_t available) { Try(address, available, true); }
  void TryScanned(uint64_t address, uint64_t available) { Try(address, available, false); }

  SlotTableSearch& result() { return result_; }
  [[nodiscard]] bool lost_access() const { return result_.status != ReadStatus::kOk; }

  // Keeps a failure that concerns the process, not the address.
  void NoteStatus(ReadStatus status) {
    const bool of_address = status == ReadStatus::kBadAddress || status == ReadStatus::kPartial;
    if (!of_address && result_.status == ReadStatus::kOk) result_.status = status;
  }

 private:
  void Try(uint64_t address, uint64_t available, bool named) {
    HeaderBytes header{};
    std::array<std::byte, sizeof(uint32_t)> magic{};
    // The magic first: the publisher stores it last, with release order.
    const MemoryRange ranges[] = {{address, magic}, {address, header}};
    const ReadStatus status = memory_.ReadInOrder(ranges);
    if (status != ReadStatus::kOk) {
      NoteStatus(status);
      if (named) ++result_.invalid_tables;
      return;
    }
    if (Load32(magic, 0) != internal::kSlotTableMagic) header[0] = std::byte{0};
    auto table = CheckSlotTableHeader(header, address, available, publisher_pid_);
    if (table) {
      if (IsBetter(*table)) result_.table = *table;
      return;
    }
    if (table.error().problem == HeaderProblem::kOtherPublisher) {
      ++result_.stale_tables;
    } else if (named) {
      result_.refusal = table.error();
      // Without its magic a table is withdrawn, or this is the middle of one: nothing is wrong.
      if (table.error().problem != HeaderProblem::kMagic) ++result_.invalid_tables;
    }
  }

  [[nodiscard]] bool IsBetter(const SlotTable& table) const {
    if (!result_.table) return true;
    if (table.sequenced != result_.table->sequenced) return table.sequenced;
    return table.published_at_seconds > result_.table->published_at_seconds;
  }

  MemoryReader& memory_;
  uint32_t publisher_pid_;
  SlotTableSearch result_;
};

struct Candidate {
  uint64_t address;
  uint64_t end;  // of the memory it is in
};

// The pages to look at: the first page of every region before the rest of any, because that is
// where a table is unless the kernel has merged its memory with a neighbour's.
std::vector<Candidate> PagesToScan(const ProcessMaps& maps, uint64_t page_bytes, bool& truncated) {
  std::vector<Candidate> pages;
  const auto is_candidate = [](const Mapping& mapping) {
    return mapping.readable && mapping.writable && mapping.IsAnonymous();
  };
  const auto add = [&](uint64_t address, uint64_t end) {
    if (pages.size() == kMaxScannedPages) {
      truncated = true;
      return false;
    }
    pages.push_back({address, end});
    return true;
  };
  for (std::size_t i = 0; i < maps.mappings.size(); ++i) {
    const Mapping& mapping = maps.mappings[i];
    if (is_candidate(mapping) && !add(mapping.start, ContiguousEnd(maps, i))) return pages;
  }
  for (std::size_t i = 0; i < maps.mappings.size(); ++i) {
    const Mapping& mapping = maps.mappings[i];
    if (!is_candidate(mapping)) continue;
    const uint64_t end = ContiguousEnd(maps, i);
    for (uint64_t rest = mapping.size(), page = mapping.start; rest > page_bytes;) {
      page += page_bytes;
      rest -= page_bytes;
      if (!add(page, end)) return pages;
    }
  }
  return pages;
}

void ScanPages(MemoryReader& memory, std::span<const Candidate> pages, Search& search) {
  constexpr std::size_t kBatch = MemoryReader::kMaxRanges;
  std::array<uint32_t, kBatch> words{};
  std::array<MemoryRange, kBatch> ranges;
  while (!pages.empty() && !search.lost_access()) {
    const std::size_t count = std::min(pages.size(), kBatch);
    for (std::size_t i = 0; i < count; ++i) {
      ranges[i] = {pages[i].address, std::as_writable_bytes(std::span(&words[i], 1))};
    }
    ReadStatus status = memory.ReadVectors(std::span(ranges).first(count));
    if (status != ReadStatus::kOk) {
      search.NoteStatus(status);
      // A page of the batch has gone: look at each by itself.
      for (std::size_t i = 0; i < count; ++i) {
        words[i] = 0;
        if (search.lost_access()) break;
        status = memory.Read(ranges[i].address, ranges[i].to);
        if (status == ReadStatus::kOk) continue;
        words[i] = 0;
        search.NoteStatus(status);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (words[i] != internal::kSlotTableMagic) continue;
      search.TryScanned(pages[i].address, pages[i].end - pages[i].address);
    }
    pages = pages.subspan(count);
  }
}

}  // namespace

std::string HeaderRefusalText(const HeaderRefusal& refusal) {
  const std::string value = std::to_string(refusal.value);
  switch (refusal.problem) {
    case HeaderProblem::kMagic:
      return "it has no magic number: it is not published yet, or not any more";
    case HeaderProblem::kVersion:
      return "its version is " + value + ", this reader knows " +
             std::to_string(internal::kSlotTableVersion);
    case HeaderProblem::kSlotSize:
      return "its slots have " + value + " bytes instead of " +
             std::to_string(sizeof(internal::Slot));
    case HeaderProblem::kCapacity:
      return "its capacity is " + value + ", which is not between 1 and " +
             std::to_string(internal::kMaxSlotCapacity);
    case HeaderProblem::kFeatures:
      return "its feature bits are " + value + ", which this reader does not know";
    case HeaderProblem::kReservedBytes:
      return "its reserved bytes are set although it announces no features";
    case HeaderProblem::kRecordPointers:
      return "its record pointers are at offset " + value + ", which is not behind its slots";
    case HeaderProblem::kMappingTooSmall:
      return "it announces more than fits into its " + value + " bytes of memory";
    case HeaderProblem::kOtherPublisher:
      break;
  }
  return "it was made by process " + value + ", and inherited through a fork";
}

tl::expected<SlotTable, HeaderRefusal> CheckSlotTableHeader(
    std::span<const std::byte, sizeof(SlotTableHeader)> header, uint64_t address,
    uint64_t available, uint32_t publisher_pid) {
  const auto refuse = [](HeaderProblem problem, uint64_t value) {
    return tl::make_unexpected(HeaderRefusal{problem, value});
  };
  const uint32_t magic = Load32(header, offsetof(SlotTableHeader, magic));
  const uint32_t version = Load32(header, offsetof(SlotTableHeader, version));
  const uint32_t capacity = Load32(header, offsetof(SlotTableHeader, capacity));
  const uint32_t slot_size = Load32(header, offsetof(SlotTableHeader, slot_size));
  const uint32_t features = Load32(header, offsetof(SlotTableHeader, features));
  const uint32_t publisher = Load32(header, offsetof(SlotTableHeader, publisher_pid));
  const uint32_t pointers = Load32(header, offsetof(SlotTableHeader, record_pointers_offset));
  const uint32_t stamp = Load32(header, offsetof(SlotTableHeader, published_at_seconds));

  if (magic != internal::kSlotTableMagic) return refuse(HeaderProblem::kMagic, magic);
  if (version != internal::kSlotTableVersion) return refuse(HeaderProblem::kVersion, version);
  if (slot_size != sizeof(internal::Slot)) return refuse(HeaderProblem::kSlotSize, slot_size);
  if (capacity == 0 || capacity > internal::kMaxSlotCapacity) {
    return refuse(HeaderProblem::kCapacity, capacity);
  }
  const uint64_t slots_end = internal::SlotTableRecordPointersOffset(capacity);
  if (available < slots_end || address > UINT64_MAX - available) {
    return refuse(HeaderProblem::kMappingTooSmall, available);
  }
  const bool sequenced = (features & internal::kFeatureSequencedWord) != 0;
  const bool has_pointers = (features & internal::kFeatureRecordPointers) != 0;
  // A pointer means something only within the sequence's bracket.
  if ((features & ~kKnownFeatures) != 0 || (has_pointers && !sequenced)) {
    return refuse(HeaderProblem::kFeatures, features);
  }
  if (features == 0 && (publisher | pointers | stamp) != 0) {
    return refuse(HeaderProblem::kReservedBytes, publisher);
  }
  SlotTable table;
  table.address = address;
  table.capacity = capacity;
  table.sequenced = sequenced;
  table.published_at_seconds = stamp;
  if (has_pointers) {
    if (pointers < slots_end || pointers % sizeof(uint64_t) != 0) {
      return refuse(HeaderProblem::kRecordPointers, pointers);
    }
    if (available - slots_end < pointers - slots_end + uint64_t{capacity} * sizeof(uint64_t)) {
      return refuse(HeaderProblem::kMappingTooSmall, available);
    }
    table.record_pointers = address + pointers;
  }
  if (sequenced && publisher != publisher_pid) {
    return refuse(HeaderProblem::kOtherPublisher, publisher);
  }
  return table;
}

SlotTableSearch FindSlotTable(MemoryReader& memory, const ProcessMaps& maps,
                              uint32_t publisher_pid) {
  Search search(memory, publisher_pid);
  std::size_t named = 0;
  for (std::size_t i = 0; i < maps.mappings.size() && named < kMaxNamedTables; ++i) {
    const Mapping& mapping = maps.mappings[i];
    if (!mapping.readable || !HasPublishedName(mapping, internal::kSlotTableName)) continue;
    ++named;
    search.TryNamed(mapping.start, ContiguousEnd(maps, i) - mapping.start);
    if (search.lost_access()) break;
  }
  if (search.result().table || search.lost_access()) return search.result();
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  bool truncated = false;
  const std::vector<Candidate> pages = PagesToScan(maps, page_bytes, truncated);
  search.result().scan_truncated = truncated;
  ScanPages(memory, pages, search);
  return search.result();
}

}  // namespace spanprof::collect
