#include "export/spool.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "export/temporary_directory.h"

namespace spanprof::sending {
namespace {

class SpoolTest : public testing::Test {
 protected:
  Spool Open(SpoolLimits limits = {}) {
    auto spool = Spool::Open(directory_ / "spool", limits, counters_);
    EXPECT_TRUE(spool) << spool.error().message;
    return *std::move(spool);
  }
  static Report Make(std::int64_t time, const std::string& bytes,
                     OutputFormat format = OutputFormat::kOtlp) {
    return {.format = format, .time_ns = time, .bytes = bytes};
  }
  std::vector<std::string> Drain(OutputFormat format = OutputFormat::kOtlp) {
    Spool spool = Open();
    std::vector<std::string> bytes;
    while (auto item = spool.TakeOldest(format)) {
      bytes.push_back(item->report.bytes);
      spool.Remove(*item);
    }
    return bytes;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "spool")) {
      names.push_back(entry.path().string());
    }
    return names;
  }

  TemporaryDirectory directory_;
  std::shared_ptr<SendCounters> counters_ = std::make_shared<SendCounters>();
};

using Bytes = std::vector<std::string>;

TEST_F(SpoolTest, AFileIsReadAsItWasWritten) {
  const Report report = Make(1794734372000000000, std::string("a\0b\n\n", 5), OutputFormat::kPprof);
  const std::string file = WriteSpoolFile(report);
  const auto read = ReadSpoolFile(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, report.bytes);
  EXPECT_EQ(read->time_ns, report.time_ns);
  EXPECT_EQ(read->format, report.format);
}

TEST_F(SpoolTest, AFileThatWasCutOrChangedIsRefused) {
  const std::string file = WriteSpoolFile(Make(5, "some bytes of a profile"));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ReadSpoolFile(file.substr(0, size))) << size;
  }
  for (std::size_t i = file.size() - 23; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(ReadSpoolFile(changed)) << i;
  }
  EXPECT_FALSE(ReadSpoolFile(file + "x"));
}

TEST_F(SpoolTest, SurvivesARestartOldestFirst) {
  for (const std::int64_t time : {30, 10, 20}) {
    ASSERT_TRUE(Open().Add(Make(time, std::to_string(time))));
  }
  EXPECT_EQ(Drain(), (Bytes{"10", "20", "30"}));
  EXPECT_EQ(Drain(), Bytes{});
  EXPECT_TRUE(Names().empty());
}

TEST_F(SpoolTest, WhatIsNotRemovedIsThereAgainAfterARestart) {
  ASSERT_TRUE(Open().Add(Make(1, "a")));
  {
    Spool spool = Open();
    auto item = spool.TakeOldest(OutputFormat::kOtlp);
    ASSERT_TRUE(item);
    EXPECT_FALSE(spool.TakeOldest(OutputFormat::kOtlp));  // once is enough
  }
  EXPECT_EQ(Drain(), Bytes{"a"});
}

TEST_F(SpoolTest, FilesAreTheUsersOwn) {
  ASSERT_TRUE(Open().Add(Make(1, "a")));
  struct stat status{};
  ASSERT_EQ(stat((directory_ / "spool").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(Names().at(0).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(SpoolTest, RefusesADirectoryThatOthersMayEnter) {
  std::filesystem::create_directory(directory_ / "spool");
  for (const mode_t mode : {0755U, 0770U, 0701U}) {
    ASSERT_EQ(chmod((directory_ / "spool").c_str(), mode), 0);
    const auto spool = Spool::Open(directory_ / "spool", {}, counters_);
    ASSERT_FALSE(spool) << mode;
    EXPECT_EQ(spool.error().code, EPERM);
    EXPECT_NE(spool.error().hint.find("chmod 700"), std::string::npos);
  }
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolUnusable), 3u);
}

TEST_F(SpoolTest, RefusesADirectoryOfAnotherUser) {
  const std::string path = geteuid() == 0 ? directory_ / "spool" : "/";
  if (geteuid() == 0) {
    std::filesystem::create_directory(path);
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
    if (chown(path.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "may not chown";
  }
  const auto spool = Spool::Open(path, {}, counters_);
  ASSERT_FALSE(spool);
  EXPECT_EQ(spool.error().code, EPERM);
}

TEST_F(SpoolTest, RefusesALinkToADirectory) {
  std::filesystem::create_directory(directory_ / "real");
  ASSERT_EQ(chmod((directory_ / "real").c_str(), 0700), 0);
  std::filesystem::create_directory_symlink(directory_ / "real", directory_ / "spool");
  for (const char* name : {"spool", "spool/", "spool//"}) {
    const auto spool = Spool::Open(directory_ / name, {}, counters_);
    ASSERT_FALSE(spool) << name;
    EXPECT_EQ(spool.error().code, ELOOP) << spool.error().message;
  }
}

TEST_F(SpoolTest, RefusesWhatIsNoDirectory) {
  directory_.Write("spool", "a file");
  EXPECT_EQ(Spool::Open(directory_ / "spool", {}, counters_).error().code, ENOTDIR);
  EXPECT_EQ(Spool::Open(directory_ / "no/parent", {}, counters_).error().code, ENOENT);
}

TEST_F(SpoolTest, IsBoundedByCount) {
  Spool spool = Open({.max_files = 3, .max_bytes = 100000});
  for (int i = 1; i <= 10; ++i) ASSERT_TRUE(spool.Add(Make(i, std::to_string(i))));
  EXPECT_EQ(Drain(), (Bytes{"8", "9", "10"}));
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolEvicted), 7u);
}

TEST_F(SpoolTest, IsBoundedByBytes) {
  Spool spool = Open({.max_files = 100, .max_bytes = 2500});
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(spool.Add(Make(i, std::string(1000, static_cast<char>('0' + i)))));
  }
  const auto too_large = spool.Add(Make(6, std::string(2500, '6')));
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, EFBIG);
  EXPECT_EQ(Drain(), (Bytes{std::string(1000, '4'), std::string(1000, '5')}));
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolWriteFailed), 1u);
}

TEST_F(SpoolTest, SetsBrokenFilesAside) {
  ASSERT_TRUE(Open().Add(Make(1, "a")));
  ASSERT_TRUE(Open().Add(Make(2, "b")));
  std::vector<std::string> names = Names();
  std::sort(names.begin(), names.end());
  std::filesystem::resize_file(names[0], 20);
  EXPECT_EQ(Drain(), Bytes{"b"});
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolCorrupt), 1u);
  EXPECT_EQ(Names(), std::vector<std::string>{names[0] + ".corrupt"});
  EXPECT_EQ(Drain(), Bytes{});
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolCorrupt), 1u);
  Spool small = Open({.max_files = 1, .max_bytes = 100000});
  ASSERT_TRUE(small.Add(Make(3, "c")));  // the broken one goes first
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(SpoolTest, NeverTouchesLinksAndOtherFiles) {
  (void)Open();
  const std::string time(20, '0');
  directory_.Write("target", WriteSpoolFile(Make(1, "stolen")));
  std::filesystem::create_symlink(directory_ / "target",
                                  directory_ / ("spool/" + time + "-1-1.spool"));
  directory_.Write("spool/notes.txt", "notes");
  directory_.Write("spool/1-1.spool", "not our name");
  EXPECT_EQ(Drain(), Bytes{});
  Spool small = Open({.max_files = 1, .max_bytes = 100000});
  ASSERT_TRUE(small.Add(Make(1, "a")));
  ASSERT_TRUE(small.Add(Make(2, "b")));
  EXPECT_EQ(Names().size(), 4u);
  EXPECT_EQ(directory_.Read("spool/notes.txt"), "notes");
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolCorrupt), 0u);
}

TEST_F(SpoolTest, LeavesTheOtherFormatAlone) {
  ASSERT_TRUE(Open().Add(Make(1, "pprof", OutputFormat::kPprof)));
  ASSERT_TRUE(Open().Add(Make(2, "otlp")));
  EXPECT_EQ(Drain(), Bytes{"otlp"});
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolOtherFormat), 1u);
  EXPECT_EQ(Drain(OutputFormat::kPprof), Bytes{"pprof"});
}

TEST_F(SpoolTest, TwoProcessesDoNotSendTheSame) {
  ASSERT_TRUE(Open().Add(Make(1, "a")));
  Spool first = Open();
  auto item = first.TakeOldest(OutputFormat::kOtlp);
  ASSERT_TRUE(item);
  EXPECT_FALSE(Open().TakeOldest(OutputFormat::kOtlp));
  EXPECT_EQ(counters_->Get(SendCounter::kSpoolBusy), 1u);
  Spool::PutBack(*item);
  EXPECT_EQ(Drain(), Bytes{"a"});
}

TEST_F(SpoolTest, AForkedChildDoesNotKeepTheLock) {
  ASSERT_TRUE(Open().Add(Make(1, "a")));
  Spool first = Open();
  auto item = first.TakeOldest(OutputFormat::kOtlp);
  ASSERT_TRUE(item);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Spool::PutBack(*item);
  EXPECT_EQ(Drain(), Bytes{"a"});
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace spanprof::sending
