#include "collect/process_maps.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace spanprof::collect {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Takes a number and the one character behind it. `behind` is 0 for the end of the text.
bool TakeNumber(std::string_view& text, int base, char behind, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, base);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (text.empty()) return behind == 0;
  if (behind == 0 || text.front() != behind) return false;
  text.remove_prefix(1);
  return true;
}

bool TakePermissions(std::string_view& text, Mapping& mapping) {
  if (text.size() < 5 || text[4] != ' ') return false;
  const auto flag = [&](std::size_t index, char set) {
    return text[index] == set || text[index] == '-';
  };
  if (!flag(0, 'r') || !flag(1, 'w') || !flag(2, 'x')) return false;
  if (text[3] != 'p' && text[3] != 's') return false;
  mapping.readable = text[0] == 'r';
  mapping.writable = text[1] == 'w';
  mapping.executable = text[2] == 'x';
  mapping.shared = text[3] == 's';
  text.remove_prefix(5);
  return true;
}

// The kernel escapes a newline, and nothing else.
std::string UnescapeName(std::string_view text) {
  constexpr std::string_view kNewline = "\\012";
  std::string name;
  name.reserve(text.size());
  while (!text.empty()) {
    if (text.starts_with(kNewline)) {
      name += '\n';
      text.remove_prefix(kNewline.size());
    } else {
      name += text.front();
      text.remove_prefix(1);
    }
  }
  return name;
}

// `start-end rwxp offset major:minor inode   name`
std::optional<Mapping> ParseLine(std::string_view line) {
  Mapping mapping;
  uint64_t device = 0;
  if (!TakeNumber(line, 16, '-', mapping.start) || !TakeNumber(line, 16, ' ', mapping.end) ||
      mapping.start >= mapping.end || !TakePermissions(line, mapping) ||
      !TakeNumber(line, 16, ' ', mapping.offset) || !TakeNumber(line, 16, ':', device) ||
      !TakeNumber(line, 16, ' ', device)) {
    return std::nullopt;
  }
  // Unnamed memory has a space behind the inode, or, on some kernels, nothing.
  if (line.find(' ') == std::string_view::npos) {
    if (!TakeNumber(line, 10, 0, mapping.inode)) return std::nullopt;
    return mapping;
  }
  if (!TakeNumber(line, 10, ' ', mapping.inode)) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.ends_with(kDeleted)) {
    mapping.deleted = true;
    line.remove_suffix(kDeleted.size());
  }
  mapping.name = UnescapeName(line);
  return mapping;
}

}  // namespace

bool Mapping::IsAnonymous() const {
  if (name.empty()) return inode == 0;
  return name.starts_with("[anon") || (shared && deleted && name == "/dev/zero");
}

ProcessMaps ParseProcessMaps(std::string_view text) {
  ProcessMaps maps;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    auto mapping = ParseLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const uint64_t previous_end = maps.mappings.empty() ? 0 : maps.mappings.back().end;
    if (!mapping || mapping->start < previous_end) {
      ++maps.malformed_lines;
      continue;
    }
    if (maps.mappings.size() == kMaxMappings) {
      maps.truncated = true;
      break;
    }
    maps.mappings.push_back(std::move(*mapping));
  }
  return maps;
}

bool HasPublishedName(const Mapping& mapping, std::string_view name) {
  std::string_view shown = mapping.name;
  if (shown.starts_with("/memfd:")) return shown.substr(7) == name;
  if (!shown.ends_with(']')) return false;
  shown.remove_suffix(1);
  for (const std::string_view prefix : {"[anon:", "[anon_shmem:"}) {
    if (shown.starts_with(prefix)) return shown.substr(prefix.size()) == name;
  }
  return false;
}

std::string_view FileBaseName(const Mapping& mapping) {
  const std::string_view name = mapping.name;
  if (!name.starts_with('/')) return {};
  return name.substr(name.rfind('/') + 1);
}

uint64_t ContiguousEnd(const ProcessMaps& maps, std::size_t index) {
  const Mapping& first = maps.mappings[index];
  uint64_t end = first.end;
  for (std::size_t next = index + 1; next < maps.mappings.size(); ++next) {
    const Mapping& mapping = maps.mappings[next];
    const bool continues = mapping.start == end && mapping.name == first.name &&
                           mapping.inode == first.inode && mapping.readable;
    if (!continues) break;
    end = mapping.end;
  }
  return end;
}

}  // namespace spanprof::collect
