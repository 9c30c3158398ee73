#include "symbols/symbol_table.h"

#include <algorithm>
#include <elf.h>
#include <tuple>

#include "base/elf_symbols.h"

namespace spanprof::symbols {
namespace {

// How far to look for a function that an inner one lies in.
constexpr unsigned kMaxLookBack = 8;
constexpr std::size_t kMaxNames = UINT32_MAX / 2;

bool IsFunction(const ElfSymbol& symbol) {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS || symbol.name.empty()) return false;
  if (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) return true;
  // Assembler without types; but not arm64's marks of code and data.
  return symbol.type == STT_NOTYPE && symbol.name[0] != '$';
}

uint32_t RankOf(const ElfSymbol& symbol) {
  uint32_t rank = 0;
  if (symbol.type == STT_NOTYPE) rank += 16;
  if (symbol.size == 0) rank += 8;
  if (symbol.binding == STB_LOCAL) rank += 2;
  if (symbol.binding == STB_WEAK) rank += 1;
  // Of aliases, the one that people write.
  if (symbol.name.starts_with("__")) rank += 4;
  return rank;
}

}  // namespace

SymbolTable SymbolTable::Read(const ElfFile& file, std::size_t max_bytes) {
  SymbolTable table;
  table.Add(file, SHT_SYMTAB, max_bytes);
  table.Add(file, SHT_DYNSYM, max_bytes);
  table.Sort();
  return table;
}

void SymbolTable::Add(const ElfFile& file, uint32_t section_type, std::size_t max_bytes) {
  const ElfSection* section = file.FindSectionOfType(section_type);
  if (section == nullptr || section->size > max_bytes) return;
  const Result<ElfSymbols> symbols = ElfSymbols::Read(file, section_type);
  if (!symbols) return;
  symbols->ForEach([this, max_bytes](const ElfSymbol& symbol) {
    const bool fits = names_.size() + symbol.name.size() < std::min(max_bytes, kMaxNames);
    if (!IsFunction(symbol) || !fits) return;
    symbols_.push_back({.address = symbol.address,
                        .size = symbol.size,
                        .name = static_cast<uint32_t>(names_.size()),
                        .rank = RankOf(symbol)});
    names_ += symbol.name;
    names_ += '\0';
  });
}

void SymbolTable::Sort() {
  const auto name = [this](const Symbol& symbol) {
    return std::string_view(names_.c_str() + symbol.name);
  };
  std::sort(symbols_.begin(), symbols_.end(), [&name](const Symbol& a, const Symbol& b) {
    return std::tuple(a.address, a.rank, name(a)) < std::tuple(b.address, b.rank, name(b));
  });
  const auto last =
      std::unique(symbols_.begin(), symbols_.end(),
                  [](const Symbol& a, const Symbol& b) { return a.address == b.address; });
  symbols_.erase(last, symbols_.end());
  symbols_.shrink_to_fit();
}

std::optional<FoundSymbol> SymbolTable::Find(uint64_t address) const {
  auto next =
      std::partition_point(symbols_.begin(), symbols_.end(),
                           [address](const Symbol& symbol) { return symbol.address <= address; });
  for (unsigned i = 0; i < kMaxLookBack && next != symbols_.begin(); ++i) {
    const Symbol& symbol = *--next;
    const bool reaches = symbol.size == 0 ? i == 0 : address - symbol.address < symbol.size;
    if (reaches) return FoundSymbol{names_.c_str() + symbol.name, symbol.address};
  }
  return std::nullopt;
}

std::size_t SymbolTable::memory_bytes() const {
  return symbols_.capacity() * sizeof(Symbol) + names_.capacity();
}

}  // namespace spanprof::symbols
