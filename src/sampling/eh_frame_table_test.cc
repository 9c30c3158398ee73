// Call frame information written by hand: what each instruction means, and what nonsense does.

#include "sampling/eh_frame_table.h"

#include <cstdint>
#include <elf.h>
#include <initializer_list>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::sampling {
namespace {

constexpr uint64_t kFramesAddress = 0x8000;
constexpr uint64_t kCode = 0x1000;

using Bytes = std::vector<uint8_t>;

void AppendU32(Bytes& bytes, uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// Puts the length before a record and pads it.
Bytes Record(Bytes body) {
  while (body.size() % 4 != 0) body.push_back(0);
  Bytes record;
  AppendU32(record, static_cast<uint32_t>(body.size()));
  record.insert(record.end(), body.begin(), body.end());
  return record;
}

struct Section {
  Bytes bytes;

  // A CIE as gcc writes it: "zR", code 1, data -8, return address 16, pc-relative sdata4; CFA
  // rsp+8, return address at CFA-8.
  void AddCie(const char* augmentation = "zR", uint8_t return_register = 16) {
    Bytes body = {0, 0, 0, 0, 1};
    for (const char* c = augmentation; *c != 0; ++c) body.push_back(static_cast<uint8_t>(*c));
    for (const int byte : {0, 1, 0x78, int{return_register}, 1, 0x1B, 0x0C, 7, 8, 0x90, 1}) {
      body.push_back(static_cast<uint8_t>(byte));
    }
    const Bytes record = Record(body);
    bytes.insert(bytes.end(), record.begin(), record.end());
  }

  void AddFunction(uint64_t begin, uint32_t size, std::initializer_list<int> instructions,
                   uint64_t cie_offset = 0) {
    Bytes body;
    const uint64_t body_offset = bytes.size() + 4;
    AppendU32(body, static_cast<uint32_t>(body_offset - cie_offset));
    AppendU32(body, static_cast<uint32_t>(begin - (kFramesAddress + body_offset + 4)));
    AppendU32(body, size);
    body.push_back(0);
    for (const int byte : instructions) body.push_back(static_cast<uint8_t>(byte));
    const Bytes record = Record(body);
    bytes.insert(bytes.end(), record.begin(), record.end());
  }

  [[nodiscard]] EhFrameTable Make(uint16_t machine = EM_X86_64) const {
    return MakeUnwindTable({.machine = machine,
                            .frames = std::as_bytes(std::span(bytes)),
                            .frames_address = kFramesAddress,
                            .header = {},
                            .header_address = 0,
                            .code_begin = kCode,
                            .code_end = kCode + 0x1000},
                           std::size_t{1} << 20);
  }
};

EhFrameTable MakeOne(std::initializer_list<int> instructions) {
  Section section;
  section.AddCie();
  section.AddFunction(kCode, 0x100, instructions);
  return section.Make();
}

TEST(EhFrameTable, PushAndFramePointer) {
  const EhFrameTable made = MakeOne({0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, 6});
  const UnwindRule* rule = made.table->Find(kCode);
  EXPECT_EQ(rule->cfa_register, 7);
  EXPECT_EQ(rule->cfa_offset, 8);
  EXPECT_EQ(rule->return_address, (SavedRegister{SavedKind::kAtCfa, -8}));
  EXPECT_EQ(rule->frame_pointer.kind, SavedKind::kSame);
  rule = made.table->Find(kCode + 3);
  EXPECT_EQ(rule->cfa_offset, 16);
  EXPECT_EQ(rule->frame_pointer, (SavedRegister{SavedKind::kAtCfa, -16}));
  rule = made.table->Find(kCode + 4);
  EXPECT_EQ(rule->cfa_register, 6);
  EXPECT_EQ(rule->cfa_offset, 16);
  EXPECT_EQ(made.table->Find(kCode + 0x100 + 16)->cfa, CfaKind::kNoInformation);
}

TEST(EhFrameTable, RememberAndRestore) {
  // Two states deep, restored in turn; restore of a register goes back to the CIE's.
  const EhFrameTable made =
      MakeOne({0x0A, 0x0E, 32, 0x86, 4, 0x0A, 0x41, 0x0E, 64, 0x41, 0x0B, 0x41, 0xC6, 0x41, 0x0B});
  EXPECT_EQ(made.table->Find(kCode + 1)->cfa_offset, 64);
  EXPECT_EQ(made.table->Find(kCode + 2)->cfa_offset, 32);
  EXPECT_EQ(made.table->Find(kCode + 2)->frame_pointer.offset, -32);
  EXPECT_EQ(made.table->Find(kCode + 3)->frame_pointer.kind, SavedKind::kSame);
  EXPECT_EQ(made.table->Find(kCode + 4)->cfa_offset, 8);
}

TEST(EhFrameTable, TheOutermostFunctionHasNoReturnAddress) {
  const EhFrameTable made = MakeOne({0x07, 16});
  EXPECT_EQ(made.table->Find(kCode)->return_address.kind, SavedKind::kUndefined);
}

TEST(EhFrameTable, LinkageTableExpression) {
  const EhFrameTable made =
      MakeOne({0x0F, 11, 0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22});
  const UnwindRule* rule = made.table->Find(kCode);
  EXPECT_EQ(rule->cfa, CfaKind::kPlt);
  EXPECT_EQ(rule->cfa_offset, 8);
  EXPECT_EQ(rule->cfa_addend, 11);
}

TEST(EhFrameTable, RealignedStackExpression) {
  const EhFrameTable made = MakeOne({0x10, 6, 2, 0x76, 0, 0x0F, 3, 0x76, 0x78, 6});
  const UnwindRule* rule = made.table->Find(kCode);
  EXPECT_EQ(rule->cfa, CfaKind::kDereference);
  EXPECT_EQ(rule->cfa_register, 6);
  EXPECT_EQ(rule->cfa_offset, -8);
  EXPECT_EQ(rule->frame_pointer, (SavedRegister{SavedKind::kAtFramePointer, 0}));
}

TEST(EhFrameTable, SignalFrameOnlyWithTheAugmentation) {
  Section section;
  section.AddCie("zRS");
  section.AddFunction(kCode, 0x10, {0x0F, 4, 0x77, 0xA0, 1, 6});
  EXPECT_EQ(section.Make().table->Find(kCode)->cfa, CfaKind::kSignalFrame);
  EXPECT_EQ(MakeOne({0x0F, 4, 0x77, 0xA0, 1, 6}).table->Find(kCode)->cfa, CfaKind::kDereference);
}

TEST(EhFrameTable, OtherExpressionsAreUnsupportedUntilTheNextDefinition) {
  const EhFrameTable made = MakeOne({0x0F, 2, 0x9C, 6, 0x41, 0x0C, 7, 24});
  EXPECT_EQ(made.table->Find(kCode)->cfa, CfaKind::kUnsupported);
  EXPECT_EQ(made.table->Find(kCode + 1)->cfa_offset, 24);
  EXPECT_EQ(made.unsupported_rows, 1u);
}

TEST(EhFrameTable, AnUnknownInstructionEndsWhatIsKnown) {
  const EhFrameTable made = MakeOne({0x44, 0x3F, 0x41, 0x0E, 99});
  EXPECT_EQ(made.table->Find(kCode + 3)->cfa, CfaKind::kRegister);
  EXPECT_EQ(made.table->Find(kCode + 4)->cfa, CfaKind::kUnsupported);
}

TEST(EhFrameTable, OffsetsTooLargeAreUnsupported) {
  const EhFrameTable made = MakeOne({0x0E, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F});
  EXPECT_EQ(made.table->Find(kCode)->cfa, CfaKind::kUnsupported);
}

TEST(EhFrameTable, OfOverlappingFunctionsTheFirstKeepsItsCode) {
  Section section;
  section.AddCie();
  section.AddFunction(kCode + 0x20, 0x100, {0x0E, 48});
  section.AddFunction(kCode, 0x40, {0x0E, 32});
  const EhFrameTable made = section.Make();
  EXPECT_EQ(made.functions, 2u);
  EXPECT_EQ(made.table->Find(kCode + 0x3F)->cfa_offset, 32);
  EXPECT_EQ(made.table->Find(kCode + 0x40)->cfa_offset, 48);
}

TEST(EhFrameTable, FunctionsOutsideTheCodeAreLeftOut) {
  Section section;
  section.AddCie();
  section.AddFunction(0, 0x40, {});
  section.AddFunction(kCode + 0x2000, 0x40, {});
  EXPECT_EQ(section.Make().table, nullptr);
  section.AddFunction(kCode + 0xFFF, 0x7FFFFFFF, {});
  EXPECT_EQ(section.Make().table->end(), kCode + 0x1000);
}

TEST(EhFrameTable, BrokenRecordsAreCounted) {
  Section section;
  section.AddCie("zQ");  // an augmentation that nobody knows
  section.AddFunction(kCode, 0x10, {});
  EXPECT_EQ(section.Make().broken_functions, 1u);
  Section circular;
  circular.AddCie();
  circular.AddFunction(kCode, 0x10, {}, circular.bytes.size());  // its CIE is itself
  EXPECT_EQ(circular.Make().broken_functions, 1u);
}

TEST(EhFrameTable, OtherMachinesHaveNoTable) {
  Section section;
  section.AddCie();
  section.AddFunction(kCode, 0x10, {});
  EXPECT_EQ(section.Make(EM_RISCV).table, nullptr);
}

TEST(EhFrameTable, CutAnywhereItDoesNoHarm) {
  Section section;
  section.AddCie();
  section.AddFunction(kCode, 0x100, {0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, 6});
  section.AddFunction(kCode + 0x100, 0x100, {0x0F, 3, 0x76, 0x78, 6});
  while (!section.bytes.empty()) {
    section.bytes.pop_back();
    const EhFrameTable made = section.Make();
    EXPECT_LE(made.functions, 2u);
  }
}

}  // namespace
}  // namespace spanprof::sampling
