#include "collect/otel_thread_symbol.h"

#include <array>
#include <cstring>
#include <elf.h>
#include <span>
#include <string_view>

namespace spanprof::collect {
namespace {

constexpr std::size_t kMaxModules = 4096;
constexpr std::size_t kMaxProgramHeaders = 64;
constexpr std::size_t kMaxDynamicEntries = 512;
constexpr unsigned kMaxChainReads = 64;
constexpr std::size_t kChainWords = 16;  // a read

template <class T>
bool ReadValue(MemoryReader& memory, uint64_t address, T& value) {
  return memory.Read(address, std::as_writable_bytes(std::span(&value, 1))) == ReadStatus::kOk;
}

constexpr uint32_t GnuHash(std::string_view name) {
  uint32_t hash = 5381;
  for (const char letter : name) hash = hash * 33 + static_cast<unsigned char>(letter);
  return hash;
}

// All addresses are the target's. Sums of them may wrap round: then the read fails.
struct DynamicSymbols {
  uint64_t symbols = 0;
  uint64_t strings = 0;
  uint64_t gnu_hash = 0;
};

std::optional<DynamicSymbols> ReadDynamicSection(MemoryReader& memory, uint64_t module,
                                                 uint64_t bias, uint64_t dynamic,
                                                 uint64_t dynamic_bytes) {
  std::array<Elf64_Dyn, kMaxDynamicEntries> entries{};
  const uint64_t count = dynamic_bytes / sizeof(Elf64_Dyn);
  if (count == 0 || count > entries.size()) return std::nullopt;
  const auto wanted = std::span(entries).first(count);
  if (memory.Read(dynamic, std::as_writable_bytes(wanted)) != ReadStatus::kOk) return std::nullopt;
  DynamicSymbols found;
  for (const Elf64_Dyn& entry : wanted) {
    if (entry.d_tag == DT_NULL) break;
    // glibc puts addresses in place of the file's offsets, musl does not.
    const uint64_t value = entry.d_un.d_ptr;
    const uint64_t address = value >= module ? value : value + bias;
    if (entry.d_tag == DT_SYMTAB) found.symbols = address;
    if (entry.d_tag == DT_STRTAB) found.strings = address;
    if (entry.d_tag == DT_GNU_HASH) found.gnu_hash = address;
  }
  if (found.symbols == 0 || found.strings == 0 || found.gnu_hash == 0) return std::nullopt;
  return found;
}

bool IsTheSymbol(MemoryReader& memory, const DynamicSymbols& dynamic, uint64_t index) {
  Elf64_Sym symbol{};
  if (!ReadValue(memory, dynamic.symbols + index * sizeof(symbol), symbol)) return false;
  const bool thread_local_definition =
      ELF64_ST_TYPE(symbol.st_info) == STT_TLS && symbol.st_shndx != SHN_UNDEF;
  std::array<char, sizeof(kOtelThreadSymbol)> name{};
  return thread_local_definition && ReadValue(memory, dynamic.strings + symbol.st_name, name) &&
         std::memcmp(name.data(), kOtelThreadSymbol, name.size()) == 0;
}

bool LookUp(MemoryReader& memory, const DynamicSymbols& dynamic) {
  struct {
    uint32_t buckets;
    uint32_t first_symbol;
    uint32_t bloom_words;
    uint32_t bloom_shift;
  } header{};
  if (!ReadValue(memory, dynamic.gnu_hash, header) || header.buckets == 0) return false;
  constexpr uint32_t kHash = GnuHash(kOtelThreadSymbol);
  const uint64_t buckets =
      dynamic.gnu_hash + sizeof(header) + uint64_t{header.bloom_words} * sizeof(uint64_t);
  uint32_t index = 0;
  if (!ReadValue(memory, buckets + uint64_t{kHash % header.buckets} * 4, index)) return false;
  if (index < header.first_symbol) return false;  // an empty bucket
  const uint64_t chains = buckets + uint64_t{header.buckets} * 4;
  uint64_t chain = index;
  for (unsigned reads = 0; reads < kMaxChainReads; ++reads) {
    // Most chains end after a few words, and a read beyond the last may fail: then one at a time.
    std::array<uint32_t, kChainWords> words{};
    std::size_t count = words.size();
    const uint64_t address = chains + (chain - header.first_symbol) * 4;
    if (!ReadValue(memory, address, words)) {
      count = 1;
      if (!ReadValue(memory, address, words[0])) return false;
    }
    for (std::size_t i = 0; i < count; ++i, ++chain) {
      if ((words[i] | 1) == (kHash | 1) && IsTheSymbol(memory, dynamic, chain)) return true;
      if ((words[i] & 1) != 0) return false;
    }
  }
  return false;
}

}  // namespace

bool ModuleHasOtelThreadSymbol(MemoryReader& memory, uint64_t address) {
  Elf64_Ehdr header{};
  if (!ReadValue(memory, address, header)) return false;
  const bool usable =
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
      header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_phentsize == sizeof(Elf64_Phdr) &&
      header.e_phnum != 0 && header.e_phnum <= kMaxProgramHeaders;
  if (!usable) return false;
  std::array<Elf64_Phdr, kMaxProgramHeaders> segments{};
  const auto wanted = std::span(segments).first(header.e_phnum);
  if (memory.Read(address + header.e_phoff, std::as_writable_bytes(wanted)) != ReadStatus::kOk) {
    return false;
  }
  std::optional<uint64_t> bias;
  const Elf64_Phdr* dynamic = nullptr;
  for (const Elf64_Phdr& segment : wanted) {
    if (segment.p_type == PT_LOAD && segment.p_offset == 0) bias = address - segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
  }
  if (!bias || dynamic == nullptr) return false;
  const auto symbols =
      ReadDynamicSection(memory, address, *bias, *bias + dynamic->p_vaddr, dynamic->p_memsz);
  return symbols && LookUp(memory, *symbols);
}

std::optional<std::string> FindOtelThreadSymbol(MemoryReader& memory, const ProcessMaps& maps) {
  std::size_t modules = 0;
  for (const Mapping& mapping : maps.mappings) {
    const bool file_start = mapping.readable && mapping.offset == 0 && mapping.inode != 0 &&
                            mapping.name.starts_with('/') && mapping.size() >= sizeof(Elf64_Ehdr);
    if (!file_start) continue;
    if (++modules > kMaxModules) break;
    if (ModuleHasOtelThreadSymbol(memory, mapping.start)) return mapping.name;
  }
  return std::nullopt;
}

}  // namespace spanprof::collect
