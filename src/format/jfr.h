#pragma once

// JFR beyond what every format has (WriteJfr and ReadJfr are in format.h).
//
// A JFR file is chunks one behind the other, each complete in itself. WriteJfr makes one, so a file
// grows by appending. A process that is killed while it appends leaves a cut chunk at the end,
// which the JDK's tools answer by refusing the whole file:
//
//   bytes.resize(CompleteJfrPrefix(bytes));  // mended
//
// Any thread may call these; none is for a signal handler.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/format.h"
#include "profile/profile.h"

namespace spanprof::format {

// The length of the leading run of complete chunks; 0 if `bytes` do not begin with one.
size_t CompleteJfrPrefix(std::string_view bytes);

// ReadJfr of the complete chunks alone. `warning` (not null) says what was left out and is empty if
// nothing was. Only a cut end is forgiven: a chunk which is there and wrong is an error, and so is
// a file without one complete chunk.
Result<profile::Profile> ReadJfrLenient(std::string_view bytes, const ReadLimits& limits,
                                        std::string* warning);

}  // namespace spanprof::format
