#include "symbols/debug_file.h"

#include <algorithm>
#include <cstddef>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <zlib.h>

#include "base/unique_fd.h"

namespace spanprof::symbols {
namespace {

bool HasBuildId(const std::string& path, const std::string& build_id) {
  const Result<ElfFile> file = ElfFile::Open(path);
  return file && file->BuildId() == build_id && HasDebugInformation(*file);
}

bool HasChecksum(const std::string& path, uint32_t wanted) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return false;
  std::vector<unsigned char> buffer(std::size_t{1} << 20);
  uLong checksum = crc32(0, nullptr, 0);
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0) return false;
    if (count == 0) break;
    checksum = crc32(checksum, buffer.data(), static_cast<uInt>(count));
  }
  return checksum == wanted;
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<std::string> FindByBuildId(const std::string& build_id,
                                         const std::vector<std::string>& folders) {
  // It becomes a path: nothing but hexadecimal digits.
  if (build_id.size() < 4 || !IsHex(build_id)) return std::nullopt;
  for (const std::string& folder : folders) {
    std::string path =
        folder + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
    if (HasBuildId(path, build_id)) return path;
  }
  return std::nullopt;
}

std::optional<std::string> FindByDebugLink(const ElfFile& binary, const std::string& binary_path,
                                           const std::vector<std::string>& folders) {
  const std::optional<ElfDebugLink> link = binary.DebugLink();
  if (!link) return std::nullopt;
  const std::string folder = binary_path.substr(0, binary_path.rfind('/') + 1);
  std::vector<std::string> places = {folder + link->file_name,
                                     folder + ".debug/" + link->file_name};
  for (const std::string& debug_folder : folders) {
    places.push_back(debug_folder + folder + link->file_name);
  }
  for (const std::string& place : places) {
    if (place != binary_path && HasChecksum(place, link->crc32)) return place;
  }
  return std::nullopt;
}

}  // namespace

bool HasDebugInformation(const ElfFile& file) {
  for (const char* name : {".debug_info", ".zdebug_info"}) {
    const ElfSection* section = file.FindSection(name);
    if (section != nullptr && section->size != 0) return true;
  }
  return false;
}

std::optional<std::string> FindDebugFile(const ElfFile* binary, const std::string& binary_path,
                                         const std::string& build_id,
                                         const std::vector<std::string>& folders) {
  if (binary != nullptr && HasDebugInformation(*binary)) return binary_path;
  if (auto path = FindByBuildId(build_id, folders)) return path;
  return binary == nullptr ? std::nullopt : FindByDebugLink(*binary, binary_path, folders);
}

}  // namespace spanprof::symbols
