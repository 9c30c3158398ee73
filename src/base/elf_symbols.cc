#include "base/elf_symbols.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <utility>

namespace spanprof {

ElfSymbols::ElfSymbols(ElfBytes symbols, ElfBytes names)
    : symbols_(std::move(symbols)),
      names_(std::move(names)),
      count_(symbols_.size() / sizeof(Elf64_Sym)) {}

Result<ElfSymbols> ElfSymbols::Read(const ElfFile& file, uint32_t section_type) {
  const ElfSection* section = file.FindSectionOfType(section_type);
  if (section == nullptr) return Fail(ENOENT, "the ELF file has no such symbols");
  if (section->link >= file.sections().size()) {
    return Fail(ENOEXEC, "the ELF file's symbols have no names");
  }
  Result<ElfBytes> symbols = file.Read(*section);
  if (!symbols) return tl::make_unexpected(std::move(symbols.error()));
  Result<ElfBytes> names = file.Read(file.sections()[section->link]);
  if (!names) return tl::make_unexpected(std::move(names.error()));
  return ElfSymbols(std::move(*symbols), std::move(*names));
}

ElfSymbol ElfSymbols::At(std::size_t index) const {
  Elf64_Sym from;
  std::memcpy(&from, symbols_.bytes().data() + index * sizeof(from), sizeof(from));
  ElfSymbol symbol{.name = {},
                   .address = from.st_value,
                   .size = from.st_size,
                   .section = from.st_shndx,
                   .type = static_cast<uint8_t>(ELF64_ST_TYPE(from.st_info)),
                   .binding = static_cast<uint8_t>(ELF64_ST_BIND(from.st_info))};
  if (from.st_name < names_.size()) {
    const char* begin = reinterpret_cast<const char*>(names_.bytes().data()) + from.st_name;
    const std::size_t limit = std::min(names_.size() - from.st_name, kMaxNameBytes);
    symbol.name = {begin, strnlen(begin, limit)};
  }
  return symbol;
}

}  // namespace spanprof
