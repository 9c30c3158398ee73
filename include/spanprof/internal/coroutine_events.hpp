#pragma once

// What one coroutine keeps for tracing, and what it does at each of its events. Off, an event is
// one load and one branch. With a harvester of ours it is a cycle counter and three stores, into
// the thread's ring and into this object, which lies in the coroutine's frame: no fence, no system
// call.
//
// A CoroutineState is used by one thread at a time, as its coroutine is. Not for signal handlers.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string_view>

#include <spanprof/context.h>
#include <spanprof/internal/coroutine_allocation.hpp>
#include <spanprof/internal/coroutine_layout.hpp>
#include <spanprof/internal/coroutine_places.hpp>
#include <spanprof/internal/coroutine_process.hpp>
#include <spanprof/internal/coroutine_station.hpp>

namespace spanprof::internal::coroutine {

inline constexpr uint32_t kTracingModes = ~uint32_t{kModeContexts};
inline constexpr unsigned kAwaiterWords = 4;

// The await that this thread's last suspension came from: whoever is resumed next and whose frame
// the awaiter holds is what it waits for.
struct SuspendingAwait {
  uint64_t identity;
  const void* header;
  unsigned count;
  std::uintptr_t words[kAwaiterWords];
};
SPANPROF_SHARED_STATE inline constinit thread_local SuspendingAwait suspending_await{};
SPANPROF_SHARED_STATE inline constinit thread_local uint32_t thread_number{0};

inline uint32_t CurrentMode() {
  // Pairs with the release store that follows the header's making.
  return mode_word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
}

// The fast path. Returns the stamp.
inline uint64_t EmitCycles(GlobalHeader& header, uint64_t word) {
  ThreadRing& ring = thread_ring;
  const uint64_t stamp = CycleCounter();
  if (ring.head == ring.limit && !MakeRoom(header)) [[unlikely]]
    return stamp;
  Record& record = ring.records[ring.head & ring.mask];
  record.stamp.store(stamp, std::memory_order_relaxed);
  record.word.store(word, std::memory_order_relaxed);
  // Pairs with the harvester's load of head.
  ring.control->head.store(++ring.head, std::memory_order_release);
  // The store above and this load may change places. A harvester that goes to sleep sets the flag,
  // has every core of ours pass a barrier, and looks at head again: one of the two sees the other.
  if (header.tracer_sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
    WakeHarvester(header);
  return stamp;
}

class CoroutineState {
 public:
  CoroutineState() = default;
  CoroutineState(const CoroutineState&) = delete;
  CoroutineState& operator=(const CoroutineState&) = delete;

  // A name that outlives the coroutine, such as a literal.
  void Name(const char* name) {
    name_ = name;
    if (IsRegistered()) WriteName();
  }

  void Payload(std::string_view bytes) {
    if (!IsRegistered()) return;
    std::memset(station_->payload, 0, kPayloadBytes);
    std::memcpy(station_->payload, bytes.data(),
                bytes.size() < kPayloadBytes ? bytes.size() : kPayloadBytes);
  }

  void Born(void* frame) {
    uint32_t mode = CurrentMode();
    if (mode == 0) [[likely]]
      return;
    if ((mode & kModeNotStarted) != 0) {
      StartProcess();
      mode = CurrentMode();
    }
    frame_ = frame;
    if ((mode & kModeContexts) != 0) {
      TakeContext(own_context_);
      thread_context_ = own_context_;
      birth_thread_ = &thread_ring;
    }
    if ((mode & kTracingModes) != 0) Register(mode, kKindBirth);
  }

  void Resume() {
    const uint32_t mode = CurrentMode();
    if (mode == 0) [[likely]]
      return;
    if ((mode & kModeContexts) != 0) {
      PrepareContexts();
      spanprof_context_swap(&own_context_, &thread_context_);
    }
    phase_ = kRunning;
    if ((mode & kTracingModes) == 0) return;
    if (suspending_await.identity != 0) NoteAwaiter(mode);
    Trace(mode, kKindResume, 0);
  }

  // `awaiter` and `bytes`: the object that is waited on, to find out later whom it belongs to.
  void Suspend(Kind kind, const std::source_location& where, void* frame, const void* awaiter,
               size_t bytes) {
    const uint32_t mode = CurrentMode();
    if (mode == 0) [[likely]]
      return;
    if (frame_ == nullptr && frame != nullptr) LearnFrame(frame);
    if ((mode & kModeContexts) != 0) LeaveContext();
    if ((mode & kTracingModes) != 0) {
      if (phase_ == kBorn && IsRegistered()) Trace(mode, kKindResume, 0);  // nobody saw it start
      Trace(mode, kind, PlaceNumber(where));
      RememberAwaiter(awaiter, bytes);
    }
    phase_ = kSuspended;
  }

  // Called by whoever makes a suspended coroutine ready to run, from any thread, before it can run.
  void Ready() const {
    const uint32_t mode = CurrentMode();
    if ((mode & kModeRings) == 0 || !IsRegistered()) return;
    Emit(*process.header.load(std::memory_order_relaxed), mode, WordOf(identity_, kKindReady, 0));
  }

  void LearnFrame(void* frame) {
    frame_ = frame;
    if (IsRegistered()) WriteFrame();
  }

  void Died() {
    const uint32_t mode = CurrentMode();
    if (mode != 0 && (mode & kModeContexts) != 0 && phase_ == kRunning) LeaveContext();
    if (!IsRegistered()) return;
    // The harvester may give the station to another coroutine as soon as it has seen the death.
    station_->is_dead.store(1, std::memory_order_relaxed);
    station_->state.store(kStationDead, std::memory_order_release);
    if ((mode & kTracingModes & ~kModeStations) != 0) Trace(mode, kKindDeath, 0);
    station_ = nullptr;
  }

 private:
  enum Phase : uint8_t { kBorn, kRunning, kSuspended };

  [[nodiscard]] bool IsRegistered() const {
    return station_ != nullptr && area_ == process.header.load(std::memory_order_relaxed);
  }

  void Trace(uint32_t mode, Kind kind, uint32_t place) {
    GlobalHeader* header = process.header.load(std::memory_order_relaxed);
    if ((mode & kTracingModes) == kModeRings && area_ == header && station_ != nullptr) [[likely]] {
      Keep(EmitCycles(*header, WordOf(identity_, kind, place)), WordOf(identity_, kind, place));
    } else {
      TraceSlowly(mode, kind, place);
    }
  }

  // The present state, for who looks from outside.
  void Keep(uint64_t stamp, uint64_t word) {
    present_.stamp.store(stamp, std::memory_order_relaxed);
    present_.word.store(word, std::memory_order_release);
  }

  [[gnu::noinline]] void TraceSlowly(uint32_t mode, Kind kind, uint32_t place) {
    if ((mode & kModeNotStarted) != 0) {  // in a forked child
      StartProcess();
      mode = CurrentMode();
    }
    GlobalHeader* header = process.header.load(std::memory_order_relaxed);
    if (header == nullptr || refused_by_ == header) return;
    if ((mode & (kModeRings | kModeStations)) == 0) return;
    if (area_ != header || station_ == nullptr) {
      if (!Register(mode, kKindAdopted)) return;
    }
    if ((mode & kModeStations) != 0) {
      WriteStationEvent(*header, kind);
    } else if ((mode & kModeRings) != 0) {
      Keep(Emit(*header, mode, WordOf(identity_, kind, place)), WordOf(identity_, kind, place));
    }
  }

  // A record without a change of the present state. Returns its stamp.
  static uint64_t Emit(GlobalHeader& header, uint32_t mode, uint64_t word) {
    const uint64_t stamp = (mode & kModeClock) != 0 ? MonotonicNanoseconds() : CycleCounter();
    ThreadRing& ring = thread_ring;
    if (ring.head == ring.limit && !MakeRoom(header)) return stamp;
    Record& record = ring.records[ring.head & ring.mask];
    record.stamp.store(stamp, std::memory_order_relaxed);
    record.word.store(word, std::memory_order_relaxed);
    ring.control->head.store(++ring.head, std::memory_order_release);
    if ((mode & kModeFence) != 0) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header.tracer_sleeping.load(std::memory_order_relaxed) != 0) WakeHarvester(header);
    return stamp;
  }

  void WriteStationEvent(GlobalHeader& header, Kind kind) {
    if (kind == kKindBirth || kind == kKindAdopted || kind == kKindDeath || kind == kKindAwaits) {
      return;
    }
    if (thread_number == 0) thread_number = static_cast<uint32_t>(syscall(SYS_gettid));
    SlotEvent event;
    event.timestamp = MonotonicNanoseconds();
    event.tid = thread_number;
    event.addr = reinterpret_cast<std::uintptr_t>(frame_);
    std::memcpy(event.tail, station_->payload, kPayloadBytes);
    event.tail[3] |= uint64_t{kind == kKindResume} << kActiveShift;
    const uint64_t number = station_->event_count.load(std::memory_order_relaxed) + 1;
    station_->event_count.store(number, std::memory_order_relaxed);
    WriteSlot(*station_, number, event);
    Keep(event.timestamp, WordOf(identity_, kind, 0));
    // A foreign harvester uses no membarrier: the event must be visible before we look at it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header.tracer_sleeping.load(std::memory_order_relaxed) != 0) WakeHarvester(header);
  }

  [[gnu::noinline]] bool Register(uint32_t mode, Kind kind) {
    GlobalHeader* header = process.header.load(std::memory_order_acquire);
    if (header == nullptr) return false;
    if (!process.foreign) {
      const std::lock_guard guard(process.lock);
      ActivateWithLock(*header);
    }
    uint32_t index = 0;
    StationData* station = process.foreign ? nullptr : TakeFreeStation(*header, index);
    if (station == nullptr) station = TakeNewStation(*header, index);
    if (station == nullptr) {
      header->untraced_no_station.fetch_add(1, std::memory_order_relaxed);
      refused_by_ = header;
      return false;
    }
    const uint32_t generation = station->generation.load(std::memory_order_relaxed) + 1;
    station->generation.store(generation, std::memory_order_relaxed);
    identity_ = IdentityOf(index, generation);
    station_ = station;
    area_ = header;
    station->probe_id.store((uint64_t{generation} << 24) | index, std::memory_order_relaxed);
    station->birth_ts.store(MonotonicNanoseconds(), std::memory_order_relaxed);
    station->is_dead.store(0, std::memory_order_relaxed);
    station->awaited_by.store(0, std::memory_order_relaxed);
    station->adopted.store(kind == kKindAdopted ? 1 : 0, std::memory_order_relaxed);
    station->present.store(reinterpret_cast<std::uintptr_t>(&present_), std::memory_order_relaxed);
    WriteFrame();
    WriteName();
    station->state.store(kStationLive, std::memory_order_release);
    header->births.fetch_add(1, std::memory_order_relaxed);
    if (kind == kKindAdopted) header->adopted_coroutines.fetch_add(1, std::memory_order_relaxed);
    if ((mode & kModeRings) != 0) Trace(mode, kind, 0);
    return true;
  }

  void WriteFrame() const {
    station_->frame.store(reinterpret_cast<std::uintptr_t>(frame_), std::memory_order_relaxed);
    std::uintptr_t function = 0;
    // Both compilers begin a frame with the address of its resume function.
    if (frame_ != nullptr) std::memcpy(&function, frame_, sizeof function);
    station_->resume_function.store(function, std::memory_order_relaxed);
  }

  void WriteName() const {
    station_->name_length.store(0, std::memory_order_relaxed);
    if (name_ == nullptr) return;
    std::atomic_thread_fence(std::memory_order_release);
    const size_t length = strnlen(name_, kNameBytes);
    std::memcpy(station_->name, name_, length);
    station_->name_length.store(static_cast<uint32_t>(length), std::memory_order_release);
  }

  void RememberAwaiter(const void* awaiter, size_t bytes) const {
    SuspendingAwait& await = suspending_await;
    await.count = static_cast<unsigned>(bytes / sizeof(std::uintptr_t));
    if (await.count == 0) {
      await.identity = 0;
      return;
    }
    if (await.count > kAwaiterWords) await.count = kAwaiterWords;
    await.identity = identity_ | kKindAwaits;
    await.header = area_;
    std::memcpy(await.words, awaiter, await.count * sizeof(std::uintptr_t));
  }

  [[gnu::noinline]] void NoteAwaiter(uint32_t mode) {
    SuspendingAwait& await = suspending_await;
    GlobalHeader* header = process.header.load(std::memory_order_relaxed);
    const auto frame = reinterpret_cast<std::uintptr_t>(frame_);
    bool held = false;
    for (unsigned i = 0; i < await.count; ++i) held |= await.words[i] == frame && frame != 0;
    if (held && await.header == header && IsRegistered() && (mode & kModeRings) != 0) {
      Emit(*header, mode, await.identity | (uint64_t{StationOf(identity_)} << 40));
      station_->awaited_by.store(await.identity & ~uint64_t{kKindAwaits},
                                 std::memory_order_relaxed);
    }
    await.identity = 0;
  }

  // ---- Contexts ----

  static void TakeContext(spanprof_context& context) {
    context.size = sizeof context;
    if (spanprof_context_get == nullptr || spanprof_context_get(&context) != 0) {
      context = spanprof_context{};
      context.size = sizeof context;
    }
  }
  void PrepareContexts() {
    own_context_.size = sizeof own_context_;
    thread_context_.size = sizeof thread_context_;
  }
  void LeaveContext() {
    PrepareContexts();
    // One that nobody saw start, on another thread than its maker's, has nothing to give back.
    const bool nothing_kept = phase_ == kBorn && birth_thread_ != &thread_ring;
    spanprof_context_swap(nothing_kept ? nullptr : &thread_context_, &own_context_);
  }

  Record present_ = {};
  uint64_t identity_ = 0;
  StationData* station_ = nullptr;
  const GlobalHeader* area_ = nullptr;
  const GlobalHeader* refused_by_ = nullptr;
  void* frame_ = nullptr;
  const char* name_ = nullptr;
  const void* birth_thread_ = nullptr;
  Phase phase_ = kBorn;
  spanprof_context own_context_ = {};
  spanprof_context thread_context_ = {};
};

}  // namespace spanprof::internal::coroutine
