#pragma once

// The one way to call what may raise. A Ruby exception is a longjmp: it skips destructors, so it
// must not pass through a C++ frame that has an object with one. Protect() stops it there; the
// caller ends its block, and raises again where nothing is left to destroy.
//
//   int raised = 0;
//   {
//     std::string text = ...;
//     value = Protect([&] { return rb_str_new(text.data(), text.size()); }, &raised);
//   }
//   if (raised != 0) rb_jump_tag(raised);
//
// The function itself must not have such objects either.

#include "ruby_api.h"

namespace spanprof::ruby {

// *raised: 0, or the tag for rb_jump_tag. Nil if it raised.
template <class Function>
VALUE Protect(Function function, int* raised) {
  struct Call {
    static VALUE Run(VALUE argument) { return (*reinterpret_cast<Function*>(argument))(); }
  };
  *raised = 0;
  return rb_protect(&Call::Run, reinterpret_cast<VALUE>(&function), raised);
}

// For what nobody is to hear of: the exception is forgotten. False: there was one.
template <class Function>
bool ProtectQuietly(Function function) {
  int raised = 0;
  Protect(
      [&function] {
        function();
        return Qnil;
      },
      &raised);
  if (raised != 0) rb_set_errinfo(Qnil);
  return raised == 0;
}

}  // namespace spanprof::ruby
