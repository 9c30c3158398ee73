#pragma once

// The functions of an ELF file, by address: from .symtab where there is one, and .dynsym.
// Any thread may read it; not for a signal handler.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/elf_file.h"

namespace spanprof::symbols {

struct FoundSymbol {
  std::string_view name;  // mangled; valid as long as the SymbolTable
  uint64_t address = 0;   // where the function starts
};

class SymbolTable {
 public:
  // A file whose symbols are larger than `max_bytes` has only those of .dynsym, if any.
  static constexpr std::size_t kDefaultMaxBytes = std::size_t{256} << 20;
  [[nodiscard]] static SymbolTable Read(const ElfFile& file,
                                        std::size_t max_bytes = kDefaultMaxBytes);

  // The function that has the instruction at `address`. One without a size reaches to the next.
  [[nodiscard]] std::optional<FoundSymbol> Find(uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return symbols_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Symbol {
    uint64_t address;
    uint64_t size;
    uint32_t name;  // in names_
    uint32_t rank;  // of several at one address the lowest is shown
  };
  void Add(const ElfFile& file, uint32_t section_type, std::size_t max_bytes);
  void Sort();

  std::vector<Symbol> symbols_;  // ascending, one an address
  std::string names_;            // each ended by a zero byte
};

}  // namespace spanprof::symbols
