#pragma once

// What the context core needs from the operating system, and nothing more. Everything here is a
// system call or two; nothing allocates from the heap, so all of it may be called in a forked child
// and from a signal handler.

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace spanprof::context {

// The id that the slot table and the registry know the calling thread by: gettid() on Linux. Where
// thread ids do not fit into 22 bits (macOS) it is their lower bits.
uint32_t CurrentThreadId();
uint32_t CurrentProcessId();

// Whether a thread of this process has that id. True also when it cannot be told.
bool ThreadExists(uint32_t tid);

// Every thread id is below this.
uint32_t ThreadIdLimit();

uint64_t BootTimeNanoseconds();

// Zeroed private memory, not reserved: pages that nobody touches cost nothing. Null on failure.
void* MapAnonymous(size_t bytes);
// The same, at an address that is a multiple of `alignment` (a power of two, at least a page).
void* MapAligned(size_t bytes, size_t alignment);
void Unmap(void* address, size_t bytes);

enum class Naming { kMemfd, kAnonymousNamed, kUnnamed };
struct NamedMapping {
  void* address = nullptr;
  Naming naming = Naming::kUnnamed;
};
// Zeroed private memory that other processes find by its name in /proc/PID/maps: a private mapping
// of a memfd (the name shows on every kernel), else anonymous memory named by prctl. The address is
// null only when there is no memory.
NamedMapping MapNamed(const char* name, size_t bytes);
// Names the mapping by prctl again, which also tells a watcher that it changed.
void AnnounceName(void* address, size_t bytes, const char* name);

// In a forked child the memory will read as zero. False where the system cannot do it.
bool WipeOnFork(void* address, size_t bytes);
// A forked child will not have the memory at all.
void DoNotInherit(void* address, size_t bytes);
// Throws the private contents away: it reads as zero again. For mappings made by MapNamed.
void ZeroMapping(void* address, size_t bytes);

size_t PageSize();

// Keeps every signal from the calling thread for a block, so that no handler of the thread can meet
// a lock that the block holds.
class SignalBlocker {
 public:
  SignalBlocker();
  ~SignalBlocker();
  SignalBlocker(const SignalBlocker&) = delete;
  SignalBlocker& operator=(const SignalBlocker&) = delete;

 private:
  sigset_t previous_;
};

}  // namespace spanprof::context
