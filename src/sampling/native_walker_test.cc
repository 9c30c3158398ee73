// The walker on live stacks: completeness, exactness, and both ways of reading the stack.

#include "sampling/native_walker.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "sampling/native_frames.h"
#include "sampling/native_registers.h"
#include "sampling/native_self_sampler.h"
#include "sampling/native_workloads.h"
#include "sampling/safe_memory.h"

namespace spanprof::sampling {
namespace {

class NativeWalkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Loads and binds what the workloads need, so that the tables know of it.
    for (const NativeWorkload& workload : NativeWorkloads()) workload.run();
    const Result<void> refreshed = map_.Refresh();
    ASSERT_TRUE(refreshed) << refreshed.error().message;
  }

  CodeMap map_;
  NativeWalker walker_{map_};
};

// Not all: where the C++ run time is about to jump to a handler, it has already put the handler's
// registers in place of its own caller's, and its tables do not say so. That is one sample in 300
// of a program that does nothing but throw.
TEST_F(NativeWalkerTest, AtLeast99PercentOfStacksAreComplete) {
  unsigned all_samples = 0;
  unsigned all_complete = 0;
  for (const NativeWorkload& workload : NativeWorkloads()) {
    unsigned samples = 0;
    unsigned complete = 0;
    std::string details;
    for (const StackBounds bounds : {StackBounds::kKnown, StackBounds::kUnknown}) {
      NativeSelfSampler sampler(walker_, bounds);
      sampler.Run(1000, workload.run);
      EXPECT_GE(sampler.samples(), 1000u) << workload.name;
      samples += sampler.samples();
      complete += sampler.complete();
      details += bounds == StackBounds::kKnown ? "known bounds: " : "unknown bounds: ";
      details += sampler.Describe();
    }
    std::printf("%-18s %5u samples, %6.2f %% complete\n", workload.name, samples,
                100.0 * complete / samples);
    if (complete != samples) std::printf("%s", details.c_str());
    EXPECT_GE(100.0 * complete / samples, 99.0) << workload.name << ": " << details;
    all_samples += samples;
    all_complete += complete;
  }
  std::printf("all: %u of %u, %.3f %%\n", all_complete, all_samples,
              100.0 * all_complete / all_samples);
}

// The frames of a sample from the root of the chain inwards, as functions of the chain.
std::vector<int> ChainOf(const KeptStack& stack) {
  std::vector<int> functions;
  for (std::size_t i = 0; i < stack.pcs.size(); ++i) {
    functions.push_back(ChainFunctionOf(stack.pcs[i] - (i == 0 ? 0 : 1)));
  }
  std::reverse(functions.begin(), functions.end());
  const auto root = std::find(functions.begin(), functions.end(), kChainRoot);
  functions.erase(functions.begin(), root);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Functions of the sanitizer, called by those of the chain.
  while (!functions.empty() && functions.back() == -1) functions.pop_back();
#endif
  return functions;
}

uint64_t RandomOrder(std::mt19937_64& random) {
  uint64_t order = 0;
  for (unsigned i = 0; i < 12; ++i) order |= (random() % kChainLinks) << (3 * i);
  return order | (uint64_t{7} << 36);
}

std::string ToText(const std::vector<int>& functions) {
  std::string text;
  for (const int function : functions) text += std::to_string(function) + " ";
  return text;
}

// Looks at the samples that were taken in the chain, whose order is noted with each. Gives how many
// these are.
unsigned ExpectExactChains(const NativeSelfSampler& sampler) {
  unsigned in_chain = 0;
  unsigned wrong = 0;
  std::vector<uint64_t> outside;  // the frames around the chain, the same in every sample
  for (const KeptStack& stack : sampler.Stacks()) {
    const std::vector<int> chain = ChainOf(stack);
    if (chain.empty()) continue;
    ++in_chain;
    bool right = stack.complete;
    // Every function in its order, with none left out, none twice, and none other in between.
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const auto expected = static_cast<int>((stack.note >> (3 * (i - 1))) % 8);
      right = right && chain[i] == expected;
    }
    // From the outermost to the root, which may itself be where the sample was taken.
    std::vector<uint64_t> around;
    for (std::size_t i = stack.pcs.size(); i-- > 0;) {
      if (ChainFunctionOf(stack.pcs[i] - (i == 0 ? 0 : 1)) == kChainRoot) break;
      around.push_back(stack.pcs[i]);
    }
    if (outside.empty()) outside = around;
    right = right && around == outside;
    if (!right && ++wrong < 10) {
      ADD_FAILURE() << "order " << std::oct << stack.note << std::dec << ", found " << ToText(chain)
                    << NameOf(stack.failure) << " depth " << stack.depth << " innermost "
                    << DescribePc(stack.pcs[0]);
    }
  }
  EXPECT_EQ(wrong, 0u);
  std::printf("%u samples in the chain, %u wrong; %s", in_chain, wrong, sampler.Describe().c_str());
  return in_chain;
}

// A single place to call the chain from: the frames around it are to be the same in all samples.
[[gnu::noinline]] void RunNotedChain(uint64_t order) {
  NativeSelfSampler::note = order;
  RunChain(order);
  asm volatile("");  // no tail call, which would leave this function out of the stack
}

void ExpectExactChains(const NativeWalker& walker, StackBounds bounds) {
  std::mt19937_64 random(7);
  NativeSelfSampler sampler(walker, bounds);
  uint64_t order = 0;
  unsigned calls = 0;
  sampler.Run(5000, [&] {
    if (calls++ % 20 == 0) order = RandomOrder(random);
    RunNotedChain(order);
  });
  EXPECT_GT(ExpectExactChains(sampler), 500u);
}

TEST_F(NativeWalkerTest, ChainsAreExactWithKnownBounds) {
  ExpectExactChains(walker_, StackBounds::kKnown);
}

TEST_F(NativeWalkerTest, ChainsAreExactWithUnknownBounds) {
  ExpectExactChains(walker_, StackBounds::kUnknown);
}

TEST_F(NativeWalkerTest, ChainsAreExactWithoutProcessVmReadv) {
  RefuseProcessVmReadvForTesting(true);
  ExpectExactChains(walker_, StackBounds::kUnknown);
  RefuseProcessVmReadvForTesting(false);
}

// What chance leaves out: prologues and epilogues are a few instructions, and each has its own
// rule.
TEST_F(NativeWalkerTest, ChainsAreExactAtEveryInstruction) {
  for (const StackBounds bounds : {StackBounds::kKnown, StackBounds::kUnknown}) {
    std::mt19937_64 random(11);
    NativeSelfSampler sampler(walker_, bounds);
    std::vector<uint64_t> orders(20);
    for (uint64_t& order : orders) order = RandomOrder(random);
    const bool stepped = sampler.RunByInstruction([&orders] {
      for (const uint64_t order : orders) RunNotedChain(order);
    });
    if (!stepped) GTEST_SKIP() << "this machine does not let a program step itself";
    ASSERT_LT(sampler.samples(), NativeSelfSampler::kMaxSamples);
    EXPECT_GT(ExpectExactChains(sampler), 5000u);
  }
}

TEST_F(NativeWalkerTest, OtherThreadsReachTheirStart) {
  std::thread([this] {
    NativeSelfSampler sampler(walker_);
    sampler.Run(1000, NativeWorkloads()[0].run);
    EXPECT_GE(sampler.samples(), 1000u);
    EXPECT_GE(sampler.CompletePercent(), 99.0) << sampler.Describe();
  }).join();
}

TEST_F(NativeWalkerTest, DepthIsBounded) {
  ucontext_t here;
  getcontext(&here);
  std::array<uint64_t, 3> pcs{};
  const WalkedStack stack = walker_.Walk(here, OwnStackBounds()[1], pcs.data(), 2);
  EXPECT_EQ(stack.depth, 2u);
  EXPECT_FALSE(stack.complete);
  EXPECT_EQ(stack.failure, static_cast<uint8_t>(WalkFailure::kDepthLimit));
  EXPECT_EQ(pcs[2], 0u);
  EXPECT_EQ(walker_.Walk(here, OwnStackBounds()[1], pcs.data(), 0).depth, 0u);
}

TEST_F(NativeWalkerTest, WithoutAMapThereIsTheInnermostFrameAtLeast) {
  const CodeMap empty;
  const NativeWalker walker(empty);
  ucontext_t here;
  getcontext(&here);
  std::array<uint64_t, 64> pcs{};
  const WalkedStack stack = walker.Walk(here, OwnStackBounds()[1], pcs.data(), pcs.size());
  EXPECT_GE(stack.depth, 1u);
  EXPECT_FALSE(stack.complete);
  EXPECT_GT(empty.statistics().unknown_pcs, 0u);
}

// As a walker does that has frames of its own between native ones.
TEST_F(NativeWalkerTest, GoesOnFromAFrameThatWasFoundByOtherMeans) {
  ucontext_t at;
  ASSERT_EQ(getcontext(&at), 0);
  CodeMap::Reader reader(map_);
  NativeStackMemory memory(StackPointerOf(at), 0);
  NativeFrames whole(reader, memory, at);
  ASSERT_EQ(whole.Next(), NativeFrames::Step::kCaller);
  ASSERT_EQ(whole.Next(), NativeFrames::Step::kCaller);
  NativeFrames rest(reader, memory, at);
  rest.GoOnFrom(whole.pc(), whole.stack_pointer(), whole.frame_pointer());
  unsigned depth = 0;
  for (NativeFrames::Step step = NativeFrames::Step::kCaller; step == NativeFrames::Step::kCaller;
       ++depth) {
    EXPECT_EQ(rest.pc(), whole.pc());
    EXPECT_EQ(rest.stack_pointer(), whole.stack_pointer());
    EXPECT_FALSE(rest.interrupted());
    step = whole.Next();
    ASSERT_EQ(rest.Next(), step);
    EXPECT_NE(step, NativeFrames::Step::kFailed);
  }
  EXPECT_GE(depth, 3u);
}

}  // namespace
}  // namespace spanprof::sampling
