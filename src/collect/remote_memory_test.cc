#include "collect/remote_memory.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <signal.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace spanprof::collect {
namespace {

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

TEST(ProcessMemory, ReadsSeveralRangesInTheGivenOrder) {
  const std::array<char, 8> source = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};
  std::array<std::byte, 3> first{};
  std::array<std::byte, 2> second{};
  ProcessMemory memory(getpid());
  const MemoryRange ranges[] = {{AddressOf(&source[5]), first}, {AddressOf(&source[0]), second}};
  ASSERT_EQ(memory.ReadInOrder(ranges), ReadStatus::kOk);
  EXPECT_EQ(std::memcmp(first.data(), "fgh", 3), 0);
  EXPECT_EQ(std::memcmp(second.data(), "ab", 2), 0);
}

TEST(ProcessMemory, TellsFailuresApart) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  munmap(static_cast<char*>(pages) + page, page);
  std::array<std::byte, 16> bytes{};
  ProcessMemory memory(getpid());
  EXPECT_EQ(memory.Read(AddressOf(pages) + page, bytes), ReadStatus::kBadAddress);
  EXPECT_EQ(memory.error_number(), EFAULT);
  EXPECT_EQ(memory.Read(0, bytes), ReadStatus::kBadAddress);
  EXPECT_EQ(memory.Read(UINT64_MAX - 3, bytes), ReadStatus::kBadAddress);
  EXPECT_EQ(memory.Read(AddressOf(pages) + page - 8, bytes), ReadStatus::kPartial);
  const MemoryRange ranges[] = {{AddressOf(pages), bytes}, {8, bytes}};
  EXPECT_EQ(memory.ReadVectors(ranges), ReadStatus::kPartial);
  munmap(pages, page);

  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  waitpid(ended, nullptr, 0);
  ProcessMemory nobody(ended);
  EXPECT_EQ(nobody.Read(AddressOf(bytes.data()), bytes), ReadStatus::kNoSuchProcess);
}

TEST(ProcessMemory, SaysWhenItIsNotPermitted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  const pid_t reader = fork();
  if (reader == 0) {
    if (setuid(65534) != 0) _exit(2);
    std::array<std::byte, 4> bytes{};
    ProcessMemory memory(getppid());
    const bool refused = memory.Read(AddressOf(bytes.data()), bytes) == ReadStatus::kNotPermitted;
    _exit(refused && memory.error_number() == EPERM ? 0 : 1);
  }
  int status = 0;
  waitpid(reader, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ProcessMemory, RefusesMoreRangesThanItTakes) {
  std::array<std::byte, 1> byte{};
  const std::vector<MemoryRange> ranges(MemoryReader::kMaxRanges + 1,
                                        MemoryRange{AddressOf(byte.data()), byte});
  ProcessMemory memory(getpid());
  EXPECT_EQ(memory.ReadVectors(ranges), ReadStatus::kFailed);
  EXPECT_EQ(memory.ReadVectors(std::span(ranges).first(MemoryReader::kMaxRanges)), ReadStatus::kOk);
}

}  // namespace
}  // namespace spanprof::collect
