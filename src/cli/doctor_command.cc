#include "cli/doctor_command.h"

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/printable_text.h"
#include "base/result.h"
#include "cli/doctor_output.h"
#include "cli/machine_checks.h"
#include "cli/output_file.h"
#include "cli/process_checks.h"
#include "cli/program_checks.h"
#include "cli/report_error.h"

namespace spanprof::cli {
namespace {

struct DoctorOptions {
  std::vector<std::string> target;  // a pid, or a program and its arguments
  bool json = false;
};

std::optional<pid_t> ParsePid(const std::string& text) {
  pid_t pid = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, pid);
  if (error != std::errc() || rest != end || pid <= 0) return std::nullopt;
  return pid;
}

std::string ProgramTitle(const ProgramFile& program) {
  std::string title = "program " + program.path;
  if (!program.script.empty()) title += ", which runs the script " + program.script;
  return title;
}

Result<std::vector<CheckGroup>> Examine(const DoctorOptions& options) {
  std::vector<CheckGroup> groups = {{"this machine", CheckMachine(GatherMachineFacts())}};
  if (options.target.empty()) return groups;
  Result<ProgramFile> program = Fail(ENOENT, "");
  if (const auto pid = ParsePid(options.target.front())) {
    const Result<ProcessFacts> process = GatherProcessFacts(*pid);
    if (!process) return tl::make_unexpected(process.error());
    groups.push_back({"process " + std::to_string(process->pid) + " " + Quoted(process->name),
                      CheckProcess(*process)});
    program = ReadProgramAt("/proc/" + std::to_string(process->pid) + "/exe");
    // Its memory could not be read either, which was said.
    if (!program) return groups;
  } else {
    program = ReadProgram(options.target.front());
    if (!program) return tl::make_unexpected(program.error());
  }
  groups.push_back({ProgramTitle(*program), CheckProgram(*program)});
  return groups;
}

int RunDoctor(const DoctorOptions& options) {
  const Result<std::vector<CheckGroup>> groups = Examine(options);
  if (!groups) return ReportFailure(groups.error());
  const std::string text = options.json ? DoctorJson(*groups) + '\n' : DoctorText(*groups);
  if (const Result<void> written = WriteOutput("-", text); !written) {
    return ReportFailure(written.error());
  }
  return AnyFailed(*groups) ? 1 : 0;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check what limits profiling here, of a process, or of a program");
  command
      ->add_option("TARGET", options->target,
                   "The number of a process, or a program that is to be recorded; its arguments do "
                   "not matter")
      ->type_name("PID|COMMAND");
  command->add_flag("--json", options->json, "JSON, for programs");
  command->footer(
      "Exit status: 0, or 1 if something that profiling needs does not work.\n"
      "\n"
      "Examples:\n"
      "  spanprof doctor\n"
      "  spanprof doctor 8134\n"
      "  spanprof doctor -- ./server --port 80");
  command->callback([options, &run] { run = [options] { return RunDoctor(*options); }; });
}

}  // namespace spanprof::cli
