#include "cli/report_notes.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "cli/value_text.h"

namespace spanprof::cli {
namespace {

enum class Unit { kCount, kNanoseconds };

struct Sentence {
  std::string_view counter;
  std::string_view text;  // behind the number
  Unit unit = Unit::kCount;
};

constexpr Sentence kSentences[] = {
    {"sampler.buffer_full", "samples were lost: the buffer was full"},
    {"profile.dropped_samples", "samples were lost: they did not fit into maxmem="},
    {"sampler.unsampled_cpu_ns", "of CPU time were used by threads that were never sampled",
     Unit::kNanoseconds},
    {"sampler.late_thread_cpu_ns", "of CPU time were used by threads before they were seen",
     Unit::kNanoseconds},
    {"sampler.thread_not_armed", "threads could not be sampled: no timer was to be had"},
    {"sampler.threads_over_limit", "threads were not sampled: there were too many"},
    {"sampler.handlers_replaced",
     "times the program replaced the sampler's signal handler, which stops its samples"},
    {"context.in_progress",
     "samples have no span because it was just being changed (in mid-update)"},
    {"context.torn", "samples have no span because its record was torn"},
    {"profile.folded_samples", "samples were folded into others of their minute: maxmem="},
    {"profile.coarsened_samples",
     "samples have lost their span, stack or thread: they did not fit into maxmem="},
    {"profile.table_full", "names, stacks or spans were left out: they did not fit into maxmem="},
    {"context.endpoint_evicted", "endpoints had made room for newer ones"},
    {"context.dictionary_full", "tag values were left out: too many different ones"},
    {"symbolise.no_file", "binaries were not found, so their functions have no names"},
    {"symbolise.build_id_mismatch",
     "binaries are not those that were recorded (another build id), and were not used"},
    {"jvm.attached_late",
     "JVM ran before the agent came: lines of methods that it had compiled are less exact"},
    {"jvm.methods_unloaded", "methods have no name: their class was unloaded first"},
    {"merge.resource_conflict", "attributes differ between the files; the first file's are shown"},
};

constexpr std::size_t kMaxOthers = 8;

std::uint64_t ValueOf(const profile::Profile& profile, std::string_view name) {
  const auto found = profile.counters().find(name);
  return found == profile.counters().end() ? 0 : found->second;
}

}  // namespace

std::vector<std::string> CounterNotes(const profile::Profile& profile) {
  std::vector<std::string> notes;
  std::set<std::string_view> said;
  for (const Sentence& sentence : kSentences) {
    said.insert(sentence.counter);
    const std::uint64_t value = ValueOf(profile, sentence.counter);
    if (value == 0) continue;
    notes.push_back((sentence.unit == Unit::kNanoseconds
                         ? ValueWithUnit(profile::SampleKind::kCpu, value)
                         : std::to_string(value)) +
                    " " + std::string(sentence.text));
  }
  std::string others;
  std::size_t count = 0;
  for (const auto& [name, value] : profile.counters()) {
    if (value == 0 || said.contains(name)) continue;
    if (++count > kMaxOthers) continue;
    others += (others.empty() ? "" : ", ") + name.substr(0, 64) + " " + std::to_string(value);
  }
  if (count > kMaxOthers) {
    others += " and " + std::to_string(count - kMaxOthers) + " more, which --json shows";
  }
  if (!others.empty()) notes.push_back("other counters: " + others);
  return notes;
}

}  // namespace spanprof::cli
