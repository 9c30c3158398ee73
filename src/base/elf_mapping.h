#pragma once

// A piece of executable memory of this process and the ELF file it came from: what an instruction's
// address is looked up in, by the stack walker's tables and by the symbols.

#include <cstdint>
#include <string>

namespace spanprof {

struct ElfMapping {
  uint64_t start = 0;  // address in the process
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint64_t bias = 0;      // address in the process less the ELF virtual address; 0 if not known
  uint64_t device = 0;    // of the file, as stat() gives it; 0 for memory of no file
  uint64_t inode = 0;     // 0 for memory of no file
  bool has_bias = false;  // the dynamic loader knows the object
  std::string path;       // "[vdso]", "//anon" for memory of no file
  std::string build_id;   // lower-case hex, of the object in memory; may be empty

  bool operator==(const ElfMapping&) const = default;
};

}  // namespace spanprof
