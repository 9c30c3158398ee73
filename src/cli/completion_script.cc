#include "cli/completion_script.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace spanprof::cli {
namespace {

// What an argument is, by the name of its value: "FILE", "PID|COMMAND".
bool Takes(const OptionDescription& option, std::string_view what) {
  return option.choices.empty() && option.value.find(what) != std::string::npos;
}

std::string Joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

// Between single quotes, for any of the three shells.
std::string Quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// A man page has room for all of a description; a list of completions has one line.
std::string FirstClause(const std::string& description) {
  std::size_t end = description.size();
  for (const char* mark : {": ", "; ", ". "}) end = std::min(end, description.find(mark));
  return description.substr(0, end);
}

std::vector<std::string> OptionNames(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// ---- bash ----

// The compgen call that lists what an option or argument takes; nothing if nobody can know.
std::string BashWords(const OptionDescription& option) {
  if (!option.choices.empty()) return "-W " + Quote(Joined(option.choices, " "));
  if (Takes(option, "DIR")) return "-d";
  if (Takes(option, "FILE")) return "-f";
  if (Takes(option, "PID") && Takes(option, "COMMAND")) return "-c -W \"$(ps -eo pid=)\"";
  if (Takes(option, "COMMAND")) return "-c";
  if (Takes(option, "PID")) return "-W \"$(ps -eo pid=)\"";
  return {};
}

std::string BashCommand(const CommandDescription& command) {
  std::string text = "    " + command.name + ")\n      case $previous in\n";
  for (const OptionDescription& option : command.options) {
    if (option.value.empty()) continue;
    text += "        " + Joined(option.names, " | ") + ") words=(" + BashWords(option) + ") ;;\n";
  }
  std::string argument;
  if (!command.arguments.empty()) argument = BashWords(command.arguments.front());
  text += "        *)\n          if [[ $current == -* ]]; then\n            words=(-W " +
          Quote(Joined(OptionNames(command), " ")) + ")\n";
  if (!argument.empty()) text += "          else\n            words=(" + argument + ")\n";
  return text + "          fi\n          ;;\n      esac\n      ;;\n";
}

// ---- zsh ----

// Inside a description of _arguments brackets and colons have a meaning.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const OptionDescription& option) {
  if (!option.choices.empty()) return "(" + Joined(option.choices, " ") + ")";
  if (Takes(option, "DIR")) return "_files -/";
  if (Takes(option, "FILE")) return "_files";
  if (Takes(option, "PID") && Takes(option, "COMMAND")) return "{_pids; _command_names -e}";
  if (Takes(option, "COMMAND")) return "_command_names -e";
  if (Takes(option, "PID")) return "_pids";
  return " ";
}

std::string ZshOption(const OptionDescription& option) {
  std::string rest = "[" + ZshText(FirstClause(option.description)) + "]";
  if (!option.value.empty()) rest += ":" + ZshText(option.value) + ":" + ZshAction(option);
  std::string text;
  for (const std::string& name : option.names) {
    const std::string others = option.repeated ? "*" : "(" + Joined(option.names, " ") + ")";
    text += "        " + Quote(others + name + rest) + " \\\n";
  }
  return text;
}

std::string ZshCommand(const CommandDescription& command) {
  std::string text = "    " + command.name + ")\n      _arguments \\\n";
  for (const OptionDescription& option : command.options) text += ZshOption(option);
  for (const OptionDescription& argument : command.arguments) {
    text += "        " +
            Quote(std::string(argument.repeated ? "*" : "") + ":" +
                  ZshText(argument.names.front()) + ":" + ZshAction(argument)) +
            " \\\n";
  }
  return text + "        && return\n      ;;\n";
}

// ---- fish ----

std::string FishQuote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string FishValue(const OptionDescription& option) {
  if (!option.choices.empty()) return " -x -a " + FishQuote(Joined(option.choices, " "));
  if (Takes(option, "DIR")) return " -x -a '(__fish_complete_directories)'";
  if (Takes(option, "FILE")) return " -r -F";
  return option.value.empty() ? "" : " -x";
}

std::string FishOption(const std::string& condition, const OptionDescription& option) {
  std::string text = "complete -c spanprof -n " + FishQuote(condition);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return text + FishValue(option) + " -d " + FishQuote(FirstClause(option.description)) + "\n";
}

std::string FishCommand(const CommandDescription& command) {
  const std::string condition = "__fish_seen_subcommand_from " + command.name;
  std::string text = "complete -c spanprof -n __fish_use_subcommand -f -a " + command.name +
                     " -d " + FishQuote(command.summary) + "\n";
  for (const OptionDescription& option : command.options) text += FishOption(condition, option);
  std::string argument = " -f";
  if (!command.arguments.empty()) {
    const OptionDescription& first = command.arguments.front();
    if (!first.choices.empty()) argument += " -a " + FishQuote(Joined(first.choices, " "));
    if (Takes(first, "PID")) argument += " -a '(__fish_complete_pids)'";
    if (Takes(first, "COMMAND")) argument += " -a '(__fish_complete_command)'";
    if (Takes(first, "FILE")) argument = " -F";
  }
  return text + "complete -c spanprof -n " + FishQuote(condition) + argument + "\n";
}

}  // namespace

std::string BashCompletion(const CommandDescription& root) {
  std::vector<std::string> top = OptionNames(root);
  std::string commands;
  for (const CommandDescription& command : root.commands) {
    top.push_back(command.name);
    commands += BashCommand(command);
  }
  return "# bash completion for spanprof\n"
         "_spanprof() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command='' word words=()\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    if [[ $word != -* ]]; then command=$word; break; fi\n"
         "  done\n"
         "  case $command in\n"
         "    '') words=(-W " +
         Quote(Joined(top, " ")) + ") ;;\n" + commands +
         "  esac\n"
         "  COMPREPLY=()\n"
         "  if ((${#words[@]})); then\n"
         "    mapfile -t COMPREPLY < <(compgen \"${words[@]}\" -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _spanprof spanprof\n";
}

std::string ZshCompletion(const CommandDescription& root) {
  std::string list;
  std::string commands;
  for (const CommandDescription& command : root.commands) {
    list += "        " + Quote(command.name + ":" + ZshText(command.summary)) + "\n";
    commands += ZshCommand(command);
  }
  std::string options;
  for (const OptionDescription& option : root.options) options += ZshOption(option);
  return "#compdef spanprof\n"
         "_spanprof() {\n"
         "  local curcontext=$curcontext state line\n"
         "  _arguments -C \\\n" +
         options +
         "        '1:command:->command' \\\n"
         "        '*::argument:->argument' && return\n"
         "  if [[ $state == command ]]; then\n"
         "    local -a commands=(\n" +
         list +
         "    )\n"
         "    _describe -t commands command commands\n"
         "    return\n"
         "  fi\n"
         "  case $words[1] in\n" +
         commands +
         "  esac\n"
         "}\n"
         // Loaded by the completion system it is called; sourced it registers itself.
         "if [[ $funcstack[1] == _spanprof ]]; then\n"
         "  _spanprof \"$@\"\n"
         "elif (( $+functions[compdef] )); then\n"
         "  compdef _spanprof spanprof\n"
         "fi\n";
}

std::string FishCompletion(const CommandDescription& root) {
  std::string text = "# fish completion for spanprof\n";
  for (const OptionDescription& option : root.options) {
    text += FishOption("__fish_use_subcommand", option);
  }
  for (const CommandDescription& command : root.commands) text += FishCommand(command);
  return text;
}

}  // namespace spanprof::cli
