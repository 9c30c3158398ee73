// A JVMTI agent for tests only: interrupts every Java thread about a thousand times a second of its
// CPU time, has both walkers walk the same stack, and at the end says how they did and checks what
// they found (walker_test_report.h).
//
//   java -agentpath:libspanprof-walker-test.so=both,summary=FILE Program
//
// Without "both" only HotspotWalker walks: AsyncGetCallTrace can take the JVM down.

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <jni.h>
#include <jvmti.h>
#include <memory>
#include <pthread.h>
#include <signal.h>
#include <string>
#include <thread>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/asgct_walker.h"
#include "agent/hotspot_walker.h"
#include "agent/walker_test/walker_test_report.h"
#include "sampling/code_map.h"
#include "sampling/native_registers.h"

namespace spanprof::jvm {
namespace {

constexpr uint64_t kIntervalNs = 1'000'000;
constexpr unsigned kMaxTestThreads = 65536;

struct TestThread {
  std::atomic<uint32_t> tid{0};
  uint64_t stack_low = 0;
  uint64_t stack_high = 0;
  int event = -1;
  bool has_timer = false;
  timer_t timer = {};
};

struct TestAgent {
  jvmtiEnv* jvmti = nullptr;
  std::string summary_file;
  bool both = false;
  sampling::CodeMap code_map;
  JavaThreadTable threads;
  std::unique_ptr<HotspotWalker> hotspot;
  std::unique_ptr<AsgctWalker> asgct;
  std::string hotspot_problem;
  uint64_t jni_offset = 0;  // of the JNIEnv in a JavaThread
  std::atomic<bool> running{false};
  std::atomic<uint64_t> turn{0};
  WalkerTestReport report;
  TestThread by_tid[kMaxTestThreads];  // by tid modulo; a clash is not sampled
};

TestAgent* agent = nullptr;

uint64_t Now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

uint32_t OwnTid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

void Measure(const sampling::StackWalker& walker, const ucontext_t& at, uint64_t stack_high,
             WalkerTestStack& into) {
  const uint64_t start = Now();
  into.result = walker.Walk(at, stack_high, into.words, WalkerTestStack::kMaxDepth);
  into.nanoseconds = Now() - start;
}

void OnSignal(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  const uint32_t tid = OwnTid();
  const TestThread& thread = agent->by_tid[tid % kMaxTestThreads];
  if (agent->running.load(std::memory_order_acquire) &&
      thread.tid.load(std::memory_order_acquire) == tid) {
    const auto& at = *static_cast<const ucontext_t*>(context);
    const uint64_t high = sampling::TrustedStackHigh(sampling::StackPointerOf(at), thread.stack_low,
                                                     thread.stack_high);
    if (WalkerTestSample* sample = agent->report.Begin(); sample != nullptr) {
      sample->pc = sampling::RegistersOf(at.uc_mcontext).pc;
      const uint64_t stack_pointer = sampling::StackPointerOf(at);
      sample->frame_pointer =
          sampling::RegistersOf(at.uc_mcontext).general[sampling::kMachine.frame_pointer] -
          stack_pointer;
      if (high != 0 && high - stack_pointer > sizeof(sample->stack)) {
        memcpy(sample->stack, reinterpret_cast<const void*>(stack_pointer), sizeof(sample->stack));
      }
      const bool first = agent->turn.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
      if (first && agent->asgct) Measure(*agent->asgct, at, high, sample->asgct);
      if (agent->hotspot) Measure(*agent->hotspot, at, high, sample->hotspot);
      if (!first && agent->asgct) Measure(*agent->asgct, at, high, sample->asgct);
      agent->report.Finish(*sample);
    }
  }
  errno = saved_errno;
}

// Where there is no perf: as fine as the kernel's tick.
bool StartTimer(timer_t& timer) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = static_cast<pid_t>(OwnTid());
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return false;
  const timespec interval = {.tv_sec = 0, .tv_nsec = kIntervalNs};
  const itimerspec times = {.it_interval = interval, .it_value = interval};
  return timer_settime(timer, 0, &times, nullptr) == 0;
}

int OpenClock() {
  perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = kIntervalNs;
  attributes.exclude_kernel = 1;
  attributes.wakeup_events = 1;
  attributes.disabled = 1;
  const int event =
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (event < 0) return -1;
  f_owner_ex owner = {.type = F_OWNER_TID, .pid = static_cast<pid_t>(OwnTid())};
  fcntl(event, F_SETFL, O_ASYNC);
  fcntl(event, F_SETSIG, SIGPROF);
  fcntl(event, F_SETOWN_EX, &owner);
  ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
  return event;
}

void StartThread(JNIEnv* jni) {
  const uint32_t tid = OwnTid();
  agent->threads.Add(
      tid, {.jni = jni, .vm_thread = reinterpret_cast<uint64_t>(jni) - agent->jni_offset});
  TestThread& thread = agent->by_tid[tid % kMaxTestThreads];
  if (thread.tid.load() != 0) return;
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  thread.stack_low = reinterpret_cast<uint64_t>(low);
  thread.stack_high = thread.stack_low + size;
  thread.tid.store(tid, std::memory_order_release);
  thread.event = OpenClock();
  thread.has_timer = thread.event < 0 && StartTimer(thread.timer);
  if (thread.event < 0 && !thread.has_timer) agent->report.NoteNoClock();
}

void EndThread() {
  const uint32_t tid = OwnTid();
  TestThread& thread = agent->by_tid[tid % kMaxTestThreads];
  if (thread.tid.load() == tid) {
    if (thread.event >= 0) close(thread.event);
    if (thread.has_timer) timer_delete(thread.timer);
    thread.tid.store(0);
  }
  agent->threads.Remove(tid);
}

void MakeIds(jvmtiEnv* jvmti, jclass type) {
  jint count = 0;
  jmethodID* methods = nullptr;
  if (jvmti->GetClassMethods(type, &count, &methods) == JVMTI_ERROR_NONE) {
    for (jint i = 0; i < count; ++i) agent->report.NoteMethod(methods[i]);
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(methods));
  }
}

void JNICALL OnVmInit(jvmtiEnv* jvmti, JNIEnv* jni, jthread thread) {
  jint count = 0;
  jclass* classes = nullptr;
  if (jvmti->GetLoadedClasses(&count, &classes) == JVMTI_ERROR_NONE) {
    for (jint i = 0; i < count; ++i) MakeIds(jvmti, classes[i]);
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(classes));
  }
  jclass thread_class = jni->FindClass("java/lang/Thread");
  jfieldID eetop = jni->GetFieldID(thread_class, "eetop", "J");
  const auto vm_thread = static_cast<uint64_t>(jni->GetLongField(thread, eetop));
  agent->jni_offset = reinterpret_cast<uint64_t>(jni) - vm_thread;
  const auto known = reinterpret_cast<uint64_t>(jni->GetMethodID(thread_class, "run", "()V"));
  (void)agent->code_map.Refresh();
  if (auto walker = HotspotWalker::Create(agent->code_map, agent->threads, known); walker) {
    agent->hotspot = std::move(*walker);
    if (const auto frozen = agent->hotspot->ReadFrozenFrames(jni); !frozen) {
      agent->report.NoteFrozenProblem(TextOf(frozen.error()));
    }
  } else {
    agent->hotspot_problem = TextOf(walker.error());
  }
  if (agent->both) {
    if (auto walker = AsgctWalker::Create(agent->code_map, agent->threads); walker) {
      agent->asgct = std::move(*walker);
    }
  }
  struct sigaction action = {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  agent->running.store(true, std::memory_order_release);
  StartThread(jni);
  std::thread([] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (agent->running.load()) {
      (void)agent->code_map.RefreshIfNeeded();
      usleep(20'000);
    }
  }).detach();
}

void JNICALL OnVmDeath(jvmtiEnv* jvmti, JNIEnv*) {
  agent->running.store(false);
  signal(SIGPROF, SIG_IGN);
  jvmti->GenerateEvents(JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
  FILE* file = agent->summary_file.empty() ? stdout : fopen(agent->summary_file.c_str(), "w");
  if (file == nullptr) return;
  if (!agent->hotspot_problem.empty()) {
    fprintf(file, "hotspot.unavailable %s\n", agent->hotspot_problem.c_str());
  }
  agent->report.Write(jvmti, file);
  if (file != stdout) fclose(file);
  fflush(stdout);
}

void JNICALL OnThreadStart(jvmtiEnv*, JNIEnv* jni, jthread) {
  if (agent->running.load()) StartThread(jni);
}
void JNICALL OnThreadEnd(jvmtiEnv*, JNIEnv*, jthread) { EndThread(); }
// AsyncGetCallTrace wants the event to be on.
void JNICALL OnClassLoad(jvmtiEnv*, JNIEnv*, jthread, jclass) {}
void JNICALL OnClassPrepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass type) {
  MakeIds(jvmti, type);
}
// While it is on, the compilers keep debug information between safepoints.
void JNICALL OnCompiledMethodLoad(jvmtiEnv*, jmethodID, jint, const void*, jint,
                                  const jvmtiAddrLocationMap*, const void*) {}

void JNICALL OnStub(jvmtiEnv*, const char* name, const void* address, jint length) {
  agent->report.NoteStub(name, reinterpret_cast<uint64_t>(address), static_cast<uint64_t>(length));
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  void* found = nullptr;
  if (vm->GetEnv(&found, JVMTI_VERSION_1_2) != JNI_OK) return JNI_ERR;
  agent = new TestAgent();
  agent->jvmti = static_cast<jvmtiEnv*>(found);
  if (options != nullptr) {
    agent->both = strncmp(options, "both", 4) == 0;
    const char* summary = strstr(options, "summary=");
    if (summary != nullptr) agent->summary_file = summary + strlen("summary=");
  }

  jvmtiCapabilities capabilities = {};
  capabilities.can_generate_compiled_method_load_events = 1;
  agent->jvmti->AddCapabilities(&capabilities);
  jvmtiEventCallbacks callbacks = {};
  callbacks.VMInit = OnVmInit;
  callbacks.VMDeath = OnVmDeath;
  callbacks.ThreadStart = OnThreadStart;
  callbacks.ThreadEnd = OnThreadEnd;
  callbacks.ClassLoad = OnClassLoad;
  callbacks.ClassPrepare = OnClassPrepare;
  callbacks.CompiledMethodLoad = OnCompiledMethodLoad;
  callbacks.DynamicCodeGenerated = OnStub;
  agent->jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (const jvmtiEvent event :
       {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
        JVMTI_EVENT_CLASS_LOAD, JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_COMPILED_METHOD_LOAD,
        JVMTI_EVENT_DYNAMIC_CODE_GENERATED}) {
    agent->jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}

}  // namespace spanprof::jvm
