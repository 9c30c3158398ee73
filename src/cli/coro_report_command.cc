// `spanprof coro report`: what is wrong with a scheduler, by a recording.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "cli/coro_command.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "cli/terminal_text.h"
#include "coroutine/coroutine_groups.h"
#include "coroutine/coroutine_history.h"
#include "coroutine/findings.h"

namespace spanprof::cli {
namespace {

using coroutine::CoroutineHistory;
using coroutine::Finding;

struct CoroReportOptions {
  std::vector<std::string> files;
  coroutine::FindingLimits limits;
  std::size_t limit = 20;
  bool json = false;
};

std::string Summary(const CoroutineHistory& history) {
  uint64_t dead = 0;
  uint64_t migrations = 0;
  uint64_t resumes = 0;
  uint64_t run = 0;
  for (const coroutine::Coroutine& each : history.coroutines()) {
    dead += each.status == coroutine::CoroutineStatus::kDead ? 1 : 0;
    migrations += each.migrations;
    resumes += each.resumes;
    run += each.run_nanoseconds;
  }
  std::string text = fmt::format(
      "{} events, {} lost; {} coroutines, {} of them destroyed; {} resumes, {} on another thread "
      "than before; {} of running\n",
      history.events(), history.lost(), history.coroutines().size(), dead, resumes, migrations,
      coroutine::DurationText(run));
  const coroutine::LatencyHistogram& latency = history.latency();
  if (latency.count != 0) {
    text += fmt::format("from ready to resumed: half within {}, 99 % within {}, at most {}\n",
                        coroutine::DurationText(latency.Quantile(0.5)),
                        coroutine::DurationText(latency.Quantile(0.99)),
                        coroutine::DurationText(latency.longest));
  }
  if (!history.complete()) text += "a recording is cut off: it was not ended by its recorder\n";
  return text;
}

std::string GroupTable(const CoroutineHistory& history, std::size_t limit) {
  std::string text = fmt::format("\n{:>9} {:>9} {:>9} {:>9} {:>9}  {:>9} {:>9}  {:>9} {:>9}  {}\n",
                                 "coroutine", "finished", "destroyed", "resumed", "moved", "ran",
                                 "at most", "lived 50%", "at most", "name");
  const std::vector<coroutine::CoroutineGroup> groups = coroutine::GroupCoroutines(history);
  for (std::size_t i = 0; i < groups.size() && i < limit; ++i) {
    const coroutine::CoroutineGroup& group = groups[i];
    const bool lived = group.lifetimes.count != 0;
    text += fmt::format(
        "{:>9} {:>9} {:>9} {:>9} {:>9}  {:>9} {:>9}  {:>9} {:>9}  {}\n", group.coroutines,
        group.finished, group.destroyed, group.resumes, group.migrations,
        coroutine::DurationText(group.run_nanoseconds), coroutine::DurationText(group.longest_run),
        lived ? coroutine::DurationText(group.lifetimes.Quantile(0.5)) : "-",
        lived ? coroutine::DurationText(group.lifetimes.longest) : "-", TerminalText(group.name));
  }
  if (groups.size() > limit) {
    text += fmt::format("{} more names; --limit shows them\n", groups.size() - limit);
  }
  return text;
}

std::string LatencyTable(const coroutine::LatencyHistogram& latency) {
  if (latency.count == 0) return "";
  constexpr uint64_t kWidest = 40;
  uint64_t most = 1;
  for (const uint64_t count : latency.buckets) most = std::max(most, count);
  std::string text = "\nfrom ready to resumed\n";
  for (unsigned i = 0; i < std::size(latency.buckets); ++i) {
    const uint64_t count = latency.buckets[i];
    if (count == 0) continue;
    const uint64_t width = std::max<uint64_t>(1, count * kWidest / most);
    text += fmt::format("{:>12} {:>9}  {}\n",
                        "< " + coroutine::DurationText(uint64_t{1} << std::min(i, 63u)), count,
                        std::string(width, '#'));
  }
  return text;
}

std::string FindingsText(const std::vector<Finding>& findings, std::size_t limit) {
  if (findings.empty()) return "no problem was found\n";
  std::string text;
  std::size_t shown = 0;
  for (const Finding& finding : findings) {
    if (shown++ == limit) {
      text += fmt::format("\n{} more; --limit shows them\n", findings.size() - limit);
      break;
    }
    text += fmt::format("\n{:<6} {}\n       at {}\n       {}\n",
                        coroutine::FindingKindText(finding.kind), TerminalText(finding.who),
                        TerminalText(finding.where), TerminalText(finding.evidence));
  }
  return text;
}

std::string Table(const CoroutineHistory& history, const std::vector<Finding>& findings,
                  std::size_t limit) {
  return Summary(history) + FindingsText(findings, limit) + GroupTable(history, limit) +
         LatencyTable(history.latency());
}

nlohmann::json GroupsJson(const CoroutineHistory& history) {
  nlohmann::json groups = nlohmann::json::array();
  for (const coroutine::CoroutineGroup& group : coroutine::GroupCoroutines(history)) {
    groups.push_back({{"name", group.name},
                      {"coroutines", group.coroutines},
                      {"finished", group.finished},
                      {"destroyed", group.destroyed},
                      {"resumes", group.resumes},
                      {"migrations", group.migrations},
                      {"run_nanoseconds", group.run_nanoseconds},
                      {"longest_run_nanoseconds", group.longest_run},
                      {"longest_life_nanoseconds", group.lifetimes.longest}});
  }
  return groups;
}

nlohmann::json LatencyJson(const coroutine::LatencyHistogram& latency) {
  nlohmann::json buckets = nlohmann::json::array();
  for (unsigned i = 0; i < std::size(latency.buckets); ++i) {
    if (latency.buckets[i] == 0) continue;
    buckets.push_back(
        {{"below_nanoseconds", uint64_t{1} << std::min(i, 63u)}, {"count", latency.buckets[i]}});
  }
  return {{"count", latency.count}, {"longest_nanoseconds", latency.longest}, {"buckets", buckets}};
}

std::string Json(const CoroutineHistory& history, const std::vector<Finding>& findings) {
  nlohmann::json document;
  document["events"] = history.events();
  document["lost"] = history.lost();
  document["coroutines"] = history.coroutines().size();
  document["complete"] = history.complete();
  document["findings"] = nlohmann::json::array();
  for (const Finding& finding : findings) {
    document["findings"].push_back({{"kind", coroutine::FindingKindText(finding.kind)},
                                    {"coroutine", finding.who},
                                    {"place", finding.where},
                                    {"evidence", finding.evidence}});
  }
  document["groups"] = GroupsJson(history);
  document["latency"] = LatencyJson(history.latency());
  for (const auto& [name, value] : history.counters()) document["counters"][name] = value;
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int RunCoroReport(const CoroReportOptions& options) {
  const Result<CoroutineHistory> history = CoroutineHistory::Read(options.files);
  if (!history) return ReportFailure(history.error());
  const std::vector<Finding> findings = coroutine::FindProblems(*history, options.limits);
  const std::string text =
      options.json ? Json(*history, findings) : Table(*history, findings, options.limit);
  if (const Result<void> written = WriteOutput("-", text); !written) {
    return ReportFailure(written.error());
  }
  return 0;
}

void AddLimit(CLI::App& command, const std::string& name, uint64_t* nanoseconds,
              const std::string& description) {
  command
      .add_option_function<std::string>(
          name,
          [name, nanoseconds](const std::string& text) {
            const bool has_unit = text.find_first_not_of("0123456789.") != std::string::npos;
            const auto parsed = ParseDuration(has_unit ? text : text + "s");
            if (!parsed || parsed->count() <= 0) {
              throw CLI::ValidationError(name,
                                         "'" + text + "' is not a duration such as 1s or 50ms");
            }
            *nanoseconds = static_cast<uint64_t>(parsed->count());
          },
          description)
      ->type_name("DURATION");
}

}  // namespace

void AddCoroReportCommand(CLI::App& coro, std::function<int()>& run) {
  auto options = std::make_shared<CoroReportOptions>();
  CLI::App* command = coro.add_subcommand(
      "report", "Find stuck coroutines, hogs, leaks and late resumes in a recording");
  command
      ->add_option(
          "FILE", options->files,
          "A recording, or several: of the same processes, one after the other, or of many")
      ->required()
      ->type_name("FILE");
  AddLimit(*command, "--stuck-after", &options->limits.stuck_nanoseconds,
           "A suspension counts as stuck after this time (1s), if it is also ten times longer than "
           "any that ended at its place");
  AddLimit(*command, "--hog-after", &options->limits.hog_nanoseconds,
           "A run without a suspension counts as a hog after this time (100ms)");
  AddLimit(*command, "--leak-after", &options->limits.leak_nanoseconds,
           "A finished coroutine counts as leaked if it is still there after this time (1s)");
  AddLimit(*command, "--late-after", &options->limits.late_nanoseconds,
           "A resume counts as late if it comes this long after its coroutine was ready (100ms)");
  command
      ->add_option("--limit", options->limit, "How many findings, and how many names, to show (20)")
      ->type_name("COUNT");
  command->add_flag("--json", options->json, "JSON, with all counters");
  command->callback([options, &run] { run = [options] { return RunCoroReport(*options); }; });
}

}  // namespace spanprof::cli
