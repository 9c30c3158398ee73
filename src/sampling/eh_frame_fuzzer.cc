// Fuzzes .eh_frame and .eh_frame_hdr: whatever they say, a table comes of it that answers for every
// address.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <elf.h>
#include <span>

#include "sampling/eh_frame_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace sampling = spanprof::sampling;
  if (size < 4) return 0;
  constexpr std::uint64_t kCode = 0x10000;
  constexpr std::uint64_t kCodeBytes = 0x4000;
  const auto bytes = std::as_bytes(std::span(data + 4, size - 4));
  // The first byte chooses the machine, and whether there is a header; the next two where it ends.
  const bool arm = (data[0] & 1) != 0;
  const std::size_t header_size =
      (data[0] & 2) != 0 ? (data[1] | std::size_t{data[2]} << 8) % (bytes.size() + 1) : 0;
  const sampling::EhFrameImage image{
      .machine = static_cast<std::uint16_t>(arm ? EM_AARCH64 : EM_X86_64),
      .frames = bytes.subspan(header_size),
      .frames_address = 0x8000 + header_size,
      .header = bytes.first(header_size),
      .header_address = 0x8000,
      .code_begin = kCode,
      .code_end = kCode + kCodeBytes};
  const sampling::EhFrameTable made = sampling::MakeUnwindTable(image, 1 << 20);
  if (made.table == nullptr) return 0;
  for (std::uint64_t address = kCode - 16; address < kCode + kCodeBytes + 16; ++address) {
    const sampling::UnwindRule* rule = made.table->Find(address);
    const bool inside = address >= made.table->begin() && address < made.table->end();
    if ((rule != nullptr) != inside) std::abort();
    if (rule != nullptr && rule->cfa_register >= 32) std::abort();
  }
  (void)sampling::FramesAddressOfHeader(image.header, image.header_address);
  return 0;
}
