#pragma once

// The profile files that a command is given, read and merged into one profile with names. Formats
// are told by content. A JFR file that is still written, or whose writer was killed, is read with
// its part file. What is in the files is hostile: memory is bounded by --max-memory.
//
//   InputOptions options;
//   AddInputOptions(*command, options);
//   ...
//   Result<InputProfile> input = ReadInput(options);
//   for (const std::string& note : input->notes) ReportNote(note);

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "profile/profile.h"

namespace spanprof::cli {

struct InputOptions {
  std::vector<std::string> files;  // `-` is the standard input
  bool no_symbols = false;
  bool no_inlined = false;
  std::vector<std::string> debug_folders;  // besides /usr/lib/debug
  std::string root;                        // put before the paths of the binaries
  std::uint64_t max_memory = std::uint64_t{1} << 30;
};

struct InputProfile {
  profile::Profile profile;
  std::vector<std::string> notes;  // for people: what was left out, and why
};

// `options` has to outlive the parsing of `command`.
void AddInputOptions(CLI::App& command, InputOptions& options);

// Shows its progress on a terminal.
[[nodiscard]] Result<InputProfile> ReadInput(const InputOptions& options);

}  // namespace spanprof::cli
