#pragma once

// Completion of the command line in bash, zsh and fish, made from the command tree.

#include <string>

#include "cli/command_tree.h"

namespace spanprof::cli {

[[nodiscard]] std::string BashCompletion(const CommandDescription& root);
[[nodiscard]] std::string ZshCompletion(const CommandDescription& root);
[[nodiscard]] std::string FishCompletion(const CommandDescription& root);

}  // namespace spanprof::cli
