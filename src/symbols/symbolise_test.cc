// Lines, inlined functions and debug files of real binaries, compiled here, with addr2line as the
// independent reader.

#include "symbols/symbolise.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <elf.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/elf_file.h"
#include "base/elf_symbols.h"
#include "symbols/debug_file.h"
#include "symbols/dwarf_lines.h"
#include "symbols/symbol_table.h"

namespace spanprof::symbols {
namespace {

constexpr char kSource[] = R"(
#include <vector>
#include <algorithm>
#include <cstdio>
namespace shop {
static inline __attribute__((always_inline)) int Inner(int x) {
  return x * x + 1;
}
struct Basket {
  std::vector<int> items;
  inline __attribute__((always_inline)) int Sum() const {
    int sum = 0;
    for (int item : items) {
      sum += Inner(item);
    }
    return sum;
  }
};
__attribute__((noinline)) int Checkout(const Basket& basket) {
  if (basket.items.empty()) return 0;
  return basket.Sum() + Inner(7);
}
template <class T> __attribute__((noinline)) void Sort(std::vector<T>& v) {
  std::sort(v.begin(), v.end(), [](const T& a, const T& b) { return a > b; });
}
}
int main(int argc, char** argv) {
  shop::Basket basket;
  for (int i = 0; i < argc * 10; ++i) basket.items.push_back(i ^ argc);
  shop::Sort(basket.items);
  std::printf("%d\n", shop::Checkout(basket));
}
)";

std::string Output(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 65536> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), count);
  }
  return text;
}

SymboliserOptions OptionsFor(std::vector<std::string> debug_folders,
                             std::size_t max_memory = std::size_t{1} << 30) {
  SymboliserOptions options;
  options.debug_folders = std::move(debug_folders);
  options.max_memory = max_memory;
  return options;
}

class SymboliseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/spanprof-symbolise-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    std::ofstream(folder_ + "/shop.cc") << kSource;
  }
  void TearDown() override { Shell("rm -rf " + folder_); }

  static void Shell(const std::string& command) {
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void Compile(const std::string& options) {
    Shell(std::string(SPANPROF_TEST_COMPILER) + " " + options + " -Wl,--build-id=sha1 -o " +
          Path("shop") + " " + Path("shop.cc"));
  }
  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // A profile with one sample for each address, as a sampler in the process makes it.
  [[nodiscard]] profile::Profile ProfileOf(const std::vector<uint64_t>& addresses) const {
    profile::Profile profile;
    profile.start_time_ns = 5;
    profile.resource = {{"service.name", "shop"}};
    profile.SetEndpoint(77, "GET /checkout");
    profile.AddToCounter("kept", 3);
    const Result<ElfFile> file = ElfFile::Open(Path("shop"));
    const profile::MappingId mapping =
        profile.AddMapping({.start = 0x10000,
                            .end = 0x90000,
                            .path = profile.Intern(Path("shop")),
                            .build_id = profile.Intern(file->BuildId())});
    const profile::FrameId outer =
        profile.AddFrame({.kind = profile::FrameKind::kMarker,
                          .function = profile.AddFunction({.name = profile.Intern("[outer]")})});
    for (const uint64_t address : addresses) {
      const profile::FrameId frame = profile.AddFrame({.mapping = mapping, .address = address});
      profile.AddSample({.time_ns = address,
                         .context = profile.AddContext({.span_id = 5, .root_span_id = 77}),
                         .stack = profile.AddStack(profile.AddStack(profile::kNone, outer), frame),
                         .value = 10});
    }
    return profile;
  }

  struct Function {
    std::string name;
    uint64_t address;
    uint64_t size;
  };
  [[nodiscard]] std::vector<Function> Functions(const std::string& binary) const {
    std::vector<Function> functions;
    const Result<ElfFile> file = ElfFile::Open(Path(binary));
    const Result<ElfSymbols> symbols = ElfSymbols::Read(*file, SHT_SYMTAB);
    if (!symbols) return functions;
    symbols->ForEach([&functions](const ElfSymbol& symbol) {
      const bool ours = symbol.name.find("shop") != std::string_view::npos ||
                        symbol.name == "main" || symbol.name.find("sort") != std::string_view::npos;
      if (symbol.type == STT_FUNC && symbol.size != 0 && ours) {
        functions.push_back({std::string(symbol.name), symbol.address, symbol.size});
      }
    });
    return functions;
  }

  // Compares every address of the program's functions with what `reader` says: functions with their
  // files and lines, or lines alone.
  void CompareWith(const std::string& reader, bool lines_only) {
    const std::string binary = "shop";
    if (std::system((reader + " --version > /dev/null 2>&1").c_str()) != 0) GTEST_SKIP();
    std::vector<uint64_t> addresses;
    for (const Function& function : Functions(binary)) {
      for (uint64_t i = 0; i < function.size; ++i) addresses.push_back(function.address + i);
    }
    ASSERT_GT(addresses.size(), 300u);
    {
      std::ofstream list(Path("addresses"));
      for (const uint64_t address : addresses) list << std::hex << "0x" << address << "\n";
    }
    const std::string text =
        Output(reader + " -a -f -i -e " + Path(binary) + " < " + Path("addresses"));
    Result<DwarfLines> lines = DwarfLines::Open(Path(binary));
    ASSERT_TRUE(lines) << lines.error().message;
    std::istringstream answers(text);
    std::string line;
    std::getline(answers, line);
    unsigned inlined = 0;
    for (const uint64_t address : addresses) {
      std::string ours;
      for (const SourceFrame& frame : lines->Resolve(address)) {
        // Where there is no linkage name, theirs goes without its namespace.
        const std::size_t colons = frame.name.rfind("::");
        const std::string plain = frame.name.substr(colons == std::string::npos ? 0 : colons + 2);
        const std::string name = frame.system_name.empty() ? plain : frame.system_name;
        if (!lines_only) ours += name + " " + frame.file.substr(frame.file.rfind('/') + 1);
        ours += ":" + std::to_string(frame.line) + "\n";
        if (frame.inlined) ++inlined;
      }
      std::string theirs;
      std::string function;
      while (std::getline(answers, function) && !function.starts_with("0x")) {
        std::getline(answers, line);
        line = line.substr(0, line.find(" (discriminator"));
        line = line.substr(line.rfind(lines_only ? ':' : '/') + (lines_only ? 0 : 1));
        if (line.ends_with(":?")) line.back() = '0';
        // The symbol's name for what the compiler has split off; DWARF has the function's.
        function = function.substr(0, function.find('.'));
        theirs += (lines_only ? "" : function + " ") + line + "\n";
      }
      ASSERT_EQ(ours, theirs) << std::hex << address;
    }
    EXPECT_GT(inlined, 50u);
  }

  std::string folder_;
};

TEST_F(SymboliseTest, AgreesWithLlvmOnEveryAddress) {
  Compile("-O2 -g");
  CompareWith("llvm-addr2line", false);
}

TEST_F(SymboliseTest, AgreesWithLlvmOnDwarf4) {
  Compile("-O1 -g -gdwarf-4");
  CompareWith("llvm-addr2line", false);
}

// Of binutils 2.40 only the lines, and only of gcc's output: it takes wrong files from DWARF 5,
// wrong names for functions without a linkage name, and leaves out inlined calls of clang's.
TEST_F(SymboliseTest, AgreesWithBinutilsOnTheLinesOfEveryAddress) {
  if (std::string(SPANPROF_TEST_COMPILER).find("clang") != std::string::npos) GTEST_SKIP();
  Compile("-O2 -g");
  CompareWith("addr2line", true);
}

std::vector<std::string> Names(const profile::Profile& profile, const profile::Sample& sample) {
  std::vector<std::string> names;
  for (const profile::FrameId id : profile.FramesOf(sample.stack)) {
    const profile::Frame& frame = profile.frames()[id];
    const profile::Function& function = profile.functions()[frame.function];
    names.push_back(std::string(profile.Text(function.name)) + (frame.inlined ? " inlined" : ""));
  }
  return names;
}

TEST_F(SymboliseTest, AProfileGetsNamesLinesAndInlinedFrames) {
  Compile("-O2 -g");
  std::vector<uint64_t> addresses;
  for (const Function& function : Functions("shop")) {
    if (function.name != "_ZN4shop8CheckoutERKNS_6BasketE") continue;
    for (uint64_t i = 0; i < function.size; ++i) addresses.push_back(function.address + i);
  }
  ASSERT_FALSE(addresses.empty());
  profile::Profile profile = ProfileOf(addresses);
  const Result<void> done = Symbolise(profile, {});
  ASSERT_TRUE(done) << done.error().message;

  ASSERT_EQ(profile.samples().size(), addresses.size());
  bool saw_inlined = false;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const profile::Sample& sample = profile.samples()[i];
    EXPECT_EQ(sample.time_ns, addresses[i]);
    EXPECT_EQ(sample.value, 10u);
    EXPECT_EQ(profile.contexts()[sample.context].root_span_id, 77u);
    const std::vector<std::string> names = Names(profile, sample);
    EXPECT_EQ(names.back(), "[outer]");
    EXPECT_EQ(names[names.size() - 2], "shop::Checkout(shop::Basket const&)");
    if (names[0] == "shop::Inner inlined" || names[0] == "shop::Inner(int) inlined") {
      saw_inlined = true;
    }
    for (const profile::FrameId id : profile.FramesOf(sample.stack)) {
      const profile::Frame& frame = profile.frames()[id];
      if (frame.kind == profile::FrameKind::kMarker) continue;
      EXPECT_EQ(frame.address, addresses[i]);
      EXPECT_EQ(profile.mappings()[frame.mapping].start, 0x10000u);
      EXPECT_FALSE(profile.Text(profile.functions()[frame.function].file).empty());
    }
  }
  EXPECT_TRUE(saw_inlined);
  EXPECT_EQ(profile.start_time_ns, 5u);
  EXPECT_EQ(profile.resource.size(), 1u);
  EXPECT_EQ(profile.Text(profile.EndpointOf(77)), "GET /checkout");
  EXPECT_EQ(profile.counters().find("kept")->second, 3u);

  // Once more changes nothing.
  const std::size_t frames = profile.frames().size();
  ASSERT_TRUE(Symbolise(profile, {}));
  EXPECT_EQ(profile.frames().size(), frames);
}

TEST_F(SymboliseTest, InlinedFramesCanBeLeftOut) {
  Compile("-O2 -g");
  profile::Profile profile = ProfileOf({Functions("shop").front().address});
  SymboliserOptions without_inlined;
  without_inlined.inlined = false;
  ASSERT_TRUE(Symbolise(profile, without_inlined));
  EXPECT_EQ(profile.FramesOf(profile.samples()[0].stack).size(), 2u);
}

TEST_F(SymboliseTest, DebugFileByDebugLink) {
  Compile("-O2 -g");
  const std::vector<Function> functions = Functions("shop");
  Shell("cd " + folder_ + " && objcopy --only-keep-debug shop shop.debug && strip shop && " +
        "objcopy --add-gnu-debuglink=shop.debug shop && mkdir .debug && mv shop.debug .debug");
  const Result<ElfFile> file = ElfFile::Open(Path("shop"));
  ASSERT_TRUE(file);
  EXPECT_FALSE(HasDebugInformation(*file));
  EXPECT_EQ(file->DebugLink()->file_name, "shop.debug");
  EXPECT_EQ(FindDebugFile(&*file, Path("shop"), "", {}), Path(".debug/shop.debug"));
  profile::Profile profile = ProfileOf({functions.front().address});
  ASSERT_TRUE(Symbolise(profile, OptionsFor({})));
  const profile::FrameId frame = profile.FramesOf(profile.samples()[0].stack)[0];
  EXPECT_GT(profile.frames()[frame].line, 0u);

  // A file whose checksum is another's is not taken.
  Shell("echo x >> " + Path(".debug/shop.debug"));
  EXPECT_EQ(FindDebugFile(&*file, Path("shop"), "", {}), std::nullopt);
}

TEST_F(SymboliseTest, DebugFileByBuildIdEvenWithoutTheBinary) {
  Compile("-O2 -g");
  const std::vector<Function> functions = Functions("shop");
  const std::string id = ElfFile::Open(Path("shop"))->BuildId();
  ASSERT_EQ(id.size(), 40u);
  profile::Profile profile = ProfileOf({functions.front().address});
  const std::string place = Path("debug/.build-id/" + id.substr(0, 2));
  Shell("mkdir -p " + place + " && cd " + folder_ + " && objcopy --only-keep-debug shop " + place +
        "/" + id.substr(2) + ".debug && rm shop");
  ASSERT_TRUE(Symbolise(profile, OptionsFor({Path("debug")})));
  const profile::FrameId frame = profile.FramesOf(profile.samples()[0].stack)[0];
  EXPECT_GT(profile.frames()[frame].line, 0u);
  EXPECT_NE(profile.frames()[frame].function, profile::kNone);
}

TEST_F(SymboliseTest, AnotherBuildOfTheFileIsNotUsed) {
  Compile("-O2 -g");
  profile::Profile profile = ProfileOf({Functions("shop").front().address});
  Shell("echo '// changed' >> " + Path("shop.cc"));
  Compile("-O1 -g");
  ASSERT_TRUE(Symbolise(profile, OptionsFor({})));
  EXPECT_EQ(profile.counters().find("symbolise.build_id_mismatch")->second, 1u);
  EXPECT_EQ(profile.counters().find("symbolise.unresolved_frames")->second, 1u);
  const profile::FrameId frame = profile.FramesOf(profile.samples()[0].stack)[0];
  EXPECT_EQ(profile.frames()[frame].function, profile::kNone);
}

TEST_F(SymboliseTest, WithoutDebugInformationThereAreNames) {
  Compile("-O2");
  profile::Profile profile = ProfileOf({Functions("shop").front().address});
  ASSERT_TRUE(Symbolise(profile, OptionsFor({})));
  EXPECT_EQ(profile.counters().find("symbolise.no_debug_information")->second, 1u);
  const profile::FrameId frame = profile.FramesOf(profile.samples()[0].stack)[0];
  EXPECT_NE(profile.frames()[frame].function, profile::kNone);
}

TEST_F(SymboliseTest, GarbageFilesDoNoHarm) {
  Compile("-O2 -g");
  profile::Profile profile = ProfileOf({Functions("shop").front().address});
  Shell("head -c 3000 " + Path("shop") + " > " + Path("cut") + " && mv " + Path("cut") + " " +
        Path("shop"));
  ASSERT_TRUE(Symbolise(profile, OptionsFor({})));
  EXPECT_EQ(profile.counters().find("symbolise.no_file")->second, 1u);
}

TEST_F(SymboliseTest, TooLittleMemoryIsAnErrorAndChangesNothing) {
  Compile("-O2 -g");
  std::vector<uint64_t> addresses;
  for (const Function& function : Functions("shop")) {
    for (uint64_t i = 0; i < function.size; ++i) addresses.push_back(function.address + i);
  }
  profile::Profile profile = ProfileOf(addresses);
  const std::size_t samples = profile.samples().size();
  const Result<void> done = Symbolise(profile, OptionsFor({}, 20000));
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().hint.empty());
  EXPECT_EQ(profile.samples().size(), samples);
}

}  // namespace
}  // namespace spanprof::symbols
