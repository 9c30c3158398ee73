// `spanprof coro` on a scheduler with a planted mistake: the report names it, and nothing else; and
// on the healthy one it names nothing.

#include <cstdio>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command_fixture.h"
#include "tests/coroutine/target_process.h"

namespace spanprof::coroutine {
namespace {

using cli::Command;
using testing::HasSubstr;

class CoroCommand : public testing::Test {
 protected:
  // Records the scheduler with this mistake.
  void Record(const std::string& mistake) {
    Command record({"coro", "record", "-o", file_, "--", SPANPROF_PLANTED_SCHEDULER, mistake});
    ASSERT_EQ(record.Wait(), 0) << record.err;
    EXPECT_THAT(record.err, testing::Not(HasSubstr("lost")));
  }

  // With limits far from what the scheduler plants and from what a busy machine does to a healthy
  // one.
  nlohmann::json Findings() {
    Command report({"coro", "report", "--json", "--stuck-after", "800ms", "--hog-after", "1200ms",
                    "--leak-after", "800ms", "--late-after", "4s", file_});
    EXPECT_EQ(report.Wait(), 0) << report.err;
    const nlohmann::json document = nlohmann::json::parse(report.out);
    EXPECT_EQ(document["lost"], 0);
    EXPECT_TRUE(document["complete"]);
    return document["findings"];
  }

  const RecordingFolder folder_;
  const std::string file_ = folder_.File("run.coro");
};

TEST_F(CoroCommand, AHealthySchedulerHasNoFindings) {
  Record("healthy");
  EXPECT_EQ(Findings(), nlohmann::json::array());
}

// Ten tickers, each destroyed after its end, and one that was never started.
TEST_F(CoroCommand, TheReportTellsHowLongTheCoroutinesOfANameRanAndLived) {
  Record("healthy");
  Command report({"coro", "report", "--json", file_});
  ASSERT_EQ(report.Wait(), 0) << report.err;
  const nlohmann::json document = nlohmann::json::parse(report.out);
  uint64_t resumes = 0;
  uint64_t unfinished = 0;
  nlohmann::json ticker;
  for (const nlohmann::json& group : document["groups"]) {
    resumes += group["resumes"].get<uint64_t>();
    unfinished += group["destroyed"].get<uint64_t>() - group["finished"].get<uint64_t>();
    if (group["name"] == "ticker") ticker = group;
  }
  EXPECT_EQ(ticker["coroutines"], 10);
  EXPECT_EQ(ticker["finished"], 10);
  EXPECT_EQ(ticker["destroyed"], 10);
  EXPECT_GT(ticker["run_nanoseconds"], 0);
  EXPECT_GE(ticker["longest_life_nanoseconds"], 1'700'000'000);  // until `stop`, 18 rounds later
  EXPECT_EQ(unfinished, 1);
  uint64_t latencies = 0;
  for (const nlohmann::json& bucket : document["latency"]["buckets"]) {
    latencies += bucket["count"].get<uint64_t>();
  }
  EXPECT_EQ(latencies, document["latency"]["count"]);
  EXPECT_LE(latencies, resumes);
  EXPECT_GT(latencies, 0u);

  Command text({"coro", "report", file_});
  ASSERT_EQ(text.Wait(), 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("ticker\n"));
  EXPECT_THAT(text.out, HasSubstr("from ready to resumed\n"));
}

TEST_F(CoroCommand, ALostWakeupIsNamedWithItsPlace) {
  Record("lost_wakeup");
  const nlohmann::json findings = Findings();
  ASSERT_EQ(findings.size(), 1u) << findings.dump(2);
  EXPECT_EQ(findings[0]["kind"], "stuck");
  EXPECT_THAT(findings[0]["coroutine"], HasSubstr("receiver"));
  EXPECT_THAT(findings[0]["place"], HasSubstr("planted_scheduler.cc:"));
  EXPECT_THAT(findings[0]["place"], HasSubstr("Receiver(Scheduler&, Signal&)"));
  EXPECT_THAT(findings[0]["evidence"], HasSubstr("never resumed"));
}

TEST_F(CoroCommand, AHogIsNamed) {
  Record("hog");
  const nlohmann::json findings = Findings();
  ASSERT_EQ(findings.size(), 1u) << findings.dump(2);
  EXPECT_EQ(findings[0]["kind"], "hog");
  EXPECT_THAT(findings[0]["coroutine"], HasSubstr("cruncher"));
}

TEST_F(CoroCommand, ALeakIsNamed) {
  Record("leak");
  const nlohmann::json findings = Findings();
  ASSERT_EQ(findings.size(), 1u) << findings.dump(2);
  EXPECT_EQ(findings[0]["kind"], "leak");
  EXPECT_THAT(findings[0]["coroutine"], HasSubstr("cruncher"));
}

TEST_F(CoroCommand, ExportedLinesHaveTheFieldsOfTheExistingTool) {
  Record("healthy");
  Command jsonl({"coro", "export", file_});
  // Its output is larger than a pipe: the beginning is enough.
  const nlohmann::json line = nlohmann::json::parse(jsonl.ReadLine());
  for (const char* field : {"probe_id", "tid", "addr", "seq", "is_active", "ts"}) {
    EXPECT_TRUE(line.contains(field)) << field;
  }
  EXPECT_EQ(line["is_active"], true);
  Command csv({"coro", "export", "-f", "csv", file_});
  EXPECT_EQ(csv.ReadLine(), "ts,pid,tid,probe_id,kind,name,place");
}

TEST_F(CoroCommand, ARunningProcessShowsItsCoroutines) {
  Command running({"hog"}, 0, SPANPROF_PLANTED_SCHEDULER);
  std::string listed;
  // It may not have made its first coroutine yet.
  for (int look = 0; look < 20 && listed.find("ticker") == std::string::npos; ++look) {
    Command ps({"coro", "ps", "--for", "50", std::to_string(running.pid())});
    ps.Wait();
    listed = ps.out;
  }
  EXPECT_THAT(listed, HasSubstr("suspended"));
  EXPECT_THAT(listed, HasSubstr("planted_scheduler.cc:"));
  EXPECT_THAT(listed, HasSubstr("ticker"));
  EXPECT_EQ(running.Wait(), 0);
}

TEST_F(CoroCommand, ACoroutineWithoutANameIsShownByItsFunction) {
  Command record({"coro", "record", "-o", file_, "--", SPANPROF_PLANTED_SCHEDULER, "healthy"});
  const std::string recorder = std::to_string(record.pid());
  std::string listed;
  for (int look = 0; look < 100 && listed.find("Unstarted") == std::string::npos; ++look) {
    std::ifstream children("/proc/" + recorder + "/task/" + recorder + "/children");
    std::string child;
    children >> child;
    if (!child.empty()) {
      Command ps({"coro", "ps", child});
      ps.Wait();
      listed = ps.out;
    }
    usleep(5'000);
  }
  EXPECT_THAT(listed, HasSubstr("(anonymous namespace)::Unstarted() #"));
  EXPECT_EQ(record.Wait(), 0);
}

TEST_F(CoroCommand, SeveralRecordingsAreOneReport) {
  Record("lost_wakeup");
  const std::string other = folder_.File("other.coro");
  Command record({"coro", "record", "-o", other, "--", SPANPROF_PLANTED_SCHEDULER, "leak"});
  ASSERT_EQ(record.Wait(), 0) << record.err;
  Command report({"coro", "report", "--json", "--stuck-after", "800ms", "--hog-after", "1200ms",
                  "--leak-after", "800ms", "--late-after", "4s", other, file_});
  EXPECT_EQ(report.Wait(), 0) << report.err;
  const nlohmann::json document = nlohmann::json::parse(report.out);
  ASSERT_EQ(document["findings"].size(), 2u) << document.dump(2);
  EXPECT_EQ(document["findings"][0]["kind"], "stuck");
  EXPECT_EQ(document["findings"][1]["kind"], "leak");
  EXPECT_EQ(document["coroutines"], 28);
}

TEST_F(CoroCommand, WhatCannotBeDoneIsSaidWithAHint) {
  Command nothing({"coro", "record"});
  EXPECT_EQ(nothing.Wait(), 1);
  EXPECT_THAT(nothing.err, HasSubstr("either -p PID or a command"));
  Command report({"coro", "report", "/etc/passwd"});
  EXPECT_EQ(report.Wait(), 1);
  EXPECT_THAT(report.err, HasSubstr("not a coroutine recording"));
}

}  // namespace
}  // namespace spanprof::coroutine
