#pragma once

// The symbols of an ELF file, as they stand there.
//
//   Result<ElfSymbols> symbols = ElfSymbols::Read(file, SHT_SYMTAB);
//   if (symbols) symbols->ForEach([](const ElfSymbol& symbol) { ... });
//
// Names are bytes from the file, not necessarily text. Any thread; not for a signal handler.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/elf_file.h"
#include "base/result.h"

namespace spanprof {

struct ElfSymbol {
  std::string_view name;  // valid as long as the ElfSymbols
  uint64_t address = 0;   // st_value
  uint64_t size = 0;
  uint16_t section = 0;  // SHN_UNDEF: defined elsewhere
  uint8_t type = 0;      // STT_FUNC, ...
  uint8_t binding = 0;   // STB_GLOBAL, ...
};

class ElfSymbols {
 public:
  // Longer names are cut: a name of megabytes is nobody's.
  static constexpr std::size_t kMaxNameBytes = 16384;

  // `section_type` is SHT_SYMTAB or SHT_DYNSYM. Fails with ENOENT if the file has no such section.
  [[nodiscard]] static Result<ElfSymbols> Read(const ElfFile& file, uint32_t section_type);

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] ElfSymbol At(std::size_t index) const;  // index < size()

  template <class Visitor>
  void ForEach(Visitor&& visit) const {
    for (std::size_t i = 0; i < count_; ++i) visit(At(i));
  }

 private:
  ElfSymbols(ElfBytes symbols, ElfBytes names);

  ElfBytes symbols_;
  ElfBytes names_;
  std::size_t count_;
};

}  // namespace spanprof
