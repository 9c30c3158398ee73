// The tables of real objects beside what binutils' readelf makes of the same .eh_frame: every row
// of every function.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <elf.h>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "base/elf_file.h"
#include "sampling/eh_frame_table.h"

namespace spanprof::sampling {
namespace {

EhFrameTable TableOf(const ElfFile& file) {
  const ElfSection* frames = file.FindSection(".eh_frame");
  const ElfSection* header = file.FindSection(".eh_frame_hdr");
  if (frames == nullptr || header == nullptr) return {};
  const Result<ElfBytes> frame_bytes = file.Read(*frames);
  const Result<ElfBytes> header_bytes = file.Read(*header);
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    begin = std::min(begin, segment.address);
    end = std::max(end, segment.address + segment.memory_size);
  }
  return MakeUnwindTable({.machine = file.machine(),
                          .frames = frame_bytes->bytes(),
                          .frames_address = frames->address,
                          .header = header_bytes->bytes(),
                          .header_address = header->address,
                          .code_begin = begin,
                          .code_end = end},
                         std::size_t{256} << 20);
}

std::string NameOf(uint16_t machine, unsigned reg) {
  static const std::array<const char*, 16> kX86 = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                                   "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                                   "r12", "r13", "r14", "r15"};
  if (machine == EM_X86_64) return kX86[reg % 16];
  return reg == 31 ? "sp" : "x" + std::to_string(reg);
}

// As readelf writes a rule.
std::string CfaText(uint16_t machine, const UnwindRule& rule) {
  if (rule.cfa != CfaKind::kRegister) return "exp";
  return NameOf(machine, rule.cfa_register) + (rule.cfa_offset < 0 ? "" : "+") +
         std::to_string(rule.cfa_offset);
}

std::string SavedText(const SavedRegister& saved) {
  switch (saved.kind) {
    case SavedKind::kSame:
      return "u";
    case SavedKind::kAtCfa:
      return "c" + std::string(saved.offset < 0 ? "" : "+") + std::to_string(saved.offset);
    case SavedKind::kAtFramePointer:
      return "exp";
    case SavedKind::kInRegister:
      return "r" + std::to_string(saved.offset);
    case SavedKind::kUnknown:
      return "exp";
    case SavedKind::kUndefined:
      return "u";
  }
  return "?";
}

struct Comparison {
  unsigned rows = 0;
  unsigned different = 0;
};

// Lines of readelf: a head of an FDE, a line of column names, and rows until an empty line.
void CompareRow(const std::vector<std::string>& columns, std::istringstream& row, uint64_t address,
                const ElfFile& file, const UnwindTable& table, Comparison& result) {
  const UnwindRule* rule = table.Find(address);
  ASSERT_NE(rule, nullptr) << std::hex << address;
  if (rule->cfa == CfaKind::kSignalFrame) return;
  const uint16_t machine = file.machine();
  ++result.rows;
  std::string value;
  for (std::size_t i = 1; i < columns.size() && row >> value; ++i) {
    std::string expected;
    if (columns[i] == "CFA") {
      expected = CfaText(machine, *rule);
    } else if (columns[i] == "rbp" || columns[i] == "x29") {
      expected = SavedText(rule->frame_pointer);
    } else if (columns[i] == "rbx") {
      expected = SavedText(rule->base_register);
    } else if (columns[i] == "ra") {
      expected = SavedText(rule->return_address);
    } else {
      expected.clear();  // a register that no walk needs
    }
    // "r1 (rdx)" is two words; "vexp" is a value, "exp" a place.
    if (value.starts_with("r") && columns[i] != "CFA") {
      std::string name;
      row >> name;
    }
    if (value == "vexp") value = "exp";
    if (value == "s") value = "u";
    if (!expected.empty() && value != expected && ++result.different < 10) {
      ADD_FAILURE() << std::hex << address << " " << columns[i] << ": readelf " << value
                    << ", table " << expected;
    }
  }
}

void CompareWithReadelf(const std::string& path) {
  SCOPED_TRACE(path);
  const Result<ElfFile> file = ElfFile::Open(path);
  if (!file) GTEST_SKIP() << file.error().message;
  const EhFrameTable made = TableOf(*file);
  ASSERT_NE(made.table, nullptr);
  EXPECT_EQ(made.broken_functions, 0u);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("readelf -W --debug-dump=frames-interp " + path + " 2>/dev/null").c_str(), "r"),
      pclose);
  Comparison result;
  std::vector<std::string> columns;
  std::array<char, 4096> buffer{};
  uint64_t end = 0;
  while (fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    std::istringstream line(buffer.data());
    std::string first;
    line >> first;
    const std::string text = buffer.data();
    const std::size_t pc =
        text.find(" FDE cie=") == std::string::npos ? std::string::npos : text.find("pc=");
    if (pc != std::string::npos) {
      end = std::strtoull(text.c_str() + text.find("..", pc) + 2, nullptr, 16);
      columns.clear();
    } else if (text.find(" CIE ") != std::string::npos || first.empty()) {
      end = 0;
    } else if (first == "LOC") {
      columns = {first};
      for (std::string column; line >> column;) columns.push_back(column);
    } else if (end != 0 && !columns.empty()) {
      const uint64_t address = std::strtoull(first.c_str(), nullptr, 16);
      if (address < end) CompareRow(columns, line, address, *file, *made.table, result);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  std::printf(
      "%s: %u rows of readelf, %u different; %zu functions, %zu rows, %zu rules, %zu bytes\n",
      path.c_str(), result.rows, result.different, made.functions, made.table->row_count(),
      made.table->rule_count(), made.table->memory_bytes());
  EXPECT_GT(result.rows, 100u);
  EXPECT_EQ(result.different, 0u);
  // libcrypto's assembler has three with an expression that occurs nowhere else.
  EXPECT_LE(made.unsupported_rows, 3u);
}

bool HasReadelf() { return std::system("readelf --version > /dev/null 2>&1") == 0; }

TEST(EhFrameReadelf, ThisProgram) {
  if (!HasReadelf()) GTEST_SKIP();
  std::array<char, 4096> path{};
  ASSERT_GT(readlink("/proc/self/exe", path.data(), path.size() - 1), 0);
  CompareWithReadelf(path.data());
}

class EhFrameReadelfOf : public ::testing::TestWithParam<const char*> {};

TEST_P(EhFrameReadelfOf, Library) {
  if (!HasReadelf()) GTEST_SKIP();
  if (access(GetParam(), R_OK) != 0) GTEST_SKIP() << "there is no " << GetParam();
  CompareWithReadelf(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Libraries, EhFrameReadelfOf,
                         ::testing::Values("/lib/x86_64-linux-gnu/libc.so.6",
                                           "/lib/x86_64-linux-gnu/libstdc++.so.6",
                                           "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                           "/lib64/ld-linux-x86-64.so.2",
                                           "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                                           "/usr/aarch64-linux-gnu/lib/libc.so.6",
                                           "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
                                           "/usr/aarch64-linux-gnu/lib/libstdc++.so.6"));

}  // namespace
}  // namespace spanprof::sampling
