#include "symbols/native_symboliser.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "sampling/code_map.h"

namespace spanprof::symbols {

[[gnu::noinline]] int FunctionWithAName(int value) {
  asm volatile("");
  return value * 3;
}

namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

template <class Function>
uint64_t AddressOf(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

class NativeSymboliserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(map_.Refresh());
    symboliser_.SetMappings(map_.Mappings());
  }
  sampling::CodeMap map_;
  NativeSymboliser symboliser_;
};

TEST_F(NativeSymboliserTest, NamesFromSymtabWithBuildIdAndAddress) {
  const ResolvedPc resolved = symboliser_.Resolve(AddressOf(FunctionWithAName) + 1);
  EXPECT_EQ(resolved.name, "spanprof::symbols::FunctionWithAName(int)");
  EXPECT_EQ(resolved.system_name, "_ZN8spanprof7symbols17FunctionWithANameEi");
  ASSERT_NE(resolved.mapping, nullptr);
  EXPECT_THAT(resolved.mapping->path, HasSubstr("symbols_test"));
  EXPECT_EQ(resolved.mapping->bias + resolved.address, AddressOf(FunctionWithAName) + 1);
}

TEST_F(NativeSymboliserTest, NamesFromDynsymOfAStrippedLibrary) {
  const ResolvedPc resolved = symboliser_.Resolve(AddressOf(std::qsort) + 4);
  EXPECT_EQ(resolved.name, "qsort");
  EXPECT_EQ(resolved.mapping->build_id.size(), 40u);
}

TEST_F(NativeSymboliserTest, TheVdsoHasNamesToo) {
  for (const ElfMapping& mapping : map_.Mappings()) {
    if (mapping.path != "[vdso]") continue;
    unsigned named = 0;
    for (uint64_t pc = mapping.start; pc < mapping.end; pc += 16) {
      if (symboliser_.Resolve(pc).name.find("clock_gettime") != std::string::npos) ++named;
    }
    EXPECT_GT(named, 0u);
    return;
  }
  GTEST_SKIP() << "there is no vdso";
}

TEST_F(NativeSymboliserTest, WithoutANameFileBuildIdAndAddressAreKept) {
  // The first bytes of a file are no function.
  for (const ElfMapping& mapping : map_.Mappings()) {
    if (mapping.path.find("libc.so") == std::string::npos) continue;
    profile::Profile profile;
    ProfileFrames frames(symboliser_, profile);
    const profile::FrameId id = frames.AddFrame(mapping.start);
    const profile::Frame& frame = profile.frames()[id];
    EXPECT_EQ(frame.function, profile::kNone);
    EXPECT_EQ(frame.address, mapping.start - mapping.bias);
    const profile::Mapping& stored = profile.mappings()[frame.mapping];
    EXPECT_EQ(profile.Text(stored.build_id), mapping.build_id);
    EXPECT_EQ(stored.file_offset, mapping.file_offset);
    EXPECT_EQ(profile.Text(stored.path), mapping.path);
    return;
  }
  FAIL() << "no libc";
}

TEST_F(NativeSymboliserTest, UnknownAddressesHaveNoMapping) {
  const ResolvedPc resolved = symboliser_.Resolve(0x1234);
  EXPECT_EQ(resolved.mapping, nullptr);
  EXPECT_EQ(resolved.address, 0x1234u);
  EXPECT_EQ(resolved.name, "");
}

TEST_F(NativeSymboliserTest, AReplacedFileIsNotUsed) {
  std::vector<ElfMapping> mappings = map_.Mappings();
  for (ElfMapping& mapping : mappings) mapping.build_id = "0123456789";
  symboliser_.SetMappings(mappings);
  const ResolvedPc resolved = symboliser_.Resolve(AddressOf(std::qsort) + 4);
  EXPECT_EQ(resolved.name, "");
  EXPECT_EQ(resolved.mapping->build_id, "0123456789");
}

TEST_F(NativeSymboliserTest, JitCodeIsNamedByThePerfMap) {
  char folder[] = "/tmp/spanprof-symbols-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/perf-" + std::to_string(getpid()) + ".map";
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char line[64];
  std::snprintf(line, sizeof(line), "%lx 100 jitted\n",
                static_cast<unsigned long>(AddressOf(code)));
  std::ofstream(path) << line;
  NativeSymboliser symboliser({.perf_map_folder = folder, .max_symbol_bytes = 1 << 20});
  ASSERT_TRUE(map_.Refresh());
  symboliser.SetMappings(map_.Mappings());
  EXPECT_EQ(symboliser.Resolve(AddressOf(code) + 0x10).name, "jitted");
  EXPECT_EQ(symboliser.Resolve(AddressOf(code) + 0x200).name, "");
  // What was compiled since is known after the next look.
  std::snprintf(line, sizeof(line), "%lx 100 later\n",
                static_cast<unsigned long>(AddressOf(code) + 0x200));
  std::ofstream(path, std::ios::app) << line;
  symboliser.SetMappings(map_.Mappings());
  EXPECT_EQ(symboliser.Resolve(AddressOf(code) + 0x200).name, "later");
  munmap(code, 4096);
  (void)std::system(("rm -rf " + std::string(folder)).c_str());
}

TEST_F(NativeSymboliserTest, FramesHaveNameAndAddress) {
  profile::Profile profile;
  ProfileFrames frames(symboliser_, profile);
  // The return address behind a function's last byte, less 1, is still that function's.
  const uint64_t start = AddressOf(FunctionWithAName);
  uint64_t end = start;
  while (symboliser_.Resolve(end).name == symboliser_.Resolve(start).name) ++end;
  const profile::FrameId ids[] = {frames.AddFrame(start), frames.AddFrame(end - 1)};
  for (const profile::FrameId id : ids) {
    const profile::Function& function = profile.functions()[profile.frames()[id].function];
    EXPECT_EQ(profile.Text(function.name), "spanprof::symbols::FunctionWithAName(int)");
  }
  EXPECT_EQ(profile.frames()[ids[1]].address, profile.frames()[ids[0]].address + (end - 1 - start));
}

TEST_F(NativeSymboliserTest, MemoryIsBounded) {
  NativeSymboliser small({.perf_map_folder = "/tmp", .max_symbol_bytes = 1000});
  small.SetMappings(map_.Mappings());
  (void)small.Resolve(AddressOf(FunctionWithAName));
  (void)small.Resolve(AddressOf(std::qsort));
  EXPECT_LT(small.cached_symbol_bytes(), 100000u);
  (void)symboliser_.Resolve(AddressOf(FunctionWithAName));
  EXPECT_GT(symboliser_.cached_symbol_bytes(), 1000u);
  symboliser_.FreeCache();
  EXPECT_EQ(symboliser_.cached_symbol_bytes(), 0u);
}

}  // namespace
}  // namespace spanprof::symbols
