// This program is linked as a prebuilt addon is: with libstdc++ and libgcc inside it, and with the
// definitions under test before those of the C library.

#include "glibc_2_28.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace spanprof::node {
namespace {

timespec MonotonicIn(std::chrono::milliseconds wait) {
  const auto time = std::chrono::steady_clock::now().time_since_epoch() + wait;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(),
          .tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds).count()};
}

class WallClock : public ::testing::Test {
 protected:
  int Wait(const timespec& deadline) {
    return WaitByWallClock(&condition_, &mutex_, CLOCK_MONOTONIC, &deadline);
  }
  void SetUp() override { pthread_mutex_lock(&mutex_); }
  void TearDown() override { pthread_mutex_unlock(&mutex_); }

  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

TEST_F(WallClock, AWaitEndsAtItsDeadline) {
  const timespec deadline = MonotonicIn(std::chrono::milliseconds(30));
  int status = 0;
  while (status == 0) status = Wait(deadline);
  EXPECT_EQ(status, ETIMEDOUT);
  // The wall clock may run a little faster.
  const timespec now = MonotonicIn(std::chrono::milliseconds(1));
  EXPECT_TRUE(now.tv_sec > deadline.tv_sec ||
              (now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec));
}

TEST_F(WallClock, ADeadlineThatHasPassedEndsItAtOnce) {
  EXPECT_EQ(Wait(MonotonicIn(std::chrono::milliseconds(-5000))), ETIMEDOUT);
}

TEST_F(WallClock, AnHourIsNoOneWait) {
  EXPECT_EQ(Wait(MonotonicIn(std::chrono::hours(1))), 0) << "the wall clock may be set back";
}

TEST_F(WallClock, ASignalEndsIt) {
  bool told = false;
  std::thread other([&] {
    pthread_mutex_lock(&mutex_);
    told = true;
    pthread_cond_signal(&condition_);
    pthread_mutex_unlock(&mutex_);
  });
  const timespec deadline = MonotonicIn(std::chrono::hours(1));
  while (!told) ASSERT_EQ(Wait(deadline), 0);
  pthread_mutex_unlock(&mutex_);
  other.join();
  pthread_mutex_lock(&mutex_);
}

TEST(OlderGlibc, ThreadsHaveTheirValuesAndWaitForEachOther) {
  struct Ending {
    int* count;
    ~Ending() { ++*count; }
  };
  int ended = 0;
  std::once_flag once;
  int calls = 0;
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      thread_local const Ending kEnding{&ended};
      EXPECT_EQ(kEnding.count, &ended);
      std::call_once(once, [&] { ++calls; });
    }).join();
  }
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(calls, 1);

  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_FALSE(condition.wait_for(lock, std::chrono::milliseconds(5), [] { return false; }));
}

TEST(OlderGlibc, FilesAreSeenAsTheyAre) {
  const std::string folder = ::testing::TempDir() + "glibc_2_28_XXXXXX";
  std::string made = folder;
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const std::string file = made + "/file";
  const std::string link = made + "/link";
  std::ofstream(file) << "four";
  ASSERT_EQ(symlink("file", link.c_str()), 0);

  struct stat status{};
  EXPECT_EQ(stat(link.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 4);
  EXPECT_EQ(lstat(link.c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  const int opened = open(made.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_EQ(fstat(opened, &status), 0);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  EXPECT_EQ(fstatat(opened, "link", &status, 0), 0);
  EXPECT_EQ(status.st_size, 4);
  EXPECT_EQ(fstatat(opened, "link", &status, AT_SYMLINK_NOFOLLOW), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(fstatat(opened, "none", &status, 0), -1);
  EXPECT_EQ(errno, ENOENT);

  close(opened);
  unlink(link.c_str());
  unlink(file.c_str());
  rmdir(made.c_str());
}

TEST(OlderGlibc, WhatIsThrownIsCaught) {
  EXPECT_THROW((void)std::stoi("no number"), std::invalid_argument);
}

TEST(OlderGlibc, AnAddressBelongsToItsObject) {
  void* const address = reinterpret_cast<void*>(&MonotonicIn);
  dl_find_object found{};
  ASSERT_EQ(_dl_find_object(address, &found), 0);
  Dl_info expected{};
  ASSERT_NE(dladdr(address, &expected), 0);
  EXPECT_EQ(found.dlfo_map_start, expected.dli_fbase);
  EXPECT_GT(found.dlfo_map_end, address);
  EXPECT_GT(found.dlfo_eh_frame, found.dlfo_map_start);
  EXPECT_LT(found.dlfo_eh_frame, found.dlfo_map_end);
  int on_stack = 0;
  EXPECT_EQ(_dl_find_object(&on_stack, &found), -1);
}

TEST(OlderGlibc, RandomNumbersDiffer) {
  std::random_device device;
  EXPECT_GT((std::set<uint32_t>{device(), device(), device(), device()}.size()), 1u);
  EXPECT_GT((std::set<uint32_t>{arc4random(), arc4random(), arc4random(), arc4random()}.size()),
            1u);
}

}  // namespace
}  // namespace spanprof::node
