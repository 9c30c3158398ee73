#include "cli/coro_function_names.h"

#include "base/elf_file.h"
#include "collect/process_directory.h"
#include "coroutine/function_name.h"
#include "symbols/demangle.h"

namespace spanprof::cli {

CoroFunctionNames::CoroFunctionNames(pid_t pid) : pid_(pid) {
  const auto directory = collect::ProcessDirectory::Open(pid);
  if (!directory) return;
  if (const auto text = directory->ReadFile("maps", collect::kMaxMapsBytes)) {
    maps_ = collect::ParseProcessMaps(text->text);
  }
}

CoroFunctionNames::Object& CoroFunctionNames::ObjectOf(const collect::Mapping& mapping) {
  const auto [known, is_new] = objects_.try_emplace({mapping.inode, mapping.name});
  Object& object = known->second;
  if (!is_new) return object;
  // Also right for what was deleted or replaced since, and in another mount namespace.
  char range[64];
  std::snprintf(range, sizeof range, "/map_files/%llx-%llx",
                static_cast<unsigned long long>(mapping.start),
                static_cast<unsigned long long>(mapping.end));
  const std::string process = "/proc/" + std::to_string(pid_);
  Result<ElfFile> file = ElfFile::Open(process + range);
  // That needs a capability; the path does not.
  if (!file) file = ElfFile::Open(process + "/root" + mapping.name);
  if (!file) return object;
  object.file = *std::move(file);
  object.symbols = symbols::SymbolTable::Read(*object.file);
  return object;
}

std::string CoroFunctionNames::NameOf(uint64_t resume_function) {
  for (const collect::Mapping& mapping : maps_.mappings) {
    if (resume_function < mapping.start || resume_function >= mapping.end) continue;
    if (!mapping.executable || mapping.name.empty() || mapping.name[0] != '/') return {};
    const Object& object = ObjectOf(mapping);
    if (!object.file) return {};
    const auto address =
        object.file->AddressOfOffset(resume_function - mapping.start + mapping.offset);
    const auto symbol = address ? object.symbols->Find(*address) : std::nullopt;
    if (!symbol) return {};
    return coroutine::ResumeFunctionName(symbols::Demangle(symbol->name).text);
  }
  return {};
}

}  // namespace spanprof::cli
