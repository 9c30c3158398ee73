#pragma once

// Source positions and inlined functions of a file's addresses, by its DWARF. For the command only:
// it needs libdw, which is not for other people's processes. One thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace spanprof::symbols {

struct SourceFrame {
  std::string name;         // for people
  std::string system_name;  // as the linker knows it; empty if it is the same
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
  uint32_t start_line = 0;  // where the function is declared
  bool inlined = false;     // into the next one of the list
  bool is_rust = false;
};

class DwarfLines {
 public:
  [[nodiscard]] static Result<DwarfLines> Open(const std::string& path);
  DwarfLines(DwarfLines&&) noexcept;
  DwarfLines& operator=(DwarfLines&&) noexcept;
  ~DwarfLines();

  // The functions at `address` (an ELF virtual address), the innermost first; the last is the one
  // that the others were inlined into. Empty if DWARF says nothing of it.
  [[nodiscard]] std::vector<SourceFrame> Resolve(uint64_t address);

 private:
  class Reader;
  explicit DwarfLines(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace spanprof::symbols
