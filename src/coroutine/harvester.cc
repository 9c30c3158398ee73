#include "coroutine/harvester.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <utility>

#include <linux/membarrier.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace spanprof::coroutine {
namespace {

constexpr uint32_t kForeignTarget = 0;
// A wake costs the target some 15 us, so it is asked for only after a while without events.
constexpr unsigned kIdlePassesBeforeSleep = 100;
// A short nap brings an event to the file soon. Where there are many, larger batches cost less.
constexpr long kShortNapNanoseconds = 150'000;
constexpr long kLongNapNanoseconds = 1'000'000;
constexpr uint64_t kManyEvents = 2000;
constexpr unsigned kNapBelowPercent = 20;
// With seven runnable threads on two processors the longest wait for a turn was 240 ms at 0, and
// 32 ms with this.
constexpr int kRaisedNiceness = -10;
constexpr uint64_t kTurnNanoseconds = 100'000;  // the kernel's shortest

// Linux's struct sched_attr in its first version; the C library has none.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t niceness = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

// The producer that wakes us goes on running, and the kernel likes to wake us on its processor: we
// would wait there for the rest of its turn, 4 ms. Linux 6.12 and newer let a thread with a shorter
// turn go first; older ones take no notice. Needs no right.
void AskForShortTurns() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kTurnNanoseconds;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool MembarrierWorks() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

}  // namespace

Harvester::Harvester(WakeListener listener, RecordingWriter* writer)
    : listener_(std::move(listener)),
      writer_(writer),
      socket_path_(listener_.socket_path()),
      membarrier_(MembarrierWorks()) {}

Result<Harvester> Harvester::Create(RecordingWriter* writer) {
  Result<WakeListener> listener = WakeListener::Create();
  if (!listener) return tl::make_unexpected(listener.error());
  return Harvester(*std::move(listener), writer);
}

bool Harvester::RaisePriority() {
  const bool raised = setpriority(PRIO_PROCESS, 0, kRaisedNiceness) == 0;
  AskForShortTurns();
  return raised;
}

Result<void> Harvester::Add(TargetArea area) {
  if (auto claimed = area.Claim(); !claimed) return claimed;
  area.Announce(static_cast<uint32_t>(getpid()), socket_path_, !membarrier_);
  auto target = std::make_unique<HarvestedTarget>(std::move(area), next_number_++, writer_);
  if (watch_for_stuck_) target->WatchForStuck();
  if (auto begun = target->Begin(); !begun) return begun;
  targets_.push_back(std::move(target));
  idle_passes_ = 0;
  return {};
}

Result<void> Harvester::AttachProcess(pid_t pid) {
  Result<std::vector<TargetArea>> areas = TargetArea::FindInProcess(pid);
  if (!areas) return tl::make_unexpected(areas.error());
  for (TargetArea& area : *areas) {
    if (auto added = Add(std::move(area)); !added) return added;
  }
  return {};
}

Result<std::vector<std::string>> Harvester::Environment(uint32_t stations) {
  if (!foreign_) {
    Result<UniqueFd> file = listener_.CreateFile(stations);
    if (!file) return tl::make_unexpected(file.error());
    foreign_.emplace(*std::move(file), kForeignTarget);
  }
  return std::vector<std::string>{"CTP_SHM_PATH=" + listener_.file_path(),
                                  "CTP_SOCK_PATH=" + socket_path_,
                                  "CTP_MAX_STATIONS=" + std::to_string(stations)};
}

Result<void> Harvester::AddHandedOver() {
  for (HandedOver& handed : listener_.Receive()) {
    Result<TargetArea> area = TargetArea::Open(std::move(handed.memory));
    // What a process hands over is its own: nobody is recorded under another's name.
    if (!area || area->header().pid != static_cast<uint32_t>(handed.pid)) {
      ++refused_areas_;
      continue;
    }
    if (auto added = Add(*std::move(area)); !added) {
      if (added.error().code != EBUSY) return added;
      ++refused_areas_;
    }
  }
  return {};
}

Result<uint64_t> Harvester::HarvestForeign() {
  if (!foreign_) return 0;
  slot_events_.clear();
  if (!foreign_->Harvest(slot_events_) || slot_events_.empty()) return 0;
  if (writer_ != nullptr) {
    if (auto written = writer_->Write(slot_events_); !written) {
      return tl::make_unexpected(written.error());
    }
  }
  return slot_events_.size();
}

Result<uint64_t> Harvester::Pass() {
  if (auto added = AddHandedOver(); !added) return tl::make_unexpected(added.error());
  uint64_t taken = 0;
  for (auto& target : targets_) {
    // Before the pass: what has ended writes nothing any more, so the pass takes all that is left.
    const bool ended = target->ended();
    Result<uint64_t> count = target->Pass();
    if (!count) return count;
    taken += *count;
    if (!ended) continue;
    ended_ += target->Totals();
    if (auto finished = target->Finish(); !finished) {
      return tl::make_unexpected(finished.error());
    }
    target.reset();
  }
  std::erase(targets_, nullptr);
  Result<uint64_t> foreign = HarvestForeign();
  if (!foreign) return foreign;
  return taken + *foreign;
}

void Harvester::SetSleeping(bool sleeping) {
  for (auto& target : targets_) {
    target->area().header().tracer_sleeping.store(sleeping ? 1 : 0, std::memory_order_relaxed);
  }
  if (foreign_) foreign_->SetSleeping(sleeping);
}

Result<void> Harvester::Sleep(int milliseconds) {
  SetSleeping(true);
  // Every running thread of a registered process passes a barrier: an event whose probe has not
  // seen the flag is in its ring for the look below. A probe without membarrier has its own fence,
  // which pairs with this one.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier_) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  const bool any = std::any_of(targets_.begin(), targets_.end(),
                               [](const auto& target) { return target->HasEvents(); });
  const Result<uint64_t> foreign = HarvestForeign();
  if (foreign && !any && *foreign == 0) {
    ++sleeps_;
    std::vector<int> processes;
    for (const auto& target : targets_) {
      if (target->process() >= 0) processes.push_back(target->process());
    }
    listener_.Wait(milliseconds, processes);
  }
  SetSleeping(false);
  if (!foreign) return tl::make_unexpected(foreign.error());
  return {};
}

Result<void> Harvester::Work(int sleep_milliseconds) {
  const Result<uint64_t> taken = Pass();
  if (!taken) return tl::make_unexpected(taken.error());
  if (*taken == 0 && ++idle_passes_ > kIdlePassesBeforeSleep) {
    return Sleep(sleep_milliseconds);
  }
  if (*taken != 0) idle_passes_ = 0;
  const bool filling = std::any_of(targets_.begin(), targets_.end(), [](const auto& target) {
    return target->fullest_percent() >= kNapBelowPercent;
  });
  if (!filling) {
    const timespec nap = {0, *taken >= kManyEvents ? kLongNapNanoseconds : kShortNapNanoseconds};
    nanosleep(&nap, nullptr);
  }
  return {};
}

HarvestTotals Harvester::Totals() {
  HarvestTotals totals = ended_;
  for (const auto& target : targets_) totals += target->Totals();
  if (foreign_) {
    totals.received += foreign_->received();
    totals.lost += foreign_->lost();
    totals.untraced += foreign_->untraced();
  }
  return totals;
}

Result<void> Harvester::WriteOwnCounters() {
  if (writer_ == nullptr || !foreign_) return {};
  Counters counters = {kForeignTarget, {}};
  counters.values["events_received"] = foreign_->received();
  counters.values["events_lost_overwritten"] = foreign_->lost();
  counters.values["slots_torn"] = foreign_->torn();
  counters.values["coroutines_untraced_no_station"] = foreign_->untraced();
  counters.values["peers_refused"] = listener_.refused_peers();
  counters.values["areas_refused"] = refused_areas_;
  return writer_->Write(counters);
}

Result<void> Harvester::Checkpoint() {
  for (auto& target : targets_) {
    if (auto written = target->Finish(); !written) return written;
  }
  return WriteOwnCounters();
}

void Harvester::WatchForStuck() {
  watch_for_stuck_ = true;
  for (auto& target : targets_) target->WatchForStuck();
}

std::vector<StuckCoroutine> Harvester::FindStuck(std::chrono::nanoseconds limit) {
  std::vector<StuckCoroutine> found;
  for (auto& target : targets_) {
    for (StuckCoroutine& each : target->FindStuck(static_cast<uint64_t>(limit.count()))) {
      found.push_back(std::move(each));
    }
  }
  return found;
}

Result<void> Harvester::Finish() {
  for (auto& target : targets_) target->area().Withdraw();
  if (auto last = Pass(); !last) return tl::make_unexpected(last.error());
  for (auto& target : targets_) {
    ended_ += target->Totals();
    if (auto finished = target->Finish(); !finished) return finished;
  }
  targets_.clear();
  if (auto written = WriteOwnCounters(); !written) return written;
  return writer_ == nullptr ? Result<void>() : writer_->WriteEnd();
}

}  // namespace spanprof::coroutine
