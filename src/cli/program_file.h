#pragma once

// A program that is to be started: where it is, and what of it decides whether a library can be
// preloaded into it and whether its functions have names.
//
//   Result<ProgramFile> program = ReadProgram("ls");  // by $PATH
//   if (const auto error = WhyNotPreloadable(*program)) return ReportFailure(*error);
//
// The file is anybody's: it is read, never run. Any thread may call these.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace spanprof::cli {

enum class ProgramLibc { kUnknown, kGlibc, kMusl };

struct ProgramFile {
  std::string path;               // of the binary that the kernel will run: a script's interpreter
  std::string script;             // the script that names it; empty if there is none
  bool is_elf = true;             // of this machine's word size and byte order
  std::uint16_t machine = 0;      // EM_X86_64, ...
  bool is_static = false;         // without an interpreter, to which LD_PRELOAD is addressed
  bool gains_privileges = false;  // setuid or setgid for another user, or file capabilities
  bool is_go = false;
  ProgramLibc libc = ProgramLibc::kUnknown;
  std::string interpreter;  // "/lib64/ld-linux-x86-64.so.2"
  std::string build_id;
  bool has_symbols = false;       // .symtab
  bool has_unwind_table = false;  // .eh_frame
  std::string debug_file;         // where its lines are: itself, or another file; empty: nowhere
};

// `name` is looked up in $PATH if it has no slash. Fails with ENOENT, or EACCES if it cannot be
// run.
[[nodiscard]] Result<ProgramFile> ReadProgram(const std::string& name);
// A file that is known already, such as /proc/PID/exe.
[[nodiscard]] Result<ProgramFile> ReadProgramAt(const std::string& path);

// Nothing: a library can be preloaded. Else the reason, and what to do instead.
[[nodiscard]] std::optional<Error> WhyNotPreloadable(const ProgramFile& program);

}  // namespace spanprof::cli
