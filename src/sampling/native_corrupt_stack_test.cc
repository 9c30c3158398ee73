// The walker on registers and stacks that mean nothing: it ends, within its bounds, and never
// faults.

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <ucontext.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "sampling/code_map.h"
#include "sampling/native_registers.h"
#include "sampling/native_walker.h"
#include "sampling/safe_memory.h"

namespace spanprof::sampling {
namespace {

class CorruptStackTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kStackWords = 4096;

  void SetUp() override {
    RefuseProcessVmReadvForTesting(GetParam());
    ASSERT_TRUE(map_.Refresh());
    mappings_ = map_.Mappings();
    // With memory that is not there on both sides.
    constexpr std::size_t kBytes = kStackWords * sizeof(uint64_t);
    auto* memory = static_cast<char*>(mmap(nullptr, kBytes + 2 * 4096, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mprotect(memory, 4096, PROT_NONE), 0);
    ASSERT_EQ(mprotect(memory + 4096 + kBytes, 4096, PROT_NONE), 0);
    stack_ = reinterpret_cast<uint64_t*>(memory + 4096);
  }
  void TearDown() override { RefuseProcessVmReadvForTesting(false); }

  [[nodiscard]] uint64_t StackLow() const { return reinterpret_cast<uint64_t>(stack_); }
  [[nodiscard]] uint64_t StackHigh() const { return StackLow() + kStackWords * sizeof(uint64_t); }

  // Values that get further than random ones: code, the stack, just outside of it, small numbers.
  uint64_t Value() {
    switch (random_() % 6) {
      case 0:
        return random_();
      case 1:
      case 2: {
        const ElfMapping& mapping = mappings_[random_() % mappings_.size()];
        return mapping.start + random_() % (mapping.end - mapping.start);
      }
      case 3:
        return StackLow() + 8 * (random_() % kStackWords);
      case 4:
        return StackLow() - 64 + random_() % (kStackWords * sizeof(uint64_t) + 128);
      default:
        return random_() % 64;
    }
  }

  void FillContext(ucontext_t& context) {
    std::memset(&context, 0, sizeof(context));
#if defined(__x86_64__)
    for (auto& reg : context.uc_mcontext.gregs) reg = static_cast<long long>(Value());
    if (random_() % 4 != 0) {
      context.uc_mcontext.gregs[REG_RSP] =
          static_cast<long long>(StackLow() + 8 * (random_() % kStackWords));
    }
#elif defined(__aarch64__)
    for (auto& reg : context.uc_mcontext.regs) reg = Value();
    context.uc_mcontext.pc = Value();
    context.uc_mcontext.sp =
        random_() % 4 != 0 ? StackLow() + 8 * (random_() % kStackWords) : Value();
#endif
  }

  CodeMap map_;
  NativeWalker walker_{map_};
  std::vector<ElfMapping> mappings_;
  std::mt19937_64 random_{2024};
  uint64_t* stack_ = nullptr;
};

TEST_P(CorruptStackTest, AnyRegistersAndAnyStackEndWell) {
  std::array<uint64_t, 130> pcs{};
  unsigned complete = 0;
  unsigned deep = 0;
  for (int round = 0; round < 60000; ++round) {
    if (round % 50 == 0) {
      for (std::size_t i = 0; i < kStackWords; ++i) stack_[i] = Value();
    }
    ucontext_t context;
    FillContext(context);
    const uint64_t high =
        random_() % 2 == 0 ? 0 : TrustedStackHigh(StackPointerOf(context), StackLow(), StackHigh());
    const auto max_depth = static_cast<unsigned>(random_() % 128);
    pcs.fill(0x5A5A5A5A);
    const WalkedStack stack = walker_.Walk(context, high, pcs.data(), max_depth);
    ASSERT_LE(stack.depth, max_depth);
    ASSERT_EQ(pcs[max_depth], 0x5A5A5A5Au);
    ASSERT_LT(stack.failure, kWalkFailureCount);
    ASSERT_EQ(stack.complete, stack.failure == static_cast<uint8_t>(WalkFailure::kNone));
    if (stack.complete) ++complete;
    if (stack.depth > 3) ++deep;
  }
  // The values were good enough to get somewhere.
  EXPECT_GT(complete, 100u);
  EXPECT_GT(deep, 100u);
}

TEST_P(CorruptStackTest, AFrameThatIsItsOwnCallerIsNotWalkedForEver) {
  // A chain of frame pointers that goes round, in code without tables.
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(map_.Refresh());
  const uint64_t pc = reinterpret_cast<uint64_t>(code) + 8;
  for (std::size_t i = 0; i < kStackWords; i += 2) {
    stack_[i] = StackLow() + 8 * 64;  // every record points to the same one
    stack_[i + 1] = pc;
  }
  ucontext_t context{};
#if defined(__x86_64__)
  context.uc_mcontext.gregs[REG_RIP] = static_cast<long long>(pc);
  context.uc_mcontext.gregs[REG_RSP] = static_cast<long long>(StackLow());
  context.uc_mcontext.gregs[REG_RBP] = static_cast<long long>(StackLow() + 8 * 32);
#elif defined(__aarch64__)
  context.uc_mcontext.pc = pc;
  context.uc_mcontext.sp = StackLow();
  context.uc_mcontext.regs[29] = StackLow() + 8 * 32;
#endif
  std::array<uint64_t, 1000> pcs{};
  const WalkedStack stack = walker_.Walk(context, StackHigh(), pcs.data(), pcs.size());
  EXPECT_EQ(stack.depth, 3u);
  EXPECT_FALSE(stack.complete);
  munmap(code, 4096);
}

INSTANTIATE_TEST_SUITE_P(BothWays, CorruptStackTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Probing" : "ByKernel"; });

}  // namespace
}  // namespace spanprof::sampling
