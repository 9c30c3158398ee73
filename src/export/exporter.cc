#include "export/exporter.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include <sys/prctl.h>

#include "export/report_sending.h"
#include "export/spool.h"
#include "format/gzip.h"

namespace spanprof::sending {

using std::chrono::steady_clock;

// What the thread and the exporter share. The thread may outlive the exporter, when it is held up
// in getaddrinfo(); then it finds the report settled and ends.
class Exporter::Work {
 public:
  Work(std::shared_ptr<const SendSettings> settings, Report report,
       std::shared_ptr<SendCounters> counters)
      : settings_(std::move(settings)),
        counters_(std::move(counters)),
        deadline_(steady_clock::now() + settings_->retry.deadline),
        report_(std::move(report)) {}

  // False in a forked child, where another thread may have held the mutex for ever.
  [[nodiscard]] bool IsOwn() const { return getpid() == pid_; }
  SendCounters& counters() { return *counters_; }
  SendDeadline& deadline() { return deadline_; }

  // The thread.
  void Run() {
    const Result<void> compressed = Compress();
    if (!compressed) {
      if (Claim()) Settle(Outcome::kDropped, compressed.error().message);
      return;
    }
    SendResult result = SendWithRetry(*settings_, report_.bytes, deadline_, *counters_);
    if (!Claim()) {
      if (result.verdict == Verdict::kSent) counters_->Add(SendCounter::kReportSentLate);
      return;
    }
    switch (result.verdict) {
      case Verdict::kSent:
        Settle(Outcome::kSent, {});
        SendSpooled(*settings_, deadline_, counters_);
        return;
      case Verdict::kRefused:
        return Settle(Outcome::kRefused, std::move(result.message));
      case Verdict::kFailed:
        return Keep(std::move(result.message));
    }
  }

  // Takes it upon the caller to settle the report; false if another did.
  bool Claim() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(claimed_, true);
  }

  // After Claim(): spools the report, or drops it.
  void Keep(std::string message) {
    if (!settings_->spool) return Settle(Outcome::kDropped, std::move(message));
    const Result<void> added = AddToSpool();
    if (!added) {
      message += (message.empty() ? "" : "; ") + added.error().message;
      if (!added.error().hint.empty()) message += " (" + added.error().hint + ")";
    }
    Settle(added ? Outcome::kSpooled : Outcome::kDropped, std::move(message));
  }

  // After Claim().
  void Settle(Outcome outcome, std::string message) {
    switch (outcome) {
      case Outcome::kSent:
        counters_->Add(SendCounter::kReportSent);
        break;
      case Outcome::kRefused:
        counters_->Add(SendCounter::kReportRefused);
        break;
      case Outcome::kSpooled:
        counters_->Add(SendCounter::kReportSpooled);
        break;
      default:
        counters_->Add(SendCounter::kReportDropped);
        break;
    }
    const std::lock_guard lock(mutex_);
    settlement_ = Settlement{outcome, std::move(message)};
    settled_.notify_all();
  }

  bool IsSettled() {
    const std::lock_guard lock(mutex_);
    return settlement_.has_value();
  }

  std::optional<Settlement> WaitUntil(SteadyTime at) {
    std::unique_lock lock(mutex_);
    settled_.wait_until(lock, at, [this] { return settlement_.has_value(); });
    return settlement_;
  }

 private:
  Result<void> AddToSpool() {
    if (Result<void> compressed = Compress(); !compressed) return compressed;
    Result<Spool> spool = Spool::Open(*settings_->spool, settings_->spool_limits, counters_);
    if (!spool) return tl::make_unexpected(spool.error());
    return spool->Add(report_);
  }

  // Once it returned, the bytes do not change any more: the thread sends them while Finish() may
  // write them to the spool.
  Result<void> Compress() {
    const std::lock_guard lock(compress_mutex_);
    if (std::exchange(is_compressed_, true) || format::IsGzip(report_.bytes)) return {};
    Result<std::string> compressed = format::Compress(report_.bytes);
    if (!compressed) return tl::make_unexpected(compressed.error());
    report_.bytes = *std::move(compressed);
    return {};
  }

  const pid_t pid_ = getpid();
  const std::shared_ptr<const SendSettings> settings_;
  const std::shared_ptr<SendCounters> counters_;
  SendDeadline deadline_;
  Report report_;

  std::mutex compress_mutex_;
  bool is_compressed_ = false;  // under compress_mutex_, or tried in vain

  std::mutex mutex_;
  std::condition_variable settled_;
  bool claimed_ = false;                  // under mutex_
  std::optional<Settlement> settlement_;  // under mutex_
};

namespace {

// A guest's thread must not take signals that are meant for the program's threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

template <class Argument>
bool StartDetachedThread(void* (*function)(void*), Argument* argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const AllSignalsBlocked blocked;
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, function, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

Exporter::Exporter(std::shared_ptr<Work> work) : work_(std::move(work)) {}

std::unique_ptr<Exporter> Exporter::Start(std::shared_ptr<const SendSettings> settings,
                                          Report report, std::shared_ptr<SendCounters> counters) {
  std::unique_ptr<Exporter> exporter(new Exporter(
      std::make_shared<Work>(std::move(settings), std::move(report), std::move(counters))));
  using Reference = std::shared_ptr<Work>;
  auto reference = std::make_unique<Reference>(exporter->work_);
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<Reference> own(static_cast<Reference*>(argument));
    prctl(PR_SET_NAME, "spanprof-send");
    try {
      (*own)->Run();
    } catch (const std::bad_alloc&) {
      (*own)->counters().Add(SendCounter::kOutOfMemory);
      if ((*own)->Claim()) (*own)->Settle(Outcome::kDropped, {});
    }
    return nullptr;
  };
  if (StartDetachedThread(run, reference.get())) {
    (void)reference.release();  // it is the thread's now
  } else {
    exporter->work_->counters().Add(SendCounter::kThreadFailed);
    if (exporter->work_->Claim()) exporter->work_->Keep("no thread could be started");
  }
  return exporter;
}

Exporter::~Exporter() { (void)Finish(steady_clock::now()); }

bool Exporter::is_settled() const { return !work_->IsOwn() || work_->IsSettled(); }

Settlement Exporter::Finish(SteadyTime deadline) {
  if (!work_->IsOwn()) {
    if (!std::exchange(left_to_parent_, true)) {
      work_->counters().Add(SendCounter::kReportLeftToParent);
    }
    return {Outcome::kLeftToParent, {}};
  }
  const auto left = deadline - steady_clock::now();
  // Without any time, the report is settled here rather than left half written to the thread.
  if (left <= left.zero() && work_->Claim()) work_->Keep("not sent in time");
  work_->deadline().BringForward(deadline - left / 4);
  if (auto settlement = work_->WaitUntil(deadline)) return *settlement;
  if (work_->Claim()) work_->Keep("not sent in time");
  return work_->WaitUntil(deadline).value_or(Settlement{Outcome::kStillWriting, {}});
}

}  // namespace spanprof::sending
