#pragma once

// How large the terminal is that the standard output goes to.

#include <cstddef>
#include <unistd.h>

#include <sys/ioctl.h>

namespace spanprof::cli {

struct TerminalSize {
  std::size_t rows = 0;  // 0: it is no terminal, or does not say
  std::size_t columns = 0;
};

[[nodiscard]] inline TerminalSize SizeOfTerminal() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

}  // namespace spanprof::cli
