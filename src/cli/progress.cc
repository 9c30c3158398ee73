#include "cli/progress.h"

#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/terminal_text.h"

namespace spanprof::cli {

Progress::Progress() : is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { Clear(); }

void Progress::Show(std::string_view what) {
  if (!is_terminal_) return;
  // Short enough for any terminal: a line that wraps could not be taken back.
  constexpr std::size_t kMaxBytes = 76;
  fmt::print(stderr, "\r\033[K{}", TerminalText(what.substr(0, kMaxBytes)));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace spanprof::cli
