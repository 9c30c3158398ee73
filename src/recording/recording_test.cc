// Recordings through the C interface, read back from what they wrote. Every case is a process of
// its own.

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <set>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "export/temporary_directory.h"
#include "export/test_server.h"
#include "format/format.h"
#include "format/jfr_file.h"
#include "profile/profile.h"
#include <spanprof/context.hpp>

namespace spanprof::recording {
namespace {

using sending::TemporaryDirectory;

// Burns CPU time of the calling thread under one span.
void Work(uint64_t span, unsigned milliseconds) {
  spanprof::set(0, span * 10, span, span * 100);
  const clock_t end = clock() + static_cast<clock_t>(milliseconds) * CLOCKS_PER_SEC / 1000;
  volatile unsigned sum = 0;
  while (clock() < end) {
    for (unsigned i = 0; i < 10000; ++i) sum = sum + i;
  }
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

profile::Profile ReadFile(const std::string& path) {
  const std::string bytes = ReadBytes(path);
  const Result<OutputFormat> format = format::FormatOfBytes(bytes);
  EXPECT_TRUE(format) << path << ": " << bytes.size() << " bytes";
  if (!format) return profile::Profile();
  Result<profile::Profile> profile = format::ReadProfile(bytes, *format, {});
  EXPECT_TRUE(profile) << path << ": " << profile.error().message;
  return profile ? std::move(*profile) : profile::Profile();
}

uint64_t SamplesOfSpan(const profile::Profile& profile, uint64_t span) {
  uint64_t samples = 0;
  for (const profile::Sample& sample : profile.samples()) {
    const profile::Context& context = profile.contexts()[sample.context];
    if (context.span_id == span && context.trace_id_low == span * 10) samples += sample.count;
  }
  return samples;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.push_back(folder + "/" + entry->d_name);
  }
  closedir(directory);
  return names;
}

TEST(Recording, WritesEachFormatWhenItStops) {
  const TemporaryDirectory folder;
  for (const char* name : {"a.pb.gz", "a.otlp", "a.jfr", "a.folded"}) {
    const std::string file = folder.path() + "/" + name;
    ASSERT_EQ(spanprof_start(("cpu=1ms,file=" + file).c_str()), 0) << spanprof_error();
    Work(5, 150);
    ASSERT_EQ(spanprof_stop(), 0) << spanprof_error();
    const profile::Profile profile = ReadFile(file);
    EXPECT_GT(profile.samples().size(), 0u) << name;
    if (std::string(name) != "a.folded") {
      EXPECT_GT(SamplesOfSpan(profile, 5), 50u) << name;
    }
    struct stat status = {};
    ASSERT_EQ(stat(file.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
}

TEST(Recording, SaysWhatIsWrong) {
  EXPECT_EQ(spanprof_stop(), -ENODEV);
  EXPECT_EQ(spanprof_start("file=/nonexistent/a.pb.gz"), -ENOENT);
  EXPECT_NE(std::string(spanprof_error()).find("/nonexistent"), std::string::npos);
  EXPECT_EQ(spanprof_start("file=a.unknown"), -EINVAL);
  EXPECT_EQ(spanprof_start("to=https://example.org"), -EPROTONOSUPPORT);
  EXPECT_EQ(spanprof_start("stop"), -EINVAL);
  ASSERT_EQ(spanprof_start("cpu=10ms"), 0);
  EXPECT_EQ(spanprof_start("cpu=10ms"), -EBUSY);
  EXPECT_EQ(spanprof_stop(), 0);
  // The context core was initialised by start, with the default storage.
  EXPECT_EQ(spanprof_start("cpu=10ms,ctxstorage=otel"), -EBUSY);
  EXPECT_NE(std::string(spanprof_error()).find("ctxstorage=profiler"), std::string::npos);
}

TEST(Recording, DumpsInBetweenAndGoesOn) {
  const TemporaryDirectory folder;
  ASSERT_EQ(spanprof_start("cpu=1ms"), 0);
  Work(5, 150);
  ASSERT_EQ(spanprof_dump((folder.path() + "/first.pb.gz").c_str()), 0) << spanprof_error();
  Work(6, 150);
  ASSERT_EQ(spanprof_dump((folder.path() + "/second.jfr").c_str()), 0) << spanprof_error();
  ASSERT_EQ(spanprof_stop(), 0);
  // It had no file, so what it recorded is still there.
  ASSERT_EQ(spanprof_dump((folder.path() + "/third.pb.gz").c_str()), 0) << spanprof_error();
  const profile::Profile first = ReadFile(folder.path() + "/first.pb.gz");
  EXPECT_GT(SamplesOfSpan(first, 5), 50u);
  EXPECT_EQ(SamplesOfSpan(first, 6), 0u);
  for (const char* name : {"/second.jfr", "/third.pb.gz"}) {
    const profile::Profile both = ReadFile(folder.path() + name);
    EXPECT_GT(SamplesOfSpan(both, 5), 50u) << name;
    EXPECT_GT(SamplesOfSpan(both, 6), 50u) << name;
  }
  EXPECT_EQ(spanprof_dump((folder.path() + "/a.unknown").c_str()), -EINVAL);
}

// What is cut every second adds up to what was used: nothing is lost between two profiles.
TEST(Recording, CutsWithoutAGap) {
  const TemporaryDirectory folder;
  ASSERT_EQ(spanprof_start(("cpu=1ms,every=1s,file=" + folder.path() + "/p-%n.pb.gz").c_str()), 0);
  const clock_t before = clock();
  Work(5, 3500);
  const auto used = static_cast<uint64_t>(clock() - before) * 1'000'000'000u / CLOCKS_PER_SEC;
  ASSERT_EQ(spanprof_stop(), 0);
  const std::vector<std::string> files = FilesIn(folder.path());
  EXPECT_GE(files.size(), 3u);
  uint64_t sampled = 0, in_progress = 0;
  for (const std::string& file : files) {
    const profile::Profile profile = ReadFile(file);
    for (const profile::Sample& sample : profile.samples()) sampled += sample.value;
    const auto dropped = profile.counters().find("sampler.buffer_full");
    if (dropped != profile.counters().end()) in_progress += dropped->second;
  }
  EXPECT_EQ(in_progress, 0u);
  EXPECT_GT(sampled, used * 9 / 10);
}

TEST(Recording, JfrGrowsAndAKilledProcessKeepsIt) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/a.jfr";
  const pid_t child = fork();
  if (child == 0) {
    if (spanprof_start(("cpu=1ms,every=1s,file=" + file).c_str()) != 0) _exit(1);
    Work(5, 60000);
    _exit(0);
  }
  // Two finished chunks, and the next one begun.
  for (int i = 0; i < 600; ++i) {
    const auto read = format::ReadJfrFile(file, {});
    if (read && SamplesOfSpan(read->profile, 5) > 1200) break;
    usleep(50000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto read = format::ReadJfrFile(file, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_GT(SamplesOfSpan(read->profile, 5), 1200u);
}

TEST(Recording, AForkedChildRecordsItself) {
  const TemporaryDirectory folder;
  ASSERT_EQ(spanprof_start(("cpu=1ms,file=" + folder.path() + "/a.pb.gz").c_str()), 0);
  Work(5, 100);
  const pid_t child = fork();
  if (child == 0) {
    Work(6, 300);
    _exit(spanprof_stop() == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(spanprof_stop(), 0);
  const profile::Profile of_child =
      ReadFile(folder.path() + "/a-" + std::to_string(child) + ".pb.gz");
  EXPECT_GT(SamplesOfSpan(of_child, 6), 100u);
  const profile::Profile of_parent = ReadFile(folder.path() + "/a.pb.gz");
  EXPECT_GT(SamplesOfSpan(of_parent, 5), 30u);
  EXPECT_EQ(SamplesOfSpan(of_parent, 6), 0u);
}

// Its thread may not have run yet when it is asked to stop.
TEST(Recording, AForkedChildMayStopAtOnce) {
  const TemporaryDirectory folder;
  ASSERT_EQ(spanprof_start(("cpu=1ms,file=" + folder.path() + "/a.pb.gz").c_str()), 0);
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a child that hangs is a failure too
      _exit(spanprof_stop() == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0) << i;
  }
  EXPECT_EQ(spanprof_stop(), 0) << spanprof_error();
}

TEST(Recording, AForkedChildIsQuietIfAsked) {
  const TemporaryDirectory folder;
  ASSERT_EQ(spanprof_start(("cpu=1ms,fork=quiet,file=" + folder.path() + "/a.pb.gz").c_str()), 0);
  const pid_t child = fork();
  if (child == 0) {
    Work(6, 100);
    _exit(spanprof_stop() == -ENODEV ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(spanprof_stop(), 0);
  EXPECT_EQ(FilesIn(folder.path()).size(), 1u);
}

TEST(Recording, ForksWhileItRecordsAndCuts) {
  const TemporaryDirectory folder;
  ASSERT_EQ(spanprof_start(
                ("cpu=500us,wall=1ms,every=1s,file=" + folder.path() + "/%p-%n.pb.gz").c_str()),
            0);
  std::atomic<bool> stop{false};
  std::thread worker([&stop] {
    while (!stop) Work(7, 20);
  });
  for (int i = 0; i < 150; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Work(8, 5);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0) << i;
  }
  stop = true;
  worker.join();
  EXPECT_EQ(spanprof_stop(), 0) << spanprof_error();
}

TEST(Recording, SendsWhatItCuts) {
  std::atomic<unsigned> taken{0};
  sending::TestServer server([&taken](sending::TestServer::Connection& connection) {
    if (!connection.ReadRequest().empty()) ++taken;
    connection.Write(sending::kOk);
  });
  ASSERT_EQ(
      spanprof_start(
          ("cpu=1ms,every=1s,to=otlp+http://127.0.0.1:" + std::to_string(server.port())).c_str()),
      0)
      << spanprof_error();
  Work(5, 1500);
  ASSERT_EQ(spanprof_stop(), 0) << spanprof_error();
  EXPECT_GE(taken, 2u);
}

TEST(Recording, StartsAndStopsAgainAndAgain) {
  const TemporaryDirectory folder;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(spanprof_start(("cpu=1ms,wall=2ms,file=" + folder.path() + "/a.jfr").c_str()), 0)
        << spanprof_error();
    Work(5, 10);
    ASSERT_EQ(spanprof_stop(), 0) << spanprof_error();
  }
  const profile::Profile profile = ReadFile(folder.path() + "/a.jfr");
  EXPECT_GT(SamplesOfSpan(profile, 5), 100u);
}

}  // namespace
}  // namespace spanprof::recording
