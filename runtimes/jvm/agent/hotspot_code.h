#pragma once

// SIGNAL-SAFE. What the JVM's generated code says of a pc: which kind of code it is, how large its
// frame, and the Java frames that it stands for, inlined ones first.
//
// The answer for a pc of a compiled method is kept in a table by pc, since the debug information is
// in the C heap and costs system calls to read. It is right for as long as the same compilation is
// in that place, which its compile id tells: HotSpot numbers compilations and never twice alike.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/hotspot_code_heaps.h"
#include "agent/hotspot_memory.h"
#include "agent/hotspot_methods.h"
#include "agent/hotspot_structs.h"

namespace spanprof::jvm {

enum class CodeKind : uint8_t {
  kUnknown,       // no blob is there
  kCompiled,      // a compiled method, or the wrapper of a native one
  kDeoptimised,   // a compiled method's frame that is to be replaced; its pc is elsewhere
  kStub,          // of the VM, with a frame of known size
  kBareStub,      // of the VM, without: stub routines, adapters, vtable stubs
  kContinuation,  // the stubs that thaw a continuation's frames
};

struct CodeInfo {
  static constexpr unsigned kMaxFrames = 24;

  CodeKind kind = CodeKind::kUnknown;
  bool frames_cut = false;  // more methods were inlined than kMaxFrames
  uint8_t frame_count = 0;
  uint16_t frame_words = 0;     // with the return address; 0: not known
  uint32_t bytes_in = 0;        // from the code's first byte to the pc
  uint32_t frame_complete = 0;  // bytes_in from which on the frame is there
  int32_t original_pc = 0;      // kDeoptimised: where it is kept, from the stack pointer
  uint64_t frames[kMaxFrames];
};

class HotspotCode {
 public:
  // All have to outlive it.
  HotspotCode(const HotspotLayout& layout, const HotspotCodeHeaps& heaps, HotspotMethods& methods)
      : layout_(layout), heaps_(heaps), methods_(methods) {}
  HotspotCode(const HotspotCode&) = delete;
  HotspotCode& operator=(const HotspotCode&) = delete;

  // `interrupted`: the thread was interrupted at `pc`; else that is a return address. Debug
  // information is noted for the end of the code that it holds for: at a call, for the return
  // address itself, and between calls for the first byte behind.
  void Look(HotspotMemory& memory, uint64_t pc, bool interrupted, CodeInfo& info) noexcept;

 private:
  static constexpr std::size_t kPlaces = 8192;
  static constexpr unsigned kKeptFrames = 11;

  struct alignas(64) Place {
    std::atomic<uint32_t> version{0};  // odd while a handler writes
    std::atomic<int32_t> compile_id{0};
    std::atomic<uint64_t> key{0};
    std::atomic<uint64_t> blob{0};
    std::atomic<uint64_t> shape{0};  // frame_count, frame_words, frame_complete
    std::atomic<uint64_t> bytes_in{0};
    std::atomic<uint64_t> frames[kKeptFrames];
  };
  static uint64_t KeyOf(uint64_t pc, bool interrupted) noexcept {
    return pc << 1 | (interrupted ? 1 : 0);
  }
  static std::size_t IndexOf(uint64_t key) noexcept { return (key * 0x9E3779B97F4A7C15u) >> 51; }
  static_assert(kPlaces == std::size_t{1} << (64 - 51));

  bool Recall(uint64_t key, CodeInfo& info) const noexcept;
  void Keep(uint64_t key, uint64_t blob, const CodeInfo& info) noexcept;
  void LookAtBlob(HotspotMemory& memory, uint64_t blob, uint64_t pc, bool interrupted,
                  CodeInfo& info) noexcept;
  void LookAtMethod(HotspotMemory& memory, uint64_t blob, uint64_t pc, bool interrupted,
                    CodeInfo& info) noexcept;
  void KnowMemory(HotspotMemory& memory, uint64_t blob) const noexcept;
  // Fills info.frames. False: there is no debug information for the pc.
  bool FindFrames(HotspotMemory& memory, uint64_t blob, uint64_t pc_offset,
                  CodeInfo& info) noexcept;
  [[nodiscard]] bool IsDeoptimised(uint64_t blob, uint64_t pc) const noexcept;
  [[nodiscard]] bool IsMethodBlob(HotspotMemory& memory, uint64_t blob) noexcept;
  // Adds a frame; a method without an id gives a marker. False: that is no method.
  bool AddFrame(HotspotMemory& memory, uint64_t method, int32_t bytecode_index,
                CodeInfo& info) noexcept;

  const HotspotLayout& layout_;
  const HotspotCodeHeaps& heaps_;
  HotspotMethods& methods_;
  // Names are constants of the VM: those that are known to mean a compiled method.
  std::atomic<uint64_t> method_names_[2] = {};
  Place places_[kPlaces];
};

}  // namespace spanprof::jvm
