#include "tests/coroutine/self_recording.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "coroutine/harvester.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/target_process.h"

namespace spanprof::coroutine {

std::vector<std::string> RecordedHere(const std::function<void()>& first,
                                      const std::function<void()>& body) {
  first();
  const RecordingFolder folder;
  Result<RecordingWriter> writer = RecordingWriter::Create(folder.File("run"));
  Result<Harvester> harvester = Harvester::Create(&*writer);
  const Result<void> attached = harvester->AttachProcess(getpid());
  EXPECT_TRUE(attached) << TextOf(attached.error());
  body();
  EXPECT_TRUE(harvester->Finish());
  RecordedEvents events;
  EXPECT_TRUE(events.Add(folder.File("run")).complete);
  return events.Lines();
}

}  // namespace spanprof::coroutine
