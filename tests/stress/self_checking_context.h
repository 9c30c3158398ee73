#pragma once

// Contexts that tell whether they are whole, whose they are and how old they are.
//
// A writer follows a script: step s of a writer leaves the context State(key, s), where every field
// is derived from (key, s) by another mixing function, and the tags are strings whose text names
// the writer's group and a class derived from s. A reader that got a context finds out which step
// it is (the span id is reversible), compares every field, and checks that the step lies between
// the one that was finished before the read began and the one that was started when it ended.
//
// Everything but Script::Prepare is signal-safe.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <spanprof/context.h>

namespace spanprof::stress {

inline constexpr unsigned kTags = SPANPROF_TAG_COUNT;
inline constexpr unsigned kClasses = 16;  // class 0: no tag
inline constexpr unsigned kGroups = 16;
inline constexpr uint8_t kForeignTag = 0xFF;

// The sixteen operations of a cycle. The steps below kCycle are "nothing was set yet".
inline constexpr uint64_t kCycle = 16;

// A context as a reader sees it, wherever it read it.
struct Fields {
  uint64_t trace_id_high = 0, trace_id_low = 0, span_id = 0, root_span_id = 0;
  uint32_t trace_flags = 0;
  std::array<uint8_t, kTags> tag_classes = {};  // kForeignTag: of another group, or no tag of ours

  bool operator==(const Fields&) const = default;
  bool IsNone() const { return *this == Fields{}; }
};

// A reversible mixture of (key, step); never 0. The key has 24 bits, the step 40.
uint64_t SpanOf(uint32_t key, uint64_t step);
uint32_t KeyOfSpan(uint64_t span);
uint64_t StepOfSpan(uint64_t span);

// All fields from one number: what spanprof_context_update of step s sets.
Fields FullFields(uint32_t key, uint64_t step);

// What a writer's context is after a step of the script.
Fields StateAt(uint32_t key, uint64_t step);

// The text of a tag; empty for class 0.
std::string_view TagText(uint32_t key, unsigned tag_class);
// The class of a text if it is one of the key's group, else kForeignTag.
uint8_t ClassOfText(uint32_t key, std::string_view text);

// Interns all texts; after it the conversions work, also in a forked child.
void InternTagTexts();
spanprof_context ToContext(uint32_t key, const Fields& fields);
Fields FromContext(const spanprof_context& context);

enum class Verdict {
  kRight,
  kTorn,     // no step of any writer ever set this
  kForeign,  // of another writer
  kStale,    // older than what was published before the read began
  kFuture,   // not even begun when the read ended
};
const char* VerdictName(Verdict verdict);

// Whether a context read from writer `key` is the state after a step of [oldest, newest].
Verdict Judge(const Fields& seen, uint32_t key, uint64_t oldest, uint64_t newest);

// What went right and wrong in many reads; any thread or handler adds.
struct Tally {
  std::atomic<uint64_t> right{0}, refused{0}, torn{0}, foreign{0}, stale{0}, future{0};

  void Add(Verdict verdict);
  uint64_t wrong() const { return torn + foreign + stale + future; }
  std::string Text() const;
};

}  // namespace spanprof::stress
