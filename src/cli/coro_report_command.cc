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

std::string Table(const CoroutineHistory& history, const std::vector<Finding>& findings,
                  std::size_t limit) {
  std::string text = Summary(history);
  if (findings.empty()) return text + "no problem was found\n";
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
  command->add_option("--limit", options->limit, "How many findings to show (20)")
      ->type_name("COUNT");
  command->add_flag("--json", options->json, "JSON, with all counters");
  command->callback([options, &run] { run = [options] { return RunCoroReport(*options); }; });
}

}  // namespace spanprof::cli
