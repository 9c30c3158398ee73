// Code that comes and goes: a plugin is loaded and unloaded by several threads, which run it while
// they have it.

#include <cstdint>
#include <dlfcn.h>
#include <thread>
#include <vector>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

void LoadAndRun() {
  for (int i = 0; i < 40; ++i) {
    void* const plugin = dlopen(PluginPath().c_str(), i % 2 == 0 ? RTLD_NOW : RTLD_LAZY);
    Expect(plugin != nullptr, "dlopen", 0, 1);
    if (plugin == nullptr) return;
    using Function = uint64_t (*)(uint64_t);
    const auto sum = reinterpret_cast<Function>(dlsym(plugin, "hostile_plugin_sum"));
    Expect(sum != nullptr, "dlsym", 0, 1);
    if (sum != nullptr) {
      ExpectEqual(static_cast<int64_t>(sum(20'000)), 200'010'000, "a sum of the plugin's");
    }
    ExpectEqual(dlclose(plugin), 0, "dlclose");
  }
}

void LoadsAndUnloads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(LoadAndRun);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

const Scenario kPlugins[] = {
    {"loads and unloads", LoadsAndUnloads},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
