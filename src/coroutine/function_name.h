#pragma once

// The name of a coroutine as its author knows it. g++ names the function that it makes of the body:
// "void shop::Serve(Serve(Socket&)::_ZN4shop5Serve...Frame*)" is shop::Serve(Socket&).

#include <string>
#include <string_view>

namespace spanprof::coroutine {

// Anything else comes back as it is.
[[nodiscard]] std::string AuthorsFunctionName(std::string_view function);

// The same of the symbol of a resume function, demangled: "shop::Serve(shop::Serve(Socket&)::_ZN4
// ...Frame*) [clone .actor]" (g++) and "shop::Serve(Socket&) [clone .resume]" (clang) are
// shop::Serve(Socket&).
[[nodiscard]] std::string ResumeFunctionName(std::string_view symbol);

}  // namespace spanprof::coroutine
