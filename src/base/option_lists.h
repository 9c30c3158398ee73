#pragma once

// How the options that hold several things are read and written: the OptionSpec::Parse and
// OptionSpec::Write of attributes=, resource=, header= and labels=. Only the table includes this.

#include <string>
#include <string_view>
#include <vector>

#include "base/option_spec.h"

namespace spanprof {

Result<void> ParseAttributes(const OptionSpec& spec, std::string_view value, Options& options);
Result<void> ParseResource(const OptionSpec& spec, std::string_view value, Options& options);
Result<void> ParseHeader(const OptionSpec& spec, std::string_view value, Options& options);
Result<void> ParseLabels(const OptionSpec& spec, std::string_view value, Options& options);

void WriteAttributes(const OptionSpec& spec, const Options& options,
                     std::vector<std::string>& values);
void WriteResource(const OptionSpec& spec, const Options& options,
                   std::vector<std::string>& values);
void WriteHeaders(const OptionSpec& spec, const Options& options, std::vector<std::string>& values);
void WriteLabels(const OptionSpec& spec, const Options& options, std::vector<std::string>& values);

}  // namespace spanprof
