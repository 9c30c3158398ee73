#include <algorithm>
#include <charconv>
#include <numeric>

#include "profile/profile_query.h"
#include "profile/table_copy.h"

namespace spanprof::profile {
namespace {

std::optional<uint32_t> ParseTid(std::string_view text) {
  uint32_t tid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tid);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return tid;
}

// The filter, decided once for each context and each thread instead of once for each sample.
class Matcher {
 public:
  Matcher(const Profile& profile, const Filter& filter) : profile_(profile), filter_(filter) {
    for (const auto& [name, value] : filter.tags) {
      const auto& names = profile.attribute_names;
      const auto position = std::find(names.begin(), names.end(), name) - names.begin();
      tag_positions_.push_back(static_cast<size_t>(position));
    }
    contexts_.reserve(profile.contexts().size());
    for (const Context& context : profile.contexts()) contexts_.push_back(Matches(context));
    threads_.reserve(profile.threads().size());
    for (const Thread& thread : profile.threads()) threads_.push_back(Matches(thread));
  }

  bool Matches(const Sample& sample) const {
    return contexts_[sample.context] && threads_[sample.thread] &&
           (!filter_.kind || sample.kind == *filter_.kind) &&
           (!filter_.from_ns || sample.time_ns >= *filter_.from_ns) &&
           (!filter_.to_ns || sample.time_ns < *filter_.to_ns);
  }

 private:
  bool Matches(const Context& context) const {
    if (filter_.trace_id &&
        *filter_.trace_id != std::pair(context.trace_id_high, context.trace_id_low)) {
      return false;
    }
    if (filter_.span_id && *filter_.span_id != context.span_id) return false;
    if (filter_.root_span_id && *filter_.root_span_id != context.root_span_id) return false;
    if (filter_.endpoint &&
        *filter_.endpoint != profile_.Text(profile_.EndpointOf(context.root_span_id))) {
      return false;
    }
    for (size_t i = 0; i < tag_positions_.size(); ++i) {
      const size_t position = tag_positions_[i];
      const StringId tag = position < kTagCount ? context.tags[position] : kNone;
      if (profile_.Text(tag) != filter_.tags[i].second) return false;
    }
    return true;
  }

  bool Matches(const Thread& thread) const {
    if (!filter_.thread || profile_.Text(thread.name) == *filter_.thread) return true;
    return ParseTid(*filter_.thread) == thread.tid;
  }

  const Profile& profile_;
  const Filter& filter_;
  std::vector<size_t> tag_positions_;
  std::vector<bool> contexts_;  // by ContextId
  std::vector<bool> threads_;   // by ThreadId
};

// A file may say anything of its times: the sum need not fit.
uint64_t EndOf(const Profile& profile) {
  const uint64_t end = profile.start_time_ns + profile.duration_ns;
  return end < profile.start_time_ns ? ~uint64_t{0} : end;
}

// A profile of the samples for which `matches` holds, of the time from `start` to `end`.
template <class Matches>
Profile SelectIf(const Profile& profile, uint64_t start, uint64_t end, Matches matches) {
  // Never less than needed for everything, so that nothing of a selection is folded.
  Profile selected(std::max(profile.max_memory(), 2 * profile.memory_used()));
  selected.resource = profile.resource;
  selected.attribute_names = profile.attribute_names;
  selected.periods = profile.periods;
  for (const auto& [name, count] : profile.counters()) selected.AddToCounter(name, count);
  selected.start_time_ns = start;
  selected.duration_ns = end - start;

  TableCopy::TagPositions positions;
  std::iota(positions.begin(), positions.end(), 0U);
  TableCopy copy(profile, selected, positions);
  for (const Sample& sample : profile.samples()) {
    if (!matches(sample)) continue;
    selected.AddSample(copy.ToSample(sample));
    const uint64_t root = profile.contexts()[sample.context].root_span_id;
    if (const StringId endpoint = profile.EndpointOf(root); endpoint != kNone) {
      if (selected.EndpointOf(root) == kNone) selected.SetEndpoint(root, profile.Text(endpoint));
    }
  }
  return selected;
}

}  // namespace

Profile Select(const Profile& profile, const Filter& filter) {
  uint64_t start = profile.start_time_ns;
  uint64_t end = EndOf(profile);
  if (filter.from_ns) start = std::clamp(*filter.from_ns, start, end);
  if (filter.to_ns) end = std::clamp(*filter.to_ns, start, end);
  const Matcher matcher(profile, filter);
  return SelectIf(profile, start, end,
                  [&](const Sample& sample) { return matcher.Matches(sample); });
}

Profile SelectGroup(const Profile& profile, GroupBy by, const std::string& name,
                    const std::string& tag) {
  // Decided once for each thread, stack or context, not once for each sample.
  const bool by_thread = by == GroupBy::kThread;
  const bool by_stack = by == GroupBy::kFunction;
  const size_t size = by_thread  ? profile.threads().size()
                      : by_stack ? profile.stacks().size()
                                 : profile.contexts().size();
  std::vector<std::optional<bool>> known(size);
  const auto matches = [&](const Sample& sample) {
    if (by == GroupBy::kKind) return GroupName(profile, sample, by) == name;
    std::optional<bool>& is_in = known[by_thread  ? sample.thread
                                       : by_stack ? sample.stack
                                                  : sample.context];
    if (!is_in) is_in = GroupName(profile, sample, by, tag) == name;
    return *is_in;
  };
  return SelectIf(profile, profile.start_time_ns, EndOf(profile), matches);
}

}  // namespace spanprof::profile
