// Writes a recording whose texts are what databases and file formats stumble over:
// `write_awkward_recording FILE`.

#include <cstdio>
#include <string>
#include <vector>

#include "coroutine/recording.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace wire = spanprof::internal::coroutine;
using namespace spanprof::coroutine;  // NOLINT(google-build-using-namespace): a program of one file

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  spanprof::Result<RecordingWriter> writer = RecordingWriter::Create(argv[1]);
  if (!writer) {
    std::fprintf(stderr, "%s\n", spanprof::TextOf(writer.error()).c_str());
    return 1;
  }
  const std::string names[] = {"tab\there",
                               "new\nline\r",
                               "\\.",
                               "\\N",
                               "'; DROP TABLE events; --",
                               "\"quoted\",",
                               std::string("zero\0byte", 9),
                               "not utf-8: \xff\xfe",
                               "größer 協程",
                               ""};
  bool written =
      writer->Write(TargetInfo{1, 4242, 99, wire::kClockMonotonic, "back\\slash\n"}).has_value();
  written &= writer->Write(PlaceInfo{1, 1, 10, 2, "dir\\with\ttabs.cc", "f(\"x\\n\")"}).has_value();
  std::vector<RingEvent> events;
  uint32_t station = 0;
  for (const std::string& name : names) {
    written &= writer
                   ->Write(CoroutineInfo{1, station, 1, (1u << 24) | station, 5, 0x7f00, 0x5500,
                                         false, name})
                   .has_value();
    const uint64_t identity = wire::IdentityOf(station, 1);
    for (const auto& [kind, place] :
         {std::pair(wire::kKindBirth, 0u), {wire::kKindResume, 0u}, {wire::kKindSuspend, 1u}}) {
      events.push_back({1000 + events.size(), wire::WordOf(identity, kind, place)});
    }
    ++station;
  }
  written &= writer->WriteEvents(1, 0, 4243, 0, events).has_value();
  written &= writer->Write(Counters{1, {{"events_lost_ring_full", 7}}}).has_value();
  written &= writer->WriteEnd().has_value();
  return written ? 0 : 1;
}
