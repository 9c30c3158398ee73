#pragma once

// The table of options that parsing, printing and documentation all read: one row an option. Only
// src/base includes this; everyone else uses options.h.

#include <span>
#include <string_view>

#include "base/option_spec.h"

namespace spanprof {

[[nodiscard]] std::span<const OptionSpec> OptionTable();

// The words that stand for Command, in its order from kStart on.
[[nodiscard]] std::span<const std::string_view> CommandNames();

}  // namespace spanprof
