#include "context/process_state.h"

#include <sched.h>

#include "context/platform.h"

namespace spanprof::context {
namespace {

std::atomic<ProcessState*> process_state{nullptr};
std::atomic<bool> fork_wipes{false};

}  // namespace

ProcessState* CurrentProcessState() { return process_state.load(std::memory_order_acquire); }

bool ForkWipesMemory() { return fork_wipes.load(std::memory_order_relaxed); }

bool EnsureProcessState() {
  if (CurrentProcessState() != nullptr) return true;
  const size_t bytes = (sizeof(ProcessState) + PageSize() - 1) / PageSize() * PageSize();
  auto* state = static_cast<ProcessState*>(MapAnonymous(bytes));
  if (state == nullptr) return false;
  const bool wipes = WipeOnFork(state, bytes);
  state->pid.store(CurrentProcessId(), std::memory_order_relaxed);
  ProcessState* expected = nullptr;
  // Release: pairs with the acquire in CurrentProcessState.
  if (process_state.compare_exchange_strong(expected, state, std::memory_order_acq_rel)) {
    fork_wipes.store(wipes, std::memory_order_relaxed);
  } else {
    Unmap(state, bytes);  // another thread was first
  }
  return true;
}

WipedLock::WipedLock(std::atomic<uint32_t>& lock) : lock_(lock) {
  while (lock_.exchange(1, std::memory_order_acquire) != 0) sched_yield();
}

WipedLock::~WipedLock() { lock_.store(0, std::memory_order_release); }

}  // namespace spanprof::context
