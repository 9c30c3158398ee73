#pragma once

// The name of a file in rotation: text with %t, %p and %n in it.
//
//   profile-%t.pb.gz   profile-20261115T091932Z.pb.gz
//
//   %t  the profile's time, UTC, to the second; a second profile of that second gets "-2" behind it
//   %p  the process id
//   %n  a counter: one more than the greatest in the directory, so that it goes on after a restart
//   %%  a percent sign
//
// Any thread may call these; none is for a signal handler.

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spanprof::sending {

class FileNamePattern {
 public:
  struct Values {
    std::int64_t time_ns = 0;  // Unix
    int pid = 0;
    std::uint64_t counter = 1;
    unsigned repeat = 1;  // from 2 on, shown with %t
  };
  struct Match {
    std::uint64_t counter = 0;  // 0 if the pattern has none
  };

  // `name` is a file's name without its directory. EINVAL for another letter behind a percent sign,
  // and for a name of nothing but numbers, which would match files of others.
  [[nodiscard]] static Result<FileNamePattern> Parse(std::string_view name);

  [[nodiscard]] std::string Name(const Values& values) const;

  // Whether Name() could have made `name`, with whatever values.
  [[nodiscard]] std::optional<Match> Matches(std::string_view name) const;

  // Whether a second report gets a name of its own.
  [[nodiscard]] bool rotates() const { return has_time_ || has_counter_; }
  [[nodiscard]] bool has_time() const { return has_time_; }
  [[nodiscard]] bool has_counter() const { return has_counter_; }

 private:
  enum class Kind { kText, kTime, kPid, kCounter };
  struct Part {
    Kind kind = Kind::kText;
    std::string text;
  };

  [[nodiscard]] bool MatchesFrom(std::size_t part, std::string_view rest, Match& match) const;

  std::vector<Part> parts_;
  bool has_time_ = false;
  bool has_counter_ = false;
};

}  // namespace spanprof::sending
