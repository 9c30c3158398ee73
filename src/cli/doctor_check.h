#pragma once

// One thing that `spanprof doctor` looked at: what it is, its present value, what that means for
// profiling, and the command that mends it.

#include <string>
#include <string_view>
#include <vector>

namespace spanprof::cli {

enum class CheckStatus {
  kFine,
  kLimited,  // profiling works, with less than it could have
  kFailed,   // something that profiling needs does not work
};

[[nodiscard]] constexpr std::string_view NameOf(CheckStatus status) {
  switch (status) {
    case CheckStatus::kFine:
      return "fine";
    case CheckStatus::kLimited:
      return "limited";
    case CheckStatus::kFailed:
      break;
  }
  return "failed";
}

struct Check {
  std::string name;
  CheckStatus status = CheckStatus::kFine;
  std::string value;    // as it is now
  std::string meaning;  // for profiling
  std::string fix;      // a command, or what to do; empty where nothing is wrong or can be done
};

// Checks of one thing: this machine, a process, a program.
struct CheckGroup {
  std::string title;
  std::vector<Check> checks;
};

}  // namespace spanprof::cli
