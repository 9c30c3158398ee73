// The flight recorder of the command, with each reason to write that it has.

#include <chrono>
#include <filesystem>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command_fixture.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/target_process.h"

namespace spanprof::coroutine {
namespace {

using cli::Command;
using testing::HasSubstr;

class CoroFlight : public testing::Test {
 protected:
  // Waits until the file is there and whole; false after a minute.
  [[nodiscard]] static bool Appears(const std::string& file) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
      RecordingVisitor nothing;
      const Result<ReadSummary> summary = ReadRecordingFile(file, nothing);
      if (summary && summary->complete) return true;
      usleep(10'000);
    }
    return false;
  }

  static nlohmann::json Report(const std::string& file) {
    Command report({"coro", "report", "--json", "--stuck-after", "300ms", "--hog-after", "1200ms",
                    "--late-after", "4s", file});
    EXPECT_EQ(report.Wait(), 0) << report.err;
    return nlohmann::json::parse(report.out);
  }

  // What the dump says is stuck is what the scheduler forgot.
  static void ExpectTheLostWakeup(const std::string& file) {
    const nlohmann::json document = Report(file);
    ASSERT_EQ(document["findings"].size(), 1u) << document.dump(2);
    EXPECT_EQ(document["findings"][0]["kind"], "stuck");
    EXPECT_THAT(document["findings"][0]["coroutine"], HasSubstr("receiver"));
    EXPECT_THAT(document["findings"][0]["place"], HasSubstr("planted_scheduler.cc:"));
  }

  // The name of the recorder's dump of that number, counted from 1.
  [[nodiscard]] std::string Flight(int number) const {
    return number == 1 ? file_ : folder_.File("flight-" + std::to_string(number) + ".coro");
  }

  static size_t EventsIn(const std::string& file) {
    RecordedEvents events;
    (void)events.Add(file);
    return events.Count();
  }

  const RecordingFolder folder_;
  const std::string file_ = folder_.File("flight.coro");
};

TEST_F(CoroFlight, IsWrittenWhenSomebodyAsksAndOnASignalAndAtTheEnd) {
  Command target({"lost_wakeup"}, 0, SPANPROF_PLANTED_SCHEDULER);
  std::string attached;
  // It may not have made its first coroutine yet.
  for (int look = 0; look < 100 && attached.find("ticker") == std::string::npos; ++look) {
    Command ps({"coro", "ps", "--for", "20", std::to_string(target.pid())});
    ps.Wait();
    attached = ps.out;
  }
  Command recorder(
      {"coro", "record", "--flight", "10s", "-o", file_, "-p", std::to_string(target.pid())});
  // The recorder may not have attached yet, or not have seen an event since it did.
  int dumps = 0;
  size_t events_asked_for = 0;
  for (int attempt = 0; attempt < 200 && events_asked_for == 0; ++attempt) {
    usleep(5'000);
    Command dump({"coro", "dump", std::to_string(target.pid())});
    if (dump.Wait() != 0) continue;
    ++dumps;
    ASSERT_EQ(dump.out, Flight(dumps) + "\n");
    ASSERT_TRUE(Appears(Flight(dumps)));
    events_asked_for = EventsIn(Flight(dumps));
  }
  EXPECT_GT(events_asked_for, 0u) << dumps << " dumps";
  recorder.Signal(SIGUSR1);
  EXPECT_TRUE(Appears(Flight(dumps + 1)));
  EXPECT_EQ(target.Wait(), 0);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err;
  EXPECT_THAT(recorder.err, HasSubstr("SIGUSR1"));
  EXPECT_GT(EventsIn(Flight(dumps + 2)), events_asked_for);
}

TEST_F(CoroFlight, IsWrittenWhenACoroutineGetsStuck) {
  Command recorder({"coro", "record", "--flight", "10s", "--on-stuck", "300ms", "-o", file_, "--",
                    SPANPROF_PLANTED_SCHEDULER, "lost_wakeup"});
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err;
  EXPECT_THAT(recorder.err, HasSubstr("'receiver' of process"));
  EXPECT_THAT(recorder.err, HasSubstr("is stuck at"));
  ExpectTheLostWakeup(file_);
  EXPECT_TRUE(Appears(folder_.File("flight-2.coro")));  // at the end
  EXPECT_NE(access(folder_.File("flight-3.coro").c_str(), F_OK), 0);
}

TEST_F(CoroFlight, AHealthySchedulerIsNotTakenForStuck) {
  Command recorder({"coro", "record", "--flight", "10s", "--on-stuck", "1s", "-o", file_, "--",
                    SPANPROF_PLANTED_SCHEDULER, "healthy"});
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err;
  EXPECT_THAT(recorder.err, testing::Not(HasSubstr("is stuck")));
}

TEST_F(CoroFlight, KeepsTheWindowAndWhatIsStuckForLonger) {
  Command recorder({"coro", "record", "--flight", "200ms", "-o", file_, "--",
                    SPANPROF_PLANTED_SCHEDULER, "lost_wakeup"});
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err;
  // It was suspended two seconds before the end.
  ExpectTheLostWakeup(file_);
  const nlohmann::json document = Report(file_);
  EXPECT_GT(document["counters"]["flight_events_forgotten"], 1000);
  EXPECT_LT(document["events"], document["counters"]["events_received"]);
}

TEST_F(CoroFlight, ASignalForADumpDoesNotEndARecordingThatIsNoFlightRecorder) {
  Command recorder({"coro", "record", "-o", file_, "--", SPANPROF_PLANTED_SCHEDULER, "healthy"});
  // The file is there once the signal is caught.
  while (access(file_.c_str(), F_OK) != 0) usleep(5'000);
  recorder.Signal(SIGUSR1);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err;
  EXPECT_THAT(recorder.err, HasSubstr("SIGUSR1 asks for a dump"));
  EXPECT_GT(EventsIn(file_), 0u);
}

TEST_F(CoroFlight, ThereIsAHintWhereThereIsNoFlightRecorder) {
  Command target({"hog"}, 0, SPANPROF_PLANTED_SCHEDULER);
  std::string said;
  for (int look = 0; look < 100 && said.find("no flight recorder") == std::string::npos; ++look) {
    Command dump({"coro", "dump", std::to_string(target.pid())});
    EXPECT_EQ(dump.Wait(), 1);
    said = dump.err;
    usleep(5'000);
  }
  EXPECT_THAT(said, HasSubstr("--flight 30s"));
  Command alone({"coro", "record", "--on-stuck", "1s", "--", "true"});
  EXPECT_EQ(alone.Wait(), 1);
  EXPECT_THAT(alone.err, HasSubstr("give --flight too"));
}

}  // namespace
}  // namespace spanprof::coroutine
