#include "collect/process_directory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <signal.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collect/fake_process_directory.h"

namespace spanprof::collect {
namespace {

TEST(ProcessDirectory, ParsesTheStatusFile) {
  EXPECT_EQ(ParseNamespacePids("Name:\tx\nNSpid:\t120\t7\t1\nNSpgid:\t3\n"),
            (std::vector<uint32_t>{120, 7, 1}));
  EXPECT_EQ(ParseNamespacePids("NSpid:\t120"), (std::vector<uint32_t>{120}));
  EXPECT_TRUE(ParseNamespacePids("Name:\tNSpid: 5\n").empty());
  EXPECT_TRUE(ParseNamespacePids("NSpid:\t12\tx\n").empty());
  EXPECT_TRUE(ParseNamespacePids("NSpid:\t99999999999\n").empty());
  EXPECT_EQ(ParseStatusNumber("A:\t1\nTgid:\t42\n", "Tgid"), 42u);
  EXPECT_EQ(ParseStatusNumber("NTgid:\t42\n", "Tgid"), std::nullopt);
}

TEST(ProcessDirectory, ReadsAFileUpToItsLimit) {
  FakeProcessDirectory fake(42);
  fake.Write("maps", std::string(10000, 'm'));
  const auto directory = fake.Open();
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->ReadFile("maps", 10000)->text.size(), 10000u);
  EXPECT_FALSE(directory->ReadFile("maps", 10000)->truncated);
  EXPECT_EQ(directory->ReadFile("maps", 9999)->text.size(), 9999u);
  EXPECT_TRUE(directory->ReadFile("maps", 9999)->truncated);
  EXPECT_EQ(directory->ReadFile("nothing", 10).error().code, ESRCH);
}

TEST(ProcessDirectory, TranslatesTasksOfAnotherNamespace) {
  FakeProcessDirectory fake(42, "42\t1");
  fake.AddTask(42, "main", "42\t1");
  fake.AddTask(50, "worker", "50\t9");
  fake.AddTask(51, "gone", "");
  const auto directory = fake.Open();
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->namespace_pid(), 1u);
  const auto tasks = directory->ListTasks();
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ((*tasks)[1].tid, 50);
  EXPECT_EQ((*tasks)[1].namespace_tid, 9u);
  EXPECT_EQ((*tasks)[1].name, "worker");
}

TEST(ProcessDirectory, ListsTheThreadsOfThisProcessByAnyOfTheirNumbers) {
  pid_t worker_tid = 0;
  std::atomic<int> phase{0};
  std::thread worker([&] {
    prctl(PR_SET_NAME, "a\nworker");
    worker_tid = static_cast<pid_t>(syscall(SYS_gettid));
    phase = 1;
    phase.notify_all();
    phase.wait(1);
  });
  phase.wait(0);
  const auto directory = ProcessDirectory::Open(worker_tid);
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->pid(), getpid());
  const auto tasks = directory->ListTasks();
  ASSERT_TRUE(tasks);
  const auto found = std::find_if(tasks->begin(), tasks->end(),
                                  [&](const Task& task) { return task.tid == worker_tid; });
  ASSERT_NE(found, tasks->end());
  EXPECT_EQ(found->name, "a\nworker");
  EXPECT_EQ(found->namespace_tid, static_cast<uint32_t>(worker_tid));
  phase = 2;
  phase.notify_all();
  worker.join();
}

TEST(ProcessDirectory, SaysWhenTheProcessHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto directory = ProcessDirectory::Open(child);
  ASSERT_TRUE(directory);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(directory->ReadFile("maps", 100).error().code, ESRCH);
  EXPECT_EQ(directory->ListTasks().error().code, ESRCH);
  EXPECT_EQ(ProcessDirectory::Open(child).error().code, ESRCH);
}

}  // namespace
}  // namespace spanprof::collect
