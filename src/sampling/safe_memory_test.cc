#include "sampling/safe_memory.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace spanprof::sampling {
namespace {

uint64_t AddressOf(const void* place) { return reinterpret_cast<uint64_t>(place); }

class SafeMemoryTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    RefuseProcessVmReadvForTesting(GetParam());
    pages_ = static_cast<char*>(
        mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(pages_, 'a', 3 * 4096);
    ASSERT_EQ(mprotect(pages_ + 4096, 4096, PROT_NONE), 0);
    munmap(pages_ + 2 * 4096, 4096);
  }
  void TearDown() override {
    munmap(pages_, 2 * 4096);
    RefuseProcessVmReadvForTesting(false);
  }
  char* pages_ = nullptr;
};

TEST_P(SafeMemoryTest, ReadsWhatIsThere) {
  char to[100] = {};
  EXPECT_EQ(ReadOwnMemory(AddressOf(pages_) + 7, to, sizeof(to)), sizeof(to));
  EXPECT_EQ(to[0], 'a');
  EXPECT_EQ(to[99], 'a');
}

TEST_P(SafeMemoryTest, StopsAtWhatIsNot) {
  char to[200] = {};
  errno = 123;
  EXPECT_EQ(ReadOwnMemory(AddressOf(pages_) + 4096 - 40, to, sizeof(to)), 40u);
  EXPECT_EQ(to[39], 'a');
  EXPECT_EQ(to[40], 0);
  EXPECT_EQ(ReadOwnMemory(AddressOf(pages_) + 4096, to, 8), 0u);
  EXPECT_EQ(ReadOwnMemory(AddressOf(pages_) + 2 * 4096, to, 8), 0u);
  EXPECT_EQ(errno, 123);
}

TEST_P(SafeMemoryTest, AnyAddressDoesNoHarm) {
  char to[64];
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{1}, uint64_t{4096}, uint64_t{1} << 47, ~uint64_t{0},
        ~uint64_t{0} - 63, uint64_t{0xFFFFFFFFFF600000} - 64, uint64_t{1} << 63}) {
    EXPECT_EQ(ReadOwnMemory(address, to, sizeof(to)), 0u) << address;
  }
}

TEST_P(SafeMemoryTest, CopiesAllOrNothing) {
  std::vector<char> large(300000, 'b');
  std::vector<char> to(large.size());
  EXPECT_TRUE(CopyOwnMemory(AddressOf(large.data()), to.data(), to.size()));
  EXPECT_EQ(to, large);
  EXPECT_FALSE(CopyOwnMemory(AddressOf(pages_), to.data(), 2 * 4096 + 1));
  EXPECT_FALSE(CopyOwnMemory(~uint64_t{0} - 4, to.data(), 8));
}

TEST_P(SafeMemoryTest, AForkedChildReadsItsOwn) {
  volatile char mine = 'p';
  char to[1];
  ASSERT_EQ(ReadOwnMemory(AddressOf(const_cast<char*>(&mine)), to, 1), 1u);
  const pid_t child = fork();
  if (child == 0) {
    mine = 'c';
    char seen[2] = {};
    const bool read = ReadOwnMemory(AddressOf(const_cast<char*>(&mine)), seen, 1) == 1;
    const bool copied = CopyOwnMemory(AddressOf(const_cast<char*>(&mine)), seen + 1, 1);
    _exit(read && copied && seen[0] == 'c' && seen[1] == 'c' ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(BothWays, SafeMemoryTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Probing" : "ByKernel"; });

}  // namespace
}  // namespace spanprof::sampling
