#include "profile/sample_fold.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace spanprof::profile {
namespace {

// The sample with what the level does not keep left out.
Sample Coarsen(Sample sample, FoldLevel level) {
  sample.time_ns = MinuteOf(sample.time_ns);
  if (level >= FoldLevel::kContext) sample.context = kNone;
  if (level >= FoldLevel::kMinute) {
    sample.stack = kNone;
    sample.thread = kNone;
  }
  if (level >= FoldLevel::kTotal) sample.state = ThreadState::kUnknown;
  return sample;
}

auto KeyOf(const Sample& sample) {
  return std::make_tuple(sample.kind, sample.state, sample.thread, sample.context, sample.stack);
}

bool LostSomething(const Sample& before, const Sample& after) {
  return KeyOf(before) != KeyOf(after) || MinuteOf(before.time_ns) != MinuteOf(after.time_ns);
}

bool SumsOverflow(const Sample& a, const Sample& b) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return a.count > kMax - b.count || a.value > kMax - b.value;
}

// Merges runs of equal samples of [begin, end), which are of one minute (or, at kTotal, of any),
// and writes what is left to `out`, which is not behind `begin`. Stops merging when `excess` fewer
// samples are there. Returns the end of what was written.
template <class Iterator>
Iterator FoldRange(Iterator begin, Iterator end, Iterator out, FoldLevel level, uint64_t excess,
                   FoldResult& result) {
  const auto coarse_key = [level](const Sample& sample) { return KeyOf(Coarsen(sample, level)); };
  std::sort(begin, end, [&](const Sample& a, const Sample& b) {
    const auto key_a = coarse_key(a);
    const auto key_b = coarse_key(b);
    if (key_a != key_b) return key_a < key_b;
    return a.time_ns < b.time_ns;
  });
  for (Iterator next = begin; next != end;) {
    Sample sum = *next++;
    const Sample first = sum;
    uint64_t coarsened = 0;
    while (next != end && result.folded_away < excess && coarse_key(*next) == coarse_key(sum) &&
           !SumsOverflow(sum, *next)) {
      const Sample coarse = Coarsen(sum, level);
      coarsened += LostSomething(*next, coarse) ? 1 : 0;
      sum = coarse;
      sum.folded = true;
      sum.count += next->count;
      sum.value += next->value;
      ++result.folded_away;
      ++next;
    }
    if (LostSomething(first, sum)) ++coarsened;
    result.coarsened += coarsened;
    *out++ = sum;
  }
  return out;
}

}  // namespace

FoldResult FoldSamples(std::vector<Sample>& samples, FoldLevel level, size_t goal) {
  FoldResult result;
  if (samples.size() <= goal) return result;
  const uint64_t excess = samples.size() - goal;
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    return KeyOf(a) < KeyOf(b);
  });
  auto out = samples.begin();
  auto begin = samples.begin();
  while (begin != samples.end() && result.folded_away < excess) {
    auto end = samples.end();
    if (level != FoldLevel::kTotal) {
      const uint64_t minute = MinuteOf(begin->time_ns);
      end = std::find_if(begin, samples.end(), [minute](const Sample& sample) {
        return MinuteOf(sample.time_ns) != minute;
      });
    }
    out = FoldRange(begin, end, out, level, excess, result);
    begin = end;
  }
  out = std::move(begin, samples.end(), out);
  samples.erase(out, samples.end());
  return result;
}

}  // namespace spanprof::profile
