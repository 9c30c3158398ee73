#include "cli/program_file.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/elf_file.h"
#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "symbols/debug_file.h"

namespace spanprof::cli {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kOwnMachine = EM_AARCH64;
#else
constexpr std::uint16_t kOwnMachine = EM_NONE;
#endif

#if defined(__GLIBC__)
constexpr ProgramLibc kOwnLibc = ProgramLibc::kGlibc;
#else
constexpr ProgramLibc kOwnLibc = ProgramLibc::kMusl;
#endif

std::string_view NameOf(ProgramLibc libc) { return libc == ProgramLibc::kMusl ? "musl" : "glibc"; }

std::string MachineName(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "32-bit x86";
    case EM_AARCH64:
      return "arm64";
    case EM_ARM:
      return "32-bit arm";
    case EM_RISCV:
      return "RISC-V";
    default:
      return "ELF machine " + std::to_string(machine);
  }
}

Result<std::string> FindInPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/bin:/bin";
  while (!name.empty()) {
    const std::size_t colon = path.find(':');
    const std::string folder(path.substr(0, colon));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    struct stat status = {};
    if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &status) == 0 &&
        S_ISREG(status.st_mode)) {
      return candidate;
    }
    if (colon == std::string_view::npos) break;
    path.remove_prefix(colon + 1);
  }
  return Fail(ENOENT, "there is no program " + Quoted(name) + " in $PATH",
              "give its path, such as ./" + name);
}

// The first bytes, as far as they are there.
Result<std::string> ReadStart(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    const int error_number = errno;
    return Fail(
        error_number,
        "cannot read " + Quoted(path) + ": " + std::generic_category().message(error_number),
        error_number == EACCES ? "run it as a user who may read the program: sudo spanprof doctor"
                               : "");
  }
  struct stat status = {};
  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Fail(EACCES, Quoted(path) + " is not a file", "give the path of a program");
  }
  std::string start(256, '\0');
  const ssize_t count = pread(fd.get(), start.data(), start.size(), 0);
  start.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return start;
}

// What `#! /usr/bin/env python3` runs: python3, by $PATH.
std::string InterpreterOf(std::string_view start) {
  std::string_view line = start.substr(2, start.find('\n') - 2);
  const auto next_word = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    return word;
  };
  std::string_view word = next_word();
  if (word.ends_with("/env")) {
    do {
      word = next_word();
    } while (word.starts_with('-') || word.find('=') != std::string_view::npos);
  }
  return std::string(word);
}

bool GainsPrivileges(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid()) return true;
  // Root has them already.
  return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void ReadElf(const ElfFile& elf, ProgramFile& program) {
  program.machine = elf.machine();
  program.is_static = true;
  for (const ElfSegment& segment : elf.segments()) {
    if (segment.type != PT_INTERP) continue;
    program.is_static = false;
    constexpr std::uint64_t kMaxPath = 4096;
    if (const auto bytes = elf.Read(segment.offset, std::min(segment.file_size, kMaxPath))) {
      const auto* text = reinterpret_cast<const char*>(bytes->bytes().data());
      program.interpreter.assign(text, strnlen(text, bytes->size()));
    }
  }
  const std::string_view loader = program.interpreter;
  if (loader.find("ld-musl") != std::string_view::npos) {
    program.libc = ProgramLibc::kMusl;
  } else if (loader.find("ld-linux") != std::string_view::npos) {
    program.libc = ProgramLibc::kGlibc;
  }
  program.is_go =
      elf.FindSection(".go.buildinfo") != nullptr || elf.FindSection(".note.go.buildid") != nullptr;
  program.build_id = elf.BuildId();
  program.has_symbols = elf.FindSection(".symtab") != nullptr;
  program.has_unwind_table = elf.FindSection(".eh_frame") != nullptr;
  if (symbols::HasDebugInformation(elf)) {
    program.debug_file = program.path;
  } else if (const auto file =
                 symbols::FindDebugFile(&elf, program.path, program.build_id, {"/usr/lib/debug"})) {
    program.debug_file = *file;
    program.has_symbols = true;
  }
}

}  // namespace

Result<ProgramFile> ReadProgramAt(const std::string& path) {
  ProgramFile program;
  program.path = path;
  // A script may name a script; Linux follows four.
  for (int depth = 0;; ++depth) {
    const Result<std::string> start = ReadStart(program.path);
    if (!start) return tl::make_unexpected(start.error());
    if (!start->starts_with("#!")) {
      program.is_elf = start->starts_with(ELFMAG);
      constexpr std::size_t kMachineOffset = offsetof(Elf64_Ehdr, e_machine);  // of 32 bits too
      if (program.is_elf && start->size() >= kMachineOffset + sizeof(program.machine)) {
        std::memcpy(&program.machine, start->data() + kMachineOffset, sizeof(program.machine));
      }
      break;
    }
    if (depth == 4) return Fail(ELOOP, Quoted(path) + " is a script of scripts", {});
    const Result<std::string> interpreter = FindInPath(InterpreterOf(*start));
    if (!interpreter) return tl::make_unexpected(interpreter.error());
    program.script = path;
    program.path = *interpreter;
  }
  program.gains_privileges = GainsPrivileges(program.path);
  // A 32-bit or big-endian file is not read further: its machine says all.
  if (const Result<ElfFile> elf = ElfFile::Open(program.path)) ReadElf(*elf, program);
  return program;
}

Result<ProgramFile> ReadProgram(const std::string& name) {
  const Result<std::string> path = FindInPath(name);
  if (!path) return tl::make_unexpected(path.error());
  if (access(path->c_str(), X_OK) != 0) {
    const int error_number = errno;
    return Fail(
        error_number,
        "cannot run " + Quoted(*path) + ": " + std::generic_category().message(error_number),
        error_number == EACCES ? "make it executable: chmod +x " + *path
                               : "give the path of a program");
  }
  return ReadProgramAt(*path);
}

std::optional<Error> WhyNotPreloadable(const ProgramFile& program) {
  const std::string name = Quoted(program.path);
  if (!program.is_elf) {
    return Error{ENOEXEC, name + " is neither an ELF program nor a script",
                 "give the program that is run"};
  }
  if (program.machine != kOwnMachine) {
    return Error{ENOEXEC,
                 name + " is for " + MachineName(program.machine) + ", and this spanprof for " +
                     MachineName(kOwnMachine),
                 "use the spanprof of that architecture"};
  }
  if (program.is_go) {
    return Error{ENOTSUP, name + " is a Go program, whose threads and stacks are its own business",
                 "record it with runtime/pprof; spanprof report and export read its files"};
  }
  if (program.is_static) {
    return Error{ENOTSUP, name + " is linked statically, so nothing can be preloaded into it",
                 "link libspanprof into it and call spanprof_start(), or link it dynamically"};
  }
  if (program.gains_privileges) {
    return Error{EPERM,
                 name +
                     " is setuid, setgid or has file capabilities, so the loader ignores "
                     "LD_PRELOAD",
                 "run it as the user it changes to, from a copy without these: cp " + program.path +
                     " /tmp/"};
  }
  if (program.libc != ProgramLibc::kUnknown && program.libc != kOwnLibc) {
    return Error{ENOTSUP,
                 name + " uses " + std::string(NameOf(program.libc)) +
                     ", and this spanprof was built for " + std::string(NameOf(kOwnLibc)),
                 "use a spanprof that was built for " + std::string(NameOf(program.libc))};
  }
  return std::nullopt;
}

}  // namespace spanprof::cli
