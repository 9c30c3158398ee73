#pragma once

// The few DWARF expressions that compilers, linkers and libc really put into `.eh_frame`.
//
//   breg N                      a place or a CFA: register + N
//   breg N, deref [, plus M]    gcc's realigned stacks, OpenSSL's assembler
//   the procedure linkage table's, as GNU ld writes it
//
// Anything else is "not understood". Not for a signal handler.

#include "sampling/eh_frame_cursor.h"
#include "sampling/unwind_rule.h"

namespace spanprof::sampling {

// Sets the CFA part of `rule`: kUnsupported if the expression is none of those above. In the frame
// of a signal's return code (`signal_frame`), what loads x86-64's saved stack pointer is
// kSignalFrame.
void SetCfaByExpression(EhFrameCursor expression, const UnwindMachine& machine, bool signal_frame,
                        UnwindRule& rule);

// Where a register is saved by DW_CFA_expression: kAtFramePointer, or kUnknown.
[[nodiscard]] SavedRegister SavedByExpression(EhFrameCursor expression,
                                              const UnwindMachine& machine);

}  // namespace spanprof::sampling
