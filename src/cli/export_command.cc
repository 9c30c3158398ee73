#include "cli/export_command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/options.h"
#include "base/printable_text.h"
#include "base/result.h"
#include "cli/output_file.h"
#include "cli/profile_filter.h"
#include "cli/profile_input.h"
#include "cli/progress.h"
#include "cli/report_error.h"
#include "format/format.h"
#include "format/jfr_file.h"
#include "profile/names.h"

namespace spanprof::cli {
namespace {

struct ExportOptions {
  InputOptions input;
  FilterOptions filter;
  std::string output;
  std::optional<OutputFormat> format;
  format::WriteOptions write;
};

const std::map<std::string, OutputFormat>& Formats() {
  static const std::map<std::string, OutputFormat> kFormats = {
      {"pprof", OutputFormat::kPprof},      {"otlp", OutputFormat::kOtlp},
      {"folded", OutputFormat::kFolded},    {"jfr", OutputFormat::kJfr},
      {"html", OutputFormat::kHtml},        {"firefox", OutputFormat::kFirefox},
      {"perfetto", OutputFormat::kPerfetto}};
  return kFormats;
}

const std::map<std::string, LabelScheme>& LabelSchemes() {
  static const std::map<std::string, LabelScheme> kSchemes = {
      {"datadog", LabelScheme::kDatadog}, {"pyroscope", LabelScheme::kPyroscope}};
  return kSchemes;
}

template <class Map>
std::vector<std::string> Keys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

Result<OutputFormat> ChosenFormat(const ExportOptions& options) {
  if (options.format) return *options.format;
  if (options.output == "-") {
    return Fail(EINVAL, "the standard output has no name that says the format",
                "give it: --format pprof");
  }
  Result<OutputFormat> format = format::FormatOfFile(options.output);
  if (!format) {
    std::string& hint = format.error().hint;
    if (const std::size_t at = hint.rfind("format="); at != std::string::npos) {
      hint.replace(at, std::string::npos, "--format");
    }
  }
  return format;
}

// Before anything is read, which may take long.
Result<void> CheckOutput(const ExportOptions& options, OutputFormat format) {
  if (options.output == "-") {
    const bool is_text = format == OutputFormat::kFolded || format == OutputFormat::kHtml;
    if (is_text || isatty(STDOUT_FILENO) == 0) return {};
    return Fail(EINVAL, "the format is not text, and the standard output is a terminal",
                "give a file: -o profile.pb.gz");
  }
  const std::string part = format::JfrPartPath(options.output);
  if (format == OutputFormat::kJfr && access(part.c_str(), F_OK) == 0) {
    // A reader would take the part for the end of what is written here.
    return Fail(EEXIST,
                Quoted(options.output) +
                    " belongs to a recording that is not finished: " + Quoted(part) + " is there",
                "give another name with -o");
  }
  return CheckOutputFolder(options.output);
}

// Folded stacks have one type of samples. Whoever has several hears which one was taken.
std::optional<std::string> NoteOnTypes(const profile::Profile& profile, OutputFormat format) {
  if (format != OutputFormat::kFolded) return std::nullopt;
  std::array<std::uint64_t, profile::kSampleKindCount> counts{};
  for (const profile::Sample& sample : profile.samples()) {
    counts[static_cast<unsigned>(sample.kind)] += sample.count;
  }
  std::optional<std::string> note;
  bool is_first = true;
  for (unsigned i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const std::string name(NameOf(profile::SampleKind{static_cast<std::uint8_t>(i)}));
    if (!std::exchange(is_first, false)) {
      note = note.value_or("folded stacks hold one type of samples, so these were left out:") +
             " " + std::to_string(counts[i]) + " " + name + " (--type " + name + ")";
    }
  }
  return note;
}

int RunExport(const ExportOptions& options) {
  const Result<OutputFormat> format = ChosenFormat(options);
  if (!format) return ReportFailure(format.error());
  if (const Result<void> good = CheckOutput(options, *format); !good) {
    return ReportFailure(good.error());
  }
  Result<InputProfile> input = ReadInput(options.input);
  if (!input) return ReportFailure(input.error());
  for (const std::string& note : input->notes) ReportNote(note);
  const Result<Selection> selection = ApplyFilter(std::move(input->profile), options.filter);
  if (!selection) return ReportFailure(selection.error());
  for (const std::string& note : selection->notes) ReportNote(note);
  if (selection->profile.samples().empty()) ReportNote("the profile has no samples");

  Progress progress;
  progress.Show("writing " + options.output);
  format::WriteOptions write = options.write;
  write.kind = options.filter.filter.kind;
  if (const auto note = NoteOnTypes(selection->profile, *format)) {
    progress.Clear();
    ReportNote(*note);
  }
  const Result<std::string> bytes = format::WriteProfile(selection->profile, *format, write);
  progress.Clear();
  if (!bytes) return ReportFailure(bytes.error());
  if (const Result<void> written = WriteOutput(options.output, *bytes); !written) {
    return ReportFailure(written.error());
  }
  return 0;
}

}  // namespace

void AddExportCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Convert, merge and filter profiles, and add symbols to them");
  command
      ->add_option("-o,--output", options->output,
                   "Where to write; the name's end says the format: .pb.gz .pprof .otlp .jfr "
                   ".folded .html .json.gz .pftrace; - is the standard output")
      ->required()
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--format", [options](const std::string& name) { options->format = Formats().at(name); },
          "The format to write, whatever the name")
      ->check(CLI::IsMember(Keys(Formats())));
  command
      ->add_option_function<std::vector<std::string>>(
          "--labels",
          [options](const std::vector<std::string>& names) {
            for (const std::string& name : names) {
              options->write.labels.push_back(LabelSchemes().at(name));
            }
          },
          "Add the labels that these read to find spans and endpoints; separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(Keys(LabelSchemes())));
  command
      ->add_option_function<std::string>(
          "--jfr-context",
          [options](const std::string& name) {
            options->write.jfr_context = name == "flat" ? JfrContext::kFlat : JfrContext::kPool;
          },
          "JFR: a sample's span and tags as one value of a pool (default), or flat: its ids as "
          "plain fields")
      ->check(CLI::IsMember({"pool", "flat"}));
  AddInputOptions(*command, options->input);
  AddFilterOptions(*command, options->filter);
  command->footer(
      "Examples:\n"
      "  spanprof export profile.jfr -o profile.pb.gz\n"
      "  spanprof export profile.jfr -o cart.html --endpoint 'GET /cart'\n"
      "  spanprof export a.pb.gz b.pb.gz -o both.pb.gz --from +10s --to +20s\n"
      "  spanprof export profile.otlp -o - --format folded --tag tenant=acme | head");
  command->callback([options, &run] { run = [options] { return RunExport(*options); }; });
}

}  // namespace spanprof::cli
