// Fuzzes the walker: the input is the registers and the stack. Words may mean places: a word whose
// high bits say so becomes an address in the stack or in code.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#include "sampling/code_map.h"
#include "sampling/native_registers.h"
#include "sampling/native_walker.h"

namespace {

namespace sampling = spanprof::sampling;

struct Fixture {
  Fixture() {
    if (!map.Refresh()) std::abort();
    mappings = map.Mappings();
  }
  sampling::CodeMap map;
  std::vector<spanprof::ElfMapping> mappings;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Fixture kFixture;
  std::vector<std::uint64_t> words(std::min<std::size_t>(size / 8, 2048) + 64);
  std::memcpy(words.data(), data, std::min(size, words.size() * 8));
  const auto low = reinterpret_cast<std::uint64_t>(words.data());
  for (std::uint64_t& word : words) {
    const std::uint64_t value = word & 0xFFFFFFFFFF;
    if (word >> 56 == 0xA1) word = low + value % (words.size() * 8);
    if (word >> 56 == 0xA2) {
      const auto& mapping = kFixture.mappings[value % kFixture.mappings.size()];
      word = mapping.start + (value >> 8) % (mapping.end - mapping.start);
    }
  }
  ucontext_t context{};
#if defined(__x86_64__)
  for (unsigned i = 0; i < NGREG; ++i)
    context.uc_mcontext.gregs[i] = static_cast<long long>(words[i]);
#elif defined(__aarch64__)
  for (unsigned i = 0; i < 31; ++i) context.uc_mcontext.regs[i] = words[i];
  context.uc_mcontext.sp = words[31];
  context.uc_mcontext.pc = words[32];
#endif
  const sampling::NativeWalker walker(kFixture.map);
  std::array<std::uint64_t, 65> pcs{};
  for (const bool known : {false, true}) {
    const std::uint64_t high = known ? sampling::TrustedStackHigh(sampling::StackPointerOf(context),
                                                                  low, low + words.size() * 8)
                                     : 0;
    const sampling::WalkedStack stack = walker.Walk(context, high, pcs.data(), 64);
    if (stack.depth > 64 || pcs[64] != 0) std::abort();
  }
  return 0;
}
