#include "symbols/perf_map.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"

namespace spanprof::symbols {
namespace {

// Takes a hexadecimal number, with or without 0x, and the space after it.
bool TakeHex(std::string_view& text, uint64_t& value) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != ' ') return false;
  text.remove_prefix(used + 1);
  return true;
}

}  // namespace

Result<PerfMap> PerfMap::Read(const std::string& path) {
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) {
    const int code = errno;
    return Fail(code, "cannot open " + Quoted(path) + ": " + std::generic_category().message(code));
  }
  struct stat status{};
  if (fstat(file.get(), &status) != 0) {
    const int code = errno;
    return Fail(code, "cannot examine " + Quoted(path));
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink > 1 ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(EPERM, Quoted(path) + " is not this user's alone; its names are not used",
                "it has to be a regular file of the user, which no other can write");
  }
  std::string text(std::min(static_cast<std::size_t>(status.st_size), kMaxFileBytes), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = read(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return Parse(text);
}

PerfMap PerfMap::Parse(std::string_view text) {
  PerfMap map;
  while (!text.empty() && map.entries_.size() < kMaxEntries) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    uint64_t start = 0;
    uint64_t size = 0;
    if (!TakeHex(line, start) || !TakeHex(line, size)) continue;
    if (line.empty() || size == 0 || start + size < start) continue;
    map.Add(start, start + size, line.substr(0, kMaxNameBytes));
  }
  return map;
}

void PerfMap::Add(uint64_t start, uint64_t end, std::string_view name) {
  auto place = entries_.lower_bound(start);
  if (place != entries_.begin() && std::prev(place)->second.end > start) --place;
  while (place != entries_.end() && place->first < end) place = entries_.erase(place);
  entries_.emplace_hint(place, start, Entry{.end = end, .name = std::string(name)});
}

std::optional<std::string_view> PerfMap::Find(uint64_t pc) const {
  auto next = entries_.upper_bound(pc);
  if (next == entries_.begin()) return std::nullopt;
  --next;
  if (pc >= next->second.end) return std::nullopt;
  return next->second.name;
}

}  // namespace spanprof::symbols
