#include "cli/process_checks.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "collect/access_error.h"
#include "collect/context_snapshot.h"
#include "collect/process_directory.h"
#include "collect/process_maps.h"
#include "collect/remote_memory.h"

namespace spanprof::cli {
namespace {

constexpr std::size_t kMaxStatusBytes = std::size_t{64} << 10;

// The word behind `name` and white space, at the start of a line.
std::string_view WordOf(std::string_view text, std::string_view name) {
  std::size_t line = 0;
  while (line < text.size()) {
    std::string_view rest = text.substr(line, text.find('\n', line) - line);
    line += rest.size() + 1;
    if (!rest.starts_with(name)) continue;
    rest.remove_prefix(name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    return rest.substr(0, rest.find_first_of(" \t"));
  }
  return {};
}

std::uint64_t NumberOf(std::string_view word, int base, std::uint64_t otherwise) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc() && end == word.data() + word.size() ? number : otherwise;
}

// One byte of what it has mapped: what decides is the permission.
std::optional<Error> TryMemory(const collect::ProcessDirectory& directory,
                               collect::ProcessMemory& memory, const std::string& command) {
  const auto maps = directory.ReadFile("maps", collect::kMaxMapsBytes);
  if (!maps) return collect::ExplainAccessError(directory.pid(), maps.error().code, command);
  for (const collect::Mapping& mapping : collect::ParseProcessMaps(maps->text).mappings) {
    // Of the kernel's own pages not all can be read this way.
    if (!mapping.readable || mapping.name.starts_with("[v")) continue;
    std::byte byte{};
    const collect::ReadStatus status = memory.Read(mapping.start, std::span(&byte, 1));
    if (status == collect::ReadStatus::kOk) return std::nullopt;
    if (status == collect::ReadStatus::kBadAddress) continue;
    return collect::ExplainAccessError(directory.pid(), memory.error_number(), command);
  }
  return Error{EFAULT, "nothing of its memory could be read", {}};
}

bool IsIn(std::uint64_t mask, int signal) { return (mask >> (signal - 1) & 1) != 0; }

Check CheckMemory(const ProcessFacts& facts) {
  Check check{.name = "memory",
              .value = "readable",
              .meaning = "its records can be read from outside",
              .fix = {}};
  if (facts.memory_error) {
    check.status = CheckStatus::kFailed;
    check.value = facts.memory_error->message;
    check.meaning = "nothing of it can be seen from outside";
    check.fix = facts.memory_error->hint;
  }
  return check;
}

Check CheckRecords(const ProcessFacts& facts) {
  Check check{.name = "context records",
              .value = facts.records,
              .meaning = "its spans can be seen: spanprof context " + std::to_string(facts.pid),
              .fix = {}};
  if (facts.records_error) {
    check.status = CheckStatus::kLimited;
    check.value = facts.records_error->message;
    check.meaning = "samples taken from outside have no span";
    check.fix = facts.records_error->hint;
  }
  return check;
}

Check CheckProfilingSignal(const ProcessFacts& facts) {
  Check check{.name = "SIGURG",
              .value = "not used",
              .meaning = "samples have the signal for themselves",
              .fix = {}};
  if (IsIn(facts.caught_signals, SIGURG)) {
    check.value = "handled";
    check.meaning =
        "by spanprof, or by the program, to whose handler spanprof's would pass on what is "
        "not its own";
  } else if (IsIn(facts.ignored_signals, SIGURG)) {
    check.value = "ignored";
    check.meaning = "a sampler that is started in it replaces that";
  }
  return check;
}

Check CheckThreads(const ProcessFacts& facts) {
  Check check{.name = "threads",
              .value = std::to_string(facts.threads),
              .meaning = "within its limits on open files and pending signals",
              .fix = {}};
  if (facts.threads > facts.pending_signals) {
    check.status = CheckStatus::kLimited;
    check.meaning =
        fmt::format("more than timers: its limit on pending signals is {}", facts.pending_signals);
    check.fix = fmt::format("sudo prlimit --pid {} --sigpending={}", facts.pid, 2 * facts.threads);
  } else if (facts.threads > facts.open_files / 4) {
    check.status = CheckStatus::kLimited;
    check.meaning =
        fmt::format("more than perf may follow, which is a quarter of its limit on open files ({})",
                    facts.open_files);
    check.fix = fmt::format("sudo prlimit --pid {} --nofile={}", facts.pid, 8 * facts.threads);
  }
  return check;
}

Check CheckIsolation(const ProcessFacts& facts) {
  Check check{.name = "isolation", .value = "none", .meaning = {}, .fix = {}};
  if (facts.own_pid_namespace) {
    check.value = "its own pid namespace";
    check.meaning = "it numbers its threads otherwise than this shell; spanprof translates";
  }
  if (facts.seccomp_mode != 0) {
    check.value = (facts.own_pid_namespace ? check.value + ", " : "") + "seccomp";
    check.meaning += (check.meaning.empty() ? "" : "; ") +
                     std::string("its filter may refuse timer_create or perf_event_open");
  }
  return check;
}

}  // namespace

Result<ProcessFacts> GatherProcessFacts(pid_t pid) {
  const std::string command = "spanprof doctor " + std::to_string(pid);
  const auto directory = collect::ProcessDirectory::Open(pid);
  if (!directory) {
    return tl::make_unexpected(collect::ExplainAccessError(pid, directory.error().code, command));
  }
  ProcessFacts facts;
  facts.pid = directory->pid();
  if (const auto comm = directory->ReadFile("comm", 64)) {
    facts.name = comm->text.substr(0, comm->text.find('\n'));
  }
  if (const auto status = directory->ReadFile("status", kMaxStatusBytes)) {
    facts.threads = NumberOf(WordOf(status->text, "Threads:"), 10, 1);
    facts.caught_signals = NumberOf(WordOf(status->text, "SigCgt:"), 16, 0);
    facts.ignored_signals = NumberOf(WordOf(status->text, "SigIgn:"), 16, 0);
    facts.seccomp_mode =
        static_cast<std::uint32_t>(NumberOf(WordOf(status->text, "Seccomp:"), 10, 0));
    facts.own_pid_namespace = collect::ParseNamespacePids(status->text).size() > 1;
  }
  if (const auto limits = directory->ReadFile("limits", kMaxStatusBytes)) {
    // "unlimited" is no number, and so the largest one.
    facts.open_files = NumberOf(WordOf(limits->text, "Max open files"), 10, facts.open_files);
    facts.pending_signals =
        NumberOf(WordOf(limits->text, "Max pending signals"), 10, facts.pending_signals);
  }
  collect::ProcessMemory memory(facts.pid);
  facts.memory_error = TryMemory(*directory, memory, command);
  if (facts.memory_error) return facts;
  if (const auto snapshot = collect::ReadContextSnapshot(*directory, memory, command)) {
    for (const collect::RecordKind kind : snapshot->records) {
      facts.records += (facts.records.empty() ? "" : ", ") + std::string(RecordKindName(kind));
    }
  } else {
    facts.records_error = snapshot.error();
  }
  return facts;
}

std::vector<Check> CheckProcess(const ProcessFacts& facts) {
  std::vector<Check> checks = {CheckMemory(facts)};
  if (!facts.memory_error) checks.push_back(CheckRecords(facts));
  checks.push_back(CheckProfilingSignal(facts));
  checks.push_back(CheckThreads(facts));
  checks.push_back(CheckIsolation(facts));
  return checks;
}

}  // namespace spanprof::cli
