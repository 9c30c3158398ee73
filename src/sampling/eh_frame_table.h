#pragma once

// Turns `.eh_frame` into an UnwindTable. The bytes may be broken or hostile: what cannot be
// understood is left out or marked as such, and counted. Not for a signal handler.
//
//   EhFrameImage image{.machine = EM_X86_64, .frames = bytes, .frames_address = ..., ...};
//   EhFrameTable made = MakeUnwindTable(image, kMaxBytes);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "sampling/unwind_table.h"

namespace spanprof::sampling {

struct EhFrameImage {
  uint16_t machine = 0;               // EM_X86_64 or EM_AARCH64; for others there is no table
  std::span<const std::byte> frames;  // from the start of .eh_frame; bytes after its end do no harm
  uint64_t frames_address = 0;        // ELF virtual addresses
  std::span<const std::byte> header;  // .eh_frame_hdr, if there is one
  uint64_t header_address = 0;
  uint64_t code_begin = 0;  // functions outside of this are left out
  uint64_t code_end = 0;
};

struct EhFrameTable {
  std::shared_ptr<const UnwindTable> table;  // null: no function was understood
  std::size_t functions = 0;
  std::size_t broken_functions = 0;  // left out
  std::size_t unsupported_rows = 0;  // the walk ends there
  bool truncated = false;            // by `max_bytes`
};

[[nodiscard]] EhFrameTable MakeUnwindTable(const EhFrameImage& image, std::size_t max_bytes);

// Where .eh_frame starts, by the beginning of .eh_frame_hdr.
[[nodiscard]] std::optional<uint64_t> FramesAddressOfHeader(std::span<const std::byte> header,
                                                            uint64_t header_address);

// Null for a machine that there are no tables for.
[[nodiscard]] const UnwindMachine* UnwindMachineOf(uint16_t elf_machine);

}  // namespace spanprof::sampling
