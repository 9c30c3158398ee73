#include "context/core_election.h"

#include <atomic>
#include <cstdio>
#include <errno.h>
#include <fcntl.h>
#include <memory>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/file.h>

#include "context/platform.h"

namespace spanprof::context {
namespace {

struct Announcement {
  char magic[16];
  uint32_t version;
  std::atomic<uint32_t> pid;
  const CoreInterface* core;
};
constexpr char kMagic[16] = "SPANPROF_CORE";

std::atomic<Announcement*> own_announcement{nullptr};

// One election at a time among copies that share no variable: a lock on a file that is the
// process's own. Somebody from outside may hold it, so the wait is short and the election goes on
// without it.
class ElectionLock {
 public:
  ElectionLock() : fd_(open("/proc/self/comm", O_RDONLY | O_CLOEXEC)) {
    constexpr int kTries = 200;
    constexpr timespec kPause = {0, 5'000'000};
    for (int i = 0; fd_ >= 0 && i < kTries && flock(fd_, LOCK_EX | LOCK_NB) != 0; ++i) {
      nanosleep(&kPause, nullptr);
    }
  }
  ~ElectionLock() {
    if (fd_ >= 0) close(fd_);
  }
  ElectionLock(const ElectionLock&) = delete;
  ElectionLock& operator=(const ElectionLock&) = delete;

 private:
  const int fd_;
};

bool IsAnnouncementName(const char* line) {
  const char* name = strstr(line, kCoreAnnouncementName);
  if (name == nullptr) return false;
  const char after = name[sizeof kCoreAnnouncementName - 1];
  const bool named_by_memfd = name - line >= 7 && strncmp(name - 7, "/memfd:", 7) == 0;
  const bool named_by_prctl = name - line >= 6 && strncmp(name - 6, "[anon:", 6) == 0;
  return (named_by_memfd && (after == ' ' || after == '\n' || after == '\0')) ||
         (named_by_prctl && after == ']');
}

const Announcement* FindAnnouncement() {
  const auto close_file = [](FILE* file) { fclose(file); };
  const std::unique_ptr<FILE, decltype(close_file)> maps(fopen("/proc/self/maps", "re"),
                                                         close_file);
  if (maps == nullptr) return nullptr;
  char* line = nullptr;
  size_t capacity = 0;
  const Announcement* found = nullptr;
  while (found == nullptr && getline(&line, &capacity, maps.get()) > 0) {
    if (!IsAnnouncementName(line)) continue;
    const auto* candidate = reinterpret_cast<const Announcement*>(strtoull(line, nullptr, 16));
    if (memcmp(candidate->magic, kMagic, sizeof kMagic) == 0) found = candidate;
  }
  free(line);
  return found;
}

Announcement* Announce(const CoreInterface& core) {
  auto* announcement =
      static_cast<Announcement*>(MapNamed(kCoreAnnouncementName, sizeof(Announcement)).address);
  if (announcement == nullptr) return nullptr;
  announcement->version = core.version;
  announcement->pid.store(CurrentProcessId(), std::memory_order_relaxed);
  announcement->core = &core;
  std::atomic_thread_fence(std::memory_order_release);
  memcpy(announcement->magic, kMagic, sizeof kMagic);
  return announcement;
}

}  // namespace

std::atomic<const CoreInterface*> active_core{nullptr};

Result<const CoreInterface*> ElectCore() {
  if (const CoreInterface* core = ActiveCore()) return core;
  const ElectionLock lock;
  if (const CoreInterface* core = ActiveCore()) return core;
  // A page of another pid came by fork, with the copy of the library that it leads to: as good as
  // our own process's.
  if (const Announcement* announcement = FindAnnouncement()) {
    if (announcement->version != kCoreInterfaceVersion) {
      char text[128];
      snprintf(
          text, sizeof text,
          "another copy of spanprof is active in this process with interface %#x, this one has "
          "%#x",
          announcement->version, kCoreInterfaceVersion);
      return Fail(EPROTO, text, "use the same spanprof release for every runtime of the process");
    }
    active_core.store(announcement->core, std::memory_order_release);
    return announcement->core;
  }
  const CoreInterface& own = ThisCoreInterface();
  // Without memory for the page this copy still works; others would not find it.
  own_announcement.store(Announce(own), std::memory_order_release);
  active_core.store(&own, std::memory_order_release);
  return &own;
}

void AnnounceProcessAfterFork() {
  if (Announcement* announcement = own_announcement.load(std::memory_order_acquire)) {
    announcement->pid.store(CurrentProcessId(), std::memory_order_relaxed);
  }
}

}  // namespace spanprof::context
