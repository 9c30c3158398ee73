#include "self_checking_context.h"

#include <cstdlib>

namespace spanprof::stress {
namespace {

constexpr unsigned kStepBits = 40;
constexpr uint64_t kStepMask = (uint64_t{1} << kStepBits) - 1;
constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
constexpr unsigned kMaxTagIds = 4096;

// The inverse of an odd number modulo 2^64, by Newton's method.
constexpr uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}
static_assert(Inverse(kOdd) * kOdd == 1);

// Another function for each `field`; not reversible.
uint64_t Mix(uint64_t number, uint64_t field) {
  uint64_t x = number + (field + 1) * 0xD1B54A32D192ED03u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  return x == 0 ? 1 : x;
}

uint64_t Number(uint32_t key, uint64_t step) { return (uint64_t{key} << kStepBits) | step; }

uint8_t TagClass(uint32_t key, uint64_t step, unsigned tag) {
  return static_cast<uint8_t>(Mix(Number(key, step), 4) >> (4 * tag + 8) & (kClasses - 1));
}

Fields WithoutTrace(Fields fields) {
  fields.trace_id_high = fields.trace_id_low = 0;
  fields.trace_flags = 0;
  return fields;
}

Fields WithTagsOf(Fields ids, const Fields& tags) {
  ids.tag_classes = tags.tag_classes;
  return ids;
}

Fields WithoutFlags(Fields fields) {
  fields.trace_flags = 0;
  return fields;
}

Fields WithTag(Fields fields, unsigned tag, uint8_t tag_class) {
  fields.tag_classes[tag] = tag_class;
  return fields;
}

struct Texts {
  Texts() {
    for (unsigned group = 0; group < kGroups; ++group) {
      for (unsigned c = 1; c < kClasses; ++c) {
        // Of different lengths, so that the entries of an OTEP record move about.
        text[group][c] = std::string("g") + static_cast<char>('a' + group) + "-c" +
                         static_cast<char>('a' + c) + std::string(3 * ((c * 7) % kClasses), 'x');
      }
    }
  }
  std::string text[kGroups][kClasses];
  uint32_t id[kGroups][kClasses] = {};
  uint16_t group_and_class[kMaxTagIds] = {};  // by id; 0: not one of ours
};

Texts& AllTexts() {
  static Texts& texts = *new Texts();
  return texts;
}

// The context of a cycle whose first step is `base`, after its step number `position`.
Fields StateInCycle(uint32_t key, uint64_t base, unsigned position) {
  const auto full = [key, base](unsigned at) { return FullFields(key, base + at); };
  switch (position) {
    case 0:  // update
      return full(0);
    case 1:  // set
      return WithTagsOf(WithoutTrace(full(1)), full(0));
    case 2:  // set_trace
      return WithTagsOf(WithoutFlags(full(2)), full(0));
    case 3:  // set_tag
      return WithTag(StateInCycle(key, base, 2), 3, TagClass(key, base + 3, 3));
    case 4:  // set_tag_id
      return WithTag(StateInCycle(key, base, 3), 8, TagClass(key, base + 4, 8));
    case 5:  // swap
    case 8:  // the end of the scope of 6
    case 12:
      return full(5);
    case 6:  // a scope without trace
      return WithTagsOf(WithoutTrace(full(6)), full(5));
    case 7:  // set_tag in it
      return WithTag(StateInCycle(key, base, 6), 0, TagClass(key, base + 7, 0));
    case 9:  // a scope with trace
    case 11:
      return WithTagsOf(WithoutFlags(full(9)), full(5));
    case 10:  // a scope of a whole context
      return full(10);
    case 13:  // clear
      return {};
    case 14:  // set, inline
      return WithTagsOf(WithoutTrace(full(14)), {});
    default:  // set_trace, inline
      return WithTagsOf(WithoutFlags(full(15)), {});
  }
}

}  // namespace

uint64_t SpanOf(uint32_t key, uint64_t step) {
  const uint64_t x = Number(key, step) * kOdd;
  return x ^ (x >> 32);
}

uint32_t KeyOfSpan(uint64_t span) {
  return static_cast<uint32_t>(((span ^ (span >> 32)) * Inverse(kOdd)) >> kStepBits);
}

uint64_t StepOfSpan(uint64_t span) { return ((span ^ (span >> 32)) * Inverse(kOdd)) & kStepMask; }

Fields FullFields(uint32_t key, uint64_t step) {
  const uint64_t number = Number(key, step);
  Fields fields;
  fields.trace_id_high = Mix(number, 0);
  fields.trace_id_low = Mix(number, 1);
  fields.span_id = SpanOf(key, step);
  fields.root_span_id = Mix(number, 2);
  fields.trace_flags = static_cast<uint32_t>(Mix(number, 3) & 0xFF);
  const uint64_t classes = Mix(number, 4) >> 8;
  for (unsigned tag = 0; tag < kTags; ++tag) {
    fields.tag_classes[tag] = static_cast<uint8_t>(classes >> (4 * tag) & (kClasses - 1));
  }
  return fields;
}

Fields StateAt(uint32_t key, uint64_t step) {
  if (step < kCycle) return {};
  return StateInCycle(key, step - step % kCycle, static_cast<unsigned>(step % kCycle));
}

std::string_view TagText(uint32_t key, unsigned tag_class) {
  return AllTexts().text[key % kGroups][tag_class];
}

uint8_t ClassOfText(uint32_t key, std::string_view text) {
  if (text.empty()) return 0;
  for (unsigned c = 1; c < kClasses; ++c) {
    if (TagText(key, c) == text) return static_cast<uint8_t>(c);
  }
  return kForeignTag;
}

void InternTagTexts() {
  Texts& texts = AllTexts();
  for (unsigned group = 0; group < kGroups; ++group) {
    for (unsigned c = 1; c < kClasses; ++c) {
      const std::string& text = texts.text[group][c];
      const uint32_t id = spanprof_intern(text.data(), text.size());
      if (texts.id[group][c] == id) continue;
      // The first time. Later it must be the same; other threads may be reading this table.
      if (id == 0 || id >= kMaxTagIds || texts.id[group][c] != 0) abort();
      texts.id[group][c] = id;
      texts.group_and_class[id] = static_cast<uint16_t>(group << 8 | c);
    }
  }
}

spanprof_context ToContext(uint32_t key, const Fields& fields) {
  spanprof_context context = {};
  context.size = sizeof context;
  context.trace_flags = fields.trace_flags;
  context.trace_id_high = fields.trace_id_high;
  context.trace_id_low = fields.trace_id_low;
  context.span_id = fields.span_id;
  context.root_span_id = fields.root_span_id;
  for (unsigned i = 0; i < kTags; ++i) {
    context.tags[i] = AllTexts().id[key % kGroups][fields.tag_classes[i]];
  }
  return context;
}

Fields FromContext(const spanprof_context& context) {
  Fields fields = {context.trace_id_high, context.trace_id_low, context.span_id,
                   context.root_span_id,  context.trace_flags,  {}};
  const unsigned group = KeyOfSpan(context.span_id) % kGroups;
  for (unsigned i = 0; i < kTags; ++i) {
    if (context.tags[i] == 0) continue;
    const uint16_t known =
        context.tags[i] < kMaxTagIds ? AllTexts().group_and_class[context.tags[i]] : 0;
    const bool ours = known != 0 && static_cast<unsigned>(known >> 8) == group;
    fields.tag_classes[i] = ours ? static_cast<uint8_t>(known & 0xFF) : kForeignTag;
  }
  return fields;
}

const char* VerdictName(Verdict verdict) {
  constexpr const char* kNames[] = {"right", "torn", "foreign", "stale", "future"};
  return kNames[static_cast<unsigned>(verdict)];
}

Verdict Judge(const Fields& seen, uint32_t key, uint64_t oldest, uint64_t newest) {
  uint64_t base;
  if (seen.IsNone()) {
    if (oldest < kCycle) return Verdict::kRight;
    base = oldest - oldest % kCycle;
    if (oldest % kCycle > 13) base += kCycle;  // the next clear is in the next cycle
    return base + 13 <= newest ? Verdict::kRight : Verdict::kStale;
  }
  const uint32_t seen_key = KeyOfSpan(seen.span_id);
  const uint64_t step = StepOfSpan(seen.span_id);
  base = step - step % kCycle;
  bool whole = false, too_old = false;
  for (uint64_t s = base; s < base + kCycle; ++s) {
    if (!(StateAt(seen_key, s) == seen)) continue;
    whole = true;
    if (seen_key == key && s >= oldest && s <= newest) return Verdict::kRight;
    too_old |= s < oldest;
  }
  if (!whole) return Verdict::kTorn;
  if (seen_key != key) return Verdict::kForeign;
  return too_old ? Verdict::kStale : Verdict::kFuture;
}

void Tally::Add(Verdict verdict) {
  std::atomic<uint64_t>* const counts[] = {&right, &torn, &foreign, &stale, &future};
  counts[static_cast<unsigned>(verdict)]->fetch_add(1, std::memory_order_relaxed);
}

std::string Tally::Text() const {
  return "right " + std::to_string(right) + ", refused " + std::to_string(refused) + ", torn " +
         std::to_string(torn) + ", of another thread " + std::to_string(foreign) + ", stale " +
         std::to_string(stale) + ", not yet begun " + std::to_string(future);
}

}  // namespace spanprof::stress
