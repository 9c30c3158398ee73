#include "cli/report_command.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/grouping_option.h"
#include "cli/output_file.h"
#include "cli/profile_filter.h"
#include "cli/profile_input.h"
#include "cli/report_error.h"
#include "cli/report_output.h"
#include "cli/report_rows.h"
#include "cli/terminal_size.h"

namespace spanprof::cli {
namespace {

struct ReportCommandOptions {
  InputOptions input;
  FilterOptions filter;
  std::vector<Grouping> by;  // empty: the default
  SortBy sort = SortBy::kDefault;
  std::optional<std::size_t> limit;
  bool json = false;
};

const std::map<std::string, SortBy>& SortWords() {
  static const std::map<std::string, SortBy> kWords = {{"self", SortBy::kSelf},
                                                       {"total", SortBy::kTotal},
                                                       {"samples", SortBy::kSamples},
                                                       {"name", SortBy::kName}};
  return kWords;
}

int RunReport(const ReportCommandOptions& options) {
  Result<InputProfile> input = ReadInput(options.input);
  if (!input) return ReportFailure(input.error());
  for (const std::string& note : input->notes) ReportNote(note);
  ReportSource source{.files = options.input.files.size()};
  for (const profile::Sample& sample : input->profile.samples()) {
    source.unfiltered_count += sample.count;
  }
  const Result<Selection> selection = ApplyFilter(std::move(input->profile), options.filter);
  if (!selection) return ReportFailure(selection.error());
  for (const std::string& note : selection->notes) ReportNote(note);
  source.is_filtered = selection->is_filtered;
  const profile::Profile& profile = selection->profile;

  ReportOptions report;
  report.by = options.by.empty() ? DefaultGroupings(profile) : options.by;
  if (const Result<void> known = CheckTags(report.by, profile); !known) {
    return ReportFailure(known.error());
  }
  report.kind = options.filter.filter.kind.value_or(MainKind(profile));
  report.sort = options.sort;
  if (options.limit) report.limit = report.inner_limit = *options.limit;
  const Report made = MakeReport(profile, report);
  const std::string text = options.json
                               ? ReportJson(made, profile, source) + '\n'
                               : ReportTable(made, profile, source, SizeOfTerminal().columns);
  if (const Result<void> written = WriteOutput("-", text); !written) {
    return ReportFailure(written.error());
  }
  return 0;
}

}  // namespace

void AddReportCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<ReportCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Show where the time of a profile went: by endpoint, span, thread or function");
  AddGroupingOption(*command, options->by);
  std::vector<std::string> sorts;
  for (const auto& [word, sort] : SortWords()) sorts.push_back(word);
  command
      ->add_option_function<std::string>(
          "--sort", [options](const std::string& word) { options->sort = SortWords().at(word); },
          "Order of the rows. Default: functions by self, everything else by total")
      ->check(CLI::IsMember(sorts));
  command
      ->add_option("--limit", options->limit,
                   "Rows to show, on each level; 0 is all. Default: 20, and 5 within each of them")
      ->type_name("N");
  command->add_flag("--json", options->json, "JSON, for programs; values in ns or bytes");
  AddInputOptions(*command, options->input);
  AddFilterOptions(*command, options->filter);
  command->footer(
      "Examples:\n"
      "  spanprof report profile.jfr\n"
      "  spanprof report profile.jfr --by span --endpoint 'GET /cart' --limit 10\n"
      "  spanprof report *.pb.gz --by tag:tenant,function --type wall");
  command->callback([options, &run] { run = [options] { return RunReport(*options); }; });
}

}  // namespace spanprof::cli
