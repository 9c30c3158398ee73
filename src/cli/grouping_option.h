#pragma once

// The option --by, of `report` and `top`.

#include <vector>

#include <CLI/CLI.hpp>

#include "cli/report_rows.h"

namespace spanprof::cli {

// `by` has to outlive the parsing of `command`; it stays empty where the option is not given.
void AddGroupingOption(CLI::App& command, std::vector<Grouping>& by);

}  // namespace spanprof::cli
