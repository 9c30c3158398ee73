#include "sampling/native_self_sampler.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <sys/syscall.h>

#include "sampling/native_registers.h"

namespace spanprof::sampling {
namespace {

struct Record {
  unsigned depth;
  bool complete;
  uint8_t failure;
  uint64_t note;
  std::array<uint64_t, NativeSelfSampler::kKeptDepth> pcs;
};

// What the handler uses; made before the timer starts.
struct Storage {
  const StackWalker* walker = nullptr;
  uint64_t stack_low = 0;
  uint64_t stack_high = 0;
  bool bounds_known = true;
  std::atomic<unsigned> count{0};
  std::array<uint64_t, NativeSelfSampler::kMaxDepth> pcs{};
  std::unique_ptr<Record[]> records;
};

Storage* storage = nullptr;

void OnSignal(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  Storage& to = *storage;
  const unsigned index = to.count.load(std::memory_order_relaxed);
  if (index < NativeSelfSampler::kMaxSamples) {
    const ucontext_t& at = *static_cast<const ucontext_t*>(context);
    const uint64_t high =
        to.bounds_known ? TrustedStackHigh(StackPointerOf(at), to.stack_low, to.stack_high) : 0;
    const WalkedStack stack =
        to.walker->Walk(at, high, to.pcs.data(), NativeSelfSampler::kMaxDepth);
    Record& record = to.records[index];
    record.depth = stack.depth;
    record.complete = stack.complete;
    record.failure = stack.failure;
    record.note = NativeSelfSampler::note;
    const unsigned kept = std::min(stack.depth, NativeSelfSampler::kKeptDepth);
    // Of a deep stack the outermost half is kept too.
    for (unsigned i = 0; i < kept; ++i) {
      const bool outer = stack.depth > kept && i >= kept / 2;
      record.pcs[i] = to.pcs[outer ? stack.depth - kept + i : i];
    }
    to.count.store(index + 1, std::memory_order_relaxed);
  }
  errno = saved_errno;
}

}  // namespace

volatile uint64_t NativeSelfSampler::note = 0;

std::array<uint64_t, 2> OwnStackBounds() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) std::abort();
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  const auto start = reinterpret_cast<uint64_t>(low);
  return {start, start + size};
}

NativeSelfSampler::NativeSelfSampler(const StackWalker& walker, StackBounds bounds)
    : bounds_(bounds) {
  storage = new Storage();
  storage->walker = &walker;
  storage->records = std::make_unique<Record[]>(kMaxSamples);
}

NativeSelfSampler::~NativeSelfSampler() {
  delete storage;
  storage = nullptr;
}

void NativeSelfSampler::Prepare(int signal, struct sigaction& previous) const {
  const auto [low, high] = OwnStackBounds();
  storage->stack_low = low;
  storage->stack_high = high;
  storage->bounds_known = bounds_ == StackBounds::kKnown;
  struct sigaction action{};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(signal, &action, &previous);
}

void NativeSelfSampler::Run(unsigned wanted, const std::function<void()>& work,
                            std::chrono::microseconds interval) {
  if (wanted > kMaxSamples) std::abort();
  struct sigaction previous{};
  Prepare(SIGPROF, previous);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) std::abort();
  itimerspec when{};
  when.it_interval.tv_nsec = std::chrono::nanoseconds(interval).count();
  when.it_value = when.it_interval;
  timer_settime(timer, 0, &when, nullptr);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (samples() < wanted && std::chrono::steady_clock::now() < end) work();
  timer_delete(timer);
  // One that was queued comes before the handler goes.
  usleep(1000);
  sigaction(SIGPROF, &previous, nullptr);
}

bool NativeSelfSampler::RunByInstruction(const std::function<void()>& work) {
#if defined(__x86_64__)
  constexpr uint64_t kTrapFlag = 0x100;  // a SIGTRAP after each instruction, but not in handlers
  struct sigaction previous{};
  Prepare(SIGTRAP, previous);
  __writeeflags(__readeflags() | kTrapFlag);
  work();
  __writeeflags(__readeflags() & ~kTrapFlag);
  sigaction(SIGTRAP, &previous, nullptr);
  return true;
#else
  (void)work;
  return false;
#endif
}

unsigned NativeSelfSampler::samples() const { return storage->count.load(); }

unsigned NativeSelfSampler::complete() const {
  unsigned count = 0;
  for (unsigned i = 0; i < samples(); ++i) count += storage->records[i].complete ? 1 : 0;
  return count;
}

double NativeSelfSampler::CompletePercent() const {
  return samples() == 0 ? 0 : 100.0 * complete() / samples();
}

std::vector<KeptStack> NativeSelfSampler::Stacks() const {
  std::vector<KeptStack> stacks;
  for (unsigned i = 0; i < samples(); ++i) {
    const Record& record = storage->records[i];
    const unsigned kept = std::min(record.depth, kKeptDepth);
    stacks.push_back({.depth = record.depth,
                      .complete = record.complete,
                      .failure = static_cast<WalkFailure>(record.failure),
                      .note = record.note,
                      .pcs = {record.pcs.begin(), record.pcs.begin() + kept}});
  }
  return stacks;
}

std::string DescribePc(uint64_t pc) {
  Dl_info info{};
  char text[512];
  if (dladdr(reinterpret_cast<void*>(pc), &info) == 0) {
    std::snprintf(text, sizeof(text), "%#lx", static_cast<unsigned long>(pc));
    return text;
  }
  const std::string path = info.dli_fname;
  std::snprintf(text, sizeof(text), "%s+%#lx (%s)", path.substr(path.rfind('/') + 1).c_str(),
                static_cast<unsigned long>(pc - reinterpret_cast<uint64_t>(info.dli_fbase)),
                info.dli_sname != nullptr ? info.dli_sname : "?");
  return text;
}

std::string NativeSelfSampler::Describe() const {
  std::map<std::string, unsigned> reasons;
  for (const KeptStack& stack : Stacks()) {
    if (stack.complete) continue;
    std::string reason = NameOf(stack.failure);
    reason += " after ";
    reason += DescribePc(stack.pcs.back());
    if (stack.pcs.size() > 1)
      reason += " called by it: " + DescribePc(stack.pcs[stack.pcs.size() - 2]);
    ++reasons[reason];
  }
  std::string text =
      std::to_string(complete()) + " of " + std::to_string(samples()) + " samples are complete\n";
  unsigned lines = 0;
  for (const auto& [reason, count] : reasons) {
    if (++lines > 20) break;
    text += "  " + std::to_string(count) + "  " + reason + "\n";
  }
  return text;
}

}  // namespace spanprof::sampling
