#pragma once

// Stack traces of a chunk as stacks of the model. Chunks of ours have all of a frame (see
// jfr_frame_pools.h); others have a class, a method and a kind of frame, from which a name is made.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/jfr_record.h"
#include "profile/profile.h"

namespace spanprof::format::jfr {

// What was made of each constant already, by its position in the index: each is read once, however
// many events refer to it. A hostile file may refer to one constant as several things, so what was
// made of it as one of them is not found as another.
class ConstantMemo {
 public:
  enum class Use : uint8_t {
    kText,
    kStack,
    kMethod,
    kFunction,
    kMapping,
    kFrameType,
    kThread,
    kState,
    kContext
  };

  explicit ConstantMemo(size_t size) : numbers_(size) {}

  std::optional<uint32_t> Find(Use use, size_t position) const {
    const Entry& entry = numbers_[position];
    if (!entry.known || entry.use != use) return std::nullopt;
    return entry.number;
  }
  uint32_t Store(Use use, size_t position, uint32_t number) {
    numbers_[position] = {.number = number, .use = use, .known = true};
    return number;
  }

 private:
  struct Entry {
    uint32_t number = 0;
    Use use = Use::kText;
    bool known = false;
  };
  std::vector<Entry> numbers_;
};

class StackReader {
 public:
  StackReader(const ChunkContents& contents, ConstantMemo& memo, profile::Profile& profile);

  // The text of a field, in the profile.
  profile::StringId Text(const FieldValue& value);
  // The stack that a field of an event refers to.
  profile::StackId Stack(const FieldValue& value);

 private:
  // What a method says of a frame: all but its line, and its kind if that is left to the frame.
  struct Method {
    profile::Frame frame;
    bool is_ours = false;
    profile::StringId qualified_name = profile::kNone;  // class and method
    profile::StringId name = profile::kNone;            // method alone
  };

  profile::StackId ReadStack(size_t position);
  profile::FrameId ReadFrame(const Record& record);
  const Method& MethodOf(size_t position);
  Method ReadMethod(size_t position);
  bool ReadOurFrame(uint64_t method_key, profile::Frame& frame);
  profile::FunctionId Function(const FieldValue& value);
  profile::MappingId Mapping(const FieldValue& value);
  // Sets kind and inlined by the frame type that other profilers gave.
  void ReadFrameType(const Record& record, profile::Frame& frame);

  const ChunkContents& contents_;
  ConstantMemo& memo_;
  profile::Profile& profile_;
  std::optional<uint32_t> our_frames_;  // the type
  bool has_kernel_frames_ = false;      // async-profiler's, where "Native" is not a Java method
  std::vector<Method> methods_;
};

}  // namespace spanprof::format::jfr
