// HotspotCode on a code heap that the test makes, with one compiled method in it. The layout is the
// test's own: nothing may depend on a particular JVM's.

#include "agent/hotspot_code.h"

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "agent/hotspot_frame_word.h"

namespace spanprof::jvm {
namespace {

constexpr uint64_t kNowhere = 0x10000;  // no page is there

// A method with what leads from it to its jmethodID, and back.
struct FakeMethod {
  alignas(8) uint64_t method[2] = {};        // its ConstMethod, its access flags
  alignas(8) uint64_t const_method[3] = {};  // the pool, its number, how many bytecodes
  uint64_t pool[1] = {};                     // the class
  uint64_t klass[1] = {};                    // the ids
  uint64_t ids[2] = {};                      // how many, the first
  uint64_t id = 0;

  FakeMethod() {
    method[0] = Address(const_method);
    const_method[0] = Address(pool);
    const_method[2] = 100;
    pool[0] = Address(klass);
    klass[0] = Address(ids);
    ids[0] = 1;
    ids[1] = Address(&id);
    id = Address(method);
  }
  template <typename T>
  static uint64_t Address(const T* place) {
    return reinterpret_cast<uint64_t>(place);
  }
  [[nodiscard]] uint64_t Id() const { return Address(&id); }
};

struct FakeHeap {
  static constexpr uint64_t kSegments = 64;
  static constexpr unsigned kLog2 = 6;
  static constexpr uint64_t kCode = 1024;  // from the blob's start

  alignas(64) unsigned char memory[kSegments << kLog2] = {};
  unsigned char segment_map[kSegments] = {};
  uint64_t heap[6] = {};  // low and high of the memory, low and high of the map, the segment's size
  uint64_t list[2] = {};  // how many heaps, where the array is
  uint64_t array[1] = {};
  uint64_t list_place = 0, low = 0, high = 0, interpreter_place = 0, call_stub = 0;
  uint64_t interpreter[2] = {};
  HotspotLayout layout;

  FakeHeap() {
    const auto field = [](uint32_t offset, uint8_t bytes) {
      return HotspotField{.offset = offset, .bytes = bytes};
    };
    const auto address = [](const auto* place) { return reinterpret_cast<uint64_t>(place); };
    heap[0] = address(memory);
    heap[1] = heap[0] + sizeof(memory);
    heap[2] = address(segment_map);
    heap[3] = heap[2] + sizeof(segment_map);
    heap[4] = kLog2;
    list[0] = 1;
    list[1] = address(array);
    array[0] = address(heap);
    list_place = address(list);
    low = heap[0];
    high = heap[1];
    interpreter_place = address(interpreter);
    layout.heaps = address(&list_place);
    layout.low_bound = address(&low);
    layout.high_bound = address(&high);
    layout.array_length = field(0, 8);
    layout.array_data = field(8, 8);
    layout.heap_memory = field(0, 8);
    layout.heap_segment_map = field(16, 8);
    layout.heap_log2_segment = field(32, 8);
    layout.space_low = field(0, 8);
    layout.space_high = field(8, 8);
    layout.block_used = field(0, 8);
    layout.block_header_bytes = 8;
    layout.interpreter = address(&interpreter_place);
    layout.stub_queue_buffer = field(0, 8);
    layout.stub_queue_limit = field(8, 8);
    layout.call_stub_return = address(&call_stub);

    layout.blob_kind = field(0, 8);
    layout.kind_nmethod = 1;
    layout.blob_name = field(8, 8);
    layout.blob_size = field(16, 8);
    layout.blob_frame_size = field(24, 8);
    layout.blob_frame_complete = field(32, 8);
    layout.blob_code_offset = field(40, 8);
    layout.nmethod_method = field(48, 8);
    layout.nmethod_compile_id = field(56, 4);
    layout.nmethod_orig_pc_offset = field(60, 4);
    layout.nmethod_scopes_pcs_offset = field(64, 8);
    layout.nmethod_scopes_data_offset = field(72, 8);
    layout.nmethod_immutable_data = field(80, 8);
    layout.nmethod_immutable_size = field(88, 8);
    layout.nmethod_metadata_offset = field(96, 8);
    layout.nmethod_deopt_handler_offset = field(104, 8);
    layout.pc_desc_pc_offset = field(0, 4);
    layout.pc_desc_scope_offset = field(4, 4);
    layout.pc_desc_bytes = 16;
    layout.method_const_method = field(0, 8);
    layout.method_access_flags = field(8, 8);
    layout.const_method_constants = field(0, 8);
    layout.const_method_id_number = field(8, 8);
    layout.const_method_code_size = field(16, 8);
    layout.const_method_bytes = 24;
    layout.pool_holder = field(0, 8);
    layout.klass_method_ids = field(0, 8);

    std::memset(segment_map, 0xFF, sizeof(segment_map));
    for (unsigned i = 0; i < 32; ++i) segment_map[i] = i == 0 ? 0 : 1;  // one block of 32
    memory[0] = 1;                                                      // it is used
    Set(layout.blob_kind, 1);
    Set(layout.blob_size, (32 << kLog2) - 8);
    Set(layout.blob_frame_size, 6);
    Set(layout.blob_code_offset, kCode);
    Set(layout.nmethod_compile_id, 17);
    Set(layout.nmethod_deopt_handler_offset, kCode + 512);
    Set(layout.nmethod_metadata_offset, 1800);
  }
  [[nodiscard]] uint64_t blob() const { return reinterpret_cast<uint64_t>(memory) + 8; }
  [[nodiscard]] uint64_t code() const { return blob() + kCode; }
  void Set(const HotspotField& field, uint64_t value) {
    std::memcpy(memory + 8 + field.offset, &value, field.bytes);
  }
};

struct PcDescription {
  int32_t pc;
  int32_t scope;
  int32_t unused[2] = {};
};

class HotspotCodeTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    heap_->layout.stream_excluded_bytes = GetParam();
    ASSERT_TRUE(heaps_.Open(heap_->layout));
    const auto byte = [](unsigned value) { return static_cast<unsigned char>(value + GetParam()); };
    // At 1: the outer method at bytecode 7. At 10: the inner one at bytecode 300, called from
    // there.
    scopes_.assign(64, 0);
    scopes_[1] = byte(0);
    scopes_[2] = byte(1);
    scopes_[3] = byte(8);
    scopes_[10] = byte(1);
    scopes_[11] = byte(2);
    // 301 is more than one byte holds: 192 + (109 mod 64) and so on.
    const unsigned limit = 256 - 64 - GetParam();
    const unsigned first = limit + (301 - limit) % 64;
    scopes_[12] = byte(first);
    scopes_[13] = byte((301 - first) / 64);
    descriptions_ = {{.pc = -1, .scope = 0},
                     {.pc = 20, .scope = 1},
                     {.pc = 40, .scope = 10},
                     {.pc = 1 << 20, .scope = 0}};
    data_.resize(descriptions_.size() * sizeof(PcDescription) + scopes_.size());
    std::memcpy(data_.data(), descriptions_.data(), descriptions_.size() * sizeof(PcDescription));
    std::memcpy(data_.data() + descriptions_.size() * sizeof(PcDescription), scopes_.data(),
                scopes_.size());
    heap_->Set(heap_->layout.nmethod_immutable_data, reinterpret_cast<uint64_t>(data_.data()));
    heap_->Set(heap_->layout.nmethod_immutable_size, data_.size());
    heap_->Set(heap_->layout.nmethod_scopes_data_offset,
               descriptions_.size() * sizeof(PcDescription));
    heap_->Set(heap_->layout.nmethod_method, FakeMethod::Address(outer_.method));
    const uint64_t methods[] = {FakeMethod::Address(outer_.method),
                                FakeMethod::Address(inner_.method)};
    std::memcpy(heap_->memory + 8 + 1800, methods, sizeof(methods));
  }
  CodeInfo Look(uint64_t offset, bool interrupted) {
    CodeInfo info;
    code_->Look(*memory_, heap_->code() + offset, interrupted, info);
    return info;
  }
  // As another walk would, which knows nothing of this one's memory.
  void NewWalk() { memory_ = std::make_unique<HotspotMemory>(); }

  std::unique_ptr<FakeHeap> heap_ = std::make_unique<FakeHeap>();
  HotspotCodeHeaps heaps_;
  FakeMethod outer_, inner_;
  std::vector<unsigned char> scopes_, data_;
  std::vector<PcDescription> descriptions_;
  std::unique_ptr<HotspotMethods> methods_ = std::make_unique<HotspotMethods>(heap_->layout);
  std::unique_ptr<HotspotCode> code_ =
      std::make_unique<HotspotCode>(heap_->layout, heaps_, *methods_);
  std::unique_ptr<HotspotMemory> memory_ = std::make_unique<HotspotMemory>();
};

TEST_P(HotspotCodeTest, GivesInlinedFramesInnermostFirst) {
  for (int round = 0; round < 2; ++round) {  // found, and then remembered
    const CodeInfo info = Look(40, false);
    EXPECT_EQ(info.kind, CodeKind::kCompiled);
    EXPECT_EQ(info.frame_words, 6);
    EXPECT_EQ(info.bytes_in, 40u);
    ASSERT_EQ(info.frame_count, 2);
    EXPECT_EQ(info.frames[0], JavaFrameWord(inner_.Id(), 300));
    EXPECT_EQ(info.frames[1], JavaFrameWord(outer_.Id(), 7));
  }
}

TEST_P(HotspotCodeTest, AReturnAddressBelongsToTheCallAndAnInterruptedPcToWhatFollows) {
  ASSERT_EQ(Look(20, false).frame_count, 1);
  EXPECT_EQ(Look(20, false).frames[0], JavaFrameWord(outer_.Id(), 7));
  EXPECT_EQ(Look(20, true).frame_count, 2);
  EXPECT_EQ(Look(19, true).frame_count, 1);
  EXPECT_EQ(Look(21, false).frame_count, 2);
}

TEST_P(HotspotCodeTest, BehindAllDebugInformationTheMethodIsKnown) {
  const CodeInfo info = Look(41, false);
  ASSERT_EQ(info.frame_count, 1);
  EXPECT_EQ(info.frames[0], JavaFrameWord(outer_.Id(), -1));
}

TEST_P(HotspotCodeTest, AnotherCompilationInTheSamePlaceIsNotTakenForTheFirst) {
  ASSERT_EQ(Look(40, false).frame_count, 2);
  heap_->Set(heap_->layout.nmethod_compile_id, 18);
  heap_->Set(heap_->layout.nmethod_immutable_data, kNowhere);
  NewWalk();
  EXPECT_EQ(Look(40, false).frame_count, 1);
}

TEST_P(HotspotCodeTest, PointersToNowhereAreNoFault) {
  heap_->Set(heap_->layout.nmethod_immutable_data, kNowhere);
  EXPECT_EQ(Look(40, false).frame_count, 1);  // the method itself
  heap_->Set(heap_->layout.nmethod_method, kNowhere);
  heap_->Set(heap_->layout.nmethod_compile_id, 18);
  EXPECT_EQ(Look(40, false).frame_count, 0);
  heap_->Set(heap_->layout.nmethod_method, FakeMethod::Address(inner_.method));
  inner_.klass[0] = kNowhere;
  EXPECT_EQ(Look(39, false).frame_count, 0);
}

TEST_P(HotspotCodeTest, AMethodWithoutIdIsAMarkerUntilItHasOne) {
  inner_.klass[0] = 0;
  EXPECT_EQ(Look(40, false).frames[0], MarkerFrameWord(FrameMarker::kMethodWithoutId));
  inner_.klass[0] = FakeMethod::Address(inner_.ids);
  NewWalk();
  EXPECT_EQ(Look(40, false).frames[0], JavaFrameWord(inner_.Id(), 300));
}

// A class is unloaded, and another's method comes to the same address.
TEST_P(HotspotCodeTest, AMethodIsLookedAtAgainWhenItsIdLeadsElsewhere) {
  HotspotMethod found;
  ASSERT_TRUE(methods_->Find(*memory_, FakeMethod::Address(inner_.method), found));
  EXPECT_EQ(found.id, inner_.Id());
  uint64_t other_id = inner_.id;
  inner_.id = 0;
  inner_.ids[1] = FakeMethod::Address(&other_id);
  NewWalk();
  ASSERT_TRUE(methods_->Find(*memory_, FakeMethod::Address(inner_.method), found));
  EXPECT_EQ(found.id, FakeMethod::Address(&other_id));
}

TEST_P(HotspotCodeTest, KnowsFramesThatAreToBeReplacedAndPlacesWithoutCode) {
  EXPECT_EQ(Look(512, false).kind, CodeKind::kDeoptimised);
  CodeInfo info;
  code_->Look(*memory_, heap_->heap[1] - 8, false, info);
  EXPECT_EQ(info.kind, CodeKind::kUnknown);
  code_->Look(*memory_, kNowhere, false, info);
  EXPECT_EQ(info.kind, CodeKind::kUnknown);
}

INSTANTIATE_TEST_SUITE_P(ExcludedBytes, HotspotCodeTest, testing::Values(0u, 1u));

}  // namespace
}  // namespace spanprof::jvm
