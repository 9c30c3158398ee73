#include "coroutine/findings.h"

#include <algorithm>
#include <cstdio>

namespace spanprof::coroutine {
namespace {

constexpr uint64_t kLongerThanUsual = 10;

Finding MakeFinding(FindingKind kind, std::size_t index, const CoroutineHistory& history) {
  const Coroutine& coroutine = history.coroutines()[index];
  Finding finding;
  finding.kind = kind;
  finding.coroutine = index;
  finding.who = history.CoroutineText(coroutine);
  finding.where = history.PlaceText(coroutine.target, coroutine.place);
  return finding;
}

std::string WaitersText(const CoroutineHistory& history, const Coroutine& coroutine) {
  std::string text;
  const Coroutine* at = &coroutine;
  // A hostile recording may have a circle.
  for (int depth = 0; at->awaited_by && depth < 20; ++depth) {
    at = &history.coroutines()[*at->awaited_by];
    text += (depth == 0 ? "; awaited by " : ", by ") + history.CoroutineText(*at);
  }
  return text;
}

bool IsStuck(const CoroutineHistory& history, const Coroutine& coroutine, uint64_t limit) {
  if (coroutine.status != CoroutineStatus::kSuspended) return false;
  const uint64_t waited = history.end() - std::min(history.end(), coroutine.since);
  if (waited < limit) return false;
  // One that waits for a coroutine which is itself there is not the one at fault.
  if (coroutine.awaits) {
    const CoroutineStatus status = history.coroutines()[*coroutine.awaits].status;
    if (status != CoroutineStatus::kDone && status != CoroutineStatus::kDead) return false;
  }
  return waited > kLongerThanUsual * history.WaitsAt(coroutine.target, coroutine.place).longest;
}

Finding DescribeStuck(const CoroutineHistory& history, std::size_t index) {
  const Coroutine& coroutine = history.coroutines()[index];
  Finding finding = MakeFinding(FindingKind::kStuck, index, history);
  const PlaceWaits& waits = history.WaitsAt(coroutine.target, coroutine.place);
  finding.evidence =
      "suspended for " + DurationText(history.end() - coroutine.since) + " and never resumed; ";
  finding.evidence += waits.count == 0
                          ? "no wait at this place ever ended"
                          : std::to_string(waits.count) + " waits at this place ended, after " +
                                DurationText(waits.longest) + " at most";
  finding.evidence += "; last ran on thread " + std::to_string(coroutine.tid);
  finding.evidence += WaitersText(history, coroutine);
  return finding;
}

uint64_t LongestRun(const CoroutineHistory& history, const Coroutine& coroutine) {
  const uint64_t present = coroutine.status == CoroutineStatus::kRunning
                               ? history.end() - std::min(history.end(), coroutine.since)
                               : 0;
  return std::max(coroutine.longest_run, present);
}

}  // namespace

std::string FindingKindText(FindingKind kind) {
  switch (kind) {
    case FindingKind::kStuck:
      return "stuck";
    case FindingKind::kHog:
      return "hog";
    case FindingKind::kLeak:
      return "leak";
    case FindingKind::kLate:
      return "late";
  }
  return "unknown";
}

std::string DurationText(uint64_t nanoseconds) {
  static const struct {
    uint64_t unit;
    const char* name;
  } kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  char text[32];
  for (const auto& [unit, name] : kUnits) {
    if (nanoseconds < unit) continue;
    std::snprintf(text, sizeof text, "%.3g %s",
                  static_cast<double>(nanoseconds) / static_cast<double>(unit), name);
    return text;
  }
  return std::to_string(nanoseconds) + " ns";
}

std::vector<Finding> FindProblems(const CoroutineHistory& history, const FindingLimits& limits) {
  std::vector<std::pair<uint64_t, Finding>> stuck;
  std::vector<std::pair<uint64_t, Finding>> hogs;
  std::vector<std::pair<uint64_t, Finding>> leaks;
  for (std::size_t i = 0; i < history.coroutines().size(); ++i) {
    const Coroutine& coroutine = history.coroutines()[i];
    const uint64_t in_status = history.end() - std::min(history.end(), coroutine.since);
    if (IsStuck(history, coroutine, limits.stuck_nanoseconds)) {
      stuck.emplace_back(in_status, DescribeStuck(history, i));
    }
    if (const uint64_t run = LongestRun(history, coroutine); run >= limits.hog_nanoseconds) {
      Finding finding = MakeFinding(FindingKind::kHog, i, history);
      const bool still = coroutine.status == CoroutineStatus::kRunning && run == in_status;
      finding.where =
          "behind " +
          history.PlaceText(coroutine.target, still ? coroutine.place : coroutine.longest_run_from);
      finding.evidence = (still ? "runs since " : "ran for ") + DurationText(run) +
                         " without a suspension, on thread " + std::to_string(coroutine.tid) +
                         "; " + std::to_string(coroutine.resumes) + " resumes, " +
                         DurationText(coroutine.run_nanoseconds) + " in all";
      hogs.emplace_back(run, std::move(finding));
    }
    if (coroutine.status == CoroutineStatus::kDone && in_status >= limits.leak_nanoseconds) {
      Finding finding = MakeFinding(FindingKind::kLeak, i, history);
      finding.evidence = "came to its end " + DurationText(in_status) +
                         " before the recording's, and its frame was never destroyed";
      leaks.emplace_back(in_status, std::move(finding));
    }
  }
  std::vector<Finding> findings;
  for (auto* group : {&stuck, &hogs, &leaks}) {
    std::sort(group->begin(), group->end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second.coroutine < b.second.coroutine;
    });
    for (auto& [weight, finding] : *group) findings.push_back(std::move(finding));
  }
  const LatencyHistogram& latency = history.latency();
  if (latency.longest_of && latency.longest >= limits.late_nanoseconds) {
    Finding finding = MakeFinding(FindingKind::kLate, *latency.longest_of, history);
    finding.evidence = "was ready for " + DurationText(latency.longest) +
                       " before it was resumed; half of all resumes came within " +
                       DurationText(latency.Quantile(0.5)) + ", 99 % within " +
                       DurationText(latency.Quantile(0.99));
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace spanprof::coroutine
