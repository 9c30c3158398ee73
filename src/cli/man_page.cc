#include "cli/man_page.h"

#include <algorithm>
#include <vector>

namespace spanprof::cli {
namespace {

// Text that roff shows as it is: no escapes, hyphens that can be copied, no requests.
std::string Plain(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_line_start = c == '\n';
  }
  return out;
}

std::string Bold(std::string_view text) { return "\\fB" + Plain(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Plain(text) + "\\fR"; }

std::string UpperCase(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string Head(const std::string& name, std::string_view version, const std::string& summary) {
  return ".TH \"" + UpperCase(name) + "\" \"1\" \"\" \"spanprof " + std::string(version) +
         "\" \"spanprof\"\n.SH NAME\n" + Plain(name) + " \\- " + Plain(summary) + "\n";
}

std::string OptionLine(const OptionDescription& option) {
  std::string line;
  for (const std::string& name : option.names) {
    line += (line.empty() ? "" : ", ") + Bold(name);
  }
  if (!option.value.empty()) line += " " + Italic(ValueName(option));
  return line;
}

std::string OptionEntry(const std::string& term, const std::string& description) {
  return ".TP\n" + term + "\n" + Plain(description) + "\n";
}

std::string ArgumentsOf(const CommandDescription& command) {
  std::string text;
  for (const OptionDescription& argument : command.arguments) {
    const std::string name = Italic(argument.names.front()) + (argument.repeated ? "..." : "");
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return text;
}

// The options under the headings that the help has, in the order in which they come.
std::string Options(const CommandDescription& command) {
  std::vector<std::string> groups;
  for (const OptionDescription& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  std::string text = ".SH OPTIONS\n";
  for (const std::string& group : groups) {
    if (groups.size() > 1 && group != groups.front()) text += ".SS " + Plain(group) + "\n";
    for (const OptionDescription& option : command.options) {
      if (option.group == group) text += OptionEntry(OptionLine(option), option.description);
    }
  }
  return text;
}

// A footer is paragraphs, and blocks of indented lines under a line that ends in a colon.
struct Footer {
  std::string paragraphs;
  std::string sections;
};

Footer FooterOf(const CommandDescription& command) {
  Footer footer;
  std::string_view rest = command.footer;
  bool in_section = false;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with(':')) {
      if (in_section) footer.sections += ".fi\n.RE\n";
      footer.sections +=
          ".SH " + UpperCase(Plain(line.substr(0, line.size() - 1))) + "\n.RS 4\n.nf\n";
      in_section = true;
    } else if (in_section) {
      const std::size_t text = std::min(line.find_first_not_of(' '), line.size());
      footer.sections += Plain(line.substr(text)) + "\n";
    } else if (!line.empty()) {
      footer.paragraphs += ".PP\n" + Plain(line) + "\n";
    }
  }
  if (in_section) footer.sections += ".fi\n.RE\n";
  return footer;
}

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nAll went well.\n"
    ".TP\n1\nIt failed; the standard error says why and what to do.\n"
    ".TP\n2\nThe command line could not be understood.\n";

}  // namespace

std::string ManPageName(const CommandDescription& root, const CommandDescription& command) {
  return root.name + "-" + command.name;
}

std::string ManPage(const CommandDescription& root, std::string_view version) {
  std::string text = Head(root.name, version, root.summary);
  text += ".SH SYNOPSIS\n" + Bold(root.name) + " " + Italic("COMMAND") + " [" + Italic("OPTIONS") +
          "]\n";
  const Footer footer = FooterOf(root);
  text += ".SH DESCRIPTION\n" + Plain(root.summary) + "\n" + footer.paragraphs;
  text += ".SH COMMANDS\n";
  std::string pages;
  for (const CommandDescription& command : root.commands) {
    text += OptionEntry(Bold(command.name) + ArgumentsOf(command), command.summary);
    pages += (pages.empty() ? "" : ",\n") + Bold(ManPageName(root, command)) + "(1)";
  }
  text += Options(root) + footer.sections + std::string(kExitStatus);
  return text + ".SH SEE ALSO\n" + pages + "\n";
}

std::string ManPage(const CommandDescription& root, const CommandDescription& command,
                    std::string_view version) {
  std::string text = Head(ManPageName(root, command), version, command.summary);
  text += ".SH SYNOPSIS\n" + Bold(root.name) + " " + Bold(command.name) + " [" + Italic("OPTIONS") +
          "]" + ArgumentsOf(command) + "\n";
  const Footer footer = FooterOf(command);
  text += ".SH DESCRIPTION\n" + Plain(command.summary) + ".\n" + footer.paragraphs;
  for (const OptionDescription& argument : command.arguments) {
    std::string term = Italic(argument.names.front());
    if (!argument.choices.empty()) term += " (" + Plain(ValueName(argument)) + ")";
    text += OptionEntry(term, argument.description);
  }
  text += Options(command) + footer.sections + std::string(kExitStatus);
  return text + ".SH SEE ALSO\n" + Bold(root.name) + "(1)\n";
}

}  // namespace spanprof::cli
