#include "cli/report_error.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/terminal_text.h"

namespace spanprof::cli {

int ReportFailure(const Error& error) {
  fmt::print(stderr, "spanprof: {}\n", TerminalText(error.message));
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", TerminalText(error.hint));
  return 1;
}

void ReportNote(std::string_view note) {
  fmt::print(stderr, "spanprof: note: {}\n", TerminalText(note));
}

}  // namespace spanprof::cli
