#include "symbols/perf_map.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace spanprof::symbols {
namespace {

TEST(PerfMap, FindsByRange) {
  const PerfMap map = PerfMap::Parse("1000 20 LazyCompile:~foo app.js:1\n0x2000 0x10 bar\n");
  EXPECT_EQ(map.Find(0x0FFF), std::nullopt);
  EXPECT_EQ(map.Find(0x1000), "LazyCompile:~foo app.js:1");
  EXPECT_EQ(map.Find(0x101F), "LazyCompile:~foo app.js:1");
  EXPECT_EQ(map.Find(0x1020), std::nullopt);
  EXPECT_EQ(map.Find(0x200F), "bar");
}

TEST(PerfMap, LaterCodeReplacesWhatItOverlaps) {
  const PerfMap map = PerfMap::Parse("1000 100 a\n1100 100 b\n1080 100 c\n");
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.Find(0x1090), "c");
  EXPECT_EQ(map.Find(0x1010), std::nullopt);
}

TEST(PerfMap, BrokenLinesAreLeftOut) {
  const PerfMap map = PerfMap::Parse(
      "\n1000\n1000 10\n1000 10 \nzz 10 a\n1000 0 a\nffffffffffffffff 10 a\n2000 10 good");
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.Find(0x2000), "good");
}

class PerfMapFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/spanprof-perf-map-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/perf-1.map";
    std::ofstream(path_) << "1000 10 jitted\n";
    chmod(path_.c_str(), 0644);
  }
  void TearDown() override { (void)std::system(("rm -rf " + folder_).c_str()); }
  std::string folder_;
  std::string path_;
};

TEST_F(PerfMapFile, OwnFileIsRead) {
  const Result<PerfMap> map = PerfMap::Read(path_);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->Find(0x1000), "jitted");
}

TEST_F(PerfMapFile, MissingFile) {
  EXPECT_EQ(PerfMap::Read(folder_ + "/none").error().code, ENOENT);
}

TEST_F(PerfMapFile, LinksAreNotFollowed) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_EQ(PerfMap::Read(link).error().code, ELOOP);
  const std::string hard = folder_ + "/hard";
  ASSERT_EQ(::link(path_.c_str(), hard.c_str()), 0);
  EXPECT_EQ(PerfMap::Read(hard).error().code, EPERM);
}

TEST_F(PerfMapFile, WhatOthersCanWriteIsNotRead) {
  chmod(path_.c_str(), 0666);
  const Result<PerfMap> map = PerfMap::Read(path_);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, EPERM);
  EXPECT_FALSE(map.error().hint.empty());
}

TEST_F(PerfMapFile, AnotherUsersFileIsNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(PerfMap::Read(path_).error().code, EPERM);
}

TEST_F(PerfMapFile, APipeDoesNotBlock) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(PerfMap::Read(pipe).error().code, EPERM);
}

}  // namespace
}  // namespace spanprof::symbols
