#include "collect/otel_thread_symbol.h"

#include <array>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "collect/fake_memory.h"

// This program is a publisher: it exports the variable.
extern "C" {
[[gnu::visibility("default")]] thread_local void* otel_thread_ctx_v1 = nullptr;
}

namespace spanprof::collect {
namespace {

constexpr uint64_t kModule = 0x400000;

// A minimal image: one symbol behind one bucket.
struct Image {
  Elf64_Ehdr header{};
  std::array<Elf64_Phdr, 2> segments{};
  std::array<Elf64_Dyn, 4> dynamic{};
  std::array<Elf64_Sym, 2> symbols{};
  std::array<uint32_t, 4> hash_header{};
  uint64_t bloom = ~uint64_t{0};
  uint32_t bucket = 1;
  uint32_t chain = 0;
  std::array<char, 32> strings{};
};

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

Image MakeImage(uint64_t added_to_pointers) {
  Image image;
  std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_ident[EI_CLASS] = ELFCLASS64;
  image.header.e_ident[EI_DATA] = ELFDATA2LSB;
  image.header.e_phoff = offsetof(Image, segments);
  image.header.e_phentsize = sizeof(Elf64_Phdr);
  image.header.e_phnum = 2;
  image.segments[0].p_type = PT_LOAD;
  image.segments[1].p_type = PT_DYNAMIC;
  image.segments[1].p_vaddr = offsetof(Image, dynamic);
  image.segments[1].p_memsz = sizeof(image.dynamic);
  image.dynamic[0].d_tag = DT_SYMTAB;
  image.dynamic[0].d_un.d_ptr = added_to_pointers + offsetof(Image, symbols);
  image.dynamic[1].d_tag = DT_STRTAB;
  image.dynamic[1].d_un.d_ptr = added_to_pointers + offsetof(Image, strings);
  image.dynamic[2].d_tag = DT_GNU_HASH;
  image.dynamic[2].d_un.d_ptr = added_to_pointers + offsetof(Image, hash_header);
  image.symbols[1].st_name = 1;
  image.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS);
  image.symbols[1].st_shndx = 5;
  image.hash_header = {1, 1, 1, 0};
  image.chain = GnuHash(kOtelThreadSymbol) | 1;
  std::strcpy(image.strings.data() + 1, kOtelThreadSymbol);
  return image;
}

bool Has(const Image& image) {
  FakeMemory memory;
  const auto bytes = memory.AddZeros(kModule, 4096);
  std::memcpy(bytes.data(), &image, sizeof(image));
  return ModuleHasOtelThreadSymbol(memory, kModule);
}

TEST(OtelThreadSymbol, IsFoundWhetherPointersAreRelocatedOrNot) {
  EXPECT_TRUE(Has(MakeImage(0)));        // musl
  EXPECT_TRUE(Has(MakeImage(kModule)));  // glibc
}

TEST(OtelThreadSymbol, IsADefinedThreadLocalOfThatName) {
  Image image = MakeImage(0);
  image.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.symbols[1].st_shndx = SHN_UNDEF;
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.strings[5] = 'X';
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.strings[sizeof(kOtelThreadSymbol)] = '2';  // a longer name
  EXPECT_FALSE(Has(image));
}

TEST(OtelThreadSymbol, HostileImagesAreBoundedAndHarmless) {
  Image image = MakeImage(0);
  image.header.e_phnum = 65535;
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.segments[1].p_memsz = UINT64_MAX;
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.segments[1].p_vaddr = UINT64_MAX - 3;
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.hash_header = {0, 0, 0, 0};
  EXPECT_FALSE(Has(image));
  image = MakeImage(0);
  image.hash_header = {UINT32_MAX, 0, UINT32_MAX, 0};
  EXPECT_FALSE(Has(image));

  // A chain that never ends.
  FakeMemory memory;
  const auto bytes = memory.AddZeros(kModule, std::size_t{1} << 20);
  image = MakeImage(0);
  image.chain = 0;
  image.strings = {};
  std::memcpy(bytes.data(), &image, sizeof(image));
  EXPECT_FALSE(ModuleHasOtelThreadSymbol(memory, kModule));
  EXPECT_LT(memory.calls, 200u);
}

TEST(OtelThreadSymbol, IsFoundInARealProcess) {
  otel_thread_ctx_v1 = nullptr;
  std::ifstream file("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  ProcessMemory memory(getpid());
  const auto publisher = FindOtelThreadSymbol(memory, ParseProcessMaps(text));
  ASSERT_TRUE(publisher);
  EXPECT_NE(publisher->find("otel_thread_symbol_test"), std::string::npos) << *publisher;
}

}  // namespace
}  // namespace spanprof::collect
