// What the hostile neighbour loads and unloads.

#include <cstdint>
#include <stdexcept>

namespace {

[[gnu::noinline]] uint64_t Sum(uint64_t from, uint64_t to) {
  if (to - from < 64) {
    volatile uint64_t sum = 0;
    for (uint64_t i = from; i < to; ++i) sum = sum + i;
    return sum;
  }
  const uint64_t middle = from + (to - from) / 2;
  return Sum(from, middle) + Sum(middle, to);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] uint64_t hostile_plugin_sum(uint64_t to) {
  try {
    throw std::runtime_error("through the plugin's own tables");
  } catch (const std::runtime_error&) {
    return Sum(0, to + 1);
  }
}
