#include "symbols/native_symboliser.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <numeric>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/elf_file.h"
#include "symbols/demangle.h"

namespace spanprof::symbols {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

bool IsFile(const ElfMapping& mapping) {
  return mapping.path.starts_with('/') && mapping.inode != 0;
}
bool IsVdso(const ElfMapping& mapping) {
  return mapping.path == "[vdso]" && mapping.start == getauxval(AT_SYSINFO_EHDR);
}

// The path is not enough: the file may have been replaced since it was mapped.
std::string KeyOf(const ElfMapping& mapping) {
  return mapping.build_id + '/' + std::to_string(mapping.device) + '/' +
         std::to_string(mapping.inode) + mapping.path;
}

Result<ElfFile> OpenObject(const ElfMapping& mapping) {
  if (IsVdso(mapping)) {
    return ElfFile::FromBytes({reinterpret_cast<const std::byte*>(mapping.start),
                               static_cast<std::size_t>(mapping.end - mapping.start)});
  }
  std::string path = mapping.path;
  if (path.ends_with(kDeleted)) {
    // Of what was deleted, the program itself can still be opened.
    struct stat status{};
    if (stat("/proc/self/exe", &status) != 0 || status.st_ino != mapping.inode) {
      return Fail(ENOENT, "the file was deleted");
    }
    path = "/proc/self/exe";
  }
  Result<ElfFile> file = ElfFile::Open(path);
  if (file && !mapping.build_id.empty()) {
    const std::string id = file->BuildId();
    if (!id.empty() && id != mapping.build_id) return Fail(ESTALE, "the file was replaced");
  }
  return file;
}

}  // namespace

NativeSymboliser::NativeSymboliser(NativeSymboliserOptions options)
    : options_(std::move(options)) {}

void NativeSymboliser::SetMappings(std::vector<ElfMapping> mappings) {
  mappings_ = std::move(mappings);
  order_.resize(mappings_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return std::pair(mappings_[a].start, a) < std::pair(mappings_[b].start, b);
  });
  ReadPerfMap();
}

void NativeSymboliser::ReadPerfMap() {
  const std::string path = options_.perf_map_folder + "/perf-" + std::to_string(getpid()) + ".map";
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return;
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes == perf_map_bytes_) return;
  perf_map_bytes_ = bytes;
  if (Result<PerfMap> map = PerfMap::Read(path)) perf_map_ = std::move(*map);
}

const ElfMapping* NativeSymboliser::FindMapping(uint64_t pc) const {
  auto next = std::partition_point(order_.begin(), order_.end(), [this, pc](std::size_t index) {
    return mappings_[index].start <= pc;
  });
  // Former mappings may overlap with present ones, which come first in mappings_.
  std::optional<std::size_t> best;
  for (unsigned i = 0; i < 64 && next != order_.begin(); ++i) {
    const std::size_t index = *--next;
    if (pc < mappings_[index].end && (!best || index < *best)) best = index;
  }
  return best ? &mappings_[*best] : nullptr;
}

void NativeSymboliser::ReadObject(const ElfMapping& mapping, Object& object) {
  const Result<ElfFile> file = OpenObject(mapping);
  if (!file) return;
  object.segments = file->segments();
  const std::size_t room =
      options_.max_symbol_bytes - std::min(cached_bytes_, options_.max_symbol_bytes);
  object.symbols = SymbolTable::Read(*file, room);
  cached_bytes_ += object.symbols->memory_bytes();
}

NativeSymboliser::Object& NativeSymboliser::ObjectOf(const ElfMapping& mapping) {
  const auto [entry, is_new] = objects_.try_emplace(KeyOf(mapping));
  if (is_new) ReadObject(mapping, entry->second);
  return entry->second;
}

void NativeSymboliser::NameByPerfMap(uint64_t pc, ResolvedPc& resolved) const {
  const auto name = perf_map_.Find(pc);
  if (!name) return;
  resolved.name = Demangle(*name).text;
  if (resolved.name != *name) resolved.system_name = *name;
}

ResolvedPc NativeSymboliser::Resolve(uint64_t pc) {
  ResolvedPc resolved{.mapping = nullptr, .address = pc, .name = {}, .system_name = {}};
  const ElfMapping* mapping = FindMapping(pc);
  if (mapping == nullptr || !(IsFile(*mapping) || IsVdso(*mapping))) {
    NameByPerfMap(pc, resolved);
    return resolved;
  }
  resolved.mapping = mapping;
  Object& object = ObjectOf(*mapping);
  if (mapping->has_bias) {
    resolved.address = pc - mapping->bias;
  } else {
    const uint64_t offset = pc - mapping->start + mapping->file_offset;
    resolved.address = offset;
    for (const ElfSegment& segment : object.segments) {
      if (segment.type == PT_LOAD && offset - segment.offset < segment.file_size) {
        resolved.address = segment.address + (offset - segment.offset);
        break;
      }
    }
  }
  const auto symbol = object.symbols ? object.symbols->Find(resolved.address) : std::nullopt;
  if (!symbol) {
    // Some JITs write their code to a file in memory.
    NameByPerfMap(pc, resolved);
    return resolved;
  }
  PlainName plain = Demangle(symbol->name);
  if (plain.language == NameLanguage::kRust) resolved.kind = profile::FrameKind::kRust;
  if (plain.text != symbol->name) resolved.system_name = symbol->name;
  resolved.name = std::move(plain.text);
  return resolved;
}

void NativeSymboliser::FreeCache() {
  objects_.clear();
  cached_bytes_ = 0;
}

profile::MappingId ProfileFrames::AddMapping(const ElfMapping& mapping) {
  return profile_.AddMapping({.start = mapping.start,
                              .end = mapping.end,
                              .file_offset = mapping.file_offset,
                              .path = profile_.Intern(mapping.path),
                              .build_id = profile_.Intern(mapping.build_id)});
}

profile::FrameId ProfileFrames::AddFrame(uint64_t pc) {
  const auto [entry, is_new] = frames_.try_emplace(pc, profile::kNone);
  if (!is_new) return entry->second;
  const ResolvedPc resolved = symboliser_.Resolve(pc);
  profile::Frame frame{.kind = resolved.kind, .address = resolved.address};
  if (resolved.mapping != nullptr) frame.mapping = AddMapping(*resolved.mapping);
  if (!resolved.name.empty()) {
    frame.function = profile_.AddFunction({.name = profile_.Intern(resolved.name),
                                           .system_name = profile_.Intern(resolved.system_name)});
  }
  entry->second = profile_.AddFrame(frame);
  return entry->second;
}

}  // namespace spanprof::symbols
