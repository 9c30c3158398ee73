// SIGNAL-SAFE, but for Open: see hotspot_frozen_frames.h.

#include "agent/hotspot_frozen_frames.h"

#include <cerrno>
#include <string>

#include "agent/hotspot_frame_word.h"

namespace spanprof::jvm {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr unsigned kMaxChunks = 64;
constexpr uint64_t kMaxChunkWords = 1u << 20;
// In words from an interpreter's frame pointer. In a chunk, what would be an address in the stack
// is a distance in words: the locals' from the frame pointer, a saved frame pointer's from its
// place.
constexpr int64_t kMethod = -3;
constexpr int64_t kLocals = -7;
constexpr int64_t kBytecodePointer = -8;

constexpr uint64_t At(uint64_t address, int64_t words) {
  return address + static_cast<uint64_t>(words * int64_t{kWord});
}

tl::unexpected<Error> Unavailable(const std::string& why) {
  return Fail(ENOTSUP, "frozen frames of virtual threads cannot be read: " + why,
              "such stacks are cut, with the frame [frozen_frames] in place of the rest");
}

// A flag of the command line, as the VM has it. 0: it knows none of that name.
bool FlagIsSet(const HotspotTables& tables, const char* name) {
  const uint64_t flags = tables.Static("JVMFlag", "flags");
  const uint64_t count = tables.Static("JVMFlag", "numFlags");
  const HotspotField name_field = tables.Field("JVMFlag", "_name");
  const HotspotField value_field = tables.Field("JVMFlag", "_addr");
  const uint64_t size = tables.SizeOf("JVMFlag");
  if (flags == 0 || count == 0 || size == 0 || !name_field.present()) return false;
  const auto first = LoadPlain<uint64_t>(flags);
  const auto total = LoadPlain<uint64_t>(count);
  for (uint64_t i = 0; i < total; ++i) {
    const uint64_t flag = first + i * size;
    const auto* text = reinterpret_cast<const char*>(LoadAddress(flag, name_field));
    if (text != nullptr && std::string(text) == name) {
      return LoadPlain<uint8_t>(LoadPlain<uint64_t>(flag + value_field.offset)) != 0;
    }
  }
  return false;
}

// Asks the JDK where a field is in an object.
class FieldFinder {
 public:
  explicit FieldFinder(JNIEnv* jni) : jni_(jni) {
    jclass unsafe = jni_->FindClass("jdk/internal/misc/Unsafe");
    if (unsafe == nullptr) return;
    jfieldID only = jni_->GetStaticFieldID(unsafe, "theUnsafe", "Ljdk/internal/misc/Unsafe;");
    if (only != nullptr) unsafe_ = jni_->GetStaticObjectField(unsafe, only);
    if (only != nullptr) {
      offset_ =
          jni_->GetMethodID(unsafe, "objectFieldOffset", "(Ljava/lang/Class;Ljava/lang/String;)J");
    }
  }
  ~FieldFinder() { jni_->ExceptionClear(); }
  FieldFinder(const FieldFinder&) = delete;
  FieldFinder& operator=(const FieldFinder&) = delete;

  bool Find(const char* type, const char* field, uint64_t& offset) {
    if (unsafe_ == nullptr || offset_ == nullptr || jni_->ExceptionCheck()) return false;
    jclass found = jni_->FindClass(type);
    if (found == nullptr) return false;
    const jlong value = jni_->CallLongMethod(unsafe_, offset_, found, jni_->NewStringUTF(field));
    if (jni_->ExceptionCheck() || value <= 0) return false;
    offset = static_cast<uint64_t>(value);
    return true;
  }

 private:
  JNIEnv* const jni_;
  jobject unsafe_ = nullptr;
  jmethodID offset_ = nullptr;
};

}  // namespace

Result<void> HotspotFrozenFrames::Open(JNIEnv* jni, const HotspotTables& tables) {
  if (FlagIsSet(tables, "UseZGC") || FlagIsSet(tables, "UseShenandoahGC")) {
    return Unavailable("the garbage collector moves objects while threads run");
  }
  virtual_thread_ = tables.Field("JavaThread", "_vthread");
  if (!virtual_thread_.present()) return Unavailable("this JVM has no virtual threads");
  compressed_ = FlagIsSet(tables, "UseCompressedOops");
  const uint64_t base = tables.Static("CompressedOops", "_base");
  const uint64_t shift = tables.Static("CompressedOops", "_shift");
  if (base == 0 || shift == 0) return Unavailable("references are compressed in an unknown way");
  base_ = LoadPlain<uint64_t>(base);
  shift_ = LoadPlain<uint32_t>(shift);

  FieldFinder finder(jni);
  if (jclass continuation = jni->FindClass("jdk/internal/vm/Continuation");
      continuation != nullptr) {
    freezing_method_ =
        reinterpret_cast<uint64_t>(jni->GetStaticMethodID(continuation, "doYield", "()I"));
  }
  if (freezing_method_ == 0) return Unavailable("this JVM yields in another way");
  constexpr const char* kChunk = "jdk/internal/vm/StackChunk";
  if (!finder.Find("java/lang/VirtualThread", "cont", continuation_) ||
      !finder.Find("jdk/internal/vm/Continuation", "tail", tail_) ||
      !finder.Find(kChunk, "parent", parent_) || !finder.Find(kChunk, "sp", stack_pointer_) ||
      !finder.Find(kChunk, "bottom", bottom_)) {
    return Unavailable("this JVM's classes have other fields");
  }
  // The frames come behind the object's own fields: the class's size, by its mirror.
  jclass chunk = jni->FindClass(kChunk);
  const uint64_t klass_offset = tables.Static("java_lang_Class", "_klass_offset");
  const HotspotField size = tables.Field("Klass", "_layout_helper");
  HotspotMemory memory;
  uint64_t mirror = 0;
  uint64_t klass = 0;
  uint64_t bytes = 0;
  if (chunk == nullptr || klass_offset == 0 || !size.present() ||
      !memory.Load(reinterpret_cast<uint64_t>(chunk), mirror) ||
      !memory.Load(mirror + LoadPlain<uint32_t>(klass_offset), klass) ||
      !memory.LoadField(klass, size, bytes)) {
    return Unavailable("the size of a chunk's header is not known");
  }
  chunk_header_bytes_ = bytes & ~uint64_t{kWord - 1};  // low bits are flags
  if (chunk_header_bytes_ < 16 || chunk_header_bytes_ > 256) {
    return Unavailable("a chunk's header has " + std::to_string(bytes) + " bytes");
  }
  available_ = true;
  return {};
}

bool HotspotFrozenFrames::LoadReference(HotspotMemory& memory, uint64_t place,
                                        uint64_t& object) const noexcept {
  if (!compressed_) return memory.Load(place, object);
  uint32_t narrow = 0;
  if (!memory.Load(place, narrow)) return false;
  object = narrow == 0 ? 0 : base_ + (uint64_t{narrow} << shift_);
  return true;
}

uint64_t HotspotFrozenFrames::FindTail(HotspotMemory& memory, uint64_t vm_thread) const noexcept {
  uint64_t handle = 0;
  uint64_t thread = 0;
  uint64_t continuation = 0;
  uint64_t tail = 0;
  if (!available_ || vm_thread == 0 || !memory.LoadField(vm_thread, virtual_thread_, handle) ||
      !memory.Load(handle, thread) || thread == 0 ||
      !LoadReference(memory, thread + continuation_, continuation) || continuation == 0 ||
      !LoadReference(memory, continuation + tail_, tail)) {
    return 0;
  }
  return tail;
}

bool HotspotFrozenFrames::LoadChunk(HotspotMemory& memory, uint64_t object,
                                    Chunk& chunk) const noexcept {
  uint32_t stack_pointer = 0;
  uint32_t bottom = 0;
  if (object % kWord != 0 || !memory.Load(object + stack_pointer_, stack_pointer) ||
      !memory.Load(object + bottom_, bottom) ||
      !LoadReference(memory, object + parent_, chunk.parent) || bottom > kMaxChunkWords ||
      stack_pointer > bottom) {
    return false;
  }
  chunk.begin = object + chunk_header_bytes_;
  chunk.stack_pointer = chunk.begin + stack_pointer * kWord;
  chunk.end = chunk.begin + bottom * kWord;
  return true;
}

bool HotspotFrozenFrames::Add(HotspotMemory& memory, uint64_t vm_thread,
                              const HotspotCodeHeaps& heaps, HotspotMethods& methods,
                              HotspotCode& code, FrameList& frames) const noexcept {
  uint64_t object = FindTail(memory, vm_thread);
  if (object == 0) return false;
  for (unsigned i = 0; i < kMaxChunks; ++i) {
    Chunk chunk;
    if (!LoadChunk(memory, object, chunk) ||
        !AddChunk(memory, chunk, heaps, methods, code, frames)) {
      return false;
    }
    if (chunk.parent == 0) return true;
    object = chunk.parent;
  }
  return false;
}

bool HotspotFrozenFrames::AddChunk(HotspotMemory& memory, const Chunk& chunk,
                                   const HotspotCodeHeaps& heaps, HotspotMethods& methods,
                                   HotspotCode& code, FrameList& frames) const noexcept {
  uint64_t at = chunk.stack_pointer;
  while (at < chunk.end) {
    uint64_t pc = 0;
    if (!memory.Load(At(at, -1), pc) || !heaps.Contains(pc)) return false;
    uint64_t next = 0;
    if (heaps.IsInterpreter(pc)) {
      int64_t distance = 0;
      if (!memory.Load(At(at, -2), distance)) return false;
      const uint64_t frame = At(At(at, -2), distance);
      uint64_t method_word = 0;
      uint64_t bytecode = 0;
      int64_t locals = 0;
      HotspotMethod method;
      if (frame <= at || frame >= chunk.end || !memory.Load(At(frame, kMethod), method_word) ||
          !memory.Load(At(frame, kBytecodePointer), bytecode) ||
          !memory.Load(At(frame, kLocals), locals) || !methods.Find(memory, method_word, method)) {
        return false;
      }
      frames.Add(method.id == 0 ? MarkerFrameWord(FrameMarker::kMethodWithoutId)
                                : JavaFrameWord(method.id, method.IndexOf(bytecode)));
      next = At(frame, locals + 1) >= chunk.end ? chunk.end : At(frame, 2);
    } else {
      CodeInfo info;
      code.Look(memory, pc, false, info);
      const unsigned words = info.frame_words;
      if (info.kind == CodeKind::kDeoptimised) {
        if (!memory.Load(at + static_cast<uint64_t>(int64_t{info.original_pc}), pc)) return false;
        code.Look(memory, pc, false, info);
      }
      if (words < 2 || info.frames_cut ||
          (info.kind != CodeKind::kCompiled && info.kind != CodeKind::kStub)) {
        return false;
      }
      for (unsigned i = 0; i < info.frame_count; ++i) frames.Add(info.frames[i]);
      next = At(at, words);
      // What remains are the words by which the last frame links to none.
      if (next >= At(chunk.end, -2)) next = chunk.end;
    }
    if (next <= at || frames.full()) return false;
    at = next;
  }
  return true;
}

}  // namespace spanprof::jvm
