#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>

#include "format/format.h"
#include "format/perfetto_callstacks.h"
#include "format/perfetto_fields.h"
#include "format/perfetto_timeline.h"
#include "profile/names.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using namespace perfetto;  // NOLINT(google-build-using-namespace): the field numbers
using profile::Profile;

// The value of each field of a message that has it once.
std::map<uint32_t, uint64_t> Numbers(protozero::pbf_reader message) {
  std::map<uint32_t, uint64_t> numbers;
  while (message.next()) {
    if (message.wire_type() == protozero::pbf_wire_type::varint) {
      numbers[message.tag()] = message.get_uint64();
    } else {
      message.skip();
    }
  }
  return numbers;
}

// What a reader of one sequence has been told.
struct Sequence {
  std::map<uint32_t, std::set<uint64_t>> interned;  // numbers by field of InternedData
  uint64_t last_count = 0;
};

struct Trace {
  size_t samples = 0;
  std::map<uint32_t, uint64_t> sums;  // last timebase_count by sequence
  size_t begins = 0;
  size_t ends = 0;
  std::set<uint64_t> tracks;
};

class TraceReader {
 public:
  // Refers only to what was interned before on the same sequence.
  Trace Read(const std::string& bytes) {
    protozero::pbf_reader trace(bytes);
    while (trace.next(TraceField::kPacket)) ReadPacket(trace.get_message());
    return result_;
  }

 private:
  void ReadPacket(protozero::pbf_reader packet) {
    auto head = Numbers(packet);
    const auto id = static_cast<uint32_t>(head[PacketField::kSequenceId]);
    EXPECT_NE(id, 0u);
    if (head[PacketField::kSequenceFlags] == kStateCleared) sequences_[id] = {};
    EXPECT_TRUE(sequences_.contains(id));
    Sequence& sequence = sequences_[id];
    while (packet.next()) {
      switch (packet.tag()) {
        case PacketField::kInternedData:
          ReadInterned(packet.get_message(), sequence);
          break;
        case PacketField::kPerfSample:
          ReadSample(packet.get_message(), sequence, id);
          break;
        case PacketField::kTrackDescriptor:
          result_.tracks.insert(Numbers(packet.get_message())[TrackField::kUuid]);
          break;
        case PacketField::kTrackEvent:
          ReadEvent(packet.get_message(), sequence);
          break;
        default:
          packet.skip();
      }
    }
  }

  static void ExpectKnown(const Sequence& sequence, uint32_t field, uint64_t number) {
    const auto known = sequence.interned.find(field);
    ASSERT_NE(known, sequence.interned.end()) << field;
    EXPECT_TRUE(known->second.contains(number)) << field << " " << number;
  }

  static void ReadInterned(protozero::pbf_reader data, Sequence& sequence) {
    while (data.next()) {
      const uint32_t field = data.tag();
      protozero::pbf_reader message = data.get_message();
      auto fields = Numbers(message);
      EXPECT_TRUE(sequence.interned[field].insert(fields[1]).second) << "twice: " << fields[1];
      if (field == InternedField::kFrames) {
        ExpectKnown(sequence, InternedField::kFunctionNames, fields[FrameField::kFunctionName]);
        ExpectKnown(sequence, InternedField::kMappings, fields[FrameField::kMapping]);
      } else if (field == InternedField::kMappings) {
        ExpectKnown(sequence, InternedField::kMappingPaths, fields[MappingField::kPaths]);
        ExpectKnown(sequence, InternedField::kBuildIds, fields[MappingField::kBuildId]);
      } else if (field == InternedField::kCallstacks) {
        while (message.next(CallstackField::kFrames)) {
          ExpectKnown(sequence, InternedField::kFrames, message.get_uint64());
        }
      }
    }
  }

  void ReadSample(protozero::pbf_reader sample, Sequence& sequence, uint32_t id) {
    auto fields = Numbers(sample);
    ++result_.samples;
    if (fields.contains(PerfSampleField::kCallstack)) {
      ExpectKnown(sequence, InternedField::kCallstacks, fields[PerfSampleField::kCallstack]);
    }
    EXPECT_GE(fields[PerfSampleField::kTimebaseCount], sequence.last_count);
    sequence.last_count = fields[PerfSampleField::kTimebaseCount];
    result_.sums[id] = sequence.last_count;
  }

  void ReadEvent(protozero::pbf_reader event, Sequence& sequence) {
    auto fields = Numbers(event);
    EXPECT_TRUE(result_.tracks.contains(fields[EventField::kTrackUuid]));
    if (fields[EventField::kType] == kSliceEnd) {
      ++result_.ends;
      return;
    }
    ++result_.begins;
    ExpectKnown(sequence, InternedField::kEventNames, fields[EventField::kNameIid]);
    ExpectKnown(sequence, InternedField::kCategories, fields[EventField::kCategoryIids]);
  }

  std::map<uint32_t, Sequence> sequences_;
  Trace result_;
};

TEST(WritePerfetto, RefersOnlyToWhatItHasInterned) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Profile profile = profile::RandomProfile(seed, {.sample_count = 300});
    const auto bytes = WritePerfetto(profile, {});
    ASSERT_TRUE(bytes);
    const Trace trace = TraceReader().Read(*bytes);
    EXPECT_EQ(trace.samples, profile.samples().size());
    EXPECT_EQ(trace.begins, trace.ends);
    std::map<uint32_t, uint64_t> sums;
    for (const auto& sample : profile.samples()) {
      sums[2 + static_cast<uint32_t>(sample.kind)] += sample.value;
    }
    for (const auto& [sequence, sum] : sums) {
      if (sum == 0) continue;
      EXPECT_EQ(trace.sums.at(sequence), sum);
    }
    const Timelines timelines = BuildTimelines(profile);
    EXPECT_EQ(trace.tracks.size(), 1 + timelines.threads.size());
    size_t spans = 0;
    for (const ThreadTimeline& thread : timelines.threads) spans += thread.spans.size();
    EXPECT_EQ(trace.begins, spans);
  }
}

TEST(WritePerfetto, WithoutSamples) {
  const auto bytes = WritePerfetto(Profile(), {});
  ASSERT_TRUE(bytes);
  const Trace trace = TraceReader().Read(*bytes);
  EXPECT_EQ(trace.samples, 0u);
  EXPECT_EQ(trace.tracks.size(), 1u);
}

TEST(PerfettoCallstacks, CutsStacksWhenTheyGetTooMany) {
  Profile profile;
  std::vector<profile::FrameId> frames;
  for (uint64_t i = 1; i <= 10; ++i) frames.push_back(profile.AddFrame({.address = i}));
  const auto first = profile.AddStack(frames);
  frames.push_back(profile.AddFrame({.address = 11}));
  const auto second = profile.AddStack(frames);
  PerfettoCallstacks callstacks(profile, 15);
  std::string interned;
  EXPECT_EQ(callstacks.Intern(first, interned), first);
  EXPECT_EQ(callstacks.stacks_cut(), 0u);
  interned.clear();
  EXPECT_EQ(callstacks.Intern(second, interned), second);
  EXPECT_EQ(callstacks.stacks_cut(), 1u);
  EXPECT_NE(interned, "");
  interned.clear();
  EXPECT_EQ(callstacks.Intern(second, interned), second);
  EXPECT_EQ(callstacks.Intern(profile::kNone, interned), 0u);
  EXPECT_EQ(interned, "");
}

// A thread that was renamed is one thread, and two without a tid are two.
TEST(Timelines, ThreadsAreToldApartByTid) {
  Profile profile;
  const auto add = [&](uint64_t time, uint32_t tid, const char* name) {
    profile.AddSample({.time_ns = time, .thread = profile.AddThread(tid, name), .value = 1});
  };
  add(3, 5, "new name");
  add(1, 5, "old name");
  add(2, 0, "a");
  add(4, 0, "b");
  const Timelines timelines = BuildTimelines(profile);
  ASSERT_EQ(timelines.threads.size(), 3u);
  EXPECT_EQ(timelines.threads[0].tid, 5u);
  EXPECT_EQ(timelines.threads[0].name, "new name");
  EXPECT_EQ(timelines.threads[0].samples, (std::vector<uint32_t>{1, 0}));
  EXPECT_GE(timelines.threads[1].tid, kFirstMadeUpTid);
  EXPECT_EQ(timelines.begin_ns, 1u);
  EXPECT_EQ(timelines.end_ns, 4u);
}

}  // namespace
}  // namespace spanprof::format
