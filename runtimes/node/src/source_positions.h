#pragma once

// Where a function of JavaScript stands: as V8 says, or where the source map says that it was
// written. Answers are kept, for a map is asked by a call of JavaScript. For the isolate's thread.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <v8.h>

#include "profile/profile.h"

namespace spanprof::node {

struct SourcePosition {
  std::string name;
  std::string file;   // or a URL, as long as it is V8's
  uint32_t line = 0;  // of the function; 0: not known
  uint32_t column = 0;
};

// V8 counts from 1, and has 0 or less for what it does not know.
inline uint32_t KnownNumber(int number) { return number > 0 ? static_cast<uint32_t>(number) : 0; }

profile::FrameId AddFrame(profile::Profile& profile, const SourcePosition& position,
                          profile::FrameKind kind);

class SourcePositions {
 public:
  void UseMapper(v8::Isolate* isolate, v8::Local<v8::Function> mapper);
  void Reset();

  // `given` is as V8 has it. `may_call`: JavaScript may run.
  SourcePosition Of(v8::Isolate* isolate, SourcePosition given, bool may_call);

  uint64_t mapper_threw() const { return mapper_threw_; }

 private:
  SourcePosition Ask(v8::Isolate* isolate, SourcePosition given);

  v8::Global<v8::Function> mapper_;
  std::unordered_map<std::string, SourcePosition> known_;
  uint64_t mapper_threw_ = 0;
};

}  // namespace spanprof::node
