#pragma once

// Frames and stacks as the JDK's types have them, so that its tools print something sensible, with
// what only our model knows beside it.
//
// A native function is a method of a class named like the file it is mapped from:
// `libc.so.6.malloc`. Each of the model's frames, its line aside, is a method of its own; tools
// that go by name add them up again. Under the key of that method the pool spanprof.Frame has the
// rest.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/jfr_pool_bytes.h"
#include "profile/profile.h"

namespace spanprof::format::jfr {

// What tools are to show of a frame.
struct FrameLabel {
  std::string class_name;
  std::string method_name;
};
FrameLabel LabelOf(const profile::Profile& profile, profile::FrameId frame);

class FramePools {
 public:
  explicit FramePools(const profile::Profile& profile);

  // Writes the stack as the next entry of the pool of stack traces.
  void AddStackTrace(profile::StackId stack);

  const PoolBytes& symbols() const { return symbols_.pool(); }
  const PoolBytes& classes() const { return classes_; }
  const PoolBytes& methods() const { return methods_; }
  const PoolBytes& frame_types() const { return frame_types_; }
  const PoolBytes& frame_kinds() const { return frame_kinds_; }
  const PoolBytes& functions() const { return functions_; }
  const PoolBytes& mappings() const { return mappings_; }
  const PoolBytes& frames() const { return frames_; }
  const PoolBytes& stack_traces() const { return stack_traces_; }

 private:
  struct HashOfFrame {
    size_t operator()(const profile::Frame& frame) const;
  };

  uint64_t Symbol(profile::StringId text);
  uint64_t Class(const std::string& name);
  uint64_t Function(profile::FunctionId id);
  uint64_t Mapping(profile::MappingId id);
  uint64_t Method(profile::FrameId id);

  const profile::Profile& profile_;
  TextPool symbols_;
  PoolBytes classes_;
  PoolBytes methods_;
  PoolBytes frame_types_;
  PoolBytes frame_kinds_;
  PoolBytes functions_;
  PoolBytes mappings_;
  PoolBytes frames_;
  PoolBytes stack_traces_;

  std::unordered_map<std::string, uint64_t> class_keys_;
  std::unordered_map<profile::Frame, uint64_t, HashOfFrame> method_keys_;  // by frame without line
  // By the model's number; 0: not written yet.
  std::vector<uint64_t> method_of_frame_;
  std::vector<uint64_t> function_keys_;
  std::vector<uint64_t> mapping_keys_;
};

}  // namespace spanprof::format::jfr
