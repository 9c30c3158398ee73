#pragma once

// Ruby's headers, which do not compile without warnings in C++20. Include these before any other
// header: Ruby's configuration wants to come first.

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wregister"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wvolatile"
#endif
#include <ruby.h>

#include <ruby/debug.h>
#include <ruby/thread.h>
#include <ruby/vm.h>
#pragma GCC diagnostic pop

// Exported by every Ruby that we know, and in none of its headers. SIGNAL-SAFE: it reads a field of
// the calling thread's structure.
extern "C" int ruby_thread_has_gvl_p(void);  // NOLINT(readability-identifier-naming): Ruby's
