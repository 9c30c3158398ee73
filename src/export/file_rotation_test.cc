#include "export/file_rotation.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "export/directory_files.h"
#include "export/temporary_directory.h"

namespace spanprof::sending {
namespace {

using Names = std::vector<std::string>;

constexpr std::int64_t kTime = std::int64_t{1794734372} * 1'000'000'000;  // 2026-11-15 09:19:32 UTC
constexpr std::int64_t kSecond = 1'000'000'000;

class FileRotationTest : public testing::Test {
 protected:
  FileRotation Open(const std::string& name, RotationLimits limits = {}) {
    auto rotation = FileRotation::Open(directory_ / name, limits, counters_);
    EXPECT_TRUE(rotation) << rotation.error().message;
    return *std::move(rotation);
  }

  TemporaryDirectory directory_;
  std::shared_ptr<SendCounters> counters_ = std::make_shared<SendCounters>();
};

TEST_F(FileRotationTest, NamesAreMadeOfTimePidAndCounter) {
  const auto pattern = FileNamePattern::Parse("a%%-%t-%p-%n.pb.gz");
  ASSERT_TRUE(pattern);
  const FileNamePattern::Values values{.time_ns = kTime, .pid = 7, .counter = 12, .repeat = 1};
  EXPECT_EQ(pattern->Name(values), "a%-20261115T091932Z-7-12.pb.gz");
  ASSERT_TRUE(pattern->Matches("a%-20261115T091932Z-7-12.pb.gz"));
  EXPECT_EQ(pattern->Matches("a%-20261115T091932Z-7-12.pb.gz")->counter, 12u);
  EXPECT_TRUE(pattern->Matches("a%-20261115T091932Z-3-99999-12.pb.gz"));
  for (const char* other : {"a%-20261115T091932Z-7-12.pb.gz2", "b%-20261115T091932Z-7-12.pb.gz",
                            "a%-2026111T091932Z-7-12.pb.gz", "a%-20261115T091932Z-7-.pb.gz", "",
                            "a%-20261115T091932Z-7-x.pb.gz"}) {
    EXPECT_FALSE(pattern->Matches(other)) << other;
  }
}

TEST_F(FileRotationTest, RefusesNamesThatCouldMeanAnything) {
  for (const char* name : {"%x.pb", "a%", "%n", "%p%n", ""}) {
    const auto pattern = FileNamePattern::Parse(name);
    ASSERT_FALSE(pattern) << name;
    EXPECT_EQ(pattern.error().code, EINVAL);
    EXPECT_FALSE(pattern.error().hint.empty());
  }
  EXPECT_EQ(FileRotation::Open(directory_ / "%t/profile.pb", {}, counters_).error().code, EINVAL);
}

TEST_F(FileRotationTest, WritesWholeFilesThatOnlyTheUserReads) {
  FileRotation rotation = Open("profile-%t.pb.gz");
  const auto path = rotation.Write("bytes", kTime);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, directory_ / "profile-20261115T091932Z.pb.gz");
  EXPECT_EQ(directory_.Read("profile-20261115T091932Z.pb.gz"), "bytes");
  struct stat status{};
  ASSERT_EQ(stat(path->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(directory_.Names().size(), 1u);  // no temporary file
}

TEST_F(FileRotationTest, ASecondProfileOfASecondDoesNotReplaceTheFirst) {
  FileRotation rotation = Open("p-%t.pb");
  ASSERT_TRUE(rotation.Write("1", kTime));
  ASSERT_TRUE(rotation.Write("2", kTime));
  EXPECT_EQ(directory_.Read("p-20261115T091932Z.pb"), "1");
  EXPECT_EQ(directory_.Read("p-20261115T091932Z-2.pb"), "2");
}

TEST_F(FileRotationTest, ANameWithoutTimeIsOverwritten) {
  FileRotation rotation = Open("profile.pb");
  ASSERT_TRUE(rotation.Write("a longer one", kTime));
  ASSERT_TRUE(rotation.Write("2", kTime));
  EXPECT_EQ(directory_.Read("profile.pb"), "2");
  EXPECT_EQ(directory_.Names(), Names{"profile.pb"});
}

TEST_F(FileRotationTest, TheCounterGoesOnAfterARestart) {
  ASSERT_TRUE(Open("p-%n.pb").Write("1", kTime));
  directory_.Write("p-9.pb", "9");
  ASSERT_TRUE(Open("p-%n.pb").Write("10", kTime));
  EXPECT_EQ(directory_.Names(), (Names{"p-1.pb", "p-10.pb", "p-9.pb"}));
}

TEST_F(FileRotationTest, RemovesTheOldestBeyondTheCount) {
  FileRotation rotation = Open("p-%n.pb", {.max_files = 3, .max_bytes = 1000});
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(rotation.Write("x", kTime + i * kSecond));
  EXPECT_EQ(directory_.Names(), (Names{"p-10.pb", "p-11.pb", "p-12.pb"}));
  EXPECT_EQ(counters_->Get(SendCounter::kFileRemoved), 9u);
  EXPECT_EQ(counters_->Get(SendCounter::kFileWritten), 12u);
}

TEST_F(FileRotationTest, RemovesTheOldestBeyondTheBytes) {
  FileRotation rotation = Open("p-%n.pb", {.max_files = 100, .max_bytes = 100});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(rotation.Write(std::string(40, 'x'), kTime));
  EXPECT_EQ(directory_.Names(), (Names{"p-4.pb", "p-5.pb"}));
  const auto too_large = rotation.Write(std::string(101, 'x'), kTime);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, EFBIG);
  EXPECT_EQ(directory_.Names().size(), 2u);
  EXPECT_EQ(counters_->Get(SendCounter::kFileFailed), 1u);
}

TEST_F(FileRotationTest, TouchesNothingThatDoesNotMatch) {
  const Names others = {"p-.pb", "p-1.pb.bak", "p-1x.pb", "precious.pb"};
  for (const std::string& name : others) directory_.Write(name, std::string(1000, 'x'));
  std::filesystem::create_directory(directory_ / "p-1.pb");
  directory_.Write("target", "target");
  std::filesystem::create_symlink(directory_ / "target", directory_ / "p-2.pb");
  FileRotation rotation = Open("p-%n.pb", {.max_files = 1, .max_bytes = 10});
  ASSERT_TRUE(rotation.Write("x", kTime));
  ASSERT_TRUE(rotation.Write("y", kTime));
  for (const std::string& name : others) EXPECT_EQ(directory_.Read(name).size(), 1000u) << name;
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "p-1.pb"));
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "p-2.pb"));
  EXPECT_EQ(directory_.Read("target"), "target");
  EXPECT_EQ(counters_->Get(SendCounter::kFileRemoved), 1u);
}

TEST_F(FileRotationTest, NeverWritesThroughALink) {
  directory_.Write("target", "target");
  std::filesystem::create_symlink(directory_ / "target", directory_ / "profile.pb");
  const auto written = Open("profile.pb").Write("x", kTime);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ELOOP);
  EXPECT_FALSE(written.error().hint.empty());
  EXPECT_EQ(directory_.Read("target"), "target");
  EXPECT_EQ(directory_.Names(), (Names{"profile.pb", "target"}));
}

TEST_F(FileRotationTest, NeverReplacesADevice) {
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const auto written = Open("pipe").Write("x", kTime);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, EINVAL);
  EXPECT_TRUE(std::filesystem::is_fifo(directory_ / "pipe"));
}

TEST_F(FileRotationTest, SaysWhatToDoWhereTheDirectoryIsMissing) {
  const auto rotation = FileRotation::Open(directory_ / "missing/p-%t.pb", {}, counters_);
  ASSERT_FALSE(rotation);
  EXPECT_EQ(rotation.error().code, ENOENT);
  EXPECT_FALSE(rotation.error().hint.empty());

  std::filesystem::create_directory(directory_ / "sub");
  FileRotation later = Open("sub/p-%t.pb");
  std::filesystem::remove(directory_ / "sub");
  EXPECT_EQ(later.Write("x", kTime).error().code, ENOENT);
  EXPECT_EQ(counters_->Get(SendCounter::kFileFailed), 1u);
}

TEST_F(FileRotationTest, SaysWhatToDoWhereTheDirectoryIsReadOnly) {
  const auto written =
      FileRotation::Open("/proc/self/profile-%t.pb", {}, counters_)->Write("x", kTime);
  ASSERT_FALSE(written);  // /proc takes no files, not even from root
  EXPECT_NE(written.error().code, 0);
  if (geteuid() == 0) return;
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0500));
  const auto denied = Open("p-%t.pb").Write("x", kTime);
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, EACCES);
  EXPECT_FALSE(denied.error().hint.empty());
}

TEST_F(FileRotationTest, AFileLimitIsAnErrorAndNotASignal) {
  FileRotation rotation = Open("p-%t.pb");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto fits = rotation.Write(std::string(1000, 'x'), kTime);
  const auto too_large = rotation.Write(std::string(1001, 'x'), kTime);  // SIGXFSZ would kill
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(fits);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, EFBIG);
  EXPECT_NE(too_large.error().hint.find("ulimit"), std::string::npos);
  EXPECT_EQ(directory_.Names().size(), 1u);
}

TEST_F(FileRotationTest, AFullDiskHasAHint) {
  const Error error = FileError(ENOSPC, "cannot write");
  EXPECT_EQ(error.code, ENOSPC);
  EXPECT_NE(error.hint.find("free space"), std::string::npos);
}

TEST_F(FileRotationTest, RemovesTemporaryFilesOfTheDeadOnly) {
  directory_.Write(".spanprof-1-1.tmp", "fresh");
  directory_.Write(".spanprof-1-2.tmp", "stale");
  directory_.Write("other.tmp", "stale");
  const timespec old[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (directory_ / ".spanprof-1-2.tmp").c_str(), old, 0), 0);
  ASSERT_EQ(utimensat(AT_FDCWD, (directory_ / "other.tmp").c_str(), old, 0), 0);
  ASSERT_TRUE(Open("p-%n.pb").Write("x", kTime));
  EXPECT_EQ(directory_.Names(), (Names{".spanprof-1-1.tmp", "other.tmp", "p-1.pb"}));
}

}  // namespace
}  // namespace spanprof::sending
