#pragma once

// The options of `record` and `top` that say what is sampled.
//
//   SamplingOptions sampling;
//   AddSamplingOptions(*command, sampling);
//   ...
//   Result<Options> options = ToOptions(sampling);

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/options.h"
#include "base/result.h"

namespace spanprof::cli {

struct SamplingOptions {
  std::string cpu;
  std::string wall;
  unsigned rate = 0;  // samples a second of CPU time; 0: not given
  std::string service;
  std::string more;  // an option string
  bool no_children = false;
  std::vector<std::string> command;
};

// `sampling` has to outlive the parsing of `command`. The words of the command to run are all that
// follow the first one which is no option.
void AddSamplingOptions(CLI::App& command, SamplingOptions& sampling);

// The error names the option.
[[nodiscard]] Result<Options> ToOptions(const SamplingOptions& sampling);

}  // namespace spanprof::cli
