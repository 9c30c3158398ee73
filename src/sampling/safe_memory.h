#pragma once

// SIGNAL-SAFE. Reads memory of this process that may not be there, without a fault.
//
// process_vm_readv on the own process: the kernel copies, and says so if it cannot. There is no
// moment between a check and a load in which another thread could take the memory away, and no
// SIGSEGV handler, which would be the application's business. Where the system refuses the call
// (old kernels, seccomp), the page is asked for by a call that every filter allows, and loaded:
// rt_sigprocmask with a request that does not exist reads its set before it says EINVAL, or EFAULT.
// Then a page that another thread unmaps within that microsecond is a fault; so this is only for
// memory near a running thread's stack pointer, which nobody unmaps.
//
// No function sets errno.

#include <cstddef>
#include <cstdint>

namespace spanprof::sampling {

// Copies as much of [address, address + size) as can be read from its start, by whole pages (and
// what remains of the first and last). Returns how many bytes.
[[nodiscard]] std::size_t ReadOwnMemory(uint64_t address, void* to, std::size_t size) noexcept;

// NOT for a signal handler: copies all of it or says false. Where process_vm_readv is refused it
// reads /proc/self/mem, so that memory which another thread unmaps (an object being unloaded) never
// is a fault.
[[nodiscard]] bool CopyOwnMemory(uint64_t address, void* to, std::size_t size) noexcept;

// For tests: behaves as if the system refused process_vm_readv.
void RefuseProcessVmReadvForTesting(bool refuse) noexcept;

}  // namespace spanprof::sampling
