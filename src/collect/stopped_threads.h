#pragma once

// Looks at threads of another process while they stand still, one after the other: for what may
// only be read then, because its thread changes it without telling readers.
//
//   LookAtStoppedThreads(tids, [&](pid_t tid, uint64_t thread_pointer) { ... });
//
// A thread stands for as long as the callback takes. No signal is sent and none is lost; a system
// call that the thread is waiting in begins again, or ends with EINTR if it is one of those that do
// so after SIGCONT (epoll_wait, for one). Should this process be killed meanwhile, the kernel lets
// the thread go on.

#include <cstdint>
#include <functional>
#include <span>

#include <sys/types.h>

namespace spanprof::collect {

struct StopCounts {
  uint64_t looked_at = 0;
  uint64_t ended = 0;
  uint64_t refused = 0;   // not permitted, or somebody traces it already
  uint64_t too_late = 0;  // did not stop in time: it waits in the kernel for something that is slow
};

// Needs the same permission as reading the process's memory. The callback runs in a thread of its
// own, while the caller waits.
StopCounts LookAtStoppedThreads(
    std::span<const pid_t> tids,
    const std::function<void(pid_t tid, uint64_t thread_pointer)>& look);

}  // namespace spanprof::collect
