#pragma once

// The events of a recording as text, one a line, in the order of their time.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::coroutine {

enum class ExportFormat {
  // An object a line, with the fields of cTP's own tool (probe_id, tid, addr, seq, is_active, ts)
  // and pid, kind, name and place. Resumes and suspensions only, as there.
  kJsonLines,
  kCsv,  // every event: ts,pid,tid,probe_id,kind,name,place
};

// Hands the text to `take`, piece by piece; what that returns ends the export if it is an error.
[[nodiscard]] Result<void> ExportEvents(const std::string& path, ExportFormat format,
                                        const std::function<Result<void>(std::string_view)>& take);

}  // namespace spanprof::coroutine
