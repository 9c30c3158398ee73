#pragma once

// For tests of everything that handles profiles: random profiles, and profiles as text that can be
// compared, whatever numbers their entries have.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "profile/profile.h"

namespace spanprof::profile {

struct RandomProfileOptions {
  size_t sample_count = 100;
  size_t variety = 8;  // how many different names, contexts, addresses to choose from
  size_t max_depth = 12;
  size_t minutes = 3;  // the samples' times span so many
  size_t max_memory = Profile::kDefaultMaxMemory;
};

// The same for the same seed. Texts are UTF-8 with awkward characters in them. Inlined frames are
// as a symboliser makes them: of the kind, mapping and address of the frame that they are inlined
// into.
Profile RandomProfile(uint64_t seed, const RandomProfileOptions& options = {});

// What the samples that are equal in everything amount to.
struct Totals {
  uint64_t count = 0;
  uint64_t value = 0;
  bool operator==(const Totals&) const = default;
};

// The parts of a sample that Describe() leaves out.
struct Ignore {
  bool time = false;    // the minute is kept
  bool minute = false;  // the time is left out altogether
  bool folded = false;
};

// A sample, everything it refers to spelled out, on one line. Without count and value.
std::string Describe(const Profile& profile, const Sample& sample, const Ignore& ignore = {});
std::map<std::string, Totals> DescribeSamples(const Profile& profile, const Ignore& ignore = {});
// Times, resource, attribute names, periods, endpoints and counters, a line each.
std::string DescribeHead(const Profile& profile);

Totals TotalsOf(const Profile& profile);

}  // namespace spanprof::profile
