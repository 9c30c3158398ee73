#pragma once

// Man pages in roff, made from the command tree.

#include <string>
#include <string_view>

#include "cli/command_tree.h"

namespace spanprof::cli {

// The page of the whole command, spanprof(1), or of one of its commands, spanprof-report(1).
// `version` stands at the foot, in place of a date, so that the same source gives the same page.
[[nodiscard]] std::string ManPage(const CommandDescription& root, std::string_view version);
[[nodiscard]] std::string ManPage(const CommandDescription& root, const CommandDescription& command,
                                  std::string_view version);

// "spanprof-report", without the section.
[[nodiscard]] std::string ManPageName(const CommandDescription& root,
                                      const CommandDescription& command);

}  // namespace spanprof::cli
