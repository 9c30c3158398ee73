#pragma once

// Names on their way into a page. They come from other people's programs and may be anything.

#include <cstdint>
#include <string>
#include <string_view>

namespace spanprof::format {

// The text as people should see it: not UTF-8 becomes U+FFFD; what is invisible or turns the
// direction of writing (control characters, U+202E and its like, zero-width characters, line
// separators) becomes "\u202e", in six characters. At most `max_bytes` and an ellipsis.
std::string VisibleText(std::string_view text, size_t max_bytes);

// Appends a JSON string. `<`, `>`, `&` and everything below 0x20 are escaped, so that it can stand
// in a <script> element: no "</script>" and no "<!--" can come out of it. Bytes that are not UTF-8
// become U+FFFD.
void AppendJsonText(std::string& out, std::string_view text);

// For the text of an element or a quoted attribute.
std::string HtmlEscaped(std::string_view text);

std::string Base64(std::string_view bytes);

// As protobuf has them: seven bits a byte, the lowest first.
void AppendVarint(std::string& out, uint64_t value);

}  // namespace spanprof::format
