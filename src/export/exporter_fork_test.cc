// A fork in the middle of a report: the parent goes on, the child has nothing to do with it.

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/wait.h>

#include "export/exporter.h"
#include "export/exporter_fixture.h"

namespace spanprof::sending {
namespace {

using ExporterForkTest = ExporterTest;

// Runs `function` in a forked child, which ends with its result, and returns that.
template <class Function>
int InChild(Function function) {
  const pid_t child = fork();
  if (child == 0) _exit(function());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ExporterForkTest, LeavesTheReportToTheParent) {
  std::atomic<bool> answer{false};
  std::atomic<int> received{0};
  TestServer server([&](Connection& c) {
    c.ReadRequest();
    ++received;
    while (!answer && !c.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    c.Write(kOk);
  });
  SendSettings settings = SettingsFor(server.port());
  settings.spool = directory_ / "spool";
  auto exporter = Start(settings);
  while (received == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  const int code = InChild([&] {
    if (!exporter->is_settled()) return 1;
    if (exporter->Finish(Later()).outcome != Outcome::kLeftToParent) return 2;
    exporter.reset();
    if (Count(SendCounter::kReportLeftToParent) != 1) return 3;
    if (Count(SendCounter::kReportSpooled) != 0 || Count(SendCounter::kReportDropped) != 0)
      return 4;
    return std::filesystem::exists(*settings.spool) ? 5 : 0;
  });
  EXPECT_EQ(code, 0);

  answer = true;
  EXPECT_EQ(exporter->Finish(Later()).outcome, Outcome::kSent);
  EXPECT_EQ(Count(SendCounter::kReportLeftToParent), 0u);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(ExporterForkTest, TheChildSendsReportsOfItsOwn) {
  TestServer slow([](Connection& c) { c.HoldOpen(); });
  TestServer server([](Connection& c) { c.ReadRequest(), c.Write(kOk); });
  auto exporter = Start(SettingsFor(slow.port()));
  slow.AwaitConnections(1);
  const int code = InChild([&] {
    exporter.reset();
    return Send(SettingsFor(server.port()), "the child's") == Outcome::kSent ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_FALSE(exporter->is_settled());
  EXPECT_EQ(exporter->Finish(std::chrono::steady_clock::now()).outcome, Outcome::kDropped);
}

TEST_F(ExporterForkTest, TheChildsCopyDoesNotKeepTheConnectionOpen) {
  std::atomic<bool> hung_up{false};
  TestServer server([&](Connection& c) {
    c.ReadRequest();
    c.HoldOpen();
    if (!c.stopping()) hung_up = true;
  });
  auto exporter = Start(SettingsFor(server.port()));
  server.AwaitConnections(1);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  exporter->Finish(std::chrono::steady_clock::now());
  while (!hung_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// The mutex may be held by the exporter's thread at the moment of the fork.
TEST_F(ExporterForkTest, ForksAtAnyMomentHangNothing) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write(c.number() % 2 == 0 ? kOk : kUnavailable);
  });
  SendSettings settings = SettingsFor(server.port());
  settings.spool = directory_ / "spool";
  constexpr int kReports = 20;
  for (int i = 0; i < kReports; ++i) {
    auto exporter = Start(settings, "profile", i);
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(InChild([&] {
                  const Outcome outcome = exporter->Finish(Later()).outcome;
                  exporter.reset();
                  return outcome == Outcome::kLeftToParent ? 0 : 1;
                }),
                0);
    }
    EXPECT_EQ(exporter->Finish(Later()).outcome, Outcome::kSent);
  }
  EXPECT_EQ(Count(SendCounter::kReportSent), std::uint64_t{kReports});
}

TEST_F(ExporterForkTest, NoDescriptorSurvivesAnExec) {
  TestServer server([](Connection& c) { c.HoldOpen(); });
  SendSettings settings = SettingsFor(server.port());
  settings.spool = directory_ / "spool";
  auto exporter = Start(settings);
  server.AwaitConnections(1);
  EXPECT_EQ(InChild([] {
              execl("/bin/sh", "sh", "-c",
                    "for f in /proc/self/fd/*; do case $(readlink $f) in socket:*|*eventfd*) "
                    "[ ${f##*/} -gt 2 ] && exit 9;; esac; done; exit 0",
                    nullptr);
              return 8;
            }),
            0);
}

}  // namespace
}  // namespace spanprof::sending
