#pragma once

// Runs the call frame instructions of one function and gives the rule for each range of its code.
// Not for a signal handler.

#include <cstdint>
#include <vector>

#include "sampling/eh_frame_cursor.h"
#include "sampling/unwind_rule.h"

namespace spanprof::sampling {

// What a CIE says of the functions that refer to it.
struct EhFrameCommon {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  bool signal_frame = false;
  UnwindRule initial;  // after the CIE's own instructions
};

struct UnwindRow {
  uint64_t address = 0;
  UnwindRule rule;
};

class EhFrameProgram {
 public:
  EhFrameProgram(const UnwindMachine& machine, const EhFrameCommon& common)
      : machine_(machine), common_(common), rule_(common.initial) {}

  // Appends rows for [begin, end) in ascending order, the first at `begin`. From an instruction
  // that is not known on, the rows say kUnsupported.
  void Run(EhFrameCursor instructions, uint64_t begin, uint64_t end, std::vector<UnwindRow>& rows);

  // The rule after the instructions of a CIE, which has no code of its own.
  [[nodiscard]] static UnwindRule InitialRule(const UnwindMachine& machine,
                                              const EhFrameCommon& common,
                                              EhFrameCursor instructions);

 private:
  // False: the instruction is not known, or broken.
  bool Step(EhFrameCursor& instructions);
  bool StepExtended(uint8_t opcode, EhFrameCursor& instructions);
  void DefineCfa(uint64_t reg, int64_t offset);
  void SetCfaOffset(int64_t offset);
  // Null for a register that no walk needs.
  SavedRegister* Tracked(uint64_t reg);
  void Save(uint64_t reg, SavedKind kind, int64_t offset);
  void Restore(uint64_t reg);
  int64_t Scaled(uint64_t factor) const;

  const UnwindMachine& machine_;
  const EhFrameCommon& common_;
  UnwindRule rule_;
  uint64_t location_ = 0;
  std::vector<UnwindRule> remembered_;
};

}  // namespace spanprof::sampling
