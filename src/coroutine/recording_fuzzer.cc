// Recordings that anybody may have written: none may crash the reader or make it take much memory.

#include <cstddef>
#include <cstdint>
#include <string>

#include "coroutine/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  spanprof::coroutine::RecordingVisitor visitor;
  std::string bytes(spanprof::coroutine::kRecordingMagic,
                    spanprof::coroutine::kRecordingMagicBytes);
  bytes.append(reinterpret_cast<const char*>(data), size);
  (void)spanprof::coroutine::ReadRecording(bytes, visitor);
  return 0;
}
