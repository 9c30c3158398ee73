#include "sampling/thread_hooks.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string_view>
#include <unistd.h>

#include <sys/mman.h>

#include "sampling/observed_thread.h"
#include "sampling/sampler.h"

namespace spanprof::sampling {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT;
#else
constexpr uint32_t kJumpSlot = ~0u, kGlobalData = ~0u;  // nothing is patched
#endif

std::atomic<bool> do_not_patch{false};
std::atomic<CreateThread*> real_create{nullptr};

constexpr ThreadObserver kObserver = {
    .begun = [] { Sampler::Instance().OnThreadStart(); },
    .ended = [] { Sampler::Instance().OnThreadEnd(); },
};

int CreateSampledThread(pthread_t* thread, const pthread_attr_t* attributes,
                        void* (*function)(void*), void* argument) {
  CreateThread* const real = real_create.load(std::memory_order_acquire);
  if (!Sampler::Instance().running()) return real(thread, attributes, function, argument);
  return CreateObservedThread(real, kObserver, thread, attributes, function, argument);
}

// What of an object's dynamic section is needed to find its relocations by name.
struct DynamicTables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * relocations[2] = {};  // of functions, and of everything
  size_t bytes[2] = {};
};

// glibc has made the addresses absolute, except in objects that it cannot write to (the vDSO).
template <class Type>
const Type* Absolute(ElfW(Addr) base, ElfW(Addr) address) {
  return reinterpret_cast<const Type*>(address < base ? base + address : address);
}

DynamicTables ReadDynamic(ElfW(Addr) base, const ElfW(Dyn) * entry) {
  DynamicTables tables;
  bool is_rela = true;
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = Absolute<ElfW(Sym)>(base, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        tables.strings = Absolute<char>(base, entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        tables.relocations[0] = Absolute<ElfW(Rela)>(base, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        tables.bytes[0] = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        is_rela = entry->d_un.d_val == DT_RELA;
        break;
      case DT_RELA:
        tables.relocations[1] = Absolute<ElfW(Rela)>(base, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        tables.bytes[1] = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (!is_rela) tables.bytes[0] = 0;
  return tables;
}

// Whether the address lies in what the loader has made read-only after relocation.
bool IsReadOnly(const dl_phdr_info& info, uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_GNU_RELRO) continue;
    const uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    // The loader protects whole pages within it; a little more does no harm here.
    if (address >= begin && address < begin + header.p_memsz) return true;
  }
  return false;
}

bool Patch(const dl_phdr_info& info, uintptr_t address) {
  auto* const entry = reinterpret_cast<std::atomic<CreateThread*>*>(address);
  if (entry->load(std::memory_order_relaxed) == &CreateSampledThread) return false;
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(address & ~(page_size - 1));
  const bool read_only = IsReadOnly(info, address);
  // Others may be calling through it meanwhile: the page only gains a right, and the store is one.
  if (read_only && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
  entry->store(&CreateSampledThread, std::memory_order_release);
  if (read_only) mprotect(page, page_size, PROT_READ);
  return true;
}

struct Patching {
  uintptr_t own_address;
  size_t patched = 0;
};

bool Contains(const dl_phdr_info& info, uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && address >= begin && address < begin + header.p_memsz) {
      return true;
    }
  }
  return false;
}

int PatchObject(dl_phdr_info* info, size_t, void* data) {
  auto& patching = *static_cast<Patching*>(data);
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return 0;
  // A shared library of ours makes its own threads, which are not to be sampled. Linked statically
  // into a program, we are part of what is sampled; our threads then say so themselves.
  const bool is_program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
  if (!is_program && Contains(*info, patching.own_address)) return 0;
  const DynamicTables tables = ReadDynamic(info->dlpi_addr, dynamic);
  if (tables.symbols == nullptr || tables.strings == nullptr) return 0;
  for (unsigned list = 0; list < 2; ++list) {
    const size_t count = tables.bytes[list] / sizeof(ElfW(Rela));
    for (size_t i = 0; tables.relocations[list] != nullptr && i < count; ++i) {
      const ElfW(Rela)& relocation = tables.relocations[list][i];
      const uint32_t type = ELF64_R_TYPE(relocation.r_info);
      if (type != kJumpSlot && type != kGlobalData) continue;
      const ElfW(Sym)& symbol = tables.symbols[ELF64_R_SYM(relocation.r_info)];
      if (std::string_view(tables.strings + symbol.st_name) != "pthread_create") continue;
      if (Patch(*info, info->dlpi_addr + relocation.r_offset)) ++patching.patched;
    }
  }
  return 0;
}

}  // namespace

void DoNotPatchThreadCreation() { do_not_patch.store(true, std::memory_order_relaxed); }

size_t PatchThreadCreation() {
  if (do_not_patch.load(std::memory_order_relaxed)) return 0;
  if (real_create.load(std::memory_order_relaxed) == nullptr) {
    auto* real = reinterpret_cast<CreateThread*>(dlsym(RTLD_DEFAULT, "pthread_create"));
    if (real == nullptr) return 0;  // a static program: the scan finds its threads
    real_create.store(real, std::memory_order_release);
  }
  Patching patching{reinterpret_cast<uintptr_t>(&CreateSampledThread)};
  dl_iterate_phdr(PatchObject, &patching);
  return patching.patched;
}

}  // namespace spanprof::sampling
