#pragma once

// Tells formats apart by their contents.

#include <string_view>

#include "base/options.h"
#include "base/result.h"

namespace spanprof::format {

Result<OutputFormat> DetectFormat(std::string_view bytes);

}  // namespace spanprof::format
