#pragma once

// Fills a profile from the events of one chunk.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/jfr_chunk.h"
#include "format/jfr_record.h"
#include "format/jfr_stack_reader.h"
#include "profile/profile.h"

namespace spanprof::format::jfr {

class ProfileReader {
 public:
  ProfileReader(const ChunkContents& contents, const ChunkHeader& header,
                profile::Profile& profile);

  // What the samples depend on has to be read first: call ReadFact for every event of the chunk,
  // then ReadSample. Both ignore what is not theirs. False: the fields do not fit the event.
  bool ReadFact(const EventSpan& event);
  bool ReadSample(const EventSpan& event);
  void Finish();
  // Bytes that the profile takes with what its own account leaves out.
  size_t memory_used() const { return profile_.memory_used() + fact_bytes_; }

 private:
  // What an event of a type is to us.
  struct Role {
    enum class Fact : uint8_t { kNone, kCounter, kPeriod, kEndpoint, kResource, kSetting };
    Fact fact = Fact::kNone;
    std::optional<profile::SampleKind> sample;
  };

  static Role RoleOf(const Type& type);
  void TakeAttributeNames();
  void ReadCounter(const Record& record);
  void ReadPeriod(const Record& record);
  void ReadSetting(const Record& record);
  void ReadCountAndValue(const Record& record, profile::Sample& sample);
  profile::ThreadId Thread(const FieldValue& value);
  profile::ThreadState State(const FieldValue& value);
  profile::ContextId Context(const Record& event);
  profile::ContextId ReadContext(const Record& record);
  void SetEndpoint(uint64_t root_span_id, const FieldValue& endpoint);
  uint64_t UnixTime(uint64_t ticks) const;
  uint64_t Nanoseconds(const FieldValue& span) const;

  const ChunkContents& contents_;
  ChunkHeader header_;
  profile::Profile& profile_;
  ConstantMemo memo_;
  StackReader stacks_;
  std::vector<Role> roles_;  // by type
  // A JDK that measures CPU time has samples of its older sampler besides.
  bool has_cpu_time_samples_ = false;
  std::vector<std::pair<std::string, uint64_t>> counters_;
  size_t fact_bytes_ = 0;  // of counters_ and Profile::resource
  Record record_;
  Record value_record_;
};

}  // namespace spanprof::format::jfr
