#include "base/elf_note.h"

#include <cstdint>
#include <cstring>
#include <elf.h>

namespace spanprof {
namespace {

std::string ToHex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

constexpr uint64_t Padded(uint32_t size) { return (uint64_t{size} + 3) & ~uint64_t{3}; }

}  // namespace

std::string BuildIdOfNotes(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes = notes.subspan(sizeof(header));
    const uint64_t name_bytes = Padded(header.n_namesz);
    if (name_bytes > notes.size() || header.n_descsz > notes.size() - name_bytes) return {};
    const auto description = notes.subspan(name_bytes, header.n_descsz);
    const bool is_gnu = header.n_namesz == sizeof(ELF_NOTE_GNU) &&
                        std::memcmp(notes.data(), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0;
    if (is_gnu && header.n_type == NT_GNU_BUILD_ID) {
      if (description.empty() || description.size() > kMaxBuildIdBytes) return {};
      return ToHex(description);
    }
    const uint64_t description_bytes = Padded(header.n_descsz);
    if (description_bytes > notes.size() - name_bytes) return {};
    notes = notes.subspan(name_bytes + description_bytes);
  }
  return {};
}

}  // namespace spanprof
