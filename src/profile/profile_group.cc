#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "profile/names.h"
#include "profile/profile_query.h"

namespace spanprof::profile {
namespace {

struct Weight {
  uint64_t value = 0;
  uint64_t count = 0;
  void Add(const Weight& other) {
    value += other.value;
    count += other.count;
  }
};

constexpr std::string_view kNoName = "(none)";

std::string NameOr(std::string_view name) {
  return name.empty() ? std::string(kNoName) : std::string(name);
}

std::string NameByContext(const Profile& profile, const Context& context, GroupBy by,
                          size_t tag_position) {
  switch (by) {
    case GroupBy::kEndpoint:
      return NameOr(profile.Text(profile.EndpointOf(context.root_span_id)));
    case GroupBy::kTrace:
      if (context.trace_id_high == 0 && context.trace_id_low == 0) return std::string(kNoName);
      return TraceIdText(context.trace_id_high, context.trace_id_low);
    case GroupBy::kSpan:
      return context.span_id == 0 ? std::string(kNoName) : SpanIdText(context.span_id);
    case GroupBy::kRootSpan:
      return context.root_span_id == 0 ? std::string(kNoName) : SpanIdText(context.root_span_id);
    case GroupBy::kTag:
      return NameOr(tag_position < kTagCount ? profile.Text(context.tags[tag_position])
                                             : std::string_view());
    default:
      return std::string(kNoName);
  }
}

std::string NameByThread(const Profile& profile, const Thread& thread) {
  if (thread.name != kNone) return std::string(profile.Text(thread.name));
  return thread.tid == 0 ? std::string(kNoName) : std::to_string(thread.tid);
}

using Groups = std::map<std::string, Group>;

void AddTo(Groups& groups, const std::string& name, const Weight& self, const Weight& total) {
  Group& group = groups[name];
  group.self_value += self.value;
  group.self_count += self.count;
  group.total_value += total.value;
  group.total_count += total.count;
}

// What the samples of one kind weigh together, by a field of the sample.
std::vector<Weight> WeightsBy(const Profile& profile, SampleKind kind, uint32_t Sample::* field,
                              size_t size) {
  std::vector<Weight> weights(size);
  for (const Sample& sample : profile.samples()) {
    if (sample.kind == kind) weights[sample.*field].Add({sample.value, sample.count});
  }
  return weights;
}

bool IsZero(const Weight& weight) { return weight.value == 0 && weight.count == 0; }

void GroupByFunction(const Profile& profile, SampleKind kind, Groups& groups) {
  // Frames of one name are one group: number the names, then work with numbers.
  std::map<std::string, size_t> number_of_name;
  std::vector<const std::string*> names;
  std::vector<size_t> number_of_frame(profile.frames().size());
  for (FrameId frame = 0; frame < profile.frames().size(); ++frame) {
    const std::string name = frame == kNone ? std::string(kNoName) : FrameName(profile, frame);
    const auto [entry, is_new] = number_of_name.emplace(name, names.size());
    if (is_new) names.push_back(&entry->first);
    number_of_frame[frame] = entry->second;
  }
  std::vector<Weight> self(names.size());
  std::vector<Weight> total(names.size());
  std::vector<StackId> last_stack(names.size(), ~StackId{0});  // so that recursion counts once
  const auto weights = WeightsBy(profile, kind, &Sample::stack, profile.stacks().size());
  for (StackId stack = 0; stack < weights.size(); ++stack) {
    if (IsZero(weights[stack])) continue;
    self[number_of_frame[profile.stacks()[stack].frame]].Add(weights[stack]);
    StackId at = stack;
    do {
      const size_t number = number_of_frame[profile.stacks()[at].frame];
      if (std::exchange(last_stack[number], stack) != stack) total[number].Add(weights[stack]);
      at = profile.stacks()[at].parent;
    } while (at != kNone);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!IsZero(total[i])) AddTo(groups, *names[i], self[i], total[i]);
  }
}

size_t TagPosition(const Profile& profile, const std::string& tag) {
  const auto& names = profile.attribute_names;
  return static_cast<size_t>(std::find(names.begin(), names.end(), tag) - names.begin());
}

}  // namespace

std::string GroupName(const Profile& profile, const Sample& sample, GroupBy by,
                      const std::string& tag) {
  if (by == GroupBy::kFunction) {
    const FrameId frame = profile.stacks()[sample.stack].frame;
    return frame == kNone ? std::string(kNoName) : FrameName(profile, frame);
  }
  if (by == GroupBy::kThread) return NameByThread(profile, profile.threads()[sample.thread]);
  if (by == GroupBy::kKind) return std::string(NameOf(sample.kind));
  return NameByContext(profile, profile.contexts()[sample.context], by, TagPosition(profile, tag));
}

std::vector<Group> GroupSamples(const Profile& profile, GroupBy by, SampleKind kind,
                                const std::string& tag) {
  Groups groups;
  if (by == GroupBy::kFunction) {
    GroupByFunction(profile, kind, groups);
  } else if (by == GroupBy::kThread) {
    const auto weights = WeightsBy(profile, kind, &Sample::thread, profile.threads().size());
    for (ThreadId id = 0; id < weights.size(); ++id) {
      if (IsZero(weights[id])) continue;
      AddTo(groups, NameByThread(profile, profile.threads()[id]), weights[id], weights[id]);
    }
  } else {
    const size_t position = TagPosition(profile, tag);
    const auto weights = WeightsBy(profile, kind, &Sample::context, profile.contexts().size());
    for (ContextId id = 0; id < weights.size(); ++id) {
      if (IsZero(weights[id])) continue;
      const std::string name = by == GroupBy::kKind
                                   ? std::string(NameOf(kind))
                                   : NameByContext(profile, profile.contexts()[id], by, position);
      AddTo(groups, name, weights[id], weights[id]);
    }
  }
  std::vector<Group> sorted;
  sorted.reserve(groups.size());
  for (auto& [name, group] : groups) {
    sorted.push_back(group);
    sorted.back().name = name;
  }
  std::sort(sorted.begin(), sorted.end(), [](const Group& a, const Group& b) {
    return a.self_value != b.self_value ? a.self_value > b.self_value : a.name < b.name;
  });
  return sorted;
}

}  // namespace spanprof::profile
