#pragma once

// Keeps a reader of hostile files within its memory.

#include <cerrno>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "profile/profile.h"

namespace spanprof::format {

// What a reader holds besides the profile that it makes.
class ReadBudget {
 public:
  explicit ReadBudget(size_t bytes) : limit_(bytes), left_(bytes) {}

  // False, for good, once more was asked for than there is.
  bool Take(size_t bytes) {
    if (bytes > left_) exceeded_ = true;
    if (!exceeded_) left_ -= bytes;
    return !exceeded_;
  }
  bool exceeded() const { return exceeded_; }
  size_t limit() const { return limit_; }

 private:
  size_t limit_;
  size_t left_;
  bool exceeded_ = false;
};

// Whether the profile had to leave out or fold anything. Only before counters are read from the
// file, which may say the same of the profile that was written.
inline bool IsOverfull(const profile::Profile& profile) {
  const auto& counters = profile.counters();
  return counters.contains("profile.table_full") || counters.contains("profile.folded_samples") ||
         counters.contains("profile.dropped_samples");
}

inline tl::unexpected<Error> TooLarge(const std::string& what, size_t limit) {
  return Fail(EFBIG, what + " needs more than " + std::to_string(limit) + " bytes of memory",
              "cut it into smaller parts, or read it with a larger limit");
}

}  // namespace spanprof::format
