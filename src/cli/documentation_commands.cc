#include "cli/documentation_commands.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/nearest_name.h"
#include "base/printable_text.h"
#include "base/result.h"
#include "cli/command_tree.h"
#include "cli/completion_script.h"
#include "cli/man_page.h"
#include "cli/output_file.h"
#include "cli/report_error.h"

namespace spanprof::cli {
namespace {

struct ManOptions {
  std::string command;
  std::string folder;
};

// "spanprof 0.1.0" as --version prints it.
std::string VersionOf(const CLI::App& app) {
  const std::string text = app.version();
  return text.substr(text.find_last_of(' ') + 1);
}

int Print(const std::string& text) {
  const Result<void> written = WriteOutput("-", text);
  return written ? 0 : ReportFailure(written.error());
}

// Documents are for everybody to read, unlike profiles: with the usual mode.
Result<void> WriteDocument(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return Fail(EIO, "cannot write " + Quoted(path.string()), "give a folder that you may write to");
}

Result<void> WriteAllPages(const CommandDescription& root, const std::string& version,
                           const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Fail(error.value(), "cannot create " + Quoted(folder) + ": " + error.message(),
                "give a folder that you may write to");
  }
  const std::filesystem::path to(folder);
  if (Result<void> written = WriteDocument(to / (root.name + ".1"), ManPage(root, version));
      !written) {
    return written;
  }
  for (const CommandDescription& command : root.commands) {
    const std::string name = ManPageName(root, command) + ".1";
    if (Result<void> written = WriteDocument(to / name, ManPage(root, command, version));
        !written) {
      return written;
    }
  }
  return {};
}

int RunMan(const CLI::App& app, const ManOptions& options) {
  const CommandDescription root = DescribeCommand(app);
  const std::string version = VersionOf(app);
  if (!options.folder.empty()) {
    const Result<void> written = WriteAllPages(root, version, options.folder);
    return written ? 0 : ReportFailure(written.error());
  }
  if (options.command.empty()) return Print(ManPage(root, version));
  std::vector<std::string_view> names;
  for (const CommandDescription& command : root.commands) {
    if (command.name == options.command) return Print(ManPage(root, command, version));
    names.emplace_back(command.name);
  }
  const std::string_view nearest = NearestName(options.command, names);
  return ReportFailure({ENOENT, "there is no command " + Quoted(options.command),
                        nearest.empty() ? "spanprof --help lists them"
                                        : "did you mean " + std::string(nearest) + "?"});
}

}  // namespace

void AddManCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<ManOptions>();
  CLI::App* command = app.add_subcommand("man", "Print a man page: of spanprof, or of a command");
  command->add_option("COMMAND", options->command, "The command that it is about")
      ->type_name("NAME");
  command->add_option("--folder", options->folder, "Write all pages there, as files, instead")
      ->type_name("DIR");
  command->footer(
      "Examples:\n"
      "  spanprof man report | man -l -\n"
      "  spanprof man --folder ~/.local/share/man/man1");
  command->callback(
      [options, &app, &run] { run = [options, &app] { return RunMan(app, *options); }; });
}

void AddCompletionCommand(CLI::App& app, std::function<int()>& run) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script for a shell");
  command->add_option("SHELL", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(spanprof completion bash)\n"
      "  spanprof completion zsh >~/.zfunc/_spanprof\n"
      "  spanprof completion fish >~/.config/fish/completions/spanprof.fish");
  command->callback([shell, &app, &run] {
    run = [shell, &app] {
      const CommandDescription root = DescribeCommand(app);
      if (*shell == "bash") return Print(BashCompletion(root));
      return Print(*shell == "zsh" ? ZshCompletion(root) : FishCompletion(root));
    };
  });
}

}  // namespace spanprof::cli
