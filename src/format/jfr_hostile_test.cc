// Files that lie: cut anywhere, changed anywhere, with counts and types made to exhaust a reader.

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "format/format.h"
#include "format/jfr.h"
#include "format/jfr_chunk.h"
#include "format/jfr_encoding.h"
#include "format/jfr_fixture.h"
#include "format/jfr_metadata.h"

namespace spanprof::format {
namespace {

using jfr::ChunkHeader;
using jfr::Output;
using jfr::Type;

// A chunk of the types, a checkpoint with this body (behind the flags), and one event.
std::string MakeChunk(const std::vector<Type>& types, std::string_view pools,
                      std::string_view event = {}) {
  Output events;
  if (!event.empty()) events.Event(event);
  Output tail;
  jfr::WriteMetadataEvent(types, 0, 1, tail);
  ChunkHeader header;
  header.ticks_per_second = 1'000'000'000;
  header.metadata = ChunkHeader::kSize + events.size();
  header.checkpoint = header.metadata + tail.size();
  Output checkpoint;
  checkpoint.Varint(jfr::kCheckpointEventId);
  for (int i = 0; i < 4; ++i) checkpoint.Byte(0);  // start, duration, next, flags
  checkpoint.Append(pools);
  tail.Event(checkpoint.bytes());
  header.size = header.metadata + tail.size();
  Output chunk;
  WriteChunkHeader(header, chunk);
  chunk.Append(events.bytes());
  chunk.Append(tail.bytes());
  return chunk.Take();
}

std::string Pools(std::initializer_list<uint64_t> varints, std::string_view rest = {}) {
  Output out;
  for (const uint64_t value : varints) out.Varint(value);
  out.Append(rest);
  return out.Take();
}

class Seconds {
 public:
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST(JfrHostileTest, AFileThatIsCutAnywhereIsAnError) {
  const std::string bytes = WriteJfr(MakeSmallProfile(), {}).value();
  const size_t separator = jfr::ReadChunkHeader(bytes, 0)->size;
  for (size_t size = 0; size < bytes.size(); ++size) {
    if (size == separator) continue;  // the one place where a cut is none
    const Result<profile::Profile> read = ReadJfr(std::string_view(bytes).substr(0, size), {});
    ASSERT_FALSE(read.has_value()) << size;
    EXPECT_EQ(read.error().code, EBADMSG) << size;
    EXPECT_FALSE(read.error().message.empty());
  }
}

// The same with a header that claims the cut to be right.
TEST(JfrHostileTest, AChunkThatEndsAnywhereIsSurvived) {
  const std::string bytes = WriteJfr(MakeSmallProfile(), {}).value();
  for (size_t size = ChunkHeader::kSize; size < bytes.size(); size += 3) {
    std::string cut = bytes.substr(0, size);
    for (unsigned i = 0; i < 8; ++i) {
      cut[ChunkHeader::kChunkSizeOffset + i] = static_cast<char>(size >> (8 * (7 - i)));
    }
    (void)ReadJfr(cut, {});
  }
}

TEST(JfrHostileTest, AnyChangedByteIsSurvived) {
  const std::string bytes = WriteJfr(MakeSmallProfile(), {}).value();
  constexpr std::string_view kValues("\x00\x7f\xff", 3);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = kValues[i % kValues.size()];
    (void)ReadJfr(changed, {});
  }
}

TEST(JfrHostileTest, ErrorsNameTheByte) {
  EXPECT_NE(
      ReadJfr("garbage that is longer than the header of a chunk, which has sixty-eight bytes", {})
          .error()
          .message.find("byte 0"),
      std::string::npos);
  const std::string chunk = WriteJfr(MakeSmallProfile(), {}).value();
  const std::string message = ReadJfr(chunk + chunk.substr(0, 99), {}).error().message;
  EXPECT_NE(message.find("byte " + std::to_string(chunk.size())), std::string::npos) << message;
}

TEST(JfrHostileTest, HugeCountsEndAtTheEndOfTheFile) {
  const std::vector<Type> types = {{.name = "int", .id = 16}};
  for (const uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    const Result<profile::Profile> pools = ReadJfr(MakeChunk(types, Pools({count})), {});
    EXPECT_FALSE(pools.has_value());
    const Result<profile::Profile> entries = ReadJfr(MakeChunk(types, Pools({1, 16, count})), {});
    EXPECT_FALSE(entries.has_value());
  }
}

TEST(JfrHostileTest, ArraysOfNothingTakeNoTime) {
  const std::vector<Type> types = {
      {.name = "Nothing", .id = 20},
      {.name = "Array", .id = 21, .fields = {{.name = "a", .type_id = 20, .array = true}}}};
  const Seconds seconds;
  const Result<profile::Profile> read =
      ReadJfr(MakeChunk(types, Pools({1, 21, 1, 7, UINT64_MAX})), {});
  EXPECT_TRUE(read.has_value());
  EXPECT_LT(seconds.elapsed(), 1.0);
}

// Each type holds the one before a hundred times: 100^15 visits, if they were made.
TEST(JfrHostileTest, NestedNothingTakesNoTime) {
  std::vector<Type> types = {{.name = "Level0", .id = 20}};
  for (uint64_t level = 1; level < 16; ++level) {
    Type type{.name = "Level", .id = 20 + level};
    for (unsigned i = 0; i < 100; ++i) type.fields.push_back({.name = "f", .type_id = 19 + level});
    types.push_back(type);
  }
  const Seconds seconds;
  EXPECT_TRUE(ReadJfr(MakeChunk(types, Pools({1, 35, 3, 1, 2, 3})), {}).has_value());
  EXPECT_LT(seconds.elapsed(), 5.0);
}

TEST(JfrHostileTest, TypesThatHoldThemselvesAreRefused) {
  const std::vector<Type> types = {
      {.name = "A", .id = 20, .fields = {{.name = "b", .type_id = 21, .array = true}}},
      {.name = "B", .id = 21, .fields = {{.name = "a", .type_id = 20}}}};
  const Result<profile::Profile> read = ReadJfr(MakeChunk(types, Pools({0})), {});
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("holds itself"), std::string::npos);
}

TEST(JfrHostileTest, TwoTypesOfOneIdAreRefused) {
  const std::vector<Type> types = {{.name = "A", .id = 20}, {.name = "B", .id = 20}};
  EXPECT_FALSE(ReadJfr(MakeChunk(types, Pools({0})), {}).has_value());
}

TEST(JfrHostileTest, ALotOfConstantsIsRefusedByMemory) {
  const std::vector<Type> types = {{.name = "Nothing", .id = 20}};
  constexpr uint64_t kCount = 1'000'000;
  const std::string pools = Pools({1, 20, kCount}, std::string(kCount, '\1'));
  ReadLimits limits;
  EXPECT_TRUE(ReadJfr(MakeChunk(types, pools), limits).has_value());
  limits.max_memory = size_t{16} << 20;
  const Result<profile::Profile> read = ReadJfr(MakeChunk(types, pools), limits);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, EFBIG);
}

TEST(JfrHostileTest, AProfileBeyondTheLimitIsRefused) {
  const std::string bytes = WriteJfr(MakeLargeProfile({.samples = 2'000}), {}).value();
  ReadLimits limits;
  limits.max_memory = size_t{256} << 10;
  const Result<profile::Profile> read = ReadJfr(bytes, limits);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, EFBIG);
}

// A million references of a few bytes to one long text.
TEST(JfrHostileTest, ALongTextIsNotCopiedForEachReference) {
  profile::Profile profile;
  const std::string text(100'000, 'x');
  profile.attribute_names = {text};
  profile::Context context{.span_id = 1, .root_span_id = 2};
  context.tags[0] = profile.Intern(text);
  profile.SetEndpoint(2, text);
  const profile::ContextId id = profile.AddContext(context);
  const profile::StackId stack = profile.AddStack(
      profile::kNone,
      profile.AddFrame({.function = profile.AddFunction({.name = context.tags[0]})}));
  const profile::ThreadId thread = profile.AddThread(1, text);
  for (unsigned i = 0; i < 50'000; ++i) {
    profile.AddSample({.time_ns = i, .thread = thread, .context = id, .stack = stack});
  }
  for (const JfrContext form : {JfrContext::kPool, JfrContext::kFlat}) {
    WriteOptions options;
    options.jfr_context = form;
    const std::string bytes = WriteJfr(profile, options).value();
    EXPECT_LT(bytes.size(), 3'000'000u);
    const Seconds seconds;
    const Result<profile::Profile> read = ReadJfr(bytes, {});
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->samples().size(), 50'000u);
    EXPECT_LT(seconds.elapsed(), 10.0);
  }
}

}  // namespace
}  // namespace spanprof::format
