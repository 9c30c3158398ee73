#pragma once

// The names of functions of another process, by the symbols of its files: for coroutines that have
// no name of their own. The files are opened as the process sees them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "collect/process_maps.h"
#include "symbols/symbol_table.h"

namespace spanprof::cli {

class CoroFunctionNames {
 public:
  explicit CoroFunctionNames(pid_t pid);

  // Empty if it is not known.
  [[nodiscard]] std::string NameOf(uint64_t resume_function);

 private:
  struct Object {
    std::optional<ElfFile> file;
    std::optional<symbols::SymbolTable> symbols;
  };
  [[nodiscard]] Object& ObjectOf(const collect::Mapping& mapping);

  pid_t pid_;
  collect::ProcessMaps maps_;
  std::map<std::pair<uint64_t, std::string>, Object> objects_;  // by inode and name
};

}  // namespace spanprof::cli
