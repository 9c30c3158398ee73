#pragma once

// Reading an ELF file (64-bit, little-endian) that nobody vouches for: a broken, lying or truncated
// file gives an error or an empty answer, never a crash, and memory in proportion to what was
// asked.
//
//   Result<ElfFile> file = ElfFile::Open("/usr/lib/libfoo.so");
//   if (!file) return file.error();
//   const ElfSection* section = file->FindSection(".eh_frame");
//   Result<ElfBytes> bytes = file->Read(*section);
//
// The file is read, not mapped: whoever truncates a mapped file kills every process that then
// touches it (SIGBUS), and this code runs inside programs that are not ours.
//
// Any thread may call these, one at a time for each object; none is for a signal handler.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spanprof {

// Bytes of a file: its own copy, or a view where the file is in memory already. Move-only.
class ElfBytes {
 public:
  ElfBytes() = default;
  explicit ElfBytes(std::span<const std::byte> view) : view_(view) {}
  ElfBytes(std::unique_ptr<std::byte[]> owned, std::size_t size)
      : owned_(std::move(owned)), view_(owned_.get(), size) {}

  [[nodiscard]] std::span<const std::byte> bytes() const { return view_; }
  [[nodiscard]] std::size_t size() const { return view_.size(); }

 private:
  std::unique_ptr<std::byte[]> owned_;
  std::span<const std::byte> view_;
};

struct ElfSegment {
  uint32_t type = 0;   // PT_LOAD, PT_NOTE, ...
  uint32_t flags = 0;  // PF_X, ...
  uint64_t offset = 0;
  uint64_t address = 0;  // virtual address, as linked
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
};

struct ElfSection {
  std::string_view name;  // valid as long as the ElfFile
  uint32_t type = 0;      // SHT_PROGBITS, ...
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t link = 0;  // for symbols: the index of their strings' section
};

struct ElfDebugLink {
  std::string file_name;  // a name without a slash
  uint32_t crc32 = 0;
};

class ElfFile {
 public:
  static constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

  // Fails with ENOEXEC for what is no such ELF file, else with what open() or read() said. Only a
  // regular file is read: not a device, nor a pipe that would block.
  [[nodiscard]] static Result<ElfFile> Open(const std::string& path);
  [[nodiscard]] static Result<ElfFile> FromFd(UniqueFd fd);
  // `bytes` has to stay while the ElfFile and what was read from it are in use.
  [[nodiscard]] static Result<ElfFile> FromBytes(std::span<const std::byte> bytes);

  [[nodiscard]] uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64, ...
  [[nodiscard]] uint16_t type() const { return type_; }        // ET_EXEC, ET_DYN, ET_REL
  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] const std::vector<ElfSegment>& segments() const { return segments_; }
  // Empty in a file without section headers, which is no error.
  [[nodiscard]] const std::vector<ElfSection>& sections() const { return sections_; }
  [[nodiscard]] dev_t device() const { return device_; }
  [[nodiscard]] ino_t inode() const { return inode_; }

  // Null if there is none. A section's index is its place in sections().
  [[nodiscard]] const ElfSection* FindSection(std::string_view name) const;
  [[nodiscard]] const ElfSection* FindSectionOfType(uint32_t type) const;

  // A section without bytes in the file (SHT_NOBITS) reads as empty; a compressed one is refused.
  [[nodiscard]] Result<ElfBytes> Read(const ElfSection& section) const;
  [[nodiscard]] Result<ElfBytes> Read(uint64_t offset, uint64_t size) const;

  // In lower-case hex, from the note sections or segments; empty if there is none.
  [[nodiscard]] std::string BuildId() const;
  [[nodiscard]] std::optional<ElfDebugLink> DebugLink() const;

  // Where the loader puts a byte of the file, relative to the load bias: the virtual address of
  // `offset` by the first PT_LOAD segment that has it.
  [[nodiscard]] std::optional<uint64_t> AddressOfOffset(uint64_t offset) const;

 private:
  ElfFile() = default;
  Result<void> Parse();
  Result<void> ParseSections(uint64_t offset, uint64_t count, uint64_t names_index);

  UniqueFd fd_;
  std::span<const std::byte> image_;  // instead of fd_
  uint64_t size_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint16_t machine_ = 0;
  uint16_t type_ = 0;
  std::vector<ElfSegment> segments_;
  std::vector<ElfSection> sections_;
  ElfBytes section_names_;
};

}  // namespace spanprof
