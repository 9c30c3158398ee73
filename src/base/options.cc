#include "base/options.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/nearest_name.h"
#include "base/option_table.h"
#include "base/option_words.h"
#include "base/printable_text.h"

namespace spanprof {
namespace {

constexpr std::size_t kHelpColumns = 100;
constexpr std::size_t kHelpIndent = 4;

Options DefaultOptions() {
  Options defaults;
  defaults.context_storage = kDefaultContextStorage;
  defaults.context_slots = kDefaultContextSlots;
  defaults.latency = kDefaultLatency;
  defaults.log = kDefaultLog;
  defaults.wall_threads = kDefaultWallThreads;
  defaults.max_memory = kDefaultMaxMemory;
  defaults.fork = kDefaultFork;
  defaults.every = kDefaultEvery;
  defaults.jfr_context = kDefaultJfrContext;
  return defaults;
}

std::optional<Command> FindCommand(std::string_view word) {
  const auto names = CommandNames();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) return std::nullopt;
  return static_cast<Command>(found - names.begin() + 1);
}

std::string_view CommandName(Command command) {
  const auto index = static_cast<std::size_t>(command);
  return index == 0 || index > CommandNames().size() ? "" : CommandNames()[index - 1];
}

const OptionSpec* FindOption(std::string_view name) {
  const auto table = OptionTable();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const OptionSpec& spec) { return spec.name == name; });
  return found == table.end() ? nullptr : &*found;
}

tl::unexpected<Error> FailUnknown(std::string_view name) {
  std::vector<std::string_view> names(CommandNames().begin(), CommandNames().end());
  for (const OptionSpec& spec : OptionTable()) names.push_back(spec.name);
  std::string hint;
  if (const std::string_view nearest = NearestName(name, names); !nearest.empty()) {
    hint = "did you mean " + Quoted(nearest) + "?";
  } else {
    hint = "the options are";
    for (std::size_t i = 0; i < names.size(); ++i) {
      hint.append(i == 0 ? " " : ", ").append(names[i]);
    }
  }
  return Fail(EINVAL, "unknown option " + Quoted(name), std::move(hint));
}

// A command that stands first never comes here.
tl::unexpected<Error> FailCommand(std::string_view word, Command command) {
  if (command == Command::kNone) {
    return Fail(EINVAL, "the command " + Quoted(word) + " does not stand first",
                "begin the options with it");
  }
  return Fail(
      EINVAL,
      "the command " + Quoted(word) + " follows the command " + Quoted(CommandName(command)),
      "give one command");
}

Result<void> CheckHasValue(const OptionSpec& spec, const std::optional<std::string_view>& value) {
  const std::string name(spec.name);
  if (spec.kind == OptionKind::kFlag) {
    if (!value) return {};
    return Fail(EINVAL, Seen(spec, *value) + ": " + name + " takes no value", "give just " + name);
  }
  if (value && !value->empty()) return {};
  return Fail(EINVAL, name + " has no value", "give " + HintFor(spec));
}

void AppendPadded(std::string& out, std::string_view line) {
  out.append(kHelpIndent * 2, ' ').append(line).append("\n");
}

void AppendWrapped(std::string& out, std::string_view text) {
  constexpr std::size_t kWidth = kHelpColumns - kHelpIndent * 2;
  while (text.size() > kWidth) {
    const std::size_t space = text.rfind(' ', kWidth);
    if (space == std::string_view::npos || space == 0) break;
    AppendPadded(out, text.substr(0, space));
    text.remove_prefix(space + 1);
  }
  AppendPadded(out, text);
}

}  // namespace

Result<Options> ParseOptions(std::string_view text) {
  Options options;
  std::vector<bool> seen(OptionTable().size());
  bool is_first = true;
  for (const std::string_view word : SplitEscaped(text, ',')) {
    if (word.empty()) continue;
    const bool stands_first = std::exchange(is_first, false);
    const auto [key, value] = SplitAtFirst(word, '=');
    if (const std::optional<Command> command = FindCommand(key); command) {
      if (value) {
        return Fail(EINVAL, "the command " + Quoted(key) + " takes no value", "leave out the '='");
      }
      if (!stands_first) return FailCommand(key, options.command);
      options.command = *command;
      continue;
    }
    const OptionSpec* const spec = FindOption(key);
    if (spec == nullptr) return FailUnknown(key);
    if (Result<void> check = CheckHasValue(*spec, value); !check) {
      return tl::make_unexpected(std::move(check.error()));
    }
    const auto row = static_cast<std::size_t>(spec - OptionTable().data());
    if (seen[row] && !spec->adds_up) {
      return Fail(
          EINVAL,
          (value ? Seen(*spec, *value) : std::string(spec->name)) + " is given a second time",
          "leave out one of the two");
    }
    seen[row] = true;
    if (Result<void> parsed = spec->parse(*spec, value.value_or(""), options); !parsed) {
      return tl::make_unexpected(std::move(parsed.error()));
    }
  }
  return options;
}

std::string ToString(const Options& options) {
  std::string text(CommandName(options.command));
  for (const OptionSpec& spec : OptionTable()) {
    std::vector<std::string> values;
    spec.write(spec, options, values);
    for (const std::string& value : values) {
      if (!text.empty()) text += ',';
      text.append(spec.name).append("=").append(value);
    }
  }
  return text;
}

std::vector<OptionDescription> DescribeOptions() {
  const Options defaults = DefaultOptions();
  std::vector<OptionDescription> descriptions;
  for (const OptionSpec& spec : OptionTable()) {
    std::vector<std::string> values;
    spec.write(spec, defaults, values);
    descriptions.push_back({std::string(spec.name), AcceptedValues(spec),
                            values.empty() ? "" : values.front(), std::string(spec.meaning)});
  }
  return descriptions;
}

std::string OptionsAsMarkdownRows() {
  std::string rows;
  for (const OptionDescription& option : DescribeOptions()) {
    rows.append("| `").append(option.name).append(option.values.empty() ? "` | " : "=` | ");
    rows.append(option.values).append(" | ");
    if (!option.default_value.empty()) rows.append("`").append(option.default_value).append("`");
    rows.append(" | ").append(option.meaning).append(" |\n");
  }
  return rows;
}

std::string OptionsAsHelp() {
  std::string help;
  for (const OptionDescription& option : DescribeOptions()) {
    help.append(kHelpIndent, ' ').append(option.name);
    if (!option.values.empty()) help += "=  " + option.values;
    if (!option.default_value.empty()) help += " (default " + option.default_value + ")";
    help += '\n';
    AppendWrapped(help, option.meaning);
  }
  return help;
}

}  // namespace spanprof
