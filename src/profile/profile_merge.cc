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

// Before the samples are joined: they say how much each side weighs.
void JoinPeriods(Profile& into, const Profile& from) {
  const auto ours = static_cast<double>(into.samples().size());
  const auto theirs = static_cast<double>(from.samples().size());
  for (unsigned kind = 0; kind < kSampleKindCount; ++kind) {
    const Period& other = from.periods[kind];
    Period& joined = into.periods[kind];
    if (other == Period{}) continue;
    if (joined == Period{}) {
      joined = other;
    } else if (joined.requested_ns != other.requested_ns) {
      into.AddToCounter("merge.period_conflict", 1);
    } else if (joined.actual_ns == 0) {
      joined.actual_ns = other.actual_ns;
    } else if (other.actual_ns != 0 && ours + theirs > 0) {
      // What was asked for is the same; what the kernel gave is not, from one cut to the next.
      joined.actual_ns = static_cast<uint64_t>((static_cast<double>(joined.actual_ns) * ours +
                                                static_cast<double>(other.actual_ns) * theirs) /
                                               (ours + theirs));
    }
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
