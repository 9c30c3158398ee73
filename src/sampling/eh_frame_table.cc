#include "sampling/eh_frame_table.h"

#include <algorithm>
#include <elf.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sampling/eh_frame_cursor.h"
#include "sampling/eh_frame_program.h"
#include "sampling/unwind_table_builder.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kMaxCodeBytes = uint64_t{1} << 31;
// Linkers pad functions to 16 bytes: a hole below that is no code, and not worth a row.
constexpr uint64_t kPaddingBytes = 16;
// Records of a real object do not overlap; those of a hostile one may, and must not take forever.
constexpr uint64_t kMaxRepeats = 4;
constexpr uint64_t kRegisters = 32;       // those that a rule can name
constexpr uint8_t kOmitted = 0xFF;        // DW_EH_PE_omit
constexpr uint8_t kTableEncoding = 0x3B;  // DW_EH_PE_datarel | DW_EH_PE_sdata4

struct Function {
  uint64_t begin = 0;
  uint64_t end = 0;
  const EhFrameCommon* common = nullptr;
  EhFrameCursor instructions{{}, 0};
};

class Parser {
 public:
  Parser(const EhFrameImage& image, const UnwindMachine& machine)
      : image_(image), machine_(machine) {}

  void ListFunctions() {
    if (!ListByHeader()) ListInOrder();
    std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
      return std::pair(a.begin, a.instructions.address()) <
             std::pair(b.begin, b.instructions.address());
    });
  }

  std::vector<Function>& functions() { return functions_; }
  [[nodiscard]] std::size_t broken() const { return broken_; }

 private:
  // A record's extent, after its length.
  struct Record {
    EhFrameCursor body{{}, 0};
    uint64_t offset = 0;  // of the body in frames
    uint64_t length = 0;  // of the body
    bool is_64_bit = false;
  };

  std::optional<Record> RecordAt(uint64_t offset) {
    if (offset >= image_.frames.size()) return std::nullopt;
    EhFrameCursor cursor(image_.frames.subspan(offset), image_.frames_address + offset);
    Record record;
    uint64_t length = cursor.Read<uint32_t>();
    if (length == 0xFFFFFFFF) {
      length = cursor.Read<uint64_t>();
      record.is_64_bit = true;
    }
    record.offset = offset + cursor.position();
    record.length = length;
    record.body = cursor.Take(length);
    if (cursor.failed() || length == 0) return std::nullopt;
    return record;
  }

  // By the header's search table, which knows of every function even where a linker has left an end
  // mark in the middle of .eh_frame.
  bool ListByHeader() {
    EhFrameCursor header(image_.header, image_.header_address);
    const auto version = header.Read<uint8_t>();
    const auto frames_encoding = header.Read<uint8_t>();
    const auto count_encoding = header.Read<uint8_t>();
    const auto table_encoding = header.Read<uint8_t>();
    if (header.failed() || version != 1 || count_encoding == kOmitted ||
        table_encoding != kTableEncoding) {
      return false;
    }
    (void)header.Pointer(frames_encoding, image_.header_address);
    const auto count = header.Pointer(count_encoding, image_.header_address);
    if (!count || *count == 0 || *count > image_.header.size() / 8) return false;
    functions_.reserve(*count);
    for (uint64_t i = 0; i < *count; ++i) {
      (void)header.Read<int32_t>();
      const uint64_t address =
          image_.header_address + static_cast<uint64_t>(int64_t{header.Read<int32_t>()});
      if (header.failed()) break;
      const uint64_t offset = address - image_.frames_address;
      const auto record = RecordAt(offset);
      if (!record || !AddFunction(*record)) ++broken_;
    }
    return !functions_.empty();
  }

  void ListInOrder() {
    broken_ = 0;
    uint64_t offset = 0;
    while (const auto record = RecordAt(offset)) {
      EhFrameCursor body = record->body;
      const uint64_t id = record->is_64_bit ? body.Read<uint64_t>() : body.Read<uint32_t>();
      const bool is_function = !body.failed() && id != 0;
      if (is_function && !AddFunction(*record)) ++broken_;
      offset = record->offset + record->length;
    }
  }

  bool AddFunction(const Record& record) {
    EhFrameCursor body = record.body;
    const uint64_t distance = record.is_64_bit ? body.Read<uint64_t>() : body.Read<uint32_t>();
    if (body.failed() || distance == 0 || distance > record.offset) return false;
    const EhFrameCommon* common = CommonAt(record.offset - distance);
    if (common == nullptr) return false;
    const auto begin = body.Pointer(common->pointer_encoding, image_.header_address);
    const auto size = body.Pointer(common->pointer_encoding & 0x0F, 0);
    if (!begin || !size) return false;
    if (common->has_augmentation_data) body.Skip(body.Uleb());
    if (body.failed()) return false;
    // Functions that the linker has dropped are left empty, or at address 0: that is not an error.
    if (*size == 0 || *begin < image_.code_begin || *begin >= image_.code_end) return true;
    Function function;
    function.begin = *begin;
    function.end = *begin + std::min(*size, image_.code_end - *begin);
    function.common = common;
    function.instructions = body;
    functions_.push_back(function);
    return true;
  }

  // Null if it is broken.
  const EhFrameCommon* CommonAt(uint64_t offset) {
    const auto [entry, is_new] = commons_.try_emplace(offset, nullptr);
    if (is_new) entry->second = ParseCommon(offset);
    return entry->second.get();
  }

  std::unique_ptr<EhFrameCommon> ParseCommon(uint64_t offset) {
    const auto record = RecordAt(offset);
    if (!record) return nullptr;
    EhFrameCursor body = record->body;
    const uint64_t id = record->is_64_bit ? body.Read<uint64_t>() : body.Read<uint32_t>();
    const auto version = body.Read<uint8_t>();
    if (body.failed() || id != 0 || (version != 1 && version != 3)) return nullptr;
    const std::string_view augmentation = body.Text();
    auto common = std::make_unique<EhFrameCommon>();
    common->code_alignment = body.Uleb();
    common->data_alignment = body.Sleb();
    const uint64_t return_register = version == 1 ? body.Read<uint8_t>() : body.Uleb();
    if (return_register != machine_.return_address) {
      // Assembler that keeps it elsewhere, as arm64's rawmemchr in x15.
      if (return_register >= kRegisters) return nullptr;
      common->initial.return_address = {.kind = SavedKind::kInRegister,
                                        .offset = static_cast<int32_t>(return_register)};
    }
    if (!augmentation.empty()) {
      if (augmentation.front() != 'z') return nullptr;
      common->has_augmentation_data = true;
      const uint64_t size = body.Uleb();
      EhFrameCursor data = body.Take(size);
      if (!ParseAugmentation(augmentation.substr(1), data, *common)) return nullptr;
    }
    if (body.failed()) return nullptr;
    common->initial = EhFrameProgram::InitialRule(machine_, *common, body);
    return common;
  }

  static bool ParseAugmentation(std::string_view letters, EhFrameCursor& data,
                                EhFrameCommon& common) {
    for (const char letter : letters) {
      switch (letter) {
        case 'R':
          common.pointer_encoding = data.Read<uint8_t>();
          break;
        case 'L':
          data.Skip(1);
          break;
        case 'P': {
          const auto encoding = data.Read<uint8_t>();
          (void)data.Pointer(encoding, 0);
          break;
        }
        case 'S':
          common.signal_frame = true;
          break;
        case 'B':  // arm64: return addresses are signed with the other key
        case 'G':  // arm64: memory tags
          break;
        default:
          return false;
      }
    }
    return !data.failed();
  }

  const EhFrameImage& image_;
  const UnwindMachine& machine_;
  std::unordered_map<uint64_t, std::unique_ptr<EhFrameCommon>> commons_;  // by offset of the record
  std::vector<Function> functions_;
  std::size_t broken_ = 0;
};

// The rows of a function; where it is the kernel's return from a signal, only that.
void RowsOf(const Function& function, const UnwindMachine& machine, std::vector<UnwindRow>& rows) {
  rows.clear();
  if (function.common->signal_frame && &machine == &kUnwindArm64) {
    UnwindRule rule;
    rule.cfa = CfaKind::kSignalFrame;
    rows.push_back({.address = function.begin, .rule = rule});
    return;
  }
  EhFrameProgram(machine, *function.common)
      .Run(function.instructions, function.begin, function.end, rows);
}

}  // namespace

const UnwindMachine* UnwindMachineOf(uint16_t elf_machine) {
  if (elf_machine == EM_X86_64) return &kUnwindX86;
  if (elf_machine == EM_AARCH64) return &kUnwindArm64;
  return nullptr;
}

std::optional<uint64_t> FramesAddressOfHeader(std::span<const std::byte> header,
                                              uint64_t header_address) {
  EhFrameCursor cursor(header, header_address);
  const auto version = cursor.Read<uint8_t>();
  const auto encoding = cursor.Read<uint8_t>();
  cursor.Skip(2);
  if (cursor.failed() || version != 1 || encoding == kOmitted) return std::nullopt;
  return cursor.Pointer(encoding, header_address);
}

EhFrameTable MakeUnwindTable(const EhFrameImage& image, std::size_t max_bytes) {
  EhFrameTable result;
  const UnwindMachine* machine = UnwindMachineOf(image.machine);
  if (machine == nullptr || image.code_begin >= image.code_end ||
      image.code_end - image.code_begin > kMaxCodeBytes) {
    return result;
  }
  Parser parser(image, *machine);
  parser.ListFunctions();
  const std::vector<Function>& functions = parser.functions();
  result.functions = functions.size();
  result.broken_functions = parser.broken();
  if (functions.empty()) return result;

  UnwindTableBuilder builder(functions.front().begin, image.code_end, max_bytes);
  std::vector<UnwindRow> rows;
  uint64_t end = functions.front().begin;
  uint64_t budget = kMaxRepeats * image.frames.size();
  for (const Function& function : functions) {
    if (function.end <= end) continue;
    const uint64_t instructions = function.instructions.remaining();
    if (instructions > budget) break;
    budget -= instructions;
    if (function.begin >= end + kPaddingBytes && !builder.Add(end, UnwindRule())) break;
    RowsOf(function, *machine, rows);
    // Where two claim the same code, the one that starts first keeps it.
    const uint64_t begin = std::max(function.begin, end);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const uint64_t row_end = i + 1 < rows.size() ? rows[i + 1].address : function.end;
      const uint64_t row_begin = std::max(rows[i].address, begin);
      if (row_begin >= row_end || row_begin >= function.end) continue;
      if (rows[i].rule.cfa == CfaKind::kUnsupported) ++result.unsupported_rows;
      if (!builder.Add(row_begin, rows[i].rule)) break;
    }
    end = std::max(end, function.end);
  }
  result.truncated = end < image.code_end && !builder.Add(end, UnwindRule());
  result.table = builder.Finish();
  return result;
}

}  // namespace spanprof::sampling
