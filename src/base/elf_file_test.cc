#include "base/elf_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/elf_note.h"
#include "base/elf_symbols.h"

namespace spanprof {

[[gnu::noinline]] void ElfFileTestMarker() { asm volatile(""); }

namespace {

using ::testing::HasSubstr;

std::string Output(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof(buffer), pipe.get())) {
    text.append(buffer, count);
  }
  return text;
}

std::string OwnPath() {
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0) std::abort();
  return path;
}

std::vector<char> Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ElfFile, ReadsThisProgram) {
  const Result<ElfFile> file = ElfFile::Open(OwnPath());
  ASSERT_TRUE(file) << file.error().message;
  const ElfSection* text = file->FindSection(".text");
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(text->type, static_cast<uint32_t>(SHT_PROGBITS));
  const Result<ElfBytes> bytes = file->Read(*text);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), text->size);
  EXPECT_EQ(file->AddressOfOffset(text->offset), text->address);
  EXPECT_EQ(file->FindSection(".none"), nullptr);
  EXPECT_EQ(file->AddressOfOffset(~uint64_t{0}), std::nullopt);
  EXPECT_EQ(file->Read(*file->FindSection(".bss"))->size(), 0u);
}

TEST(ElfFile, BuildIdIsWhatReadelfSays) {
  const Result<ElfFile> file = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(file);
  const std::string text = Output("readelf -n " + OwnPath() + " 2>/dev/null");
  if (text.find("Build ID: ") == std::string::npos) GTEST_SKIP();
  EXPECT_EQ(file->BuildId(), text.substr(text.find("Build ID: ") + 10, 40));
}

TEST(ElfFile, FindsSymbols) {
  const Result<ElfFile> file = ElfFile::Open(OwnPath());
  const Result<ElfSymbols> symbols = ElfSymbols::Read(*file, SHT_SYMTAB);
  ASSERT_TRUE(symbols);
  unsigned found = 0;
  symbols->ForEach([&found](const ElfSymbol& symbol) {
    if (symbol.name != "_ZN8spanprof17ElfFileTestMarkerEv") return;
    ++found;
    EXPECT_EQ(symbol.type, STT_FUNC);
    EXPECT_NE(symbol.size, 0u);
  });
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(ElfSymbols::Read(*file, SHT_HASH).error().code, ENOENT);
}

TEST(ElfFile, RefusesWhatIsNoElfFile) {
  EXPECT_EQ(ElfFile::Open("/nonexistent").error().code, ENOENT);
  EXPECT_EQ(ElfFile::Open("/etc/passwd").error().code, ENOEXEC);
  EXPECT_THAT(ElfFile::Open("/etc/passwd").error().message, HasSubstr("/etc/passwd"));
  EXPECT_EQ(ElfFile::Open("/tmp").error().code, ENOEXEC);
  EXPECT_EQ(ElfFile::Open("/dev/zero").error().code, ENOEXEC);
  EXPECT_EQ(ElfFile::FromBytes({}).error().code, ENOEXEC);
  std::vector<char> other = Contents(OwnPath());
  other[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(ElfFile::FromBytes(std::as_bytes(std::span(other))).error().message,
              HasSubstr("64-bit"));
}

TEST(ElfFile, APipeDoesNotBlock) {
  const std::string path = "/tmp/spanprof-elf-pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ElfFile::Open(path).error().code, ENOEXEC);
  unlink(path.c_str());
}

// All that is to be read of a file, so that a sanitizer sees every byte that is touched.
std::size_t ReadAll(const ElfFile& file) {
  std::size_t sum = file.BuildId().size() + (file.DebugLink() ? 1 : 0);
  for (const ElfSection& section : file.sections()) {
    const Result<ElfBytes> bytes = file.Read(section);
    if (bytes && bytes->size() != 0) sum += std::to_integer<std::size_t>(bytes->bytes().back());
  }
  for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    const Result<ElfSymbols> symbols = ElfSymbols::Read(file, type);
    if (symbols && symbols->size() < 100000) {
      symbols->ForEach([&sum](const ElfSymbol& symbol) { sum += symbol.name.size(); });
    }
  }
  return sum;
}

TEST(ElfFile, CutAnywhereItDoesNoHarm) {
  const std::vector<char> whole = Contents("/lib/x86_64-linux-gnu/libdl.so.2");
  if (whole.empty()) GTEST_SKIP();
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 64) {
    // A copy of exactly that size: reading beyond it is an error that a sanitizer sees.
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<long>(size));
    const Result<ElfFile> file = ElfFile::FromBytes(std::as_bytes(std::span(part)));
    if (file) (void)ReadAll(*file);
  }
}

TEST(ElfFile, WithAnyBytesChangedItDoesNoHarm) {
  const std::vector<char> whole = Contents("/lib/x86_64-linux-gnu/libdl.so.2");
  if (whole.empty()) GTEST_SKIP();
  std::mt19937 random(3);
  unsigned readable = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<char> changed = whole;
    // Headers matter most; they are at the beginning and at the end.
    for (unsigned i = 0; i < 1 + random() % 8; ++i) {
      const std::size_t place = random() % 3 == 0   ? random() % 1024
                                : random() % 2 == 0 ? changed.size() - 1 - random() % 2048
                                                    : random() % changed.size();
      changed[place] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
    }
    const Result<ElfFile> file = ElfFile::FromBytes(std::as_bytes(std::span(changed)));
    if (!file) continue;
    ++readable;
    (void)ReadAll(*file);
  }
  EXPECT_GT(readable, 500u);
}

TEST(ElfFile, AFileThatShrinksIsAnErrorNotASignal) {
  const std::string path = "/tmp/spanprof-elf-shrinks-" + std::to_string(getpid());
  {
    const std::vector<char> whole = Contents(OwnPath());
    std::ofstream(path, std::ios::binary).write(whole.data(), static_cast<long>(whole.size()));
  }
  const Result<ElfFile> file = ElfFile::Open(path);
  ASSERT_TRUE(file);
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  const Result<ElfBytes> bytes = file->Read(*file->FindSection(".text"));
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().message, HasSubstr("shorter"));
  unlink(path.c_str());
}

std::vector<char> Note(uint32_t name_size, const std::string& name, uint32_t type,
                       uint32_t description_size, const std::string& description) {
  std::vector<char> bytes(12);
  std::memcpy(bytes.data(), &name_size, 4);
  std::memcpy(bytes.data() + 4, &description_size, 4);
  std::memcpy(bytes.data() + 8, &type, 4);
  for (const std::string& part : {name, description}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
    while (bytes.size() % 4 != 0) bytes.push_back(0);
  }
  return bytes;
}

std::string IdOf(const std::vector<char>& bytes) {
  return BuildIdOfNotes(std::as_bytes(std::span(bytes)));
}

TEST(ElfNote, FindsTheBuildIdAmongOthers) {
  const std::string gnu("GNU\0", 4);
  std::vector<char> notes = Note(4, gnu, 1, 5, "abcde");
  const std::vector<char> id = Note(4, gnu, NT_GNU_BUILD_ID, 3, "\x01\xAB\xFF");
  notes.insert(notes.end(), id.begin(), id.end());
  EXPECT_EQ(IdOf(notes), "01abff");
}

TEST(ElfNote, BrokenNotesHaveNone) {
  const std::string gnu("GNU\0", 4);
  EXPECT_EQ(IdOf({}), "");
  EXPECT_EQ(IdOf(Note(4, gnu, NT_GNU_BUILD_ID, 0, "")), "");
  EXPECT_EQ(IdOf(Note(4, gnu, NT_GNU_BUILD_ID, 0xFFFFFFFF, "abc")), "");
  EXPECT_EQ(IdOf(Note(0xFFFFFFFF, gnu, NT_GNU_BUILD_ID, 3, "abc")), "");
  EXPECT_EQ(IdOf(Note(4, gnu, NT_GNU_BUILD_ID, 65, std::string(65, 'x'))), "");
  EXPECT_EQ(IdOf(Note(4, std::string("GNX\0", 4), NT_GNU_BUILD_ID, 3, "abc")), "");
}

}  // namespace
}  // namespace spanprof
