#include "sampling/native_workloads.h"

#include <algorithm>
#include <alloca.h>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

#include <sys/mman.h>

namespace spanprof::sampling {
namespace {

volatile uint64_t sink = 0;

uint32_t NextRandom() {
  static uint32_t state = 12345;
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

void Spin(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) sink = sink + i;
}

void SortNumbers() {
  std::vector<uint32_t> numbers(2000);
  std::generate(numbers.begin(), numbers.end(), NextRandom);
  std::sort(numbers.begin(), numbers.end());
  std::make_heap(numbers.begin(), numbers.end(), std::greater<>());
}

int CompareNumbers(const void* a, const void* b) {
  const uint32_t left = *static_cast<const uint32_t*>(a);
  const uint32_t right = *static_cast<const uint32_t*>(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

void CallBackFromQsort() {
  std::vector<uint32_t> numbers(2000);
  std::generate(numbers.begin(), numbers.end(), NextRandom);
  qsort(numbers.data(), numbers.size(), sizeof(uint32_t), CompareNumbers);
}

void MatchRegex() {
  static const std::regex kPattern("(a|b)*c([0-9]+)x?(foo|bar)*");
  const std::string text = "ababababac" + std::to_string(NextRandom()) + "foobarfoobar";
  sink = sink + (std::regex_match(text, kPattern) ? 1 : 0);
}

void FillMap() {
  std::map<std::string, uint32_t> map;
  for (int i = 0; i < 200; ++i) map["key" + std::to_string(NextRandom())] = NextRandom();
  sink = sink + map.size();
}

[[gnu::noinline]] void Throw(unsigned depth) {
  std::string destroyed =
      "a string that has to be destroyed on the way out " + std::to_string(depth);
  if (depth == 0) throw std::runtime_error(destroyed);
  Throw(depth - 1);
  sink = sink + destroyed.size();
}

void ThrowExceptions() {
  try {
    Throw(8);
  } catch (const std::exception& error) {
    sink = sink + std::strlen(error.what());
  }
}

void OnUserSignal(int) { Spin(3000); }

void RunSignalHandler() {
  static const bool kInstalled = std::signal(SIGUSR1, OnUserSignal) != SIG_ERR;
  if (kInstalled) std::raise(SIGUSR1);
}

void OnAlternateStack(int) {
  char text[256];
  std::snprintf(text, sizeof(text), "%u", NextRandom());
  Spin(3000);
}

void RunHandlerOnAlternateStack() {
  static const bool kInstalled = [] {
    stack_t stack{};
    stack.ss_size = 65536;
    stack.ss_sp = std::malloc(stack.ss_size);
    sigaltstack(&stack, nullptr);
    struct sigaction action{};
    action.sa_handler = OnAlternateStack;
    action.sa_flags = SA_ONSTACK;
    return sigaction(SIGUSR2, &action, nullptr) == 0;
  }();
  if (kInstalled) std::raise(SIGUSR2);
}

void CopyMemory() {
  static std::vector<char> from(1 << 16, 'x');
  static std::vector<char> to(1 << 16);
  std::memcpy(to.data(), from.data(), from.size());
  std::memmove(to.data() + 7, to.data(), to.size() - 7);
  std::memset(from.data(), 'y', from.size());
  from.back() = 0;
  sink = sink + std::strlen(from.data());
}

[[gnu::noinline]] uint64_t Recurse(unsigned depth) {
  if (depth == 0) {
    Spin(2000);
    return 1;
  }
  return Recurse(depth - 1) + sink % 2;
}

void RecurseDeeply() { sink = sink + Recurse(500); }

[[gnu::noinline]] void UseArrays(unsigned size) {
  char* memory = static_cast<char*>(alloca(size));
  std::memset(memory, 1, size);
  alignas(64) char aligned[256];
  std::memset(aligned, static_cast<int>(size), sizeof(aligned));
  Spin(200);
  sink = sink + static_cast<unsigned char>(memory[size / 2]) +
         static_cast<unsigned char>(aligned[size % 256]);
}

void UseVariableArrays() { UseArrays(64 + NextRandom() % 5000); }

[[gnu::noinline]] void UseLargeFrame() {
  volatile char memory[40000];  // probed page by page with -fstack-clash-protection
  for (unsigned i = 0; i < sizeof(memory); i += 512) memory[i] = 1;
  sink = sink + static_cast<unsigned char>(memory[512]);
}

void FormatText() {
  std::ostringstream stream;
  stream << 3.14159 * NextRandom() << ' ' << NextRandom() << std::hex << NextRandom();
  char text[128];
  std::snprintf(text, sizeof(text), "%.17g %s", 1.0 / (1 + NextRandom()), stream.str().c_str());
  sink = sink + static_cast<uint64_t>(std::strtod(text, nullptr));
}

void Allocate() {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 200; ++i) blocks.emplace_back(new char[16 + NextRandom() % 4000]);
}

void LoadLibrary() {
  // Binds lazily: the first calls go through the dynamic loader's trampoline.
  void* library = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) {
    sink = sink + reinterpret_cast<uintptr_t>(dlsym(library, "cos"));
    dlclose(library);
  }
}

void AskTheTime() {
  for (int i = 0; i < 100; ++i) {
    sink =
        sink + static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
}

void CallSystem() {
  for (int i = 0; i < 20; ++i) sink = sink + static_cast<uint64_t>(getppid());
  void* memory = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(memory, 1, 65536);
  munmap(memory, 65536);
}

void JumpLong() {
  static std::jmp_buf place;
  for (int i = 0; i < 50; ++i) {
    if (setjmp(place) == 0) std::longjmp(place, 1);
    Spin(10);
  }
}

void StartThread() {
  std::thread([] { Spin(100); }).join();
}

ucontext_t fiber;
ucontext_t fiber_caller;

void FiberBody() {
  Spin(2000);
  FormatText();
}

void RunFiber() {
  static char stack[65536];
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = stack;
  fiber.uc_stack.ss_size = sizeof(stack);
  fiber.uc_link = &fiber_caller;
  makecontext(&fiber, FiberBody, 0);
  swapcontext(&fiber_caller, &fiber);
}

void CallFunctionObjects() {
  std::vector<std::function<uint64_t(uint64_t)>> functions;
  for (uint64_t i = 0; i < 32; ++i) functions.emplace_back([i](uint64_t x) { return x * i; });
  uint64_t value = 1;
  for (const auto& function : functions) value += function(value);
  sink = sink + value;
}

}  // namespace

const std::vector<NativeWorkload>& NativeWorkloads() {
  static const std::vector<NativeWorkload> kWorkloads = {
      {"sort", SortNumbers},
      {"qsort", CallBackFromQsort},
      {"regex", MatchRegex},
      {"map", FillMap},
      {"exceptions", ThrowExceptions},
      {"signal_handler", RunSignalHandler},
      {"alternate_stack", RunHandlerOnAlternateStack},
      {"memory", CopyMemory},
      {"recursion", RecurseDeeply},
      {"variable_arrays", UseVariableArrays},
      {"large_frame", UseLargeFrame},
      {"format", FormatText},
      {"malloc", Allocate},
      {"dlopen", LoadLibrary},
      {"vdso", AskTheTime},
      {"system_calls", CallSystem},
      {"longjmp", JumpLong},
      {"threads", StartThread},
      {"fiber", RunFiber},
      {"function_objects", CallFunctionObjects},
  };
  return kWorkloads;
}

}  // namespace spanprof::sampling
