#pragma once

// A profile as time lines: what each thread did, one sample after the other. For the formats whose
// viewers have a time axis, Perfetto and Firefox.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace spanprof::format {

// The time in which all samples of a thread had one context: from the first of them to the last and
// the time that this one stands for, or to the next sample of the thread if that is earlier.
struct SpanInterval {
  profile::ContextId context = profile::kNone;
  uint64_t begin_ns = 0;  // Unix time
  uint64_t end_ns = 0;
  bool operator==(const SpanInterval&) const = default;
};

struct ThreadTimeline {
  uint32_t tid = 0;                 // made up if it is not known: kFirstMadeUpTid or more
  std::string name;                 // the last one that the thread had; may be empty
  std::vector<uint32_t> samples;    // indices into Profile::samples(), by time
  std::vector<SpanInterval> spans;  // by time; they do not overlap
};

struct Timelines {
  uint64_t begin_ns = 0;  // no time of a sample is before it
  uint64_t end_ns = 0;    // nor behind this
  uint32_t pid = 0;       // from the resource; 0: not known
  std::string process;    // service.name, or else process.executable.name, or "spanprof"
  std::vector<ThreadTimeline> threads;  // by tid
  size_t spans_left_out = 0;            // the shortest ones
};

inline constexpr uint32_t kFirstMadeUpTid = uint32_t{1} << 30;  // no Linux has such tids
// A viewer has no use for more of them, and they are the largest part of a file.
inline constexpr size_t kMaxSpanIntervals = 100'000;

// When a sample was taken; one without a time, or before the profile's start, at
// `timelines.begin_ns`.
uint64_t TimeOf(const Timelines& timelines, const profile::Sample& sample);

// Samples that were folded are in no interval: they have lost their order.
Timelines BuildTimelines(const profile::Profile& profile, size_t max_spans = kMaxSpanIntervals);

// What a viewer calls an interval: the endpoint, or else "span 00f067aa0ba902b7".
std::string SpanTitle(const profile::Profile& profile, const profile::Context& context);

}  // namespace spanprof::format
