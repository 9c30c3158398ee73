#include "thread_environment.h"

#include <array>
#include <cerrno>
#include <unistd.h>

#include <sys/syscall.h>

#include "attribute_names.h"
#include "base/log.h"
#include "clock.h"
#include "frame_check.h"
#include "profile_signal.h"

namespace spanprof::node {
namespace {

// V8's profile grows as long as it runs, and samples keep their stores alive: so it is cut off now
// and then.
constexpr uint64_t kCutMilliseconds = 2000;
// In which V8's thread should have processed what it has.
constexpr uint64_t kProcessingMilliseconds = 200;

}  // namespace

// Of the event loop. They live until the loop has closed them.
struct ThreadEnvironment::Handles {
  uv_async_t wake;
  uv_timer_t cut;
  uv_timer_t finish_cut;
  ThreadEnvironment* environment = nullptr;
  unsigned open = 3;
  void (*done)(void*) = nullptr;
  void* done_data = nullptr;

  std::array<uv_handle_t*, 3> all() {
    return {reinterpret_cast<uv_handle_t*>(&wake), reinterpret_cast<uv_handle_t*>(&cut),
            reinterpret_cast<uv_handle_t*>(&finish_cut)};
  }

  static void OnClose(uv_handle_t* handle) {
    auto* const self = static_cast<Handles*>(handle->data);
    if (--self->open > 0) return;
    self->done(self->done_data);
    delete self->environment;
    delete self;
  }
};

ThreadEnvironment::ThreadEnvironment(v8::Isolate* isolate, v8::Local<v8::Context> context)
    : isolate_(isolate),
      context_(isolate, context),
      thread_id_(static_cast<uint32_t>(syscall(SYS_gettid))),
      sampler_(std::make_unique<ThreadSampler>(isolate)),
      heap_sampler_(isolate),
      contexts_(std::make_unique<ContextObjects>(isolate)),
      outside_readers_(isolate) {}

ThreadEnvironment* ThreadEnvironment::Make(v8::Isolate* isolate, v8::Local<v8::Context> context) {
  auto* const environment = new ThreadEnvironment(isolate, context);
  if (!environment->OpenHandles(::node::GetCurrentEventLoop(isolate))) {
    delete environment;
    return nullptr;
  }
  environment->cleanup_ = ::node::AddEnvironmentCleanupHook(isolate, &OnCleanup, environment);
  return environment;
}

bool ThreadEnvironment::OpenHandles(uv_loop_t* loop) {
  if (loop == nullptr) return false;
  handles_ = new Handles();
  handles_->environment = this;
  const auto on_wake = [](uv_async_t* handle) {
    static_cast<Handles*>(handle->data)->environment->OnWake();
  };
  if (uv_async_init(loop, &handles_->wake, on_wake) != 0) {
    delete std::exchange(handles_, nullptr);
    return false;
  }
  uv_timer_init(loop, &handles_->cut);
  uv_timer_init(loop, &handles_->finish_cut);
  for (uv_handle_t* const handle : handles_->all()) {
    handle->data = handles_;
    uv_unref(handle);  // a profiler is no reason for a program not to end
  }
  return true;
}

// The thread ends: JavaScript does not run any more, but V8 is still there.
void ThreadEnvironment::OnCleanup(void* data, void (*done)(void*), void* done_data) {
  auto* const self = static_cast<ThreadEnvironment*>(data);
  const v8::HandleScope scope(self->isolate_);
  if (self->sampling()) self->StopSampling(false);
  ProcessRecording::Instance().Forget(self);
  self->outside_readers_.Withdraw();
  self->callbacks_.clear();
  self->sampler_.reset();
  self->contexts_.reset();
  self->copies_.Reset();
  self->positions_.Reset();
  self->own_storage_.Reset();
  self->attached_storage_.Reset();
  self->read_.Reset();
  self->context_.Reset();
  self->handles_->done = done;
  self->handles_->done_data = done_data;
  for (uv_handle_t* const handle : self->handles_->all()) uv_close(handle, &Handles::OnClose);
}

void ThreadEnvironment::Wake() { uv_async_send(&handles_->wake); }

void ThreadEnvironment::Complete(uint64_t ticket, Result<std::string> answer) {
  {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    answers_.emplace_back(ticket, std::move(answer));
  }
  Wake();
}

uint64_t ThreadEnvironment::NewTicket(v8::Local<v8::Function> callback) {
  callbacks_[++last_ticket_].Reset(isolate_, callback);
  // The program does not end while somebody waits for an answer.
  uv_ref(reinterpret_cast<uv_handle_t*>(&handles_->wake));
  return last_ticket_;
}

void ThreadEnvironment::OnWake() {
  const v8::HandleScope scope(isolate_);
  const v8::Local<v8::Context> context = context_.Get(isolate_);
  const v8::Context::Scope context_scope(context);
  Follow(true);
  DeliverAnswers();
}

void ThreadEnvironment::DeliverAnswers() {
  std::vector<std::pair<uint64_t, Result<std::string>>> answers;
  {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    answers.swap(answers_);
  }
  const v8::Local<v8::Object> resource = v8::Object::New(isolate_);
  for (const auto& [ticket, answer] : answers) {
    const auto callback = callbacks_.find(ticket);
    if (callback == callbacks_.end()) continue;
    const v8::Local<v8::Function> function = callback->second.Get(isolate_);
    callbacks_.erase(callback);
    const auto text = [this](const std::string& words) {
      return v8::String::NewFromUtf8(isolate_, words.c_str())
          .FromMaybe(v8::String::Empty(isolate_))
          .As<v8::Value>();
    };
    v8::Local<v8::Value> arguments[] = {v8::Undefined(isolate_), v8::Undefined(isolate_)};
    if (answer) {
      arguments[1] = text(*answer);
    } else {
      arguments[0] = text(TextOf(answer.error()));
    }
    // What the callback throws is the program's uncaught exception, as it should be.
    (void)::node::MakeCallback(isolate_, resource, function, 2, arguments, async_context_);
  }
  if (callbacks_.empty()) uv_unref(reinterpret_cast<uv_handle_t*>(&handles_->wake));
}

void ThreadEnvironment::Join(std::string name) {
  thread_name_ = std::move(name);
  Rejoin();
}

void ThreadEnvironment::Rejoin() {
  if (!joined_) ProcessRecording::Instance().Join(this);
  joined_ = true;
  Follow(true);
}

void ThreadEnvironment::Follow(bool may_call) {
  if (!joined_) return;
  ProcessRecording& recording = ProcessRecording::Instance();
  // Before the settings: whoever asks for a flush has changed them already.
  const uint64_t flush = recording.flush_wanted();
  const RecordingSettings wanted = recording.settings();
  if (sampling() && (!wanted.running || wanted.generation != generation_)) StopSampling(may_call);
  if (!sampling() && wanted.running) StartSampling(wanted);
  if (!sampling()) {
    recording.Flushed(this, flush);
  } else if (flush > flush_) {
    flush_ = flush;
    BeginCut();
  }
}

void ThreadEnvironment::BeginCut() {
  if (!sampling()) return;
  if (sampler_->running()) sampler_->BeginCut();
  const auto on_time = [](uv_timer_t* timer) {
    static_cast<Handles*>(timer->data)->environment->FinishCut();
  };
  uv_timer_start(&handles_->finish_cut, on_time, kProcessingMilliseconds, 0);
}

void ThreadEnvironment::FinishCut() {
  if (collecting_) return;
  if (sampling()) {
    Collect(true, [this](const JoinedSampleSink& sink) { sampler_->FinishCut(sink); });
  }
  ProcessRecording::Instance().Flushed(this, flush_);
  FollowAfterCollecting(true);
}

void ThreadEnvironment::StartSampling(const RecordingSettings& settings) {
  settings_ = settings;
  generation_ = settings.generation;
  const auto refused = [](const Result<void>& started) {
    if (started) return false;
    LogWarning(kDefaultLog, "a thread is not sampled: " + TextOf(started.error()));
    return true;
  };
  if (settings.allocation_bytes != 0) (void)refused(heap_sampler_.Start(settings.allocation_bytes));
  if (settings.cpu || settings.wall) (void)refused(sampler_->Start(settings.interval_ns));
  if (!sampling()) return;
  last_ = {sampler_->start_ns(), sampler_->start_cpu_ns()};
  const auto on_time = [](uv_timer_t* timer) {
    static_cast<Handles*>(timer->data)->environment->BeginCut();
  };
  uv_timer_start(&handles_->cut, on_time, kCutMilliseconds, kCutMilliseconds);
}

template <class Take>
void ThreadEnvironment::Collect(bool may_call, Take&& take) {
  const v8::HandleScope scope(isolate_);
  const v8::Local<v8::Context> context = context_.Get(isolate_);
  const v8::Context::Scope context_scope(context);
  collecting_ = true;
  profile::Profile part(settings_.max_memory);
  const profile::ThreadId thread = part.AddThread(thread_id_, thread_name_);
  StoreContexts contexts(isolate_, *contexts_, copies_,
                         read_.IsEmpty() ? v8::Local<v8::Function>() : read_.Get(isolate_),
                         may_call, part, &store_counts_);
  SampleConverter converter(isolate_, positions_, contexts, sampler_->handles(),
                            {settings_.wall, settings_.cpu}, may_call, part);
  const int64_t unix_offset = Nanoseconds(CLOCK_REALTIME) - Nanoseconds(CLOCK_MONOTONIC);
  if (heap_sampler_.running()) {
    const auto now = static_cast<uint64_t>(Nanoseconds(CLOCK_REALTIME));
    heap_sampler_.Take(positions_, may_call, thread, now, part);
  }
  if (sampler_->running()) {
    take([&](const JoinedSample& sample) {
      converter.Convert(sample, thread, unix_offset, &last_);
    });
  }
  part.attribute_names = AttributeNames::Instance().names();
  AddCounters(part);
  ProcessRecording::Instance().Add(generation_, part);
  collecting_ = false;
}

void ThreadEnvironment::FollowAfterCollecting(bool may_call) {
  if (!std::exchange(stop_wanted_, false)) return;
  if (sampling()) StopSampling(may_call);
  Follow(may_call);
}

void ThreadEnvironment::Cut(bool may_call) {
  if (!sampling() || collecting_) return;
  if (sampler_->running()) sampler_->BeginCut();
  Collect(may_call, [this](const JoinedSampleSink& sink) { sampler_->FinishCut(sink); });
  FollowAfterCollecting(may_call);
}

void ThreadEnvironment::Leave(bool may_call) {
  joined_ = false;
  if (sampling()) StopSampling(may_call);
  ProcessRecording::Instance().Leave(this);
}

void ThreadEnvironment::StopSampling(bool may_call) {
  if (collecting_) {
    // The function of attach() stops the recording, or exits. V8's profile is still being read, and
    // that has to come to its end first, if it ever does.
    stop_wanted_ = true;
    profile::Profile part(settings_.max_memory);
    part.AddToCounter("node.collection_interrupted", 1);
    ProcessRecording::Instance().Add(generation_, part);
    return;
  }
  uv_timer_stop(&handles_->cut);
  uv_timer_stop(&handles_->finish_cut);
  Collect(may_call, [this](const JoinedSampleSink& sink) { sampler_->Stop(sink); });
  heap_sampler_.Stop();
  FollowAfterCollecting(may_call);
}

void ThreadEnvironment::AddCounters(profile::Profile& part) {
  const SamplerCounts counts = sampler_->counts();
  const std::pair<const char*, uint64_t> values[] = {
      {"node.samples", counts.samples},
      {"node.sample_without_record", counts.samples_without_record},
      {"node.sample_with_two_records", counts.samples_with_two_records},
      {"node.record_without_sample", counts.records_without_sample},
      {"node.handler_displaced", counts.cuts_displaced},
      {"node.record_dropped_ring_full", sampler_->records_dropped()},
      {"node.frame_malformed", sampler_->frames_malformed()},
      {"node.store_described", store_counts_.described},
      {"node.describe_threw", store_counts_.function_threw},
      {"node.describe_answer_refused", store_counts_.answers_refused},
      {"node.store_not_described_at_end", store_counts_.not_asked},
      {"node.tag_without_position", store_counts_.tags_without_position},
      {"node.context_refused_too_many", contexts_->refused()},
      {"node.tag_cut", contexts_->cuts().tags},
      {"node.endpoint_cut", contexts_->cuts().endpoints},
      {"node.source_mapper_threw", positions_.mapper_threw()},
  };
  for (const auto& [name, value] : values) {
    uint64_t& given = counters_given_[name];
    if (value > given) part.AddToCounter(name, value - given);
    given = value;
  }
}

void ThreadEnvironment::PublishKeys() {
  std::vector<v8::Local<v8::Object>> storages;
  if (!own_storage_.IsEmpty()) storages.push_back(own_storage_.Get(isolate_));
  if (!attached_storage_.IsEmpty()) storages.push_back(attached_storage_.Get(isolate_));
  sampler_->UseKeys(storages, layout_);
}

Result<void> ThreadEnvironment::UseOwnStorage(v8::Local<v8::Object> storage,
                                              v8::Local<v8::Value> probe) {
  const Result<MapLayout> layout = CheckFrameReading(isolate_, storage, probe);
  if (!layout) {
    way_ = ContextWay::kSlot;
    way_reason_ = TextOf(layout.error());
    outside_readers_text_ = "see nothing: " + way_reason_;
    sampler_->UseSlot();
    return tl::make_unexpected(layout.error());
  }
  layout_ = *layout;
  way_ = ContextWay::kFrame;
  way_reason_ = "the async context frame is there, and read as V8 reads it";
  own_storage_.Reset(isolate_, storage);
  PublishKeys();
  return {};
}

v8::MaybeLocal<v8::Object> ThreadEnvironment::NewContext(v8::Local<v8::Context> context,
                                                         const ContextFields& fields) {
  v8::Local<v8::Object> object;
  if (!contexts_->New(context, fields).ToLocal(&object)) return {};
  if (!outside_readers_tried_ && way_ == ContextWay::kFrame) {
    outside_readers_tried_ = true;
    const Result<void> published =
        outside_readers_.Publish(own_storage_, object, contexts_->RecordOf(object).data());
    outside_readers_text_ =
        published ? "see the contexts of setContext() and runWithContext() in this thread"
                  : "see nothing: " + TextOf(published.error());
  }
  return object;
}

Result<void> ThreadEnvironment::Attach(v8::Local<v8::Object> storage, v8::Local<v8::Value> probe,
                                       v8::Local<v8::Function> read) {
  const Result<MapLayout> layout = CheckFrameReading(isolate_, storage, probe);
  if (!layout) return tl::make_unexpected(layout.error());
  layout_ = *layout;
  way_ = ContextWay::kFrame;
  way_reason_ = "the async context frame is there, and read as V8 reads it";
  attached_storage_.Reset(isolate_, storage);
  read_.Reset(isolate_, read);
  PublishKeys();
  return {};
}

void ThreadEnvironment::AttachSlot(v8::Local<v8::Function> read) {
  way_ = ContextWay::kSlot;
  read_.Reset(isolate_, read);
  sampler_->UseSlot();
}

void ThreadEnvironment::Detach() {
  // Those of its stores that were sampled are described while that can be done.
  Cut(true);
  attached_storage_.Reset();
  read_.Reset();
  if (way_ == ContextWay::kFrame) PublishKeys();
}

}  // namespace spanprof::node
