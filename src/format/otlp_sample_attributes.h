#pragma once

// What the attributes of OTLP samples say, found out once for each entry of the attribute table.

#include <cstdint>
#include <optional>
#include <vector>

#include "format/otlp_dictionary_reader.h"
#include "profile/profile.h"

namespace spanprof::format::otlp {

// All that a sample's attributes can say.
struct SampleContext {
  profile::Context context;  // without the ids of the link
  profile::StringId endpoint = profile::kNone;
  profile::StringId thread_name = profile::kNone;
  uint32_t tid = 0;
  std::optional<uint64_t> count;
  bool folded = false;
  profile::ThreadState state = profile::ThreadState::kUnknown;
};

class SampleAttributes {
 public:
  // Both have to outlive this. The dictionary has been read.
  SampleAttributes(DictionaryReader& dictionary, profile::Profile& profile)
      : dictionary_(dictionary), profile_(profile), meanings_(dictionary.attributes().size()) {}

  // Takes the attribute of this number into account.
  void Read(int64_t index, SampleContext& seen);

 private:
  enum class Role : uint8_t {
    kNotYet,
    kIgnored,
    kRootSpanId,
    kEndpoint,
    kThreadName,
    kThreadId,
    kState,
    kCount,
    kFolded,
    kTag,
  };
  struct Meaning {
    Role role = Role::kNotYet;
    unsigned position = 0;  // of a tag
    profile::StringId text = profile::kNone;
    uint64_t number = 0;
  };

  const Meaning& MeaningOf(size_t index);

  DictionaryReader& dictionary_;
  profile::Profile& profile_;
  std::vector<Meaning> meanings_;  // by the attribute's number
};

}  // namespace spanprof::format::otlp
