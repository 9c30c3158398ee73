#include "cli/program_checks.h"

namespace spanprof::cli {
namespace {

Check CheckPreload(const ProgramFile& program) {
  Check check{.name = "LD_PRELOAD",
              .value = "it will work",
              .meaning = "`spanprof record -- COMMAND` can sample it from inside",
              .fix = {}};
  if (const auto error = WhyNotPreloadable(program)) {
    check.status = CheckStatus::kFailed;
    check.value = error->message;
    check.meaning = "`spanprof record -- COMMAND` cannot sample it";
    check.fix = error->hint;
  }
  return check;
}

Check CheckSymbols(const ProgramFile& program) {
  Check check{
      .name = "symbols", .value = "there", .meaning = "its functions have names", .fix = {}};
  if (!program.has_symbols) {
    check.status = CheckStatus::kLimited;
    check.value = "stripped";
    check.meaning = "only functions that it exports have names";
    check.fix = "link it without -s, or install its debug package";
  }
  return check;
}

Check CheckDebugInformation(const ProgramFile& program) {
  Check check{.name = "debug information",
              .value = program.debug_file,
              .meaning = "lines and inlined functions are known",
              .fix = {}};
  if (program.debug_file.empty()) {
    check.status = CheckStatus::kLimited;
    check.value = "none";
    check.meaning = "functions have no lines, and inlined ones do not appear";
    check.fix = "compile with -g";
    if (program.build_id.size() > 2) {
      check.fix += ", or put its debug file at /usr/lib/debug/.build-id/" +
                   program.build_id.substr(0, 2) + "/" + program.build_id.substr(2) + ".debug";
    }
  }
  return check;
}

Check CheckBuildId(const ProgramFile& program) {
  Check check{.name = "build id",
              .value = program.build_id,
              .meaning = "a profile can be given names on another machine",
              .fix = {}};
  if (program.build_id.empty()) {
    check.status = CheckStatus::kLimited;
    check.value = "none";
    check.meaning = "debug files cannot be found for it, nor told from those of another build";
    check.fix = "link it with -Wl,--build-id";
  }
  return check;
}

Check CheckUnwindTable(const ProgramFile& program) {
  Check check{.name = "unwind table",
              .value = "there",
              .meaning = "stacks are complete with or without frame pointers",
              .fix = {}};
  if (!program.has_unwind_table) {
    check.status = CheckStatus::kLimited;
    check.value = "none";
    check.meaning = "stacks are complete only if it was compiled with frame pointers";
    check.fix = "compile with -fasynchronous-unwind-tables, or with -fno-omit-frame-pointer";
  }
  return check;
}

}  // namespace

std::vector<Check> CheckProgram(const ProgramFile& program) {
  std::vector<Check> checks = {CheckPreload(program)};
  if (!program.is_elf) return checks;
  checks.push_back(CheckSymbols(program));
  checks.push_back(CheckDebugInformation(program));
  checks.push_back(CheckBuildId(program));
  checks.push_back(CheckUnwindTable(program));
  return checks;
}

}  // namespace spanprof::cli
