#pragma once

// The probe's side of the shared memory, once for each process: made at the first coroutine (one
// page, a memfd named SPANPROF_CORO), grown when a harvester asks for events. Everything here is
// the slow path; coroutine_events.hpp has the fast one.
//
// Any thread. Not for signal handlers. After a fork the child starts anew, with memory of its own;
// a child made without fork handlers (_Fork, clone) must not run traced coroutines.

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <pthread.h>
#include <unistd.h>

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <spanprof/context.h>
#include <spanprof/internal/coroutine_clock.hpp>
#include <spanprof/internal/coroutine_layout.hpp>
#include <spanprof/internal/coroutine_socket.hpp>

// Without libspanprof these are null, and coroutines carry no context.
#pragma weak spanprof_context_swap
#pragma weak spanprof_context_get

// One copy in a process, as far as its libraries let each other see it.
#define SPANPROF_SHARED_STATE __attribute__((visibility("default")))

namespace spanprof::internal::coroutine {

inline constexpr size_t kPageBytes = 4096;

struct PlaceEntry {
  std::uintptr_t key;
  uint32_t id;
};
inline constexpr uint32_t kPlaceEntries = 2 * kMaxPlaces;

struct Process {
  std::atomic<GlobalHeader*> header{nullptr};
  std::mutex lock;  // of everything below that is not atomic
  int area = -1;
  uint64_t area_bytes = 0;
  uint32_t ring_records = kFewestDefaultRecords;
  Place* places = nullptr;
  bool foreign = false;  // the area is a file that a foreign harvester made
  bool active = false;   // places are mapped, membarrier was tried
  bool forks_watched = false;
  WakeSocket socket;
  std::atomic<char*> chunks[kMaxStations / kStationsPerChunk] = {};
  std::atomic<char*> rings[kMaxRings] = {};
  PlaceEntry place_entries[kPlaceEntries] = {};
};

// What a thread needs on every event. `limit` is the head at which it has to look for room; a
// thread without a ring has head and limit 0.
struct ThreadRing {
  uint64_t head;
  uint64_t limit;
  Record* records;
  RingControl* control;
  uint64_t mask;
};

SPANPROF_SHARED_STATE inline constinit std::atomic<uint32_t> unstarted_mode{kModeNotStarted};
SPANPROF_SHARED_STATE inline constinit std::atomic<uint32_t> private_mode{0};
// Where the mode is: in the header once there is one.
SPANPROF_SHARED_STATE inline constinit std::atomic<std::atomic<uint32_t>*> mode_word{
    &unstarted_mode};
SPANPROF_SHARED_STATE inline Process process;
SPANPROF_SHARED_STATE inline constinit thread_local ThreadRing thread_ring{};

inline uint32_t ContextMode() { return spanprof_context_swap != nullptr ? kModeContexts : 0; }

inline uint64_t OwnStartTicks() {
  char text[512];
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return 0;
  text[got] = '\0';
  // The name in parentheses may have spaces of its own; starttime is the 20th field behind it.
  const char* field = std::strrchr(text, ')');
  for (int i = 0; i < 20 && field != nullptr; ++i) field = std::strchr(field + 1, ' ');
  return field == nullptr ? 0 : std::strtoull(field, nullptr, 10);
}

// ---- Making and growing the area (with the lock held) ----

inline void ForgetAfterFork() {
  unstarted_mode.store(kModeNotStarted | ContextMode(), std::memory_order_relaxed);
  mode_word.store(&unstarted_mode, std::memory_order_relaxed);
  new (&process.lock) std::mutex;  // its owner may be a thread that this process does not have
  process.header.store(nullptr, std::memory_order_relaxed);
  if (process.area >= 0) close(process.area);
  process.area = -1;
  process.area_bytes = 0;
  process.places = nullptr;
  process.foreign = false;
  process.active = false;
  process.socket.CloseInChild();
  for (auto& chunk : process.chunks) {
    if (chunk.load(std::memory_order_relaxed) == nullptr) break;
    chunk.store(nullptr, std::memory_order_relaxed);
  }
  for (auto& ring : process.rings) {
    if (ring.load(std::memory_order_relaxed) == nullptr) break;
    ring.store(nullptr, std::memory_order_relaxed);
  }
  std::memset(process.place_entries, 0, sizeof process.place_entries);
  thread_ring = ThreadRing{};
}

inline bool EnsureAreaBytes(uint64_t bytes) {
  if (bytes <= process.area_bytes) return true;
  rlimit limit = {};
  // Past this limit ftruncate is not only refused: it raises SIGXFSZ.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    return false;
  }
  if (ftruncate(process.area, static_cast<off_t>(bytes)) != 0) return false;
  process.area_bytes = bytes;
  return true;
}

inline char* MapArea(uint64_t offset, uint64_t bytes) {
  if (!process.foreign && !EnsureAreaBytes(offset + bytes)) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      process.area, static_cast<off_t>(offset));
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

inline void DescribeWriter(GlobalHeader& header) {
  header.extension_version = kExtensionVersion;
  header.extension_bytes = 0x1A0 - 0x40;
  header.numbering = kNumberingEvents;
  header.pid = static_cast<uint32_t>(getpid());
  header.start_ticks = OwnStartTicks();
  const bool cycles = CycleCounterIsUsable();
  header.clock_kind = cycles ? kClockCycles : kClockMonotonic;
  header.clock_nanoseconds = MonotonicNanoseconds();
  header.clock_counter = cycles ? CycleCounter() : header.clock_nanoseconds;
  // Who sees the magic sees all of the above.
  header.extension_magic.store(kExtensionMagic, std::memory_order_release);
}

inline bool MakeOwnArea(uint32_t wanted_mode) {
  process.area = memfd_create(kAreaName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (process.area < 0) return false;
  char* page = nullptr;
  // A reader maps this: it must never become shorter under it.
  if (fchmod(process.area, 0600) == 0 && fcntl(process.area, F_ADD_SEALS, F_SEAL_SHRINK) == 0) {
    page = MapArea(0, kPageBytes);
  }
  if (page == nullptr) {
    close(process.area);
    process.area = -1;
    return false;
  }
  auto* header = new (page) GlobalHeader();
  header->version = kVersion;
  header->rings_offset = kRingsOffset;
  header->ring_records = process.ring_records;
  header->ring_stride = RingStride(process.ring_records);
  header->places_offset = kPlacesOffset;
  header->place_capacity = kMaxPlaces;
  DescribeWriter(*header);
  const uint32_t clock = header->clock_kind == kClockCycles ? 0 : kModeClock;
  header->mode.store(wanted_mode | clock | ContextMode(), std::memory_order_relaxed);
  header->magic_number.store(kMagic, std::memory_order_release);
  process.header.store(header, std::memory_order_release);
  // Pairs with the load of mode_word in an event: who sees it sees the header.
  mode_word.store(&header->mode, std::memory_order_release);
  return true;
}

// ---- The environment of a harvester ----

enum class Announced { kNothing, kForeignFile, kOurs };

// Looks at the file of CTP_SHM_PATH. A foreign harvester's is mapped and used as it is.
inline Announced OpenAnnouncedFile() {
  const char* path = std::getenv("CTP_SHM_PATH");
  if (path == nullptr || *path == '\0') return Announced::kNothing;
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return Announced::kNothing;
  struct stat status = {};
  const bool acceptable = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                          (status.st_uid == geteuid() || status.st_uid == 0) &&
                          status.st_size >= static_cast<off_t>(sizeof(GlobalHeader));
  void* memory = MAP_FAILED;
  const auto bytes = static_cast<size_t>(status.st_size);
  if (acceptable) memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    close(file);
    return Announced::kNothing;
  }
  auto* header = static_cast<GlobalHeader*>(memory);
  const bool is_area = header->magic_number.load(std::memory_order_acquire) == kMagic;
  const bool ours = header->extension_magic.load(std::memory_order_acquire) == kExtensionMagic &&
                    (header->mode.load(std::memory_order_relaxed) & kModeRings) != 0;
  if (!is_area || ours) {
    munmap(memory, bytes);
    close(file);
    return is_area ? Announced::kOurs : Announced::kNothing;
  }
  const uint64_t room = bytes / sizeof(StationData) - 1;
  uint32_t stations = header->max_stations.load(std::memory_order_relaxed);
  if (stations > room) stations = static_cast<uint32_t>(room);
  process.foreign = true;
  process.area = file;
  process.area_bytes = bytes;
  for (uint32_t first = 0; first < stations && first < kMaxStations; first += kStationsPerChunk) {
    process.chunks[first / kStationsPerChunk].store(
        static_cast<char*>(memory) + size_t{first} * sizeof(StationData),
        std::memory_order_relaxed);
  }
  DescribeWriter(*header);
  private_mode.store(kModeStations | ContextMode(), std::memory_order_relaxed);
  process.header.store(header, std::memory_order_release);
  mode_word.store(&private_mode, std::memory_order_release);
  return Announced::kForeignFile;
}

inline uint32_t DefaultRingRecords() {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  const uint64_t share =
      kRingBytesOfAll / sizeof(Record) / static_cast<uint64_t>(processors > 0 ? processors : 1);
  if (share >= kDefaultRingRecords) return kDefaultRingRecords;
  if (share <= kFewestDefaultRecords) return kFewestDefaultRecords;
  return std::bit_floor(static_cast<uint32_t>(share));
}

// Once for each process: at its first coroutine.
[[gnu::noinline, gnu::cold]] inline void StartProcess() {
  const int saved_errno = errno;
  const std::lock_guard guard(process.lock);
  if (mode_word.load(std::memory_order_relaxed) == &unstarted_mode) {
    if (!process.forks_watched) {
      process.forks_watched = pthread_atfork(nullptr, nullptr, ForgetAfterFork) == 0;
    }
    process.ring_records = DefaultRingRecords();
    if (const char* records = std::getenv("SPANPROF_CORO_RING_RECORDS")) {
      const unsigned long wanted = std::strtoul(records, nullptr, 10);
      if (wanted >= 256 && wanted <= (1ul << 24)) {
        process.ring_records = std::bit_ceil(static_cast<uint32_t>(wanted));
      }
    }
    const Announced announced = OpenAnnouncedFile();
    const char* socket_path = std::getenv("CTP_SOCK_PATH");
    if (announced == Announced::kForeignFile) {
      if (socket_path != nullptr) process.socket.Connect(socket_path, -1);
    } else if (MakeOwnArea(announced == Announced::kOurs ? kModeRings : 0)) {
      if (announced == Announced::kOurs && socket_path != nullptr) {
        process.socket.Connect(socket_path, process.area);
      }
    } else {
      private_mode.store(ContextMode(), std::memory_order_relaxed);
      mode_word.store(&private_mode, std::memory_order_release);
    }
  }
  errno = saved_errno;
}

// The first time that a harvester wants events.
inline void ActivateWithLock(GlobalHeader& header) {
  if (process.active) return;
  process.active = true;
  if (!process.foreign) {
    process.places =
        reinterpret_cast<Place*>(MapArea(kPlacesOffset, uint64_t{kMaxPlaces} * sizeof(Place)));
    // From now on a harvester's membarrier reaches this process, and no event needs a fence.
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0) {
      header.mode.fetch_or(kModeFence, std::memory_order_relaxed);
    }
  }
}

// ---- The sleeping harvester ----

// Called when tracer_sleeping was seen. Never blocks, never raises a signal.
[[gnu::noinline, gnu::cold]] inline void WakeHarvester(GlobalHeader& header) {
  uint32_t sleeping = 1;
  if (!header.tracer_sleeping.compare_exchange_strong(sleeping, 0, std::memory_order_acq_rel)) {
    return;
  }
  const int saved_errno = errno;
  if (!process.socket.SendByte()) {
    const std::unique_lock guard(process.lock, std::try_to_lock);
    if (guard.owns_lock()) {
      char path[sizeof header.harvester_socket];
      const uint32_t version = header.harvester_version.load(std::memory_order_acquire);
      std::memcpy(path, header.harvester_socket, sizeof path);
      path[sizeof path - 1] = '\0';
      std::atomic_thread_fence(std::memory_order_acquire);
      const bool whole =
          (version & 1) == 0 && header.harvester_version.load(std::memory_order_relaxed) == version;
      if (whole && path[0] == '/' && process.socket.Connect(path, -1)) process.socket.SendByte();
    }
  }
  errno = saved_errno;
}

}  // namespace spanprof::internal::coroutine
