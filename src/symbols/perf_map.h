#pragma once

// The names of functions that a JIT has compiled, as it writes them to /tmp/perf-PID.map: lines of
// start, size (hexadecimal) and name. /tmp is everybody's, so the file is only read if it is a
// regular file of this user which nobody else can write, and never through a link. Any thread; not
// for a signal handler.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::symbols {

class PerfMap {
 public:
  static constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 20;
  static constexpr std::size_t kMaxNameBytes = 4096;

  // ENOENT if there is none; EPERM if it is not to be trusted.
  [[nodiscard]] static Result<PerfMap> Read(const std::string& path);
  // Where code was written over older code, the later line holds. Broken lines are left out.
  [[nodiscard]] static PerfMap Parse(std::string_view text);

  [[nodiscard]] std::optional<std::string_view> Find(uint64_t pc) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t end;
    std::string name;
  };
  void Add(uint64_t start, uint64_t end, std::string_view name);

  std::map<uint64_t, Entry> entries_;  // by start; disjoint
};

}  // namespace spanprof::symbols
