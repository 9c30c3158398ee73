#include <algorithm>

#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/table_copy.h"

namespace spanprof::profile {
namespace {

// One more than the highest position at which any context has a tag, or that has a name.
size_t TagsInUse(const Profile& profile) {
  size_t count = std::min<size_t>(profile.attribute_names.size(), kTagCount);
  for (const Context& context : profile.contexts()) {
    for (size_t i = count; i < kTagCount; ++i) {
      if (context.tags[i] != kNone) count = i + 1;
    }
  }
  return count;
}

// Finds or makes a place for each attribute name of `from`.
TableCopy::TagPositions JoinAttributeNames(Profile& into, const Profile& from) {
  auto& names = into.attribute_names;
  for (size_t i = names.size(), end = TagsInUse(into); i < end; ++i) {
    names.push_back(TagName(into, static_cast<unsigned>(i)));
  }
  TableCopy::TagPositions positions;
  positions.fill(TableCopy::kNoPosition);
  for (size_t i = 0, end = TagsInUse(from); i < end; ++i) {
    const std::string name = TagName(from, static_cast<unsigned>(i));
    const auto found = std::find(names.begin(), names.end(), name);
    const auto position = static_cast<unsigned>(found - names.begin());
    if (position >= kTagCount) {
      into.AddToCounter("merge.attribute_dropped", 1);
      continue;
    }
    if (found == names.end()) names.push_back(name);
    positions[i] = position;
  }
  return positions;
}

void JoinResource(Profile& into, const Profile& from) {
  for (const Attribute& attribute : from.resource) {
    const auto found =
        std::find_if(into.resource.begin(), into.resource.end(),
                     [&](const Attribute& known) { return known.key == attribute.key; });
    if (found == into.resource.end()) {
      into.resource.push_back(attribute);
    } else if (found->value != attribute.value) {
      into.AddToCounter("merge.resource_conflict", 1);
    }
  }
}

void JoinTimes(Profile& into, const Profile& from) {
  if (from.start_time_ns == 0 && from.duration_ns == 0) return;
  if (into.start_time_ns == 0 && into.duration_ns == 0) {
    into.start_time_ns = from.start_time_ns;
    into.duration_ns = from.duration_ns;
    return;
  }
  const uint64_t end =
      std::max(into.start_time_ns + into.duration_ns, from.start_time_ns + from.duration_ns);
  into.start_time_ns = std::min(into.start_time_ns, from.start_time_ns);
  into.duration_ns = end - into.start_time_ns;
}

void JoinPeriods(Profile& into, const Profile& from) {
  for (unsigned kind = 0; kind < kSampleKindCount; ++kind) {
    if (from.periods[kind] == Period{}) continue;
    if (into.periods[kind] == Period{}) into.periods[kind] = from.periods[kind];
    if (into.periods[kind] != from.periods[kind]) into.AddToCounter("merge.period_conflict", 1);
  }
}

}  // namespace

void Merge(Profile& into, const Profile& from) {
  if (&into == &from) {
    const Profile copy = Select(from, {});
    Merge(into, copy);
    return;
  }
  TableCopy copy(from, into, JoinAttributeNames(into, from));
  JoinResource(into, from);
  JoinTimes(into, from);
  JoinPeriods(into, from);
  for (const auto& [root, endpoint] : from.endpoints()) {
    into.SetEndpoint(root, from.Text(endpoint));
  }
  for (const auto& [name, count] : from.counters()) into.AddToCounter(name, count);
  for (const Sample& sample : from.samples()) into.AddSample(copy.ToSample(sample));
}

}  // namespace spanprof::profile
