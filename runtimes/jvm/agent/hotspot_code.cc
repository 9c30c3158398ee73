// SIGNAL-SAFE: see hotspot_code.h.

#include "agent/hotspot_code.h"

#include <cstring>

#include "agent/hotspot_frame_word.h"

namespace spanprof::jvm {
namespace {

constexpr unsigned kMaxInlining = 64;  // frames that one pc stands for; the rest is not looked at
constexpr uint64_t kMaxDescriptions = 1u << 20;

// A reader of the small integers of HotSpot's debug information. Each is 1 to 5 bytes: bytes below
// the limit end it, and each byte adds its value times 64 to the power of its place.
class IntegerStream {
 public:
  IntegerStream(const unsigned char* bytes, unsigned count, uint32_t excluded) noexcept
      : at_(bytes), end_(bytes + count), excluded_(excluded) {}

  [[nodiscard]] bool Next(uint32_t& value) noexcept {
    const uint32_t limit = 256 - 64;  // with the excluded ones
    value = 0;
    for (unsigned place = 0; place < 5; ++place) {
      if (at_ == end_ || *at_ < excluded_) return false;
      const uint32_t byte = *at_++;
      value += (byte - excluded_) << (6 * place);
      if (byte < limit || place == 4) return true;
    }
    return false;
  }

 private:
  const unsigned char* at_;
  const unsigned char* const end_;
  const uint32_t excluded_;
};

}  // namespace

void HotspotCode::Look(HotspotMemory& memory, uint64_t pc, bool interrupted,
                       CodeInfo& info) noexcept {
  if (Recall(KeyOf(pc, interrupted), info)) return;
  info.kind = CodeKind::kUnknown;
  info.frame_count = 0;
  info.frames_cut = false;
  info.frame_words = 0;
  const uint64_t blob = heaps_.FindBlob(pc);
  if (blob == 0) return;
  memory.SetKnown(HotspotMemory::Known::kCode, blob, LoadAddress(blob, layout_.blob_size));
  LookAtBlob(memory, blob, pc, interrupted, info);
}

bool HotspotCode::Recall(uint64_t key, CodeInfo& info) const noexcept {
  const Place& place = places_[IndexOf(key)];
  const uint32_t version = place.version.load(std::memory_order_acquire);
  if (version % 2 != 0 || place.key.load(std::memory_order_relaxed) != key) return false;
  const uint64_t blob = place.blob.load(std::memory_order_relaxed);
  const int32_t compile_id = place.compile_id.load(std::memory_order_relaxed);
  const uint64_t shape = place.shape.load(std::memory_order_relaxed);
  info.kind = CodeKind::kCompiled;
  info.frames_cut = false;
  info.frame_count = static_cast<uint8_t>(shape);
  info.frame_words = static_cast<uint16_t>(shape >> 8);
  info.frame_complete = static_cast<uint32_t>(shape >> 32);
  info.bytes_in = static_cast<uint32_t>(place.bytes_in.load(std::memory_order_relaxed));
  if (info.frame_count > kKeptFrames) return false;
  for (unsigned i = 0; i < info.frame_count; ++i) {
    info.frames[i] = place.frames[i].load(std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (place.version.load(std::memory_order_relaxed) != version) return false;
  // Code heaps are never unmapped: this load is of memory that is there, whatever it is now.
  return LoadField(blob, layout_.nmethod_compile_id) == compile_id;
}

void HotspotCode::Keep(uint64_t key, uint64_t blob, const CodeInfo& info) noexcept {
  if (info.frame_count > kKeptFrames || info.frames_cut) return;
  for (unsigned i = 0; i < info.frame_count; ++i) {
    if (MarkerOf(info.frames[i]) != FrameMarker::kNone) return;  // an id may come yet
  }
  Place& place = places_[IndexOf(key)];
  uint32_t version = place.version.load(std::memory_order_relaxed);
  if (version % 2 != 0 ||
      !place.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) {
    return;
  }
  // Pairs with the fence of Recall.
  std::atomic_thread_fence(std::memory_order_release);
  place.key.store(key, std::memory_order_relaxed);
  place.blob.store(blob, std::memory_order_relaxed);
  place.compile_id.store(static_cast<int32_t>(LoadField(blob, layout_.nmethod_compile_id)),
                         std::memory_order_relaxed);
  place.shape.store(uint64_t{info.frame_count} | uint64_t{info.frame_words} << 8 |
                        uint64_t{info.frame_complete} << 32,
                    std::memory_order_relaxed);
  place.bytes_in.store(info.bytes_in, std::memory_order_relaxed);
  for (unsigned i = 0; i < info.frame_count; ++i) {
    place.frames[i].store(info.frames[i], std::memory_order_relaxed);
  }
  place.version.store(version + 2, std::memory_order_release);
}

bool HotspotCode::IsMethodBlob(HotspotMemory& memory, uint64_t blob) noexcept {
  if (layout_.blob_kind.present()) {
    return LoadField(blob, layout_.blob_kind) == layout_.kind_nmethod;
  }
  const uint64_t name = LoadAddress(blob, layout_.blob_name);
  for (const auto& known : method_names_) {
    if (name != 0 && known.load(std::memory_order_relaxed) == name) return true;
  }
  char text[16] = {};
  if (!memory.Read(name, text, sizeof(text) - 1)) return false;
  const bool compiled = std::strcmp(text, "nmethod") == 0;
  const bool wrapper = std::strcmp(text, "native nmethod") == 0;
  if (compiled || wrapper) method_names_[wrapper].store(name, std::memory_order_relaxed);
  return compiled || wrapper;
}

void HotspotCode::LookAtBlob(HotspotMemory& memory, uint64_t blob, uint64_t pc, bool interrupted,
                             CodeInfo& info) noexcept {
  const uint64_t code = layout_.blob_code_offset.present()
                            ? blob + LoadAddress(blob, layout_.blob_code_offset)
                            : LoadAddress(blob, layout_.blob_code_begin);
  if (pc < code) return;
  info.bytes_in = static_cast<uint32_t>(pc - code);
  const int64_t words = LoadField(blob, layout_.blob_frame_size);
  info.frame_words = words > 0 && words < 0xFFFF ? static_cast<uint16_t>(words) : 0;
  const int64_t complete = LoadField(blob, layout_.blob_frame_complete);
  info.frame_complete = complete > 0 ? static_cast<uint32_t>(complete) : 0;
  if (IsMethodBlob(memory, blob)) {
    // What is smaller than its own header is being made or taken down.
    if (LoadField(blob, layout_.blob_size) < int64_t{layout_.nmethod_bytes}) return;
    LookAtMethod(memory, blob, pc, interrupted, info);
    return;
  }
  char name[40] = {};
  (void)memory.Read(LoadAddress(blob, layout_.blob_name), name, sizeof(name) - 1);
  // "StubRoutines (continuation stubs)", in some versions without the second space.
  if (std::strstr(name, "(continuation") != nullptr) {
    info.kind = CodeKind::kContinuation;
    return;
  }
  info.kind = info.frame_words > 1 ? CodeKind::kStub : CodeKind::kBareStub;
}

bool HotspotCode::IsDeoptimised(uint64_t blob, uint64_t pc) const noexcept {
  const auto is_handler = [&](const HotspotField& begin, const HotspotField& offset) {
    if (begin.present()) return LoadAddress(blob, begin) == pc;
    return offset.present() && LoadField(blob, offset) > 0 &&
           blob + LoadAddress(blob, offset) == pc;
  };
  return is_handler(layout_.nmethod_deopt_handler_begin, layout_.nmethod_deopt_handler_offset) ||
         is_handler(layout_.nmethod_deopt_mh_handler_begin,
                    layout_.nmethod_deopt_mh_handler_offset);
}

// A thread is executing it, so all that belongs to it is there.
void HotspotCode::KnowMemory(HotspotMemory& memory, uint64_t blob) const noexcept {
  if (layout_.nmethod_immutable_data.present()) {
    memory.SetKnown(HotspotMemory::Known::kDebugInformation,
                    LoadAddress(blob, layout_.nmethod_immutable_data),
                    LoadAddress(blob, layout_.nmethod_immutable_size));
  }
  if (layout_.blob_mutable_data.present()) {
    memory.SetKnown(HotspotMemory::Known::kMetadata, LoadAddress(blob, layout_.blob_mutable_data),
                    LoadAddress(blob, layout_.blob_mutable_size));
  }
}

void HotspotCode::LookAtMethod(HotspotMemory& memory, uint64_t blob, uint64_t pc, bool interrupted,
                               CodeInfo& info) noexcept {
  if (IsDeoptimised(blob, pc)) {
    info.kind = CodeKind::kDeoptimised;
    info.original_pc = static_cast<int32_t>(LoadField(blob, layout_.nmethod_orig_pc_offset));
    return;
  }
  info.kind = CodeKind::kCompiled;
  if (interrupted) KnowMemory(memory, blob);
  const bool found =
      FindFrames(memory, blob, uint64_t{info.bytes_in} + (interrupted ? 1 : 0), info);
  memory.SetKnown(HotspotMemory::Known::kDebugInformation, 0, 0);
  memory.SetKnown(HotspotMemory::Known::kMetadata, 0, 0);
  if (!found) {
    info.frame_count = 0;
    // A wrapper, or a pc behind all debug information: the method itself is known.
    if (!AddFrame(memory, LoadAddress(blob, layout_.nmethod_method), -1, info)) return;
  }
  Keep(KeyOf(pc, interrupted), blob, info);
}

bool HotspotCode::AddFrame(HotspotMemory& memory, uint64_t method, int32_t bytecode_index,
                           CodeInfo& info) noexcept {
  if (info.frame_count == CodeInfo::kMaxFrames) {
    info.frames_cut = true;
    return true;
  }
  HotspotMethod found;
  if (!methods_.Find(memory, method, found)) return false;
  info.frames[info.frame_count++] =
      found.id == 0 ? MarkerFrameWord(FrameMarker::kMethodWithoutId)
                    : JavaFrameWord(found.id, found.native ? -1 : bytecode_index);
  return true;
}

bool HotspotCode::FindFrames(HotspotMemory& memory, uint64_t blob, uint64_t pc_offset,
                             CodeInfo& info) noexcept {
  uint64_t descriptions = 0;
  uint64_t descriptions_end = 0;
  uint64_t scopes = 0;
  if (layout_.nmethod_immutable_data.present()) {
    const uint64_t data = LoadAddress(blob, layout_.nmethod_immutable_data);
    descriptions = data + LoadAddress(blob, layout_.nmethod_scopes_pcs_offset);
    scopes = data + LoadAddress(blob, layout_.nmethod_scopes_data_offset);
    descriptions_end = scopes;
  } else {
    descriptions = blob + LoadAddress(blob, layout_.nmethod_scopes_pcs_offset);
    descriptions_end = blob + LoadAddress(blob, layout_.nmethod_dependencies_offset);
    scopes = LoadAddress(blob, layout_.nmethod_scopes_data_begin);
  }
  const uint64_t metadata = layout_.nmethod_metadata_offset.present()
                                ? blob + LoadAddress(blob, layout_.nmethod_metadata_offset)
                                : LoadAddress(blob, layout_.blob_mutable_data) +
                                      LoadAddress(blob, layout_.blob_relocation_size);
  const uint64_t count = (descriptions_end - descriptions) / layout_.pc_desc_bytes;
  // The first and the last only mark the ends.
  if (descriptions_end < descriptions || count < 3 || count > kMaxDescriptions) return false;

  // The first whose code ends at or behind the pc.
  uint64_t low = 1;
  uint64_t high = count - 1;
  uint64_t offset = 0;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (!memory.LoadField(descriptions + middle * layout_.pc_desc_bytes, layout_.pc_desc_pc_offset,
                          offset)) {
      return false;
    }
    if (static_cast<int32_t>(offset) >= static_cast<int64_t>(pc_offset)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == count - 1) return false;
  uint64_t scope = 0;
  if (!memory.LoadField(descriptions + low * layout_.pc_desc_bytes, layout_.pc_desc_scope_offset,
                        scope)) {
    return false;
  }
  for (unsigned level = 0; scope != 0; ++level) {
    if (level == kMaxInlining) {
      info.frames_cut = true;
      break;
    }
    unsigned char bytes[16];
    if (!memory.Read(scopes + scope, bytes, sizeof(bytes))) return false;
    IntegerStream stream(bytes, sizeof(bytes), layout_.stream_excluded_bytes);
    uint32_t sender = 0;
    uint32_t method_index = 0;
    uint32_t index_and_1 = 0;
    uint64_t method = 0;
    if (!stream.Next(sender) || !stream.Next(method_index) || !stream.Next(index_and_1) ||
        method_index == 0 ||
        !memory.Load(metadata + (uint64_t{method_index} - 1) * sizeof(uint64_t), method) ||
        !AddFrame(memory, method, index_and_1 == 0 ? 0 : static_cast<int32_t>(index_and_1) - 1,
                  info)) {
      return false;
    }
    // (-1 is a method's entry.) A caller was written before what it inlines.
    if (sender >= scope) return sender == 0;
    scope = sender;
  }
  return info.frame_count != 0;
}

}  // namespace spanprof::jvm
