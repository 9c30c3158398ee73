#include "sampling/code_map.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "sampling/native_self_sampler.h"
#include "sampling/native_walker.h"

namespace spanprof::sampling {
namespace {

using PluginCall = int (*)(int (*)(void*), void*);

struct Walked {
  const NativeWalker* walker;
  WalkedStack stack;
  std::array<uint64_t, 128> pcs;
};

int WalkHere(void* data) {
  Walked& walked = *static_cast<Walked*>(data);
  ucontext_t here;
  getcontext(&here);
  walked.stack = walked.walker->Walk(here, 0, walked.pcs.data(), walked.pcs.size());
  return 0;
}

class CodeMapTest : public ::testing::Test {
 protected:
  static void* Load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }
  static PluginCall CallOf(void* library) {
    return reinterpret_cast<PluginCall>(dlsym(library, "spanprof_test_plugin_call"));
  }
  CodeMap map_;
  NativeWalker walker_{map_};
};

TEST_F(CodeMapTest, KnowsThisProgramItsLibrariesAndTheVdso) {
  ASSERT_TRUE(map_.Refresh());
  const CodeMapStatistics statistics = map_.statistics();
  EXPECT_GE(statistics.objects, 4u);
  EXPECT_EQ(statistics.tables, statistics.objects);
  EXPECT_EQ(statistics.broken_functions, 0u);
  const std::string own_path = std::filesystem::read_symlink("/proc/self/exe");
  bool program = false;
  bool libc = false;
  bool vdso = false;
  for (const ElfMapping& mapping : map_.Mappings()) {
    program |= mapping.path == own_path && mapping.has_bias;
    libc |= mapping.path.find("libc.so") != std::string::npos && mapping.build_id.size() == 40;
    vdso |= mapping.path == "[vdso]" && mapping.has_bias;
  }
  EXPECT_TRUE(program);
  EXPECT_TRUE(libc);
  EXPECT_TRUE(vdso);
}

TEST_F(CodeMapTest, RefreshesOnlyWhenThereIsAReason) {
  EXPECT_TRUE(map_.RefreshIfNeeded());
  EXPECT_FALSE(map_.RefreshIfNeeded());
  void* library = Load(SPANPROF_PLUGIN_1);
  EXPECT_TRUE(map_.RefreshIfNeeded());
  EXPECT_FALSE(map_.RefreshIfNeeded());
  dlclose(library);
  EXPECT_TRUE(map_.RefreshIfNeeded());
  EXPECT_FALSE(map_.RefreshIfNeeded());
}

TEST_F(CodeMapTest, ALoadedLibraryIsWalkedThroughAndAnUnloadedOneForgotten) {
  ASSERT_TRUE(map_.Refresh());
  void* library = Load(SPANPROF_PLUGIN_1);
  Walked walked{&walker_, {}, {}};
  const auto frames_in_library = [&walked] {
    unsigned count = 0;
    for (unsigned i = 0; i < walked.stack.depth; ++i) {
      Dl_info info{};
      const bool known = dladdr(reinterpret_cast<void*>(walked.pcs[i]), &info) != 0;
      if (known && std::string(info.dli_fname) == SPANPROF_PLUGIN_1) ++count;
    }
    return count;
  };
  CallOf(library)(WalkHere, &walked);
  EXPECT_LT(frames_in_library(), 8u);
  // What was not known is a reason by itself.
  EXPECT_GT(map_.statistics().unknown_pcs, 0u);
  ASSERT_TRUE(map_.RefreshIfNeeded());
  CallOf(library)(WalkHere, &walked);
  EXPECT_TRUE(walked.stack.complete);
  EXPECT_EQ(frames_in_library(), 8u);
  const uint64_t plugin_pc = walked.pcs[1];
  dlclose(library);
  // The old snapshot still has the table: a walk through it touches nothing of the library.
  ucontext_t here;
  getcontext(&here);
#if defined(__x86_64__)
  here.uc_mcontext.gregs[REG_RIP] = static_cast<long long>(plugin_pc);
#elif defined(__aarch64__)
  here.uc_mcontext.pc = plugin_pc;
#endif
  (void)walker_.Walk(here, 0, walked.pcs.data(), walked.pcs.size());
  ASSERT_TRUE(map_.RefreshIfNeeded());
  CodeMap::Reader reader(map_);
  EXPECT_EQ(reader.Find(plugin_pc), nullptr);
  // Its samples can still be named.
  const std::vector<ElfMapping> mappings = map_.Mappings();
  EXPECT_TRUE(std::any_of(mappings.begin(), mappings.end(), [plugin_pc](const ElfMapping& mapping) {
    return plugin_pc >= mapping.start && plugin_pc < mapping.end;
  }));
}

TEST_F(CodeMapTest, AnOldSnapshotStaysWhileAHandlerMayUseIt) {
  ASSERT_TRUE(map_.Refresh());
  {
    CodeMap::Reader reader(map_);
    const CodeRegion* region = reader.Find(reinterpret_cast<uint64_t>(&WalkHere));
    ASSERT_NE(region, nullptr);
    const uint64_t start = region->start;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(map_.Refresh());
    EXPECT_EQ(map_.statistics().waiting_snapshots, 5u);
    EXPECT_EQ(region->start, start);
    EXPECT_NE(region->table->Find(reinterpret_cast<uint64_t>(&WalkHere) - region->bias), nullptr);
  }
  EXPECT_FALSE(map_.RefreshIfNeeded());
  EXPECT_EQ(map_.statistics().waiting_snapshots, 0u);
}

TEST_F(CodeMapTest, TablesAreBoundedTogether) {
  CodeMap small({.max_table_bytes = 20000});
  ASSERT_TRUE(small.Refresh());
  const CodeMapStatistics statistics = small.statistics();
  EXPECT_GT(statistics.objects_over_limit, 0u);
  EXPECT_LT(statistics.table_bytes, 100000u);
  const NativeWalker walker(small);
  Walked walked{&walker, {}, {}};
  WalkHere(&walked);
  EXPECT_GE(walked.stack.depth, 1u);
}

TEST_F(CodeMapTest, AForkedChildGoesOn) {
  ASSERT_TRUE(map_.Refresh());
  // Threads that are inside, and one that is refreshing, at the moment of the fork.
  std::atomic<bool> stop{false};
  std::thread refresher([this, &stop] {
    while (!stop) (void)map_.Refresh();
  });
  std::thread walker([this, &stop] {
    Walked walked{&walker_, {}, {}};
    while (!stop) WalkHere(&walked);
  });
  int failures = 0;
  for (int i = 0; i < 20; ++i) {
    CodeMap::PrepareFork();
    const pid_t child = fork();
    CodeMap::FinishFork();
    if (child == 0) {
      alarm(30);  // a child that finds a lock taken for ever is a failure, not a hang
      map_.ResetAfterFork();
      Walked walked{&walker_, {}, {}};
      const bool refreshed = map_.Refresh().has_value() && map_.Refresh().has_value();
      WalkHere(&walked);
      _exit(refreshed && walked.stack.complete && map_.statistics().waiting_snapshots == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) ++failures;
  }
  stop = true;
  refresher.join();
  walker.join();
  EXPECT_EQ(failures, 0);
}

// Samples come while libraries are loaded and unloaded by one thread and the map is refreshed by
// another; what the sampled thread runs is often gone a moment later.
TEST_F(CodeMapTest, SurvivesLoadingAndUnloading) {
  ASSERT_TRUE(map_.Refresh());
  std::atomic<bool> stop{false};
  std::atomic<unsigned> loads{0};
  std::thread refresher([this, &stop] {
    while (!stop) {
      (void)map_.RefreshIfNeeded();
      std::this_thread::yield();
    }
  });
  std::thread loader([&stop, &loads] {
    while (!stop) {
      void* first = dlopen(SPANPROF_PLUGIN_1, RTLD_NOW | RTLD_LOCAL);
      void* second = dlopen(SPANPROF_PLUGIN_2, RTLD_NOW | RTLD_LOCAL);
      if (first != nullptr) dlclose(first);
      if (second != nullptr) dlclose(second);
      ++loads;
    }
  });
  NativeSelfSampler sampler(walker_);
  sampler.Run(5000, [] {
    void* library = dlopen(SPANPROF_PLUGIN_2, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const PluginCall call = CallOf(library);
    for (int i = 0; i < 20; ++i) {
      call(
          [](void*) {
            for (int spin = 0; spin < 500; ++spin) asm volatile("");
            return 0;
          },
          nullptr);
    }
    dlclose(library);
  });
  stop = true;
  refresher.join();
  loader.join();
  EXPECT_GE(sampler.samples(), 5000u);
  const CodeMapStatistics statistics = map_.statistics();
  std::printf("%u loads, %lu refreshes, %zu bytes of tables, %s", loads.load(),
              static_cast<unsigned long>(statistics.refreshes), statistics.table_bytes,
              sampler.Describe().c_str());
  EXPECT_GT(statistics.refreshes, 10u);
  (void)map_.RefreshIfNeeded();
  EXPECT_LE(map_.statistics().waiting_snapshots, 1u);
  EXPECT_LE(map_.Mappings().size(), 1024u + 64);
}

#if defined(__x86_64__)
// push %rbp; mov %rsp,%rbp; call *%rdi (with rsi as its argument); pop %rbp; ret
constexpr unsigned char kJitCode[] = {0x55, 0x48, 0x89, 0xE5, 0x48, 0x89, 0xF8,
                                      0x48, 0x89, 0xF7, 0xFF, 0xD0, 0x5D, 0xC3};

TEST_F(CodeMapTest, JitCodeIsWalkedByFramePointers) {
  auto* code = static_cast<unsigned char*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memcpy(code, kJitCode, sizeof(kJitCode));
  ASSERT_EQ(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
  ASSERT_TRUE(map_.Refresh());
  Walked walked{&walker_, {}, {}};
  reinterpret_cast<PluginCall>(code)(WalkHere, &walked);
  EXPECT_TRUE(walked.stack.complete)
      << NameOf(static_cast<WalkFailure>(walked.stack.failure)) << walked.stack.depth;
  const auto jit_pc = reinterpret_cast<uint64_t>(code) + 12;
  EXPECT_NE(std::find(walked.pcs.begin(), walked.pcs.end(), jit_pc), walked.pcs.end());
  munmap(code, 4096);
}
#endif

TEST(NativeObjects, TheMapsFileMayBeAnything) {
  char name[] = "/tmp/spanprof-maps-XXXXXX";
  const int file = mkstemp(name);
  const std::string text =
      "1000-2000 r-xp 00000000 08:01 77 /a file\n"
      "nonsense\n2000-3000 rw-p 00000000 00:00 0 \n3000-2000 r-xp 0 0:0 0\n"
      "4000-5000 r-xp 00000000 00:00 0\n4800-6000 r-xp 0 0:0 0 /overlaps\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
  ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  const auto mappings = ListExecutableMappings(name);
  ASSERT_TRUE(mappings);
  ASSERT_EQ(mappings->size(), 2u);
  EXPECT_EQ((*mappings)[0].path, "/a file");
  EXPECT_EQ((*mappings)[0].inode, 77u);
  EXPECT_EQ((*mappings)[1].path, "//anon");
  const std::string endless(100000, 'x');
  ASSERT_EQ(write(file, endless.data(), endless.size()), static_cast<ssize_t>(endless.size()));
  EXPECT_FALSE(ListExecutableMappings(name));
  EXPECT_FALSE(ListExecutableMappings("/tmp/spanprof/none"));
  close(file);
  unlink(name);
}

}  // namespace
}  // namespace spanprof::sampling
