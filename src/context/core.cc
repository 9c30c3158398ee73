#include "context/core.h"

#include <algorithm>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/log.h"
#include "base/resource_attributes.h"
#include "context/platform.h"
#include "context/process_state.h"

namespace spanprof::context {
namespace {

constexpr size_t kMaxResourceAttributes = 256;
constexpr uint32_t kMaxResourceChanges = 4096;

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ";") + name;
  return text.empty() ? "(none)" : text;
}

const char* StorageName(ContextStorage storage) {
  return storage == ContextStorage::kOtel ? "otel" : "profiler";
}

}  // namespace

Core& ThisCore() {
  static_assert(std::is_trivially_destructible_v<Core>);
  static Core core;
  return core;
}

Result<void> Core::CheckSameConfiguration(const Options& options) const {
  const Configuration& now = *configuration();
  const ContextStorage wanted = options.context_storage.value_or(now.requested_storage);
  if (wanted != now.requested_storage) {
    return Fail(EBUSY,
                std::string("ctxstorage=") + StorageName(wanted) +
                    " was asked for, but the process is initialised with ctxstorage=" +
                    StorageName(now.requested_storage),
                "give the same ctxstorage everywhere, or call spanprof_shutdown first");
  }
  if (!options.attributes.empty() && options.attributes != now.attributes) {
    return Fail(EBUSY,
                "attributes=" + Join(options.attributes) +
                    " was asked for, but the process is initialised with attributes=" +
                    Join(now.attributes),
                "give the same attributes everywhere, or add single ones by spanprof_attribute");
  }
  return {};
}

Result<void> Core::CreateRecords(const Options& options) {
  if (!registry_.Create() || !dictionary_.Create() || !endpoints_.Create()) {
    return Fail(ENOMEM, "there is no memory for the context records",
                "look at the limit of address space (ulimit -v)");
  }
  outside_.store(false, std::memory_order_relaxed);
  if (options.context_storage.value_or(kDefaultContextStorage) != ContextStorage::kOtel) return {};

  const LogTarget log = options.log.value_or(kDefaultLog);
  const uint32_t capacity = options.context_slots.value_or(kDefaultContextSlots);
  if (!slots_.exists() && !slots_.Create(capacity)) {
    LogWarning(
        log, "ctxstorage=otel: there is no memory for a table of " + std::to_string(capacity) +
                 " slots, so contexts are kept inside the process only (ctxstorage=profiler); try "
                 "a smaller "
                 "ctxslots=");
    return {};
  }
  if (slots_.capacity() != capacity) {
    LogWarning(log, "ctxslots=" + std::to_string(capacity) +
                        ": the table of the first initialisation is used, " +
                        std::to_string(slots_.capacity()) + " slots");
  }
  outside_.store(true, std::memory_order_release);
  return {};
}

Result<void> Core::Init(std::string_view text) {
  const Result<Options> options = ParseOptions(text);
  if (!options) return tl::make_unexpected(options.error());
  if (!EnsureProcessState()) return Fail(ENOMEM, "there is no memory for the library's state");

  const SignalBlocker no_signals;
  RecogniseUnannouncedFork();
  const WipedLock lock(CurrentProcessState()->configuration_lock);
  if (initialized()) return CheckSameConfiguration(*options);
  if (Result<void> installed = InstallHandlers(); !installed) return installed;
  if (Result<void> created = CreateRecords(*options); !created) return created;

  const Resource resource = ReadResource(*options);
  Configuration next;
  next.requested_storage = options->context_storage.value_or(kDefaultContextStorage);
  next.attributes = options->attributes;
  next.attribute_names = options->attributes;
  next.resource = resource.attributes;
  next.log = options->log.value_or(kDefaultLog);
  for (const std::string& warning : resource.warnings) LogWarning(next.log, warning);
  timed_.store(options->latency.value_or(kDefaultLatency), std::memory_order_relaxed);
  NanosecondsPerTick();  // the first look at both clocks
  PublishConfiguration(next);
  if (outside_.load(std::memory_order_relaxed)) slots_.Announce();
  const uint32_t generation = last_generation_.load(std::memory_order_relaxed) + 1;
  last_generation_.store(generation, std::memory_order_relaxed);
  // Release: who sees the generation sees the records.
  generation_.store(generation, std::memory_order_release);
  return {};
}

void Core::PublishConfiguration(const Configuration& next) {
  // The old one is left to whoever may be reading it; kMaxResourceChanges bounds how many.
  auto* published = new Configuration(next);
  published->previous = configuration();
  configuration_.store(published, std::memory_order_release);
  if (outside_.load(std::memory_order_relaxed) &&
      !process_context_.Publish(EncodeProcessContext(next.resource, next.attribute_names))) {
    LogWarning(next.log,
               "the process context (OTEL_CTX) cannot be published: memory here has no names");
  }
}

int Core::AddAttribute(std::string_view name) {
  if (!initialized()) return -ENODEV;
  if (name.empty() || name.size() > kMaxAttributeBytes) return -EINVAL;
  const SignalBlocker no_signals;
  const WipedLock lock(CurrentProcessState()->configuration_lock);
  Configuration next = *configuration();
  const auto found = std::find(next.attribute_names.begin(), next.attribute_names.end(), name);
  const auto position = static_cast<int>(found - next.attribute_names.begin());
  if (found != next.attribute_names.end()) return position;
  if (next.attribute_names.size() >= internal::kTagCount) return -ENOSPC;
  next.attribute_names.emplace_back(name);
  PublishConfiguration(next);
  return position;
}

int Core::SetResource(std::string_view key, std::string_view value) {
  if (!initialized()) return -ENODEV;
  if (key.empty()) return -EINVAL;
  const SignalBlocker no_signals;
  const WipedLock lock(CurrentProcessState()->configuration_lock);
  Configuration next = *configuration();
  for (ResourceAttribute& attribute : next.resource) {
    if (attribute.key != key) continue;
    if (attribute.value == value) return 0;
    if (++next.resource_changes > kMaxResourceChanges) return -ENOSPC;
    attribute.value = value;
    PublishConfiguration(next);
    return 0;
  }
  if (next.resource.size() >= kMaxResourceAttributes) return -ENOSPC;
  next.resource.push_back({std::string(key), std::string(value)});
  PublishConfiguration(next);
  return 0;
}

void Core::Shutdown() {
  if (!initialized()) return;
  const SignalBlocker no_signals;
  const WipedLock lock(CurrentProcessState()->configuration_lock);
  if (!initialized()) return;
  generation_.store(0, std::memory_order_release);
  if (outside_.load(std::memory_order_relaxed)) {
    slots_.Withdraw();
    process_context_.Withdraw();
  }
  // From now on a thread's next call finds its object stale or not writable and comes to
  // AttachCurrentThread, which sends it away. A thread that was just writing makes its object
  // writable once more, but not current.
  for (int round = 0; round < 3; ++round) {
    registry_.ForEachAttached([](internal::ThreadContext& context) {
      context.attention.fetch_or(internal::kAttentionStale, std::memory_order_relaxed);
      context.record.checksum.store(0, std::memory_order_relaxed);
      if (internal::SlotOwner(context.own_slot.word.load(std::memory_order_relaxed)) != 0) {
        ResetSlot(context.own_slot, 0);
      }
    });
    sched_yield();
  }
  // What was in it must not come back when the table is announced again.
  if (slots_.exists()) slots_.Erase();
}

}  // namespace spanprof::context
