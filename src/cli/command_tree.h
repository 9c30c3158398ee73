#pragma once

// The commands, options and their descriptions, taken from the parser: the one source of man pages
// and shell completion.
//
//   const CommandDescription root = DescribeCommand(app);
//   root.commands[0].name;                  // "context"
//   root.commands[0].options[0].names[0];   // "--all"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

struct OptionDescription {
  std::vector<std::string> names;    // "-o", "--output"; of an argument its name, "FILE"
  std::string value;                 // what it takes: "FILE", "DURATION"; empty for a flag
  std::vector<std::string> choices;  // the only values that it takes; empty: any
  std::string description;
  std::string group;  // a heading of the help
  bool required = false;
  bool repeated = false;
};

struct CommandDescription {
  std::string name;
  std::string summary;
  std::string footer;
  std::vector<OptionDescription> arguments;  // by position
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

// What is hidden from the help is left out.
[[nodiscard]] CommandDescription DescribeCommand(const CLI::App& app);

// "FILE", or "self|total" where only these are taken.
[[nodiscard]] std::string ValueName(const OptionDescription& option);

}  // namespace spanprof::cli
