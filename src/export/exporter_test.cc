#include "export/exporter.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <string>
#include <vector>

#include "export/exporter_fixture.h"
#include "export/report_sending.h"

namespace spanprof::sending {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using Bodies = std::vector<std::string>;

TEST_F(ExporterTest, SendsAReportCompressed) {
  std::string body;
  TestServer server([&](Connection& c) { body = c.ReadRequest(), c.Write(kOk); });
  EXPECT_EQ(Send(SettingsFor(server.port())), Outcome::kSent);
  EXPECT_EQ(Unzip(body), "profile");
  const auto counters = counters_->Read();
  EXPECT_EQ(counters.at("report.sent"), 1u);
  EXPECT_EQ(counters.at("send.attempts"), 1u);
  EXPECT_EQ(counters.at("send.retries"), 0u);
}

TEST_F(ExporterTest, DoesNotCompressTwice) {
  std::string body;
  TestServer server([&](Connection& c) { body = c.ReadRequest(), c.Write(kOk); });
  const std::string compressed = *format::Compress("profile");
  EXPECT_EQ(Send(SettingsFor(server.port()), compressed), Outcome::kSent);
  EXPECT_EQ(body, compressed);
}

TEST_F(ExporterTest, TriesAgainWhenTheServerIsUnavailable) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    constexpr std::string_view kAnswers[] = {"429", "502", "503", "504"};
    if (c.number() > 4) return void(c.Write(kOk));
    c.Write("HTTP/1.1 " + std::string(kAnswers[c.number() - 1]) + " X\r\n\r\n");
  });
  EXPECT_EQ(Send(SettingsFor(server.port())), Outcome::kSent);
  EXPECT_EQ(Count(SendCounter::kAnswerRetryable), 4u);
  EXPECT_EQ(Count(SendCounter::kRetry), 4u);
  EXPECT_EQ(server.connections(), 5);
}

TEST_F(ExporterTest, TriesAgainWhenTheConnectionFails) {
  TestServer server([](Connection& c) {
    if (c.number() == 1) return c.Reset();
    c.ReadRequest();
    if (c.number() == 2) return;
    if (c.number() == 3) return void(c.Write("SSH-2.0\r\n"));
    c.Write(kOk);
  });
  EXPECT_EQ(Send(SettingsFor(server.port())), Outcome::kSent);
  EXPECT_EQ(Count(SendCounter::kErrorReset), 1u);
  EXPECT_EQ(Count(SendCounter::kErrorClosedEarly), 1u);
  EXPECT_EQ(Count(SendCounter::kErrorGarbage), 1u);
}

TEST_F(ExporterTest, HonoursRetryAfterUpToABound) {
  steady_clock::time_point first;
  steady_clock::time_point second;
  TestServer server([&](Connection& c) {
    c.ReadRequest();
    (c.number() == 1 ? first : second) = steady_clock::now();
    c.Write(c.number() == 1 ? "HTTP/1.1 429 X\r\nRetry-After: 3600\r\n\r\n" : kOk);
  });
  EXPECT_EQ(Send(SettingsFor(server.port())), Outcome::kSent);
  EXPECT_EQ(Count(SendCounter::kAnswerRetryAfter), 1u);
  EXPECT_GE(second - first, milliseconds(20));  // the policy's bound, above its back-off
}

TEST_F(ExporterTest, BackOffDoublesWithJitterAndABound) {
  const RetryPolicy policy = {.first = seconds(1),
                              .longest = seconds(10),
                              .longest_retry_after = seconds(30),
                              .deadline = seconds(60)};
  for (const std::uint64_t random : {std::uint64_t{0}, std::uint64_t{123456789}, UINT64_MAX}) {
    std::chrono::nanoseconds whole = seconds(1);
    for (unsigned failures = 1; failures < 100; ++failures) {
      const auto wait = BackOff(policy, failures, random, {});
      EXPECT_LE(wait, whole);
      EXPECT_GE(wait, whole / 2);
      whole = std::min<std::chrono::nanoseconds>(whole * 2, seconds(10));
    }
  }
  EXPECT_NE(BackOff(policy, 5, 1, {}), BackOff(policy, 5, 123456789, {}));
  EXPECT_EQ(BackOff(policy, 1, 0, seconds(20)), seconds(20));
  EXPECT_EQ(BackOff(policy, 1, 0, std::chrono::hours(24)), seconds(30));
}

TEST_F(ExporterTest, DoesNotRepeatWhatIsRefused) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
  });
  SendSettings settings = SettingsFor(server.port());
  settings.spool = directory_ / "spool";
  const Settlement settlement = Start(settings)->Finish(Later());
  EXPECT_EQ(settlement.outcome, Outcome::kRefused);
  EXPECT_NE(settlement.message.find("400"), std::string::npos);
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(Count(SendCounter::kReportRefused), 1u);
  EXPECT_EQ(Count(SendCounter::kSpoolWritten), 0u);
}

TEST_F(ExporterTest, DropsWithoutASpoolAndSaysWhy) {
  SendSettings settings = SettingsFor(DeadPort());
  settings.retry.deadline = milliseconds(50);
  const Settlement settlement = Start(settings)->Finish(Later());
  EXPECT_EQ(settlement.outcome, Outcome::kDropped);
  EXPECT_NE(settlement.message.find("127.0.0.1"), std::string::npos);
  EXPECT_EQ(Count(SendCounter::kReportDropped), 1u);
  EXPECT_EQ(Count(SendCounter::kErrorConnect), Count(SendCounter::kAttempt));
}

TEST_F(ExporterTest, CountsWhatIsWrongWithAnAnswerThatStands) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    if (c.number() == 1) return void(c.Write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx"));
    if (c.number() == 2) {
      c.Write("HTTP/1.1 200 OK\r\n\r\n");
      while (c.Write(std::string(8192, 'x'))) {
      }
      return;
    }
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x05");
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Send(SettingsFor(server.port())), Outcome::kSent);
  EXPECT_EQ(Count(SendCounter::kAnswerBodyCut), 1u);
  EXPECT_EQ(Count(SendCounter::kAnswerBodyTooLarge), 1u);
  EXPECT_EQ(Count(SendCounter::kAnswerPartialSuccess), 1u);
  EXPECT_EQ(Count(SendCounter::kReportSent), 3u);
}

TEST_F(ExporterTest, SpoolsAndSendsAfterARestartOldestFirst) {
  SendSettings dead = SettingsFor(DeadPort());
  dead.spool = directory_ / "spool";
  dead.retry.deadline = milliseconds(20);
  EXPECT_EQ(Send(dead, "second", 2), Outcome::kSpooled);
  EXPECT_EQ(Send(dead, "first", 1), Outcome::kSpooled);
  EXPECT_EQ(Count(SendCounter::kReportSpooled), 2u);

  counters_ = std::make_shared<SendCounters>();  // a new process
  Bodies bodies;
  {
    TestServer server(
        [&](Connection& c) { bodies.push_back(Unzip(c.ReadRequest())), c.Write(kOk); });
    SendSettings alive = SettingsFor(server.port());
    alive.spool = dead.spool;
    const auto exporter = Start(alive, "now", 3);
    server.AwaitConnections(3);
    while (Count(SendCounter::kSpoolSent) < 2) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(exporter->Finish(Later()).outcome, Outcome::kSent);
  }
  EXPECT_EQ(bodies, (Bodies{"now", "first", "second"}));
  EXPECT_TRUE(std::filesystem::is_empty(*dead.spool));
}

TEST_F(ExporterTest, WhatTheServerDoesNotTakeStaysInTheSpool) {
  SendSettings dead = SettingsFor(DeadPort());
  dead.spool = directory_ / "spool";
  dead.retry.deadline = milliseconds(20);
  EXPECT_EQ(Send(dead, "old", 1), Outcome::kSpooled);
  TestServer server([&](Connection& c) {
    c.ReadRequest();
    c.Write(c.number() == 1 ? kOk : kUnavailable);
  });
  SendSettings alive = SettingsFor(server.port());
  alive.spool = dead.spool;
  const auto exporter = Start(alive, "now", 2);
  while (Count(SendCounter::kAnswerRetryable) == 0) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(exporter->Finish(Later()).outcome, Outcome::kSent);
  EXPECT_FALSE(std::filesystem::is_empty(*dead.spool));
  EXPECT_EQ(Count(SendCounter::kSpoolSent), 0u);
}

TEST_F(ExporterTest, ASpoolThatMayNotBeUsedIsCountedAndSaid) {
  SendSettings settings = SettingsFor(DeadPort());
  settings.spool = directory_ / "spool";
  settings.retry.deadline = milliseconds(20);
  std::filesystem::create_directory_symlink("/tmp", *settings.spool);
  const Settlement settlement = Start(settings)->Finish(Later());
  EXPECT_EQ(settlement.outcome, Outcome::kDropped);
  EXPECT_NE(settlement.message.find("symbolic link"), std::string::npos) << settlement.message;
  EXPECT_EQ(Count(SendCounter::kSpoolUnusable), 1u);
  EXPECT_EQ(Count(SendCounter::kReportDropped), 1u);
}

TEST_F(ExporterTest, FinishSpoolsWhatASlowServerHolds) {
  TestServer server([](Connection& c) { c.HoldOpen(); });
  SendSettings settings = SettingsFor(server.port());
  settings.spool = directory_ / "spool";
  const auto exporter = Start(settings);
  server.AwaitConnections(1);
  EXPECT_FALSE(exporter->is_settled());
  EXPECT_EQ(exporter->Finish(steady_clock::now() + seconds(2)).outcome, Outcome::kSpooled);
  EXPECT_TRUE(exporter->is_settled());
  EXPECT_EQ(exporter->Finish(Later()).outcome, Outcome::kSpooled);
  EXPECT_EQ(Count(SendCounter::kReportSpooled), 1u);
  EXPECT_EQ(Count(SendCounter::kSpoolWritten), 1u);
}

TEST_F(ExporterTest, TheDestructorSettlesWhatIsNotSent) {
  TestServer server([](Connection& c) { c.HoldOpen(); });
  SendSettings settings = SettingsFor(server.port());
  settings.spool = directory_ / "spool";
  auto exporter = Start(settings);
  server.AwaitConnections(1);
  exporter.reset();  // a test that waits for the server here runs into its time-out
  EXPECT_EQ(Count(SendCounter::kReportSpooled) + Count(SendCounter::kReportDropped), 1u);
}

TEST_F(ExporterTest, FinishEndsALongBackOff) {
  SendSettings settings = SettingsFor(DeadPort());
  settings.retry = {.first = std::chrono::minutes(100),
                    .longest = std::chrono::minutes(100),
                    .longest_retry_after = {},
                    .deadline = std::chrono::hours(24)};
  const auto exporter = Start(settings);
  while (Count(SendCounter::kErrorConnect) == 0) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(exporter->Finish(steady_clock::now() + milliseconds(100)).outcome, Outcome::kDropped);
}

TEST_F(ExporterTest, TheThreadTakesNoSignalOfTheProgram) {
  TestServer server([](Connection& c) { c.HoldOpen(); });
  const auto exporter = Start(SettingsFor(server.port()));
  server.AwaitConnections(1);
  bool found = false;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    if (name != "spanprof-send") continue;
    found = true;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      EXPECT_NE(std::stoull(line.substr(8), nullptr, 16) & (1ULL << (SIGUSR1 - 1)), 0u) << line;
    }
  }
  EXPECT_TRUE(found);
  sigset_t mine;
  pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGUSR1), 0);  // the caller's mask is as it was
}

}  // namespace
}  // namespace spanprof::sending
