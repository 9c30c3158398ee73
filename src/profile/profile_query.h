#pragma once

// Asking a profile: filter by any field of the context, the thread or the time; merge; group.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace spanprof::profile {

// Every condition that is given has to hold.
struct Filter {
  std::optional<std::string> endpoint = {};
  std::optional<std::pair<uint64_t, uint64_t>> trace_id = {};  // high, low
  std::optional<uint64_t> span_id = {};
  std::optional<uint64_t> root_span_id = {};
  std::vector<std::pair<std::string, std::string>> tags = {};  // name, value
  std::optional<std::string> thread = {};                      // a name, or a tid in digits
  std::optional<SampleKind> kind = {};
  std::optional<uint64_t> from_ns = {};  // Unix time, inclusive
  std::optional<uint64_t> to_ns = {};    // Unix time, exclusive
};

// A profile of its own with the samples that pass, and only the table entries that these need. It
// keeps the counters, which are of the whole. A folded sample has the time of its minute's start.
Profile Select(const Profile& profile, const Filter& filter);

// Adds all of `from` to `into`: tables are joined, tag positions are matched by attribute name,
// times span both, counters add up, endpoints of both are known. Resource attributes that differ
// are kept from `into`, and the number of such differences is counted as "merge.resource_conflict";
// so are periods that were asked for and differ ("merge.period_conflict"), and attribute names for
// which no tag position is left ("merge.attribute_dropped"). An endpoint that both know is taken
// from `from`.
void Merge(Profile& into, const Profile& from);

enum class GroupBy { kEndpoint, kTrace, kSpan, kRootSpan, kTag, kThread, kFunction, kKind };

struct Group {
  std::string name;          // "(none)" where the sample has no such thing
  uint64_t self_value = 0;   // kFunction: samples whose innermost frame it is; else same as total
  uint64_t total_value = 0;  // ns or bytes of the kind
  uint64_t self_count = 0;
  uint64_t total_count = 0;
};

// Largest self value first, then by name. Only samples of one kind, so that values add up.
// `tag` names the attribute for kTag. A recursive function counts once a sample in its total.
// Threads of one name are one group; a thread without a name is its tid.
std::vector<Group> GroupSamples(const Profile& profile, GroupBy by, SampleKind kind,
                                const std::string& tag = {});

// The name of the group that a sample is in. kFunction: of its innermost frame.
std::string GroupName(const Profile& profile, const Sample& sample, GroupBy by,
                      const std::string& tag = {});

// The samples of one of those groups, of every kind, as a profile of their own, as Select() makes
// it: to group them again by something else.
Profile SelectGroup(const Profile& profile, GroupBy by, const std::string& name,
                    const std::string& tag = {});

}  // namespace spanprof::profile
