#include "base/continuation_map.h"

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::node {
namespace {

constexpr uint16_t kMapType = 0x0842;
constexpr uint64_t kBase = 0x10000;
constexpr MapLayout kLayout = {.map_instance_type = kMapType};

// A piece of memory that begins at kBase. What is outside cannot be read.
class PretendedMemory {
 public:
  explicit PretendedMemory(size_t words) : words_(words) {}

  bool Read64(uint64_t address, uint64_t* value) const { return Read(address, value, 8); }
  bool Read16(uint64_t address, uint16_t* value) const { return Read(address, value, 2); }
  uint64_t& At(uint64_t address) { return words_.at((address - kBase) / 8); }
  size_t size() const { return words_.size(); }
  mutable uint64_t reads = 0;

 private:
  bool Read(uint64_t address, void* value, size_t bytes) const {
    ++reads;
    if (address < kBase || address - kBase + bytes > words_.size() * 8) return false;
    memcpy(value, reinterpret_cast<const char*>(words_.data()) + (address - kBase), bytes);
    return true;
  }
  std::vector<uint64_t> words_;
};

constexpr uint64_t Small(int64_t value) { return static_cast<uint64_t>(value) << 32; }

// Lays a JSMap out as V8 does, with its own rule for buckets.
class PretendedMap {
 public:
  static constexpr uint64_t kClass = kBase;
  static constexpr uint64_t kObject = kBase + 64;
  static constexpr uint64_t kTable = kBase + 128;

  explicit PretendedMap(int64_t buckets) : memory(64 + static_cast<size_t>(buckets) * 8) {
    memory.At(kClass + 8) = uint64_t{kMapType} << 32;
    memory.At(kObject) = kClass | 1;
    memory.At(kObject + 24) = kTable | 1;
    memory.At(kTable + 8) = Small(3 + 7 * buckets);
    memory.At(kTable + 32) = Small(buckets);
    for (int64_t i = 0; i < buckets; ++i) Head(i) = Small(-1);
  }

  uint64_t& Head(int64_t bucket) {
    return memory.At(kTable + 40 + static_cast<uint64_t>(bucket) * 8);
  }
  uint64_t EntryAddress(int64_t index) const {
    return kTable + 40 + static_cast<uint64_t>(Buckets()) * 8 + static_cast<uint64_t>(index) * 24;
  }
  int64_t Buckets() const {
    uint64_t word = 0;
    (void)memory.Read64(kTable + 32, &word);
    return SmallIntegerOf(word);
  }

  void Add(MapKey key, uint64_t value) {
    const int64_t index = count_++;
    const int64_t bucket = key.identity_hash & (Buckets() - 1);
    memory.At(EntryAddress(index)) = key.tagged_address;
    memory.At(EntryAddress(index) + 8) = value;
    memory.At(EntryAddress(index) + 16) = Head(bucket);
    Head(bucket) = Small(index);
    memory.At(kTable + 16) = Small(count_);
  }

  MapLookup Find(MapKey key, uint64_t* value) const {
    return FindInContinuation(memory, kLayout, kObject | 1, key, value);
  }

  PretendedMemory memory;

 private:
  int64_t count_ = 0;
};

TEST(ContinuationMap, FindsEveryKeyAlsoWhereOneBucketHoldsThemAll) {
  for (const int32_t spread : {0, 1, 7}) {
    PretendedMap map(8);
    for (int32_t i = 0; i < 16; ++i) {
      map.Add(
          {.tagged_address = 0x5001u + static_cast<uint64_t>(i) * 16, .identity_hash = i * spread},
          0x9001u + static_cast<uint64_t>(i));
    }
    for (int32_t i = 0; i < 16; ++i) {
      uint64_t value = 0;
      ASSERT_EQ(map.Find({0x5001u + static_cast<uint64_t>(i) * 16, i * spread}, &value),
                MapLookup::kFound);
      EXPECT_EQ(value, 0x9001u + static_cast<uint64_t>(i));
    }
    uint64_t value = 0;
    EXPECT_EQ(map.Find({0x7001, 3}, &value), MapLookup::kAbsent);
  }
}

TEST(ContinuationMap, AKeyThatWasDeletedIsAbsentAndTheOthersStay) {
  PretendedMap map(2);
  map.Add({0x5001, 0}, 0x9001);
  map.Add({0x5011, 0}, 0x9011);
  map.memory.At(map.EntryAddress(1)) = 0xAAA1;  // the hole
  map.memory.At(PretendedMap::kTable + 16) = Small(1);
  map.memory.At(PretendedMap::kTable + 24) = Small(1);
  uint64_t value = 0;
  EXPECT_EQ(map.Find({0x5011, 0}, &value), MapLookup::kAbsent);
  ASSERT_EQ(map.Find({0x5001, 0}, &value), MapLookup::kFound);
  EXPECT_EQ(value, 0x9001u);
}

TEST(ContinuationMap, WhatIsNoMapHasNoFrame) {
  PretendedMap map(2);
  uint64_t value = 0;
  const MapKey key = {0x5001, 0};
  EXPECT_EQ(FindInContinuation(map.memory, kLayout, Small(7), key, &value), MapLookup::kNoMap);
  map.memory.At(PretendedMap::kClass + 8) = uint64_t{kMapType + 1} << 32;
  EXPECT_EQ(map.Find(key, &value), MapLookup::kNoMap);
}

TEST(ContinuationMap, AChainThatRunsInACircleEnds) {
  PretendedMap map(2);
  map.Add({0x5001, 0}, 1);
  map.Add({0x5011, 0}, 1);
  map.memory.At(map.EntryAddress(0) + 16) = Small(1);
  uint64_t value = 0;
  EXPECT_EQ(map.Find({0x6001, 0}, &value), MapLookup::kMalformed);
  EXPECT_LT(map.memory.reads, 40u);
}

TEST(ContinuationMap, SizesThatCannotBeAreRefused) {
  const auto with = [](uint64_t offset, uint64_t word) {
    PretendedMap map(4);
    map.Add({0x5001, 0}, 0x9001);
    map.memory.At(PretendedMap::kTable + offset) = word;
    uint64_t value = 0;
    return map.Find({0x5001, 0}, &value);
  };
  EXPECT_EQ(with(8, Small(30)), MapLookup::kMalformed);  // shorter than its buckets need
  EXPECT_EQ(with(16, Small(9)), MapLookup::kMalformed);  // more elements than room
  EXPECT_EQ(with(16, Small(-1)), MapLookup::kMalformed);
  EXPECT_EQ(with(24, Small(8)), MapLookup::kMalformed);  // together too many
  EXPECT_EQ(with(32, Small(3)), MapLookup::kMalformed);  // no power of two
  EXPECT_EQ(with(32, Small(0)), MapLookup::kMalformed);
  EXPECT_EQ(with(32, Small(INT32_MIN)), MapLookup::kMalformed);
  EXPECT_EQ(with(40, Small(5)), MapLookup::kMalformed);  // an entry that is not there
  EXPECT_EQ(with(40, 0x5001), MapLookup::kMalformed);    // an object where a number belongs
}

TEST(ContinuationMap, MemoryThatEndsIsNoValue) {
  PretendedMap map(4);
  uint64_t value = 0;
  map.memory.At(PretendedMap::kObject + 24) = 0xFFFFFFFFFFFFFFF1;
  EXPECT_EQ(map.Find({0x5001, 0}, &value), MapLookup::kUnreadable);
  map.memory.At(PretendedMap::kObject) = 0xFFFFFFFFFFFFFFFD;
  EXPECT_EQ(map.Find({0x5001, 0}, &value), MapLookup::kUnreadable);
}

TEST(ContinuationMap, OfAnyMemoryItReadsLittleAndEnds) {
  std::mt19937_64 random(7);
  const uint64_t interesting[] = {0,
                                  Small(1),
                                  Small(2),
                                  Small(4),
                                  Small(-1),
                                  Small(31),
                                  PretendedMap::kTable | 1,
                                  PretendedMap::kObject | 1,
                                  0x5001};
  for (int round = 0; round < 20000; ++round) {
    PretendedMap map(4);
    for (int i = 0; i < 6; ++i) map.Add({0x5001u + static_cast<uint64_t>(i) * 16, i}, 0x9001);
    for (int change = 0; change < 4; ++change) {
      map.memory.At(kBase + random() % map.memory.size() * 8) =
          random() % 4 == 0 ? random() : interesting[random() % std::size(interesting)];
    }
    map.memory.reads = 0;
    uint64_t value = 0;
    (void)map.Find({0x5001, 0}, &value);
    ASSERT_LE(map.memory.reads, 8u + 3 * 4096u);
  }
}

}  // namespace
}  // namespace spanprof::node
