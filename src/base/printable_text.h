#pragma once

// Text from outside (an option, an environment variable, another process) made safe to show.
//
//   return Fail(EINVAL, "format=" + Quoted(value) + " is not one of jfr, pprof");
//
// Any thread may call these; none is for a signal handler.

#include <string>
#include <string_view>

namespace spanprof {

// True if `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.
[[nodiscard]] bool IsUtf8(std::string_view text);

// True if `text` has a byte below 0x20, a DEL, or (where it is UTF-8) one of U+0080 to U+009F,
// which some terminals obey.
[[nodiscard]] bool HasControlCharacter(std::string_view text);

// Returns `text` between single quotes, in at most about 64 bytes of it, with control characters,
// bytes that are not UTF-8 and backslashes escaped, so that a log line stays one short line.
[[nodiscard]] std::string Quoted(std::string_view text);

}  // namespace spanprof
