#pragma once

// What `spanprof doctor` found, for people and for programs.

#include <string>
#include <vector>

#include "cli/doctor_check.h"

namespace spanprof::cli {

// Safe for a terminal.
[[nodiscard]] std::string DoctorText(const std::vector<CheckGroup>& groups);
[[nodiscard]] std::string DoctorJson(const std::vector<CheckGroup>& groups);
[[nodiscard]] bool AnyFailed(const std::vector<CheckGroup>& groups);

}  // namespace spanprof::cli
