#include "thread_sampler.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "clock.h"
#include "profile_signal.h"
#include "sample_join.h"
#include "v8_objects.h"

namespace spanprof::node {
namespace {

// A thread that does not come to its event loop for so long loses what comes after, and says so.
constexpr int64_t kLongestBusyNanoseconds = 60'000'000'000;
constexpr int64_t kMinRecords = 4096;
constexpr int64_t kMaxRecords = 1 << 18;
// V8's clock is CLOCK_MONOTONIC in whole microseconds and one more, so that it is never 0.
constexpr int64_t kClockAheadMicroseconds = 1;

size_t RecordsFor(int64_t interval_ns) {
  return static_cast<size_t>(std::clamp(kLongestBusyNanoseconds / std::max<int64_t>(interval_ns, 1),
                                        kMinRecords, kMaxRecords));
}

}  // namespace

struct ThreadSampler::KeySet {
  FrameKeys keys;
  v8::Global<v8::Object> storages[2];
};

ThreadSampler::ThreadSampler(v8::Isolate* isolate) : isolate_(isolate) {
  signals_.isolate = isolate;
}

ThreadSampler::~ThreadSampler() {
  if (running()) Stop({});
  signals_.slot.ReleaseBoth([](v8::Global<v8::Value>& store) { store.Reset(); });
}

void ThreadSampler::UseKeys(const std::vector<v8::Local<v8::Object>>& storages,
                            const MapLayout& layout) {
  auto set = std::make_unique<KeySet>();
  set->keys.layout = layout;
  set->keys.undefined = *SlotOf(v8::Undefined(isolate_));
  for (const v8::Local<v8::Object>& storage : storages) {
    const unsigned i = set->keys.count++;
    set->storages[i].Reset(isolate_, storage);
    set->keys.keys[i] = {SlotOf(set->storages[i]), storage->GetIdentityHash()};
  }
  const FrameKeys* const published = &set->keys;
  key_sets_.push_back(std::move(set));
  // Pairs with the load in SignalState::FindStore. A handler runs to its end before we go on, so
  // nobody reads an older set from here on.
  std::atomic_signal_fence(std::memory_order_release);
  signals_.keys.store(published, std::memory_order_relaxed);
  key_sets_.erase(key_sets_.begin(), key_sets_.end() - 1);
}

void ThreadSampler::UseSlot() {
  signals_.keys.store(nullptr, std::memory_order_relaxed);
  key_sets_.clear();
}

void ThreadSampler::SetSlot(v8::Local<v8::Value> store) {
  signals_.slot.Set([this, &store](v8::Global<v8::Value>& place) {
    if (store->IsUndefined()) {
      place.Reset();
    } else {
      place.Reset(isolate_, store);
    }
  });
}

// Before anything moves: what the handler noted becomes handles, and what it notes from now on is
// the store that is active now.
void ThreadSampler::BeforeCollection(v8::Isolate* isolate, v8::GCType, v8::GCCallbackFlags,
                                     void* data) {
  auto& sampler = *static_cast<ThreadSampler*>(data);
  SignalState& signals = sampler.signals_;
  if (signals.collections.load(std::memory_order_relaxed) == 0) {
    uint64_t store = 0;
    StoreState state = signals.FindStore(&store);
    if (state == StoreState::kRaw) {
      store = sampler.handles_.Add(isolate, &store);
      state = StoreState::kHandle;
    }
    signals.collection_store = store;
    signals.collection_store_state = state;
    // Pairs with the loads in the handler: who sees the number sees the store.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    signals.collections.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    sampler.taken_over_ = sampler.handles_.TakeOver(isolate, signals.ring, sampler.taken_over_);
  } else {
    signals.collections.fetch_add(1, std::memory_order_relaxed);
  }
}

void ThreadSampler::AfterCollection(v8::Isolate*, v8::GCType, v8::GCCallbackFlags, void* data) {
  SignalState& signals = static_cast<ThreadSampler*>(data)->signals_;
  // One that began before we were told of it may end now.
  if (signals.collections.load(std::memory_order_relaxed) > 0) {
    signals.collections.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool ThreadSampler::StartProfile() {
  const v8::HandleScope scope(isolate_);
  const v8::CpuProfilingResult result = profiler_->Start(
      v8::CpuProfilingOptions(v8::kLeafNodeLineNumbers, static_cast<unsigned>(kMaxRecords)));
  profile_id_ = result.id;
  return result.status == v8::CpuProfilingStatus::kStarted;
}

Result<void> ThreadSampler::Start(int64_t interval_ns) {
  if (signals_.ring.capacity() == 0 && !signals_.ring.Create(RecordsFor(interval_ns))) {
    return Fail(ENOMEM, "no memory for the records of samples");
  }
  profiler_ = v8::CpuProfiler::New(isolate_, v8::kDebugNaming, v8::kLazyLogging);
  profiler_->SetSamplingInterval(static_cast<int>(std::max<int64_t>(interval_ns / 1000, 1)));
  isolate_->AddGCPrologueCallback(&BeforeCollection, this);
  isolate_->AddGCEpilogueCallback(&AfterCollection, this);
  last_sample_us_ = 0;
  start_ns_ = Nanoseconds(CLOCK_MONOTONIC);
  start_cpu_ns_ = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  bool started = false;
  BeginSignals(&signals_, [this, &started] { started = StartProfile(); });
  if (started) return {};
  Stop({});
  return Fail(EBUSY, "V8 does not start a CPU profile", "it has too many of them already");
}

void ThreadSampler::BeginCut() {
  if (cut_is_begun()) return;
  const v8::ProfilerId last_id = profile_id_;
  if (StartProfile()) {
    ending_id_ = last_id;
  } else {
    profile_id_ = last_id;  // V8 has no room for another: this one goes on
  }
}

void ThreadSampler::FinishCut(const JoinedSampleSink& sink) {
  if (!cut_is_begun()) return;
  const v8::HandleScope scope(isolate_);
  v8::CpuProfile* const profile = profiler_->Stop(*std::exchange(ending_id_, std::nullopt));
  if (profile == nullptr) return;
  Take(profile, sink);
  profile->Delete();
}

void ThreadSampler::Stop(const JoinedSampleSink& sink) {
  v8::CpuProfile* profile = nullptr;
  // V8 makes its profile's handles in the scope of whoever asks.
  const v8::HandleScope scope(isolate_);
  // The older of two has all that the younger has.
  if (cut_is_begun()) {
    v8::CpuProfile* const younger = profiler_->Stop(profile_id_);
    if (younger != nullptr) younger->Delete();
    profile_id_ = *std::exchange(ending_id_, std::nullopt);
  }
  // With the last profile V8 processes all that is waiting.
  EndSignals([this, &profile] { profile = profiler_->Stop(profile_id_); });
  if (profile != nullptr) {
    if (sink) Take(profile, sink);
    profile->Delete();
  }
  isolate_->RemoveGCPrologueCallback(&BeforeCollection, this);
  isolate_->RemoveGCEpilogueCallback(&AfterCollection, this);
  signals_.collections.store(0, std::memory_order_relaxed);
  std::exchange(profiler_, nullptr)->Dispose();
  counts_.records_without_sample += sink ? signals_.ring.size() : 0;
  signals_.ring.RemoveOldest(signals_.ring.size());
  handles_.KeepOnly(signals_.ring);
  taken_over_ = 0;
}

void ThreadSampler::Take(v8::CpuProfile* profile, const JoinedSampleSink& sink) {
  // From here on nothing that is noted already is a raw word, whatever the sink does.
  RecordRing& ring = signals_.ring;
  taken_over_ = handles_.TakeOver(isolate_, ring, taken_over_);
  const size_t records = taken_over_;
  SampleJoin join;
  // Then our handler hears of nothing, and V8's samples are all there is.
  const bool displaced = HandlerIsDisplaced();
  counts_.cuts_displaced += displaced ? 1 : 0;
  const int count = profile->GetSamplesCount();
  for (int i = 0; i < count; ++i) {
    const int64_t time_us = profile->GetSampleTimestamp(i) - kClockAheadMicroseconds;
    if (time_us <= last_sample_us_) continue;  // the last profile had it too
    // What V8 adds by itself it puts before signals' samples that wait to be processed, so such a
    // stamp must not lead the join on.
    if (!displaced && !join.Has(ring, records, time_us)) {
      ++counts_.samples_without_record;
      continue;
    }
    last_sample_us_ = time_us;
    JoinedSample sample;
    size_t index = 0;
    switch (join.Next(ring, records, time_us, &index)) {
      case JoinOutcome::kJoined:
        sample.record = &ring[index];
        break;
      case JoinOutcome::kNoRecord:
        ++counts_.samples_without_record;
        break;
      case JoinOutcome::kTwoRecords:
        ++counts_.samples_with_two_records;
        break;
    }
    ++counts_.samples;
    sample.node = profile->GetSample(i);
    sample.state = profile->GetSampleState(i);
    sample.time_ns = sample.record != nullptr ? sample.record->from_ns : time_us * 1000;
    sink(sample);
  }
  counts_.records_without_sample += join.records_without_sample();
  ring.RemoveOldest(join.records_passed());
  taken_over_ -= join.records_passed();
  // The sink may have run for long, and been sampled: those records may have become handles.
  handles_.KeepOnly(ring);
}

}  // namespace spanprof::node
