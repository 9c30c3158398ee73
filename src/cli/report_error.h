#pragma once

// What a command says on the standard error when something goes wrong. The texts may carry names
// from outside: they are made safe for a terminal.

#include <string_view>

#include "base/result.h"

namespace spanprof::cli {

// Prints what failed and, on its own line, what to do. Returns the exit code of a failure, 1.
int ReportFailure(const Error& error);

void ReportNote(std::string_view note);

}  // namespace spanprof::cli
