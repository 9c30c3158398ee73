// Fuzzes the reading of an ELF file: headers, sections, symbols, the build id and the debug link.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <elf.h>
#include <span>

#include "base/elf_file.h"
#include "base/elf_note.h"
#include "base/elf_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)spanprof::BuildIdOfNotes(bytes);
  const spanprof::Result<spanprof::ElfFile> file = spanprof::ElfFile::FromBytes(bytes);
  if (!file) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  std::size_t sum = file->BuildId().size();
  if (file->DebugLink()) ++sum;
  for (const spanprof::ElfSection& section : file->sections()) {
    const auto content = file->Read(section);
    if (content && content->size() != 0)
      sum += std::to_integer<std::size_t>(content->bytes().back());
    if (const auto address = file->AddressOfOffset(section.offset)) sum += *address;
  }
  for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    const auto symbols = spanprof::ElfSymbols::Read(*file, type);
    if (!symbols) continue;
    symbols->ForEach([&sum](const spanprof::ElfSymbol& symbol) {
      for (const char letter : symbol.name) sum += static_cast<unsigned char>(letter);
    });
  }
  volatile std::size_t keep_the_reads = sum;
  (void)keep_the_reads;
  return 0;
}
