#pragma once

// The mappings of a process, as /proc/PID/maps lists them, and how published memory is found in
// them by its name.
//
//   const ProcessMaps maps = ParseProcessMaps(text);
//   for (const Mapping& mapping : maps.mappings) {
//     if (HasPublishedName(mapping, "OTEL_CTX")) ...
//   }
//
// The names are the target's to choose, so they are bytes, not text. Lines that cannot be
// understood are skipped and counted.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spanprof::collect {

inline constexpr std::size_t kMaxMapsBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxMappings = std::size_t{1} << 18;

struct Mapping {
  uint64_t start = 0;  // start < end, always
  uint64_t end = 0;
  uint64_t offset = 0;
  uint64_t inode = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  bool deleted = false;  // the line ended in " (deleted)", which `name` leaves out
  std::string name;      // "\012" of the line is a newline here; empty for unnamed memory

  [[nodiscard]] uint64_t size() const { return end - start; }
  // Memory of no file: unnamed, named by prctl, or of /dev/zero. Not the heap or a stack.
  [[nodiscard]] bool IsAnonymous() const;
};

struct ProcessMaps {
  std::vector<Mapping> mappings;  // ascending and disjoint, as the kernel lists them
  uint64_t malformed_lines = 0;   // also those out of order
  bool truncated = false;         // there were more than kMaxMappings
};

[[nodiscard]] ProcessMaps ParseProcessMaps(std::string_view text);

// True for `[anon:NAME]`, `[anon_shmem:NAME]` and `/memfd:NAME`, deleted or not.
[[nodiscard]] bool HasPublishedName(const Mapping& mapping, std::string_view name);

// The last component of a mapped file's path; empty for what is not a path.
[[nodiscard]] std::string_view FileBaseName(const Mapping& mapping);

// One past the last byte of the memory that starts in mappings[index]: the kernel may show what was
// mapped at once as several neighbours of the same name.
[[nodiscard]] uint64_t ContiguousEnd(const ProcessMaps& maps, std::size_t index);

}  // namespace spanprof::collect
