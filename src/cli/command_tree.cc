#include "cli/command_tree.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace spanprof::cli {
namespace {

// CLI11 has the type and what is checked in one text: "TEXT:{cpu,wall}", "INT:INT in [1 - 9]".
std::vector<std::string> ChoicesOf(std::string_view type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find(":{");
  const std::size_t close = type.find('}', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return choices;
  std::string_view list = type.substr(open + 2, close - open - 2);
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    choices.emplace_back(word);
    list.remove_prefix(std::min(word.size() + 1, list.size()));
  }
  return choices;
}

OptionDescription DescribeOption(const CLI::Option& option) {
  OptionDescription description;
  if (option.get_positional()) {
    description.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) description.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) description.names.push_back("--" + name);
  }
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() != 0) {
    description.value = type.substr(0, type.find(':'));
    description.choices = ChoicesOf(type);
  }
  description.description = option.get_description();
  description.group = option.get_group();
  description.required = option.get_required();
  description.repeated = option.get_items_expected_max() > 1;
  return description;
}

}  // namespace

CommandDescription DescribeCommand(const CLI::App& app) {
  CommandDescription command;
  command.name = app.get_name();
  command.summary = app.get_description();
  command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? command.arguments : command.options)
        .push_back(DescribeOption(*option));
  }
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!each->get_group().empty()) command.commands.push_back(DescribeCommand(*each));
  }
  return command;
}

std::string ValueName(const OptionDescription& option) {
  std::string text;
  for (const std::string& choice : option.choices) text += (text.empty() ? "" : "|") + choice;
  return text.empty() ? option.value : text;
}

}  // namespace spanprof::cli
