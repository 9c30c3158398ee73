#pragma once

// Errors as values. A function that can fail in a way its caller's user should hear about returns
// Result<T>; the Error says what failed with the value seen, and what to do about it.
//
//   Result<int> ParsePort(std::string_view text);
//   ...
//   return Fail(EINVAL, "port '70000' is out of range", "give a number from 1 to 65535");

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace spanprof {

struct Error {
  int code = 0;         // an errno value
  std::string message;  // what failed, with the value seen
  std::string hint;     // what to do; may be empty
};

// Both in one line, for a log or spanprof_error().
[[nodiscard]] inline std::string TextOf(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> Fail(int code, std::string message,
                                                std::string hint = {}) {
  return tl::make_unexpected(Error{code, std::move(message), std::move(hint)});
}

}  // namespace spanprof
