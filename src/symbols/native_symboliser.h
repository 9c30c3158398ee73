#pragma once

// Names for native addresses of this process, by what needs nothing but libc: .symtab, .dynsym and
// a JIT's perf map file. Lines and inlined functions are the command's business (symbolise.h).
// Build id, file and address are kept even when there is no name, for symbolisation elsewhere.
//
//   NativeSymboliser symboliser;                      // kept from profile to profile: it caches
//   symboliser.SetMappings(code_map.Mappings());
//   ProfileFrames frames(symboliser, profile);
//   FrameId frame = frames.AddFrame(return_address - 1);
//
// One thread at a time; not for a signal handler.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/elf_mapping.h"
#include "profile/profile.h"
#include "symbols/perf_map.h"
#include "symbols/symbol_table.h"

namespace spanprof::symbols {

struct NativeSymboliserOptions {
  std::string perf_map_folder = "/tmp";
  std::size_t max_symbol_bytes = std::size_t{64} << 20;  // of all files together
};

struct ResolvedPc {
  const ElfMapping* mapping = nullptr;  // null: in no file
  uint64_t address = 0;                 // ELF virtual address in the mapping's file; else the pc
  std::string name;                     // for people; empty: not known
  std::string system_name;              // as the linker has it; empty: the same
  profile::FrameKind kind = profile::FrameKind::kNative;
};

class NativeSymboliser {
 public:
  explicit NativeSymboliser(NativeSymboliserOptions options = {});

  // Where several have an address, the first counts. Reads the perf map again if it has grown.
  void SetMappings(std::vector<ElfMapping> mappings);

  // `pc` is an instruction's address: for a return address the caller has taken 1 off.
  [[nodiscard]] ResolvedPc Resolve(uint64_t pc);

  // Forgets the symbols, which are read again when they are needed.
  void FreeCache();
  [[nodiscard]] std::size_t cached_symbol_bytes() const { return cached_bytes_; }

 private:
  struct Object {
    std::optional<SymbolTable> symbols;
    // Where the mapping has no bias: from the file's offsets to its addresses.
    std::vector<ElfSegment> segments;
  };
  [[nodiscard]] const ElfMapping* FindMapping(uint64_t pc) const;
  Object& ObjectOf(const ElfMapping& mapping);
  void ReadObject(const ElfMapping& mapping, Object& object);
  void ReadPerfMap();
  void NameByPerfMap(uint64_t pc, ResolvedPc& resolved) const;

  NativeSymboliserOptions options_;
  std::vector<ElfMapping> mappings_;
  std::vector<std::size_t> order_;  // into mappings_, ascending by start
  std::map<std::string, Object> objects_;
  std::size_t cached_bytes_ = 0;
  PerfMap perf_map_;
  uint64_t perf_map_bytes_ = 0;
};

// Puts frames into one profile.
class ProfileFrames {
 public:
  // Both have to outlive it.
  ProfileFrames(NativeSymboliser& symboliser, profile::Profile& profile)
      : symboliser_(symboliser), profile_(profile) {}

  // The frame of an instruction's address, as Resolve() takes it.
  profile::FrameId AddFrame(uint64_t pc);

 private:
  profile::MappingId AddMapping(const ElfMapping& mapping);

  NativeSymboliser& symboliser_;
  profile::Profile& profile_;
  std::unordered_map<uint64_t, profile::FrameId> frames_;
};

}  // namespace spanprof::symbols
