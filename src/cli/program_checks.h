#pragma once

// What `spanprof doctor` says of a program.

#include <vector>

#include "cli/doctor_check.h"
#include "cli/program_file.h"

namespace spanprof::cli {

[[nodiscard]] std::vector<Check> CheckProgram(const ProgramFile& program);

}  // namespace spanprof::cli
