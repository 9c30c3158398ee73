#include "base/log.h"

#include <string>
#include <unistd.h>

namespace spanprof {

void LogWarning(LogTarget target, std::string_view message) {
  if (target != LogTarget::kStderr) return;
  const std::string line = "spanprof: " + std::string(message) + "\n";
  // One write, so that lines of several threads do not mix. There is nobody to tell if it fails.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace spanprof
