#pragma once

// What executable memory the process has, and the ELF objects that the dynamic loader knows of.
// Not for a signal handler.

#include <cstdint>
#include <elf.h>
#include <string>
#include <vector>

#include "base/elf_mapping.h"
#include "base/result.h"

namespace spanprof::sampling {

// An object as dl_iterate_phdr describes it. Addresses are ELF virtual addresses.
struct LoadedObject {
  uint64_t bias = 0;
  uint64_t code_begin = 0;  // of all executable segments
  uint64_t code_end = 0;
  uint64_t header_address = 0;  // .eh_frame_hdr; size 0: none
  uint64_t header_size = 0;
  std::vector<Elf64_Phdr> notes;
  std::vector<Elf64_Phdr> loads;
};

struct LoadedObjects {
  std::vector<LoadedObject> objects;
  uint64_t loads = 0;    // how many objects the loader has loaded so far,
  uint64_t unloads = 0;  // and unloaded
};

// Neither allocates nor reads an object's memory while the loader's lock is held: an allocator that
// unwinds takes the two locks in the other order, and exceptions wait for it.
[[nodiscard]] LoadedObjects ListLoadedObjects();

// The loader's lock is not made anew in a forked child: one that is made while another thread is in
// the functions above would find it locked for ever. Between these two calls none is. For fork
// handlers; what was forked without them must not use these functions.
void HoldLoaderLists();
void ReleaseLoaderLists();

// Loads and unloads so far, added up, in about a microsecond.
[[nodiscard]] uint64_t CountLoaderChanges();

// The executable mappings of this process in ascending order, with neither bias nor build id.
[[nodiscard]] Result<std::vector<ElfMapping>> ListExecutableMappings(
    const char* maps_path = "/proc/self/maps");

// The code that the kernel lets handlers return to, by the handlers that are installed (x86-64,
// where libc gives it to the kernel; elsewhere it is the vdso's, which has call frame information).
[[nodiscard]] std::vector<uint64_t> ListSignalReturns();

// What the first function of a makecontext() fiber returns to: assembler of libc, whose call frame
// information says that it has a caller, though it has none. 0 where there is no such thing.
[[nodiscard]] uint64_t FindFiberStart();
inline constexpr uint64_t kFiberStartBytes = 32;

}  // namespace spanprof::sampling
