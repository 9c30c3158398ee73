#include "collect/thread_local_variable.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <elf.h>
#include <span>

namespace spanprof::collect {
namespace {

constexpr std::size_t kMaxModules = 4096;
constexpr std::size_t kMaxProgramHeaders = 64;
constexpr std::size_t kMaxDynamicEntries = 512;
constexpr unsigned kMaxChainReads = 64;
constexpr std::size_t kChainWords = 16;  // a read
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxRelocations = std::size_t{1} << 20;
constexpr std::size_t kRelocationsARead = 128;

// What differs from machine to machine: how relocations are numbered, where the C library keeps a
// thread's table of blocks, and whether blocks lie below the thread pointer or above it.
#if defined(__x86_64__)
constexpr uint32_t kThreadPointerOffset = R_X86_64_TPOFF64, kModuleNumber = R_X86_64_DTPMOD64,
                   kDescriptor = R_X86_64_TLSDESC;
constexpr uint64_t kBlockTableOffset = 8;
int64_t OffsetInMainProgram(const Elf64_Phdr& block, uint64_t offset) {
  const uint64_t align = std::max<uint64_t>(block.p_align, 1);
  const uint64_t size = (block.p_memsz + align - 1) / align * align;
  return static_cast<int64_t>(offset - size);
}
#else
constexpr uint32_t kThreadPointerOffset = R_AARCH64_TLS_TPREL, kModuleNumber = R_AARCH64_TLS_DTPMOD,
                   kDescriptor = R_AARCH64_TLSDESC;
constexpr uint64_t kBlockTableOffset = 0;
int64_t OffsetInMainProgram(const Elf64_Phdr& block, uint64_t offset) {
  constexpr uint64_t kThreadControlBlockBytes = 16;
  return static_cast<int64_t>(std::max(kThreadControlBlockBytes, block.p_align) + offset);
}
#endif

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
struct RelocationTable {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

struct Module {
  uint64_t address = 0;
  uint64_t bias = 0;
  uint64_t symbols = 0;
  uint64_t strings = 0;
  uint64_t gnu_hash = 0;
  std::array<RelocationTable, 2> relocations;  // those for the start, those of calls
  Elf64_Phdr thread_block = {};
  bool is_program = false;  // not a library
};

bool ReadDynamicSection(MemoryReader& memory, uint64_t dynamic, uint64_t dynamic_bytes,
                        Module& module) {
  std::array<Elf64_Dyn, kMaxDynamicEntries> entries{};
  const uint64_t count = dynamic_bytes / sizeof(Elf64_Dyn);
  if (count == 0 || count > entries.size()) return false;
  const auto wanted = std::span(entries).first(count);
  if (memory.Read(dynamic, std::as_writable_bytes(wanted)) != ReadStatus::kOk) return false;
  for (const Elf64_Dyn& entry : wanted) {
    if (entry.d_tag == DT_NULL) break;
    // glibc puts addresses in place of the file's offsets, musl does not.
    const uint64_t value = entry.d_un.d_ptr;
    const uint64_t address = value >= module.address ? value : value + module.bias;
    if (entry.d_tag == DT_SYMTAB) module.symbols = address;
    if (entry.d_tag == DT_STRTAB) module.strings = address;
    if (entry.d_tag == DT_GNU_HASH) module.gnu_hash = address;
    if (entry.d_tag == DT_RELA) module.relocations[0].address = address;
    if (entry.d_tag == DT_RELASZ) module.relocations[0].bytes = value;
    if (entry.d_tag == DT_JMPREL) module.relocations[1].address = address;
    if (entry.d_tag == DT_PLTRELSZ) module.relocations[1].bytes = value;
  }
  return module.symbols != 0 && module.strings != 0 && module.gnu_hash != 0;
}

std::optional<Module> ReadModule(MemoryReader& memory, uint64_t address) {
  Elf64_Ehdr header{};
  if (!ReadValue(memory, address, header)) return std::nullopt;
  const bool usable =
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
      header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_phentsize == sizeof(Elf64_Phdr) &&
      header.e_phnum != 0 && header.e_phnum <= kMaxProgramHeaders;
  if (!usable) return std::nullopt;
  std::array<Elf64_Phdr, kMaxProgramHeaders> segments{};
  const auto wanted = std::span(segments).first(header.e_phnum);
  if (memory.Read(address + header.e_phoff, std::as_writable_bytes(wanted)) != ReadStatus::kOk) {
    return std::nullopt;
  }
  Module module;
  module.address = address;
  std::optional<uint64_t> bias;
  const Elf64_Phdr* dynamic = nullptr;
  for (const Elf64_Phdr& segment : wanted) {
    if (segment.p_type == PT_LOAD && segment.p_offset == 0) bias = address - segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
    if (segment.p_type == PT_TLS) module.thread_block = segment;
    if (segment.p_type == PT_INTERP) module.is_program = true;
  }
  if (!bias || dynamic == nullptr) return std::nullopt;
  module.bias = *bias;
  if (!ReadDynamicSection(memory, *bias + dynamic->p_vaddr, dynamic->p_memsz, module)) {
    return std::nullopt;
  }
  return module;
}

struct Symbol {
  uint64_t index = 0;
  uint64_t offset = 0;  // in the module's block
};

std::optional<Symbol> ReadSymbol(MemoryReader& memory, const Module& module, uint64_t index,
                                 std::string_view name) {
  Elf64_Sym symbol{};
  if (!ReadValue(memory, module.symbols + index * sizeof(symbol), symbol)) return std::nullopt;
  if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF) return std::nullopt;
  std::array<char, kMaxNameBytes> text{};
  const auto with_end = std::span(text).first(name.size() + 1);
  if (memory.Read(module.strings + symbol.st_name, std::as_writable_bytes(with_end)) !=
          ReadStatus::kOk ||
      std::memcmp(text.data(), name.data(), name.size()) != 0 || text[name.size()] != '\0') {
    return std::nullopt;
  }
  return Symbol{index, symbol.st_value};
}

std::optional<Symbol> LookUp(MemoryReader& memory, const Module& module, std::string_view name) {
  struct {
    uint32_t buckets;
    uint32_t first_symbol;
    uint32_t bloom_words;
    uint32_t bloom_shift;
  } header{};
  if (!ReadValue(memory, module.gnu_hash, header) || header.buckets == 0) return std::nullopt;
  const uint32_t hash = GnuHash(name);
  const uint64_t buckets =
      module.gnu_hash + sizeof(header) + uint64_t{header.bloom_words} * sizeof(uint64_t);
  uint32_t index = 0;
  if (!ReadValue(memory, buckets + uint64_t{hash % header.buckets} * 4, index)) return std::nullopt;
  if (index < header.first_symbol) return std::nullopt;  // an empty bucket
  const uint64_t chains = buckets + uint64_t{header.buckets} * 4;
  uint64_t chain = index;
  for (unsigned reads = 0; reads < kMaxChainReads; ++reads) {
    // Most chains end after a few words, and a read beyond the last may fail: then one at a time.
    std::array<uint32_t, kChainWords> words{};
    std::size_t count = words.size();
    const uint64_t address = chains + (chain - header.first_symbol) * 4;
    if (!ReadValue(memory, address, words)) {
      count = 1;
      if (!ReadValue(memory, address, words[0])) return std::nullopt;
    }
    for (std::size_t i = 0; i < count; ++i, ++chain) {
      if ((words[i] | 1) == (hash | 1)) {
        if (const auto symbol = ReadSymbol(memory, module, chain, name)) return symbol;
      }
      if ((words[i] & 1) != 0) return std::nullopt;
    }
  }
  return std::nullopt;
}

// A TLS descriptor is a function and its argument. The C library gives the argument one of two
// meanings, by where it has put the module's block: an offset, or an address of both numbers.
bool ReadDescriptor(MemoryReader& memory, uint64_t address, ThreadLocalVariable& variable) {
  std::array<uint64_t, 2> descriptor{};
  if (!ReadValue(memory, address, descriptor) || descriptor[0] == 0) return false;
  const auto argument = static_cast<int64_t>(descriptor[1]);
  if (argument > INT32_MIN && argument < INT32_MAX) {
    variable.access = ThreadLocalVariable::Access::kFromThreadPointer;
    variable.offset = argument;
    return true;
  }
  std::array<uint64_t, 2> module_and_offset{};
  if (!ReadValue(memory, descriptor[1], module_and_offset)) return false;
  variable.access = ThreadLocalVariable::Access::kInBlock;
  variable.module_id = module_and_offset[0];
  variable.offset = static_cast<int64_t>(module_and_offset[1]);
  return true;
}

// What the loader has put where the module's code looks for the variable.
bool TakeRelocation(MemoryReader& memory, const Module& module, const Elf64_Rela& relocation,
                    const Symbol& symbol, ThreadLocalVariable& variable) {
  const uint64_t address = module.bias + relocation.r_offset;
  uint64_t value = 0;
  switch (ELF64_R_TYPE(relocation.r_info)) {
    case kThreadPointerOffset:
      if (!ReadValue(memory, address, value)) return false;
      variable.access = ThreadLocalVariable::Access::kFromThreadPointer;
      variable.offset = static_cast<int64_t>(value);
      return true;
    case kModuleNumber:
      if (!ReadValue(memory, address, value)) return false;
      variable.access = ThreadLocalVariable::Access::kInBlock;
      variable.module_id = value;
      variable.offset = static_cast<int64_t>(symbol.offset);
      return true;
    case kDescriptor:
      return ReadDescriptor(memory, address, variable);
    default:
      return false;
  }
}

void FindAccess(MemoryReader& memory, const Module& module, const Symbol& symbol,
                ThreadLocalVariable& variable) {
  for (const RelocationTable& table : module.relocations) {
    const uint64_t count = std::min<uint64_t>(table.bytes / sizeof(Elf64_Rela), kMaxRelocations);
    for (uint64_t first = 0; first < count; first += kRelocationsARead) {
      std::array<Elf64_Rela, kRelocationsARead> relocations{};
      const auto wanted = std::span(relocations).first(std::min(kRelocationsARead, count - first));
      const uint64_t address = table.address + first * sizeof(Elf64_Rela);
      if (memory.Read(address, std::as_writable_bytes(wanted)) != ReadStatus::kOk) break;
      for (const Elf64_Rela& relocation : wanted) {
        if (ELF64_R_SYM(relocation.r_info) == symbol.index &&
            TakeRelocation(memory, module, relocation, symbol, variable)) {
          return;
        }
      }
    }
  }
  // The linker knows where the program's own variables are, and leaves nothing to the loader.
  if (module.is_program && module.thread_block.p_memsz != 0) {
    variable.access = ThreadLocalVariable::Access::kFromThreadPointer;
    variable.offset = OffsetInMainProgram(module.thread_block, symbol.offset);
  }
}

}  // namespace

std::optional<ThreadLocalVariable> FindThreadLocalInModule(MemoryReader& memory, uint64_t address,
                                                           std::string_view name) {
  if (name.size() >= kMaxNameBytes) return std::nullopt;
  const auto module = ReadModule(memory, address);
  if (!module) return std::nullopt;
  const auto symbol = LookUp(memory, *module, name);
  if (!symbol) return std::nullopt;
  ThreadLocalVariable variable;
  FindAccess(memory, *module, *symbol, variable);
  return variable;
}

std::optional<ThreadLocalVariable> FindThreadLocal(MemoryReader& memory, const ProcessMaps& maps,
                                                   std::string_view name) {
  std::size_t modules = 0;
  for (const Mapping& mapping : maps.mappings) {
    const bool file_start = mapping.readable && mapping.offset == 0 && mapping.inode != 0 &&
                            mapping.name.starts_with('/') && mapping.size() >= sizeof(Elf64_Ehdr);
    if (!file_start) continue;
    if (++modules > kMaxModules) break;
    if (auto variable = FindThreadLocalInModule(memory, mapping.start, name)) {
      variable->module = mapping.name;
      return variable;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ThreadLocalAddress(MemoryReader& memory,
                                           const ThreadLocalVariable& variable,
                                           uint64_t thread_pointer) {
  switch (variable.access) {
    case ThreadLocalVariable::Access::kFromThreadPointer:
      return thread_pointer + static_cast<uint64_t>(variable.offset);
    case ThreadLocalVariable::Access::kInBlock: {
      // glibc's table of blocks: an entry a module, of the block's address and what to free.
      constexpr uint64_t kEntryBytes = 16;
      uint64_t table = 0;
      uint64_t block = 0;
      if (!ReadValue(memory, thread_pointer + kBlockTableOffset, table) ||
          !ReadValue(memory, table + variable.module_id * kEntryBytes, block)) {
        return std::nullopt;
      }
      if (block == 0 || block == UINT64_MAX) return std::nullopt;  // not used by this thread yet
      return block + static_cast<uint64_t>(variable.offset);
    }
    case ThreadLocalVariable::Access::kUnknown:
      break;
  }
  return std::nullopt;
}

}  // namespace spanprof::collect
