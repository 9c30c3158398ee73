// The built command, run on real processes that publish through the C interface.

#include <chrono>
#include <cstring>
#include <latch>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/syscall.h>

#include "cli/command_fixture.h"
#include <spanprof/context.h>

namespace spanprof::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

void Init(const char* options) {
  if (spanprof_init(options) != 0) {
    std::fprintf(stderr, "spanprof_init(%s): %s\n", options, spanprof_error());
    _exit(3);
  }
}

json ContextOf(const Target& target, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"context", target.pid_text(), "--json"});
  Command command(more);
  EXPECT_EQ(command.Wait(), 0) << command.err;
  EXPECT_EQ(command.err, "");
  json document = json::parse(command.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << command.out;
  return document;
}

TEST(ContextCommand, ShowsA128BitTraceWithTagsAndResource) {
  const Target target([] {
    pthread_setname_np(pthread_self(), "checkout");
    Init("ctxstorage=otel,attributes=http.route;tenant");
    spanprof_resource_set("service.name", "shop");
    spanprof_context_set_trace(0x0123456789abcdef, 0xfedcba9876543210, 0xc, 0xd);
    spanprof_context_set_tag(0, "/cart", 5);
    spanprof_context_set_tag(1, "a\033[2J\xFF", 6);
  });
  const json document = ContextOf(target);
  EXPECT_EQ(document["pid"], target.pid());
  EXPECT_EQ(document["records"], (json{"slot_table", "otep_4947", "otep_4719"}));
  EXPECT_EQ(document["resource"]["service.name"], "shop");
  ASSERT_EQ(document["threads"].size(), 1u) << document;
  const json& thread = document["threads"][0];
  EXPECT_EQ(thread["tid"], target.pid());
  EXPECT_EQ(thread["name"], "checkout");
  EXPECT_EQ(thread["trace_id"], "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(thread["span_id"], "000000000000000c");
  EXPECT_EQ(thread["root_span_id"], "000000000000000d");
  EXPECT_EQ(thread["source"], "otep_4947");
  EXPECT_EQ(thread["attributes"]["http.route"], "/cart");
  EXPECT_EQ(thread["attributes"]["tenant"], "a\033[2J\xEF\xBF\xBD");
  for (const auto& [name, value] : document["counters"].items()) EXPECT_EQ(value, 0) << name;
}

TEST(ContextCommand, ShowsTheRootOfAPlainSetAndNoTraceId) {
  const Target target([] {
    Init("ctxstorage=otel");
    spanprof_context_set_trace(1, 2, 3, 4);
    spanprof_context_set(0xc, 0xd);
  });
  const json document = ContextOf(target);
  ASSERT_EQ(document["threads"].size(), 1u) << document;
  const json& thread = document["threads"][0];
  EXPECT_FALSE(thread.contains("trace_id")) << thread;
  EXPECT_EQ(thread["span_id"], "000000000000000c");
  EXPECT_EQ(thread["root_span_id"], "000000000000000d");
  EXPECT_FALSE(thread.contains("attributes"));
}

TEST(ContextCommand, ShowsA64BitTraceId) {
  const Target target([] {
    Init("ctxstorage=otel");
    spanprof_context_set_trace(0, 0xb, 0xc, 0xd);
  });
  const json thread = ContextOf(target)["threads"][0];
  EXPECT_EQ(thread["trace_id"], "0000000000000000000000000000000b");
  EXPECT_EQ(thread["root_span_id"], "000000000000000d");
}

TEST(ContextCommand, ShowsThreadsWithoutAContextOnlyWithAll) {
  const Target target([] {
    Init("ctxstorage=otel");
    spanprof_context_set(1, 2);
    spanprof_context_clear();
  });
  EXPECT_TRUE(ContextOf(target)["threads"].empty());
  const json all = ContextOf(target, {"--all"});
  ASSERT_EQ(all["threads"].size(), 1u);
  EXPECT_EQ(all["threads"][0].size(), 2u) << all;
}

TEST(ContextCommand, ShowsEachThreadsOwnContext) {
  const Target target([] {
    Init("ctxstorage=otel");
    static std::latch ready(3);
    for (uint64_t id = 1; id <= 3; ++id) {
      std::thread([id] {
        pthread_setname_np(pthread_self(), ("worker" + std::to_string(id)).c_str());
        spanprof_context_set_trace(id, id, id, id);
        ready.count_down();
        for (;;) pause();
      }).detach();
    }
    ready.wait();
  });
  const json document = ContextOf(target);
  ASSERT_EQ(document["threads"].size(), 3u) << document;
  for (const json& thread : document["threads"]) {
    const std::string name = thread["name"];
    EXPECT_EQ(thread["span_id"], "000000000000000" + name.substr(6)) << thread;
  }
}

TEST(ContextCommand, CountsAThreadWhoseSlotBelongsToAnother) {
  const Target target([] {
    Init("ctxstorage=otel,ctxslots=1");
    spanprof_context_set(0xa, 0xb);
    static std::latch ready(1);
    std::thread([] {
      spanprof_context_set(0xc, 0xd);
      ready.count_down();
      for (;;) pause();
    }).detach();
    ready.wait();
  });
  const json document = ContextOf(target);
  ASSERT_EQ(document["threads"].size(), 1u) << document;
  EXPECT_EQ(document["threads"][0]["span_id"], "000000000000000a");
  EXPECT_EQ(document["counters"]["collision"], 1);
}

TEST(ContextCommand, TranslatesThreadNumbersOfAnotherPidNamespace) {
  int outer[2];
  ASSERT_EQ(pipe(outer), 0);
  const Target parent([&] {
    if (unshare(CLONE_NEWPID) != 0) {
      if (write(outer[1], "-", 1) != 1) _exit(1);
      return;
    }
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Init("ctxstorage=otel");
      static std::latch ready(1);
      std::thread([] {
        spanprof_context_set(0xc, 0xd);
        ready.count_down();
        for (;;) pause();
      }).detach();
      ready.wait();
      if (write(outer[1], "+", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char state = 0;
    if (read(outer[0], &state, 1) != 1) _exit(1);
    const std::string text = std::to_string(child);
    if (write(outer[1], text.data(), text.size()) < 0) _exit(1);
  });
  char text[16] = {};
  ASSERT_GT(read(outer[0], text, sizeof(text) - 1), 0);
  close(outer[0]);
  close(outer[1]);
  if (text[0] == '-') GTEST_SKIP() << "may not make a pid namespace";
  Command command({"context", text, "--json"});
  ASSERT_EQ(command.Wait(), 0) << command.err;
  const json document = json::parse(command.out);
  ASSERT_EQ(document["threads"].size(), 1u) << document;
  EXPECT_EQ(document["threads"][0]["span_id"], "000000000000000c");
  EXPECT_NE(document["threads"][0]["tid"], 2);
}

TEST(ContextCommand, RefusesATableInheritedThroughAForkThatNobodyToldUsOf) {
  int numbers[2];
  ASSERT_EQ(pipe(numbers), 0);
  const Target parent([&] {
    Init("ctxstorage=otel");
    spanprof_context_set(0xc, 0xd);
    const pid_t child = _Fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
    if (write(numbers[1], &child, sizeof(child)) != sizeof(child)) _exit(1);
  });
  pid_t child = 0;
  ASSERT_EQ(read(numbers[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  close(numbers[0]);
  close(numbers[1]);
  Command command({"context", std::to_string(child)});
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, HasSubstr("inherited through a fork"));
}

TEST(ContextCommand, ReadsTheChildOfAFork) {
  int numbers[2];
  ASSERT_EQ(pipe(numbers), 0);
  const Target parent([&] {
    Init("ctxstorage=otel");
    spanprof_resource_set("service.name", "shop");
    spanprof_context_set(0xc, 0xd);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const pid_t self = getpid();
      if (write(numbers[1], &self, sizeof(self)) != sizeof(self)) _exit(1);
      for (;;) pause();
    }
  });
  pid_t child = 0;
  ASSERT_EQ(read(numbers[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  close(numbers[0]);
  close(numbers[1]);
  Command command({"context", std::to_string(child), "--json"});
  ASSERT_EQ(command.Wait(), 0) << command.err;
  const json document = json::parse(command.out);
  ASSERT_EQ(document["threads"].size(), 1u) << document;
  EXPECT_EQ(document["threads"][0]["tid"], child);
  EXPECT_EQ(document["threads"][0]["span_id"], "000000000000000c");
  EXPECT_EQ(document["resource"]["service.name"], "shop");
}

TEST(ContextCommand, SaysThatProfilerModePublishesNothingOutside) {
  const Target target([] {
    Init("");
    spanprof_context_set(1, 2);
  });
  Command command({"context", target.pid_text(), "--json"});
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_EQ(command.out, "");
  EXPECT_THAT(command.err, HasSubstr("started with ctxstorage=profiler"));
  EXPECT_THAT(command.err, HasSubstr("\nhint: restart with ctxstorage=otel"));
}

TEST(ContextCommand, SaysThatAProcessHasNoSpanprof) {
  // The target becomes another program, which closes its end of the pipe.
  int alive[2];
  ASSERT_EQ(pipe2(alive, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/bin/sleep", "sleep", "1000", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(alive[1]);
  char byte = 0;
  EXPECT_EQ(read(alive[0], &byte, 1), 0);
  close(alive[0]);
  Command command({"context", std::to_string(child)});
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, HasSubstr("spanprof is not loaded"));
  EXPECT_THAT(command.err, HasSubstr("\nhint: "));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(ContextCommand, NamesAForeignPublisherOfThreadRecords) {
  Command publisher({}, 0, SPANPROF_FOREIGN_PUBLISHER_PATH);
  ASSERT_EQ(publisher.ReadLine(), "ready");
  Command command({"context", std::to_string(publisher.pid()), "--json"});
  EXPECT_EQ(command.Wait(), 0) << command.err;
  EXPECT_EQ(json::parse(command.out)["records"], json{"otep_4947"});
  EXPECT_THAT(command.err, HasSubstr("foreign_publisher', readable by a sampler only"));
}

TEST(ContextCommand, SaysThatThereIsNoSuchProcess) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  Command command({"context", std::to_string(child)});
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, HasSubstr("there is no process " + std::to_string(child)));
}

TEST(ContextCommand, ExplainsThatItMayNotReadAnotherUsersProcess) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  const Target target([] { Init("ctxstorage=otel"); });
  Command command({"context", target.pid_text()}, kNobody);
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, HasSubstr("belongs to uid 0, this command runs as uid 65534"));
  EXPECT_THAT(command.err, HasSubstr("CAP_SYS_PTRACE"));
  EXPECT_THAT(command.err, HasSubstr("/proc/sys/kernel/yama/ptrace_scope is "));
  EXPECT_THAT(command.err, HasSubstr("hint: run it as root: sudo spanprof context"));
}

TEST(ContextCommand, WatchesUntilTheProcessEnds) {
  Target target([] {
    Init("ctxstorage=otel");
    spanprof_context_set(0xc, 0xd);
  });
  Command command({"context", target.pid_text(), "--watch", "--json", "--interval", "50ms"});
  for (int i = 0; i < 3; ++i) {
    const json document = json::parse(command.ReadLine(), nullptr, false);
    EXPECT_EQ(document["threads"].size(), 1u) << document;
  }
  target.Kill();
  EXPECT_EQ(command.Wait(), 0) << command.err;
  EXPECT_EQ(command.err, "");
}

TEST(ContextCommand, EndsAWatchAtOnceWhenTheProcessEnds) {
  Target target([] { Init("ctxstorage=otel"); });
  Command command({"context", target.pid_text(), "--watch", "--json", "--interval", "1h"});
  EXPECT_THAT(command.ReadLine(), HasSubstr("slot_table"));
  target.Kill();
  EXPECT_EQ(command.Wait(), 0);
}

TEST(ContextCommand, EndsAWatchOfAProcessThatNobodyHasWaitedFor) {
  const Target target([] { Init("ctxstorage=otel"); });
  Command command({"context", target.pid_text(), "--watch", "--json", "--interval", "1h"});
  EXPECT_THAT(command.ReadLine(), HasSubstr("slot_table"));
  kill(target.pid(), SIGKILL);
  EXPECT_EQ(command.Wait(), 0) << command.err;
}

TEST(ContextCommand, EndsAWatchWithSuccessOnInterrupt) {
  const Target target([] { Init("ctxstorage=otel"); });
  Command command({"context", target.pid_text(), "--watch"});
  EXPECT_THAT(command.ReadLine(), HasSubstr("publishes slot_table"));
  command.Signal(SIGINT);
  EXPECT_EQ(command.Wait(), 0);
  EXPECT_EQ(command.out.find('\033'), std::string::npos) << "not a terminal";
}

TEST(ContextCommand, ShowsATableToPeople) {
  const Target target([] {
    Init("ctxstorage=otel,attributes=http.route");
    spanprof_context_set_trace(1, 2, 0xc, 0xd);
    spanprof_context_set_tag(0, "a b\n", 4);
  });
  Command command({"context", target.pid_text()});
  EXPECT_EQ(command.Wait(), 0);
  EXPECT_THAT(command.out, HasSubstr("publishes slot_table, otep_4947, otep_4719"));
  EXPECT_THAT(command.out, HasSubstr("00000000000000010000000000000002  000000000000000c  "
                                     "000000000000000d  otep_4947  http.route=a\\x20b\\x0a\n"));
}

TEST(Command, TellsUsageErrorsApart) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"contxt", "1"},
                                                       {"context"},
                                                       {"context", "0"},
                                                       {"context", "x"},
                                                       {"context", "99999999"},
                                                       {"context", "1", "--what"},
                                                       {"context", "1", "--interval", "fast"},
                                                       {"context", "1", "--interval", "1ms"}};
  for (const auto& arguments : wrong) {
    Command command(arguments);
    EXPECT_EQ(command.Wait(), 2) << testing::PrintToString(arguments);
    EXPECT_NE(command.err, "");
    EXPECT_EQ(command.out, "");
  }
}

TEST(Command, HasVersionAndHelp) {
  Command version({"--version"});
  EXPECT_EQ(version.Wait(), 0);
  EXPECT_THAT(version.out, testing::StartsWith("spanprof "));
  for (const auto& arguments : {std::vector<std::string>{"--help"}, {"context", "--help"}}) {
    Command help(arguments);
    EXPECT_EQ(help.Wait(), 0);
    EXPECT_THAT(help.out, HasSubstr("context"));
  }
}

}  // namespace
}  // namespace spanprof::cli
