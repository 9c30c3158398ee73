#include "coroutine/target_area.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

#include "collect/access_error.h"

namespace spanprof::coroutine {
namespace {

using internal::coroutine::GlobalHeader;
using internal::coroutine::Place;
using internal::coroutine::StationData;

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kChunkBytes =
    uint64_t{internal::coroutine::kStationsPerChunk} * sizeof(StationData);
constexpr uint32_t kFewestRecords = 256;
constexpr uint32_t kMostRecords = 1u << 24;

std::string ErrorText(int error_number) { return std::generic_category().message(error_number); }

Error Unusable(const std::string& reason) {
  return {EPROTO, "the target's coroutine memory cannot be used: " + reason,
          "build the target with the spanprof/coroutine.hpp of this version"};
}

}  // namespace

// ---- MappedRange ----

MappedRange::MappedRange(MappedRange&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedRange& MappedRange::operator=(MappedRange&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedRange::~MappedRange() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

MappedRange MappedRange::Map(int file, uint64_t offset, uint64_t bytes, bool writable) {
  MappedRange range;
  void* memory = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                      MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return range;
  range.memory_ = static_cast<char*>(memory);
  range.bytes_ = bytes;
  return range;
}

// ---- TargetArea ----

TargetArea::TargetArea(UniqueFd file, MappedRange page)
    : file_(std::move(file)),
      page_(std::move(page)),
      header_(reinterpret_cast<GlobalHeader*>(page_.get())) {}

uint64_t TargetArea::FileBytes() const {
  struct stat status = {};
  return fstat(file_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

Result<TargetArea> TargetArea::Open(UniqueFd file) {
  struct stat status = {};
  if (!file.valid() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return tl::make_unexpected(Unusable("it is not a memory file"));
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return tl::make_unexpected(Unusable("it could become shorter while it is read"));
  }
  if (status.st_size < static_cast<off_t>(kPageBytes)) {
    return tl::make_unexpected(Unusable("it is shorter than a page"));
  }
  // A file description of our own, for a lock of our own.
  const std::string again = "/proc/self/fd/" + std::to_string(file.get());
  UniqueFd own(open(again.c_str(), O_RDWR | O_CLOEXEC));
  if (!own.valid())
    return Fail(errno, "the target's coroutine memory cannot be opened: " + ErrorText(errno));
  MappedRange page = MappedRange::Map(own.get(), 0, kPageBytes, true);
  if (!page.valid()) {
    return Fail(errno, "the target's coroutine memory cannot be mapped: " + ErrorText(errno));
  }
  TargetArea area(std::move(own), std::move(page));
  const GlobalHeader& header = area.header();
  if (header.magic_number.load(std::memory_order_acquire) != internal::coroutine::kMagic ||
      header.extension_magic.load(std::memory_order_acquire) !=
          internal::coroutine::kExtensionMagic) {
    return tl::make_unexpected(Unusable("it has another magic number"));
  }
  if (header.extension_version != internal::coroutine::kExtensionVersion) {
    return tl::make_unexpected(
        Unusable("its version is " + std::to_string(header.extension_version)));
  }
  area.ring_records_ = header.ring_records;
  if (!std::has_single_bit(area.ring_records_) || area.ring_records_ < kFewestRecords ||
      area.ring_records_ > kMostRecords ||
      header.rings_offset != internal::coroutine::kRingsOffset ||
      header.places_offset != internal::coroutine::kPlacesOffset) {
    return tl::make_unexpected(Unusable("its header describes impossible rings"));
  }
  return area;
}

Result<std::vector<TargetArea>> TargetArea::FindInProcess(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) {
    return tl::make_unexpected(
        collect::ExplainAccessError(pid, errno, "spanprof coro ps " + std::to_string(pid)));
  }
  const std::string wanted = std::string("/memfd:") + internal::coroutine::kAreaName + " (deleted)";
  std::vector<TargetArea> areas;
  std::vector<ino_t> seen;
  std::optional<Error> problem;
  while (const dirent* entry = readdir(directory)) {
    const std::string path = folder + "/" + entry->d_name;
    char link[64];
    const ssize_t length = readlink(path.c_str(), link, sizeof link);
    if (length < 0 || std::string_view(link, static_cast<std::size_t>(length)) != wanted) continue;
    UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status = {};
    if (!file.valid() || fstat(file.get(), &status) != 0) {
      problem = collect::ExplainAccessError(pid, errno, "spanprof coro ps " + std::to_string(pid));
      continue;
    }
    if (std::find(seen.begin(), seen.end(), status.st_ino) != seen.end()) continue;
    seen.push_back(status.st_ino);
    Result<TargetArea> area = Open(std::move(file));
    // A descriptor that was inherited is another process's memory.
    if (area && area->header().pid == static_cast<uint32_t>(pid)) {
      areas.push_back(*std::move(area));
    } else if (!area) {
      problem = area.error();
    }
  }
  closedir(directory);
  if (!areas.empty()) return areas;
  if (problem) return tl::make_unexpected(*std::move(problem));
  return Fail(ENOENT, "process " + std::to_string(pid) + " has run no traced coroutine",
              "C++: include <spanprof/coroutine.hpp> and derive its promises from "
              "spanprof::traced_promise; Rust: spanprof::traced(future); docs/coroutines.md and "
              "docs/rust.md show how");
}

Result<void> TargetArea::Claim() {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_.get(), F_OFD_SETLK, &whole) == 0) return {};
  if (errno != EAGAIN && errno != EACCES) {
    return Fail(errno, "the target's coroutine memory cannot be locked: " + ErrorText(errno));
  }
  const uint32_t pid = header_->harvester_pid.load(std::memory_order_relaxed);
  return Fail(EBUSY,
              "process " + std::to_string(header_->pid) +
                  " is being recorded already, by process " + std::to_string(pid),
              "stop that recording first");
}

void TargetArea::Announce(uint32_t pid, const std::string& socket_path, bool fence) {
  const uint32_t version = header_->harvester_version.load(std::memory_order_relaxed) | 1;
  header_->harvester_version.store(version, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  header_->harvester_pid.store(pid, std::memory_order_relaxed);
  std::memset(header_->harvester_socket, 0, sizeof header_->harvester_socket);
  socket_path.copy(header_->harvester_socket, sizeof header_->harvester_socket - 1);
  header_->harvester_version.store(version + 1, std::memory_order_release);
  header_->tracer_sleeping.store(0, std::memory_order_relaxed);
  header_->mode.fetch_or(
      internal::coroutine::kModeRings | (fence ? internal::coroutine::kModeFence : 0u),
      std::memory_order_release);
}

void TargetArea::Withdraw() {
  header_->mode.fetch_and(~internal::coroutine::kModeRings, std::memory_order_release);
  header_->tracer_sleeping.store(0, std::memory_order_relaxed);
  header_->harvester_pid.store(0, std::memory_order_relaxed);
}

std::vector<RingView>& TargetArea::Rings() {
  const uint32_t announced =
      std::min(header_->ring_count.load(std::memory_order_acquire), internal::coroutine::kMaxRings);
  if (rings_.size() < announced) {
    const uint64_t stride = internal::coroutine::RingStride(ring_records_);
    const uint64_t file_bytes = FileBytes();
    while (rings_.size() < announced) {
      const uint64_t offset = internal::coroutine::kRingsOffset + rings_.size() * stride;
      if (file_bytes < offset + stride) break;  // it announces what is not there
      RingView ring;
      ring.memory = MappedRange::Map(file_.get(), offset, stride, true);
      if (!ring.memory.valid()) break;
      ring.tail = ring.control().tail.load(std::memory_order_relaxed);
      rings_.push_back(std::move(ring));
    }
  }
  return rings_;
}

void TargetArea::FreeRing(uint32_t index) {
  // Nobody writes to it between the end of one thread and the store below. If this fails the memory
  // stays, and nothing else.
  const uint64_t stride = internal::coroutine::RingStride(ring_records_);
  const uint64_t records =
      internal::coroutine::kRingsOffset + index * stride + internal::coroutine::kRingControlBytes;
  (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(records),
                  static_cast<off_t>(stride - internal::coroutine::kRingControlBytes));
  rings_[index].control().state.store(internal::coroutine::kRingFree, std::memory_order_release);
}

StationData* TargetArea::Station(uint32_t index) {
  const uint32_t chunk = index / internal::coroutine::kStationsPerChunk;
  const auto known = chunks_.find(chunk);
  char* memory = nullptr;
  if (known != chunks_.end()) {
    memory = known->second.get();
  } else {
    if (index >= StationCount()) return nullptr;
    const uint64_t offset = chunk * kChunkBytes;
    if (FileBytes() < offset + kChunkBytes + kPageBytes) return nullptr;
    MappedRange range = MappedRange::Map(file_.get(), offset, kChunkBytes + kPageBytes, true);
    if (!range.valid()) return nullptr;
    memory = range.get();
    chunks_.emplace(chunk, std::move(range));
  }
  return reinterpret_cast<StationData*>(memory + internal::coroutine::kStationsOffset) +
         index % internal::coroutine::kStationsPerChunk;
}

uint32_t TargetArea::StationCount() const {
  return std::min({header_->allocated_count.load(std::memory_order_acquire),
                   header_->max_stations.load(std::memory_order_acquire),
                   internal::coroutine::kMaxStations});
}

uint32_t TargetArea::PlaceCount() const {
  return std::min(header_->place_count.load(std::memory_order_acquire),
                  internal::coroutine::kMaxPlaces - 1);
}

std::optional<Place> TargetArea::ReadPlace(uint32_t id) {
  if (id == 0 || id > PlaceCount()) return std::nullopt;
  if (!places_.valid()) {
    constexpr uint64_t kBytes = uint64_t{internal::coroutine::kMaxPlaces} * sizeof(Place);
    if (FileBytes() < internal::coroutine::kPlacesOffset + kBytes) return std::nullopt;
    places_ = MappedRange::Map(file_.get(), internal::coroutine::kPlacesOffset, kBytes, false);
    if (!places_.valid()) return std::nullopt;
  }
  Place place = {};
  std::memcpy(&place, places_.get() + uint64_t{id} * sizeof(Place), sizeof place);
  place.file[sizeof place.file - 1] = '\0';
  place.function[sizeof place.function - 1] = '\0';
  return place;
}

}  // namespace spanprof::coroutine
