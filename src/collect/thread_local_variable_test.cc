#include "collect/thread_local_variable.h"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "collect/fake_memory.h"
#include "collect/own_thread_pointer.h"

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

uint32_t GnuHash(std::string_view name) {
  uint32_t hash = 5381;
  for (const char letter : name) hash = hash * 33 + static_cast<unsigned char>(letter);
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
  kOtelThreadSymbol.copy(image.strings.data() + 1, kOtelThreadSymbol.size());
  return image;
}

bool Has(const Image& image) {
  FakeMemory memory;
  const auto bytes = memory.AddZeros(kModule, 4096);
  std::memcpy(bytes.data(), &image, sizeof(image));
  return FindThreadLocalInModule(memory, kModule, kOtelThreadSymbol).has_value();
}

TEST(FindThreadLocal, IsFoundWhetherPointersAreRelocatedOrNot) {
  EXPECT_TRUE(Has(MakeImage(0)));        // musl
  EXPECT_TRUE(Has(MakeImage(kModule)));  // glibc
}

TEST(FindThreadLocal, IsADefinedThreadLocalOfThatName) {
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
  image.strings[kOtelThreadSymbol.size() + 1] = '2';  // a longer name
  EXPECT_FALSE(Has(image));
}

TEST(FindThreadLocal, HostileImagesAreBoundedAndHarmless) {
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
  EXPECT_FALSE(FindThreadLocalInModule(memory, kModule, kOtelThreadSymbol));
  EXPECT_LT(memory.calls, 200u);
}

ProcessMaps OwnMaps() {
  std::ifstream file("/proc/self/maps");
  return ParseProcessMaps(std::string(std::istreambuf_iterator<char>(file), {}));
}

TEST(FindThreadLocal, TheProgramsOwnIsWhereItIs) {
  otel_thread_ctx_v1 = nullptr;
  ProcessMemory memory(getpid());
  const auto variable = FindThreadLocal(memory, OwnMaps(), kOtelThreadSymbol);
  ASSERT_TRUE(variable);
  EXPECT_NE(variable->module.find("thread_local_variable_test"), std::string::npos)
      << variable->module;
  EXPECT_EQ(ThreadLocalAddress(memory, *variable, OwnThreadPointer()),
            reinterpret_cast<uint64_t>(&otel_thread_ctx_v1));
}

// A library of each kind of access that compilers make.
class LibraryVariable : public testing::TestWithParam<const char*> {};

TEST_P(LibraryVariable, IsWhereEachThreadHasIt) {
  const std::string file = SPANPROF_TLS_LIBRARIES + std::string("/libtls_") + GetParam() + ".so";
  void* const library = dlopen(file.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::string name = std::string("spanprof_test_") + GetParam();
  const auto address = reinterpret_cast<void* (*)()>(dlsym(library, (name + "_address").c_str()));
  ASSERT_NE(address, nullptr);
  ProcessMemory memory(getpid());
  const auto variable = FindThreadLocal(memory, OwnMaps(), name);
  ASSERT_TRUE(variable);
  EXPECT_NE(variable->access, ThreadLocalVariable::Access::kUnknown);
  const auto check = [&] {
    const auto expected = reinterpret_cast<uint64_t>(address());
    EXPECT_EQ(ThreadLocalAddress(memory, *variable, OwnThreadPointer()), expected);
  };
  check();
  std::thread other(check);
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Models, LibraryVariable, testing::Values(SPANPROF_TLS_MODELS),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(FindThreadLocal, AThreadThatHasNotUsedItHasNone) {
  FakeMemory memory;
  memory.AddZeros(kModule, 4096);
  const ThreadLocalVariable variable = {"", ThreadLocalVariable::Access::kInBlock, 16, UINT64_MAX};
  EXPECT_FALSE(ThreadLocalAddress(memory, variable, kModule));
  EXPECT_FALSE(ThreadLocalAddress(memory, ThreadLocalVariable(), kModule));
}

}  // namespace
}  // namespace spanprof::collect
