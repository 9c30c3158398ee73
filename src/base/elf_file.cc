#include "base/elf_file.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "base/elf_note.h"
#include "base/printable_text.h"

namespace spanprof {
namespace {

constexpr uint64_t kMaxSegments = 4096;
constexpr uint64_t kMaxSections = uint64_t{1} << 18;
constexpr uint64_t kMaxSectionNames = uint64_t{64} << 20;
constexpr uint64_t kMaxNotes = uint64_t{1} << 20;
constexpr unsigned kMaxNoteParts = 64;
constexpr std::size_t kMaxDebugLink = 4096;

std::string ErrnoText(int code) { return std::generic_category().message(code); }

// The text at `offset`, up to its zero byte; empty if it has none before the end.
std::string_view TextAt(std::span<const std::byte> strings, uint64_t offset) {
  if (offset >= strings.size()) return {};
  const auto rest = strings.subspan(offset);
  const void* end = std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) return {};
  const char* begin = reinterpret_cast<const char*>(rest.data());
  return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
}

template <class T>
T ValueAt(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

Result<ElfFile> ElfFile::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    const int code = errno;
    return Fail(code, "cannot open " + Quoted(path) + ": " + ErrnoText(code));
  }
  Result<ElfFile> file = FromFd(std::move(fd));
  if (!file) file.error().message = Quoted(path) + ": " + file.error().message;
  return file;
}

Result<ElfFile> ElfFile::FromFd(UniqueFd fd) {
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) {
    const int code = errno;
    return Fail(code, "cannot examine the file: " + ErrnoText(code));
  }
  if (!S_ISREG(status.st_mode)) return Fail(ENOEXEC, "not a regular file");
  ElfFile file;
  file.fd_ = std::move(fd);
  file.size_ = static_cast<uint64_t>(status.st_size);
  file.device_ = status.st_dev;
  file.inode_ = status.st_ino;
  if (auto parsed = file.Parse(); !parsed) return tl::make_unexpected(std::move(parsed.error()));
  return file;
}

Result<ElfFile> ElfFile::FromBytes(std::span<const std::byte> bytes) {
  ElfFile file;
  file.image_ = bytes;
  file.size_ = bytes.size();
  if (auto parsed = file.Parse(); !parsed) return tl::make_unexpected(std::move(parsed.error()));
  return file;
}

Result<ElfBytes> ElfFile::Read(uint64_t offset, uint64_t size) const {
  if (size > size_ || offset > size_ - size) {
    return Fail(ENOEXEC, "the ELF file is shorter than it says: " + std::to_string(size) +
                             " bytes at " + std::to_string(offset) + " of " +
                             std::to_string(size_));
  }
  if (size > kMaxReadBytes) {
    return Fail(EFBIG, "a part of the ELF file has " + std::to_string(size) + " bytes");
  }
  if (!fd_.valid()) return ElfBytes(image_.subspan(offset, size));
  // Not value-initialised: read() fills it.
  std::unique_ptr<std::byte[]> buffer(new (std::nothrow) std::byte[size]);
  if (buffer == nullptr) return Fail(ENOMEM, "no memory to read the ELF file");
  uint64_t done = 0;
  while (done < size) {
    const ssize_t count =
        pread(fd_.get(), buffer.get() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int code = errno;
      return Fail(code, "cannot read the ELF file: " + ErrnoText(code));
    }
    if (count == 0) return Fail(ENOEXEC, "the ELF file became shorter while it was read");
    done += static_cast<uint64_t>(count);
  }
  return ElfBytes(std::move(buffer), size);
}

Result<ElfBytes> ElfFile::Read(const ElfSection& section) const {
  if (section.type == SHT_NOBITS) return ElfBytes();
  if ((section.flags & SHF_COMPRESSED) != 0) {
    return Fail(ENOTSUP, "section " + Quoted(section.name) + " is compressed");
  }
  return Read(section.offset, section.size);
}

Result<void> ElfFile::Parse() {
  const Result<ElfBytes> head = Read(0, sizeof(Elf64_Ehdr));
  if (!head) return Fail(ENOEXEC, "not an ELF file: too short");
  const auto header = ValueAt<Elf64_Ehdr>(head->bytes(), 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Fail(ENOEXEC, "not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Fail(ENOEXEC, "not a 64-bit little-endian ELF file");
  }
  machine_ = header.e_machine;
  type_ = header.e_type;
  if (header.e_phnum != 0) {
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxSegments) {
      return Fail(ENOEXEC, "the ELF file has broken program headers");
    }
    const Result<ElfBytes> bytes = Read(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
    if (!bytes) return tl::make_unexpected(bytes.error());
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      const auto from = ValueAt<Elf64_Phdr>(bytes->bytes(), i);
      segments_.push_back({.type = from.p_type,
                           .flags = from.p_flags,
                           .offset = from.p_offset,
                           .address = from.p_vaddr,
                           .file_size = from.p_filesz,
                           .memory_size = from.p_memsz});
    }
  }
  if (header.e_shoff == 0) return {};
  if (header.e_shentsize != sizeof(Elf64_Shdr)) {
    return Fail(ENOEXEC, "the ELF file has broken section headers");
  }
  // A file with very many sections keeps their number and that of their names in section 0.
  uint64_t count = header.e_shnum;
  uint64_t names_index = header.e_shstrndx;
  if (count == 0 || names_index == SHN_XINDEX) {
    const Result<ElfBytes> first = Read(header.e_shoff, sizeof(Elf64_Shdr));
    if (!first) return tl::make_unexpected(first.error());
    const auto section = ValueAt<Elf64_Shdr>(first->bytes(), 0);
    if (count == 0) count = section.sh_size;
    if (names_index == SHN_XINDEX) names_index = section.sh_link;
  }
  if (count > kMaxSections) return Fail(ENOEXEC, "the ELF file has too many sections");
  return ParseSections(header.e_shoff, count, names_index);
}

Result<void> ElfFile::ParseSections(uint64_t offset, uint64_t count, uint64_t names_index) {
  const Result<ElfBytes> bytes = Read(offset, count * sizeof(Elf64_Shdr));
  if (!bytes) return tl::make_unexpected(bytes.error());
  if (names_index < count) {
    const auto names = ValueAt<Elf64_Shdr>(bytes->bytes(), names_index);
    if (names.sh_type == SHT_STRTAB && names.sh_size <= kMaxSectionNames) {
      Result<ElfBytes> read = Read(names.sh_offset, names.sh_size);
      if (read) section_names_ = std::move(*read);
    }
  }
  sections_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = ValueAt<Elf64_Shdr>(bytes->bytes(), i);
    sections_.push_back({.name = TextAt(section_names_.bytes(), from.sh_name),
                         .type = from.sh_type,
                         .flags = from.sh_flags,
                         .address = from.sh_addr,
                         .offset = from.sh_offset,
                         .size = from.sh_size,
                         .link = from.sh_link});
  }
  return {};
}

const ElfSection* ElfFile::FindSection(std::string_view name) const {
  for (const ElfSection& section : sections_) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

const ElfSection* ElfFile::FindSectionOfType(uint32_t type) const {
  for (const ElfSection& section : sections_) {
    if (section.type == type) return &section;
  }
  return nullptr;
}

std::string ElfFile::BuildId() const {
  unsigned parts = 0;
  const auto of = [this, &parts](uint64_t offset, uint64_t size) -> std::string {
    if (size > kMaxNotes || ++parts > kMaxNoteParts) return {};
    const Result<ElfBytes> notes = Read(offset, size);
    return notes ? BuildIdOfNotes(notes->bytes()) : std::string();
  };
  for (const ElfSection& section : sections_) {
    if (section.type != SHT_NOTE) continue;
    if (std::string id = of(section.offset, section.size); !id.empty()) return id;
  }
  for (const ElfSegment& segment : segments_) {
    if (segment.type != PT_NOTE) continue;
    if (std::string id = of(segment.offset, segment.file_size); !id.empty()) return id;
  }
  return {};
}

std::optional<ElfDebugLink> ElfFile::DebugLink() const {
  const ElfSection* section = FindSection(".gnu_debuglink");
  if (section == nullptr || section->size > kMaxDebugLink) return std::nullopt;
  const Result<ElfBytes> bytes = Read(*section);
  if (!bytes) return std::nullopt;
  // The name, its zero byte, padding to a multiple of four, and the CRC of the whole file.
  const std::string_view name = TextAt(bytes->bytes(), 0);
  const std::size_t crc_offset = (name.size() + 1 + 3) & ~std::size_t{3};
  if (name.empty() || name.find('/') != std::string_view::npos || name == "." || name == ".." ||
      crc_offset + sizeof(uint32_t) > bytes->size()) {
    return std::nullopt;
  }
  ElfDebugLink link{.file_name = std::string(name), .crc32 = 0};
  std::memcpy(&link.crc32, bytes->bytes().data() + crc_offset, sizeof(link.crc32));
  return link;
}

std::optional<uint64_t> ElfFile::AddressOfOffset(uint64_t offset) const {
  for (const ElfSegment& segment : segments_) {
    if (segment.type == PT_LOAD && offset >= segment.offset &&
        offset - segment.offset < segment.file_size) {
      return segment.address + (offset - segment.offset);
    }
  }
  return std::nullopt;
}

}  // namespace spanprof
