#include "sampling/native_object_table.h"

#include <elf.h>

#include "base/elf_note.h"
#include "sampling/safe_memory.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kMaxHeaderBytes = uint64_t{128} << 20;
constexpr uint64_t kMaxFrameBytes = uint64_t{512} << 20;
constexpr uint64_t kMaxNoteBytes = uint64_t{1} << 16;

#if defined(__x86_64__)
constexpr uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kOwnMachine = EM_AARCH64;
#else
constexpr uint16_t kOwnMachine = EM_NONE;
#endif

std::vector<std::byte> ReadBytes(uint64_t address, uint64_t size) {
  std::vector<std::byte> bytes(size);
  if (!CopyOwnMemory(address, bytes.data(), bytes.size())) bytes.clear();
  return bytes;
}

}  // namespace

std::vector<std::byte> ReadEhFrameHeader(const LoadedObject& object) {
  if (object.header_size == 0 || object.header_size > kMaxHeaderBytes) return {};
  return ReadBytes(object.bias + object.header_address, object.header_size);
}

EhFrameTable ReadUnwindTable(const LoadedObject& object, std::span<const std::byte> header,
                             std::size_t max_bytes) {
  const auto frames_address = FramesAddressOfHeader(header, object.header_address);
  if (!frames_address) return {};
  for (const Elf64_Phdr& load : object.loads) {
    const uint64_t distance = *frames_address - load.p_vaddr;
    if (distance >= load.p_memsz || load.p_memsz - distance > kMaxFrameBytes) continue;
    // The end of .eh_frame is not written anywhere in memory; that of its segment will do.
    const std::vector<std::byte> frames =
        ReadBytes(object.bias + *frames_address, load.p_memsz - distance);
    return MakeUnwindTable({.machine = kOwnMachine,
                            .frames = frames,
                            .frames_address = *frames_address,
                            .header = header,
                            .header_address = object.header_address,
                            .code_begin = object.code_begin,
                            .code_end = object.code_end},
                           max_bytes);
  }
  return {};
}

std::string ReadBuildId(const LoadedObject& object) {
  for (const Elf64_Phdr& note : object.notes) {
    if (note.p_memsz > kMaxNoteBytes) continue;
    std::string id = BuildIdOfNotes(ReadBytes(object.bias + note.p_vaddr, note.p_memsz));
    if (!id.empty()) return id;
  }
  return {};
}

}  // namespace spanprof::sampling
