#pragma once

// Durations and sizes as people write them in options: `1ms`, `90s`, `64m`, `2gib`.
//
//   ParseDuration("10ms");  // 10'000'000 ns
//   FormatSize(67108864);   // "64m"
//
// Whole numbers only and no locale. A number too large for the type becomes the type's largest, so
// that a caller's range check can name the limit. Any thread may call these; none is for a signal
// handler.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spanprof {

// Parses digits and one of ns, us, ms, s, m (minutes), h. Without a unit they are nanoseconds, as
// async-profiler has it.
[[nodiscard]] std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// Parses digits and one of b, k, m, g, t, each of the last four also as kb or kib, in either case.
// All are powers of 1024. Without a unit they are bytes.
[[nodiscard]] std::optional<std::uint64_t> ParseSize(std::string_view text);

// Returns the value in the largest unit that is exact, so that parsing the text gives the same
// value back. A negative duration, which nothing parses to, is written as 0ns.
[[nodiscard]] std::string FormatDuration(std::chrono::nanoseconds duration);
[[nodiscard]] std::string FormatSize(std::uint64_t bytes);

}  // namespace spanprof
