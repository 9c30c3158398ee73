#pragma once

// A program that does everything which a profiler in the same process could spoil, and checks its
// own results. A scenario is one such behaviour: it runs for a moment, checks, and is run again
// until the time is over. What it finds wrong it says with Expect; the program goes on, and fails
// at its end.
//
//   void CountsItsOwnTicks() {
//     ...
//     Expect(ticks == 20, "ticks of the program's own timer", ticks, 20);
//   }

#include <cstdint>
#include <mutex>
#include <string>

namespace spanprof::hostile {

struct Scenario {
  const char* name;
  void (*run)();
};

// Any thread; not in handlers.
void Expect(bool right, const char* what, int64_t seen, int64_t wanted);
inline void ExpectEqual(int64_t seen, int64_t wanted, const char* what) {
  Expect(seen == wanted, what, seen, wanted);
}

// How the program is profiled, as far as that changes what it may ask for. Only a preloaded
// profiler sees what the program does with SIGURG, and hides its own from sigwait.
bool SignalUrgentIsOurs();
// The path of this program, and of the plugin that it loads.
const std::string& OwnPath();
const std::string& PluginPath();

// system() ignores SIGINT and SIGQUIT in the whole process until it returns: it is called, and
// those handlers are looked at, with this held.
inline std::mutex keyboard_signals;

// Uses about so much CPU time of the calling thread.
void Burn(unsigned microseconds);
// Waits whatever signals come; true: `done` became true within ten seconds.
bool WaitUntil(bool (*done)(void*), void* argument);
template <class Condition>
bool WaitUntil(Condition done) {
  return WaitUntil([](void* condition) { return (*static_cast<Condition*>(condition))(); }, &done);
}
uint64_t MonotonicNanoseconds();

// What a child of ours is to do, when this program is started with --child.
int RunAsChild(int number);

// One after the other on the main thread: they have the process's signal handlers and timers.
extern const Scenario kOwnSignals[];
extern const Scenario kWaiting[];
// At the same time as these, each list on a thread of its own.
extern const Scenario kControlFlow[];
extern const Scenario kThreads[];
extern const Scenario kChildren[];
extern const Scenario kPlugins[];
extern const Scenario kWork[];
extern const Scenario kSpans[];

}  // namespace spanprof::hostile
