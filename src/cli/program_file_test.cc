#include "cli/program_file.h"

#include <cerrno>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdlib.h>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/program_checks.h"

namespace spanprof::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Programs are this test's own binary with a few bytes changed.
class ProgramFileTest : public ::testing::Test {
 protected:
  ProgramFileTest() {
    std::string pattern = testing::TempDir() + "spanprof-program-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ProgramFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), 0755);
    return path;
  }

  std::string Changed(const std::function<void(std::string&)>& change) const {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(self)), std::istreambuf_iterator<char>());
    change(bytes);
    return Write("program", bytes);
  }

  static void Replace(std::string& bytes, const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size()) {
      bytes.replace(at, to.size(), to);
    }
  }

  static std::string Why(const std::string& path) {
    const auto program = ReadProgram(path);
    EXPECT_TRUE(program) << (program ? "" : program.error().message);
    if (!program) return {};
    const auto error = WhyNotPreloadable(*program);
    return error ? error->message : std::string();
  }

  std::string folder_;
};

TEST_F(ProgramFileTest, AnOrdinaryProgramCanBePreloaded) {
  const auto program = ReadProgram("/proc/self/exe");
  ASSERT_TRUE(program);
  EXPECT_FALSE(WhyNotPreloadable(*program));
  EXPECT_NE(program->build_id, "");
  EXPECT_TRUE(program->has_symbols);
  EXPECT_TRUE(program->has_unwind_table);
  EXPECT_NE(program->interpreter, "");
}

TEST_F(ProgramFileTest, ProgramsAreFoundByPath) {
  EXPECT_EQ(Why("sh"), "");
  const auto absent = ReadProgram("no-such-program-here");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ENOENT);
}

TEST_F(ProgramFileTest, AStaticProgramCannotBePreloaded) {
  const std::string path = Changed([](std::string& bytes) {
    auto* header = reinterpret_cast<Elf64_Ehdr*>(bytes.data());
    auto* segments = reinterpret_cast<Elf64_Phdr*>(bytes.data() + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; ++i) {
      if (segments[i].p_type == PT_INTERP) segments[i].p_type = PT_NULL;
    }
  });
  EXPECT_THAT(Why(path), HasSubstr("statically"));
}

TEST_F(ProgramFileTest, AProgramOfAnotherMachineCannotBePreloaded) {
  const std::string path = Changed([](std::string& bytes) {
    reinterpret_cast<Elf64_Ehdr*>(bytes.data())->e_machine = EM_RISCV;
  });
  EXPECT_THAT(Why(path), HasSubstr("RISC-V"));
}

TEST_F(ProgramFileTest, AThirtyTwoBitProgramCannotBePreloaded) {
  const std::string path = Changed([](std::string& bytes) {
    bytes[EI_CLASS] = ELFCLASS32;
    reinterpret_cast<Elf64_Ehdr*>(bytes.data())->e_machine = EM_386;
  });
  EXPECT_THAT(Why(path), HasSubstr("32-bit x86"));
}

TEST_F(ProgramFileTest, AGoProgramCannotBePreloaded) {
  const std::string path = Changed(
      [](std::string& bytes) { Replace(bytes, std::string(".eh_frame_hdr"), ".go.buildinfo"); });
  EXPECT_THAT(Why(path), HasSubstr("Go program"));
}

TEST_F(ProgramFileTest, AProgramOfAnotherLibcCannotBePreloaded) {
  const std::string path =
      Changed([](std::string& bytes) { Replace(bytes, "/ld-linux-", "/ld-musl--"); });
  EXPECT_THAT(Why(path), AllOf(HasSubstr("musl"), HasSubstr("glibc")));
}

TEST_F(ProgramFileTest, ASetuidProgramOfAnotherUserCannotBePreloaded) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string path = Changed([](std::string&) {});
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(path.c_str(), 04755), 0);
  EXPECT_THAT(Why(path), HasSubstr("setuid"));
}

TEST_F(ProgramFileTest, AScriptIsItsInterpreter) {
  const std::string direct = Write("direct", "#! /bin/sh -e\necho\n");
  const std::string by_env = Write("by_env", "#!/usr/bin/env -S A=b sh\n");
  for (const std::string& path : {direct, by_env}) {
    const auto program = ReadProgram(path);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(program->script, path);
    EXPECT_THAT(program->path, HasSubstr("/sh"));
  }
  EXPECT_FALSE(ReadProgram(Write("loop", "#!" + folder_ + "/loop\n")));
  EXPECT_FALSE(ReadProgram(Write("empty_name", "#!\n")));
}

TEST_F(ProgramFileTest, WhatIsNoProgramIsRefused) {
  EXPECT_THAT(Why(Write("text", "hello")), HasSubstr("neither an ELF program nor a script"));
  EXPECT_FALSE(ReadProgram(folder_));
  const std::string path = Write("private", "hello");
  chmod(path.c_str(), 0600);
  const auto program = ReadProgram(path);
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().hint, HasSubstr("chmod +x"));
}

TEST_F(ProgramFileTest, WhatAProgramLacksIsSaid) {
  ProgramFile program;
  program.is_static = true;
  program.build_id = "abcdef";
  std::string fixes;
  for (const Check& check : CheckProgram(program)) fixes += check.fix + "\n";
  EXPECT_THAT(fixes, AllOf(HasSubstr("/usr/lib/debug/.build-id/ab/cdef.debug"),
                           HasSubstr("without -s"), HasSubstr("-fno-omit-frame-pointer")));
}

}  // namespace
}  // namespace spanprof::cli
