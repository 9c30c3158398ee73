// The profiler's part of the C interface, and what starts it without a call: the variable SPANPROF.
// This file is part of what is loaded into programs, not of a static library: nothing refers to it.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/printable_text.h"
#include "context/core.h"
#include "context/core_election.h"
#include "context/profiler_interface.h"
#include "recording/recording.h"
#include "sampling/sampler.h"
#include "sampling/signal_dispatch.h"

namespace spanprof::recording {
namespace {

int Answer(const Result<void>& result) {
  if (result) {
    context::SetLastError("");
    return 0;
  }
  context::SetLastError(TextOf(result.error()).c_str());
  return result.error().code == 0 ? -EINVAL : -result.error().code;
}

Result<Options> OptionsToStart(const char* text) {
  Result<Options> options = ParseOptions(text == nullptr ? "" : text);
  if (options && options->command != Command::kNone && options->command != Command::kStart) {
    return Fail(EINVAL, "the options of a start begin with another command",
                "leave the command out, or say start");
  }
  return options;
}

Result<void> Start(const char* text) {
  const Result<Options> options = OptionsToStart(text);
  if (!options) return tl::make_unexpected(options.error());
  if (Result<void> ready = context::ThisCore().Init(text == nullptr ? "" : text); !ready) {
    return ready;
  }
  return Recording::Instance().Start(*options);
}

#if !defined(SPANPROF_STARTED_BY_RUNTIME)
// The program may still initialise the library its own way, so that is done here only if the
// variable says how.
Result<void> StartFromEnvironment(const char* text) {
  const Result<Options> options = OptionsToStart(text);
  if (!options) return tl::make_unexpected(options.error());
  const bool says_how = options->context_storage || options->context_slots ||
                        !options->attributes.empty() || options->latency;
  if (says_how) {
    if (Result<void> ready = context::ThisCore().Init(text); !ready) return ready;
  }
  const bool samples = options->cpu || options->wall || options->allocation || options->lock ||
                       options->file || options->to;
  if (!samples || Recording::Instance().running()) return {};
  if (!options->file && !options->to) {
    LogWarning(options->log.value_or(kDefaultLog),
               "SPANPROF=" + Quoted(text) +
                   " says nothing of where profiles go: only spanprof_dump will write one; add "
                   "file=profile.pb.gz");
  }
  return Recording::Instance().Start(*options);
}

// SPANPROF_CHILDREN=no: what this program execs is not to be recorded, and not to be preloaded with
// us either.
void ForgetForChildren() {
  const char* children = getenv("SPANPROF_CHILDREN");
  if (children == nullptr || std::string_view(children) != "no") return;
  unsetenv("SPANPROF");
  unsetenv("SPANPROF_CHILDREN");
  const char* preload = getenv("LD_PRELOAD");
  Dl_info self = {};
  static const int kHere = 0;
  if (preload == nullptr || dladdr(&kHere, &self) == 0 || self.dli_fname == nullptr) return;
  std::string others;
  for (std::string_view rest = preload; !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(" :"), rest.size());
    const std::string_view library = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (library.empty() || library == self.dli_fname) continue;
    others += (others.empty() ? "" : ":") + std::string(library);
  }
  if (others.empty()) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", others.c_str(), 1);
  }
}

#endif

constexpr context::ProfilerInterface kProfiler = {
    .start = [](const char* options) { return Answer(Start(options)); },
    .stop = [] { return Answer(Recording::Instance().Stop()); },
    .dump =
        [](const char* file) {
          return file == nullptr ? -EINVAL : Answer(Recording::Instance().Dump(file));
        },
    .is_running = [] { return Recording::Instance().running() ? 1 : 0; },
    .finish_before_exit = [] { Recording::Instance().FinishBeforeExit(); },
    .resume = [] { Recording::Instance().Resume(); },
    .thread_started = [] { sampling::Sampler::Instance().OnThreadStart(); },
    .thread_ended = [] { sampling::Sampler::Instance().OnThreadEnd(); },
    .answer_sigaction =
        [](int signal, const struct sigaction* action, struct sigaction* previous) {
          return sampling::AnswerSigaction(signal, action, previous) ? 1 : 0;
        },
    .take_waited_signal =
        [](int signal, const siginfo_t* info) {
          return sampling::Sampler::Instance().TakeWaitedSignal(signal, *info) ? 1 : 0;
        },
    .use_runtime =
        [](sampling::Runtime& runtime) {
          return Answer(sampling::Sampler::Instance().UseRuntime(runtime));
        },
};

[[gnu::constructor]] void OnLoad() {
  context::profiler_interface.store(&kProfiler, std::memory_order_release);
#if !defined(SPANPROF_STARTED_BY_RUNTIME)  // which has options of its own, and is not ready yet
  const char* text = getenv("SPANPROF");
  if (text == nullptr || text[0] == '\0') return;
  // Each copy of the library in the process comes here; the first one becomes the active core.
  const auto core = context::ElectCore();
  if (!core || *core != &context::ThisCoreInterface()) return;
  if (const Result<void> started = StartFromEnvironment(text); !started) {
    LogWarning(kDefaultLog, "SPANPROF is set, but nothing is recorded: " + TextOf(started.error()));
  }
  ForgetForChildren();
#endif
}

// Runs after the program's own exit handlers and before this library's static objects go.
[[gnu::destructor]] void OnUnload() { Recording::Instance().FinishBeforeExit(); }

}  // namespace
}  // namespace spanprof::recording
