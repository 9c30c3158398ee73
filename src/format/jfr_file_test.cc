#include "format/jfr_file.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "format/format.h"
#include "format/jfr.h"
#include "format/jfr_fixture.h"
#include "format/jfr_part.h"

namespace spanprof::format {
namespace {

class JfrFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/jfr_file_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    path_ = directory_ + "/profile.jfr";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string Chunk(unsigned samples) {
    return WriteJfr(MakeLargeProfile({.samples = samples, .stacks = 10}), {}).value();
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t SamplesInFile() {
    const Result<JfrFileContents> contents = ReadJfrFile(path_, {});
    EXPECT_TRUE(contents.has_value()) << contents.error().message;
    return contents ? contents->profile.samples().size() : 0;
  }
  bool HasPart() const { return std::filesystem::exists(JfrPartPath(path_)); }

  std::string directory_;
  std::string path_;
};

TEST_F(JfrFileTest, GrowsByPartsAndThenByTheWholeChunk) {
  Result<JfrFile> file = JfrFile::Open(path_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_TRUE(file->AppendPart(Chunk(3)).has_value());
  EXPECT_EQ(SamplesInFile(), 3u);
  ASSERT_TRUE(file->AppendPart(Chunk(4)).has_value());
  EXPECT_EQ(SamplesInFile(), 7u);
  EXPECT_EQ(Read(path_), "");
  const std::string whole = Chunk(7);
  ASSERT_TRUE(file->FinishChunk(whole).has_value());
  EXPECT_EQ(Read(path_), whole);
  EXPECT_FALSE(HasPart());
  EXPECT_EQ(SamplesInFile(), 7u);
  ASSERT_TRUE(file->AppendPart(Chunk(5)).has_value());
  EXPECT_EQ(SamplesInFile(), 12u);

  struct stat status{};
  for (const std::string& path : {path_, JfrPartPath(path_)}) {
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << path;
  }
}

TEST_F(JfrFileTest, TakesOverWhatAKilledProcessLeft) {
  {
    Result<JfrFile> file = JfrFile::Open(path_);
    ASSERT_TRUE(file->FinishChunk(Chunk(2)).has_value());
    ASSERT_TRUE(file->AppendPart(Chunk(3)).has_value());
    ASSERT_TRUE(file->AppendPart(Chunk(4)).has_value());
  }
  const std::string part = Read(JfrPartPath(path_));
  Write(JfrPartPath(path_), part + part.substr(0, 200));  // killed in AppendPart
  Write(path_, Read(path_) + part.substr(0, 300));        // and in FinishChunk, at another time
  EXPECT_EQ(SamplesInFile(), 9u);
  const Result<JfrFile> file = JfrFile::Open(path_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->removed_bytes(), 300u);
  EXPECT_EQ(file->recovered_bytes(), part.size());
  EXPECT_FALSE(HasPart());
  EXPECT_EQ(SamplesInFile(), 9u);
  EXPECT_EQ(CompleteJfrPrefix(Read(path_)), Read(path_).size());
}

TEST_F(JfrFileTest, DoesNotCountAPartTwice) {
  {
    Result<JfrFile> file = JfrFile::Open(path_);
    ASSERT_TRUE(file->AppendPart(Chunk(3)).has_value());
    const std::string part = Read(JfrPartPath(path_));
    ASSERT_TRUE(file->FinishChunk(Chunk(3)).has_value());
    Write(JfrPartPath(path_), part);  // killed before the part file was removed
  }
  EXPECT_EQ(SamplesInFile(), 3u);
  ASSERT_TRUE(JfrFile::Open(path_).has_value());
  EXPECT_FALSE(HasPart());
  EXPECT_EQ(SamplesInFile(), 3u);
}

TEST_F(JfrFileTest, SurvivesAKillAtAnyByteOfTheTakeOver) {
  std::string named;
  std::string part;
  {
    Result<JfrFile> file = JfrFile::Open(path_);
    ASSERT_TRUE(file->FinishChunk(Chunk(1)).has_value());
    named = Read(path_);
    ASSERT_TRUE(file->AppendPart(Chunk(2)).has_value());
    ASSERT_TRUE(file->AppendPart(Chunk(3)).has_value());
    part = Read(JfrPartPath(path_));
  }
  for (size_t cut = 0; cut <= part.size(); cut += 311) {
    Write(path_, named + part.substr(0, cut));
    Write(JfrPartPath(path_), part);
    EXPECT_EQ(SamplesInFile(), 6u) << cut;
    ASSERT_TRUE(JfrFile::Open(path_).has_value()) << cut;
    EXPECT_EQ(SamplesInFile(), 6u) << cut;
  }
}

TEST_F(JfrFileTest, LeavesAFileThatIsNotJfrAsItIs) {
  const std::string magic("FLR\0", 4);
  for (const std::string& text : {std::string("my thesis"), magic + std::string(100, 'x')}) {
    Write(path_, text);
    const Result<JfrFile> file = JfrFile::Open(path_);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, EEXIST);
    EXPECT_EQ(Read(path_), text);
  }
  const std::string mixed = Chunk(1) + "notes behind it";
  Write(path_, mixed);
  EXPECT_FALSE(JfrFile::Open(path_).has_value());
  EXPECT_EQ(Read(path_), mixed);
}

TEST_F(JfrFileTest, FollowsNoSymbolicLink) {
  const std::string target = directory_ + "/target";
  Write(target, "");
  std::filesystem::create_symlink(target, path_);
  EXPECT_EQ(JfrFile::Open(path_).error().code, ELOOP);
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(target, JfrPartPath(path_));
  EXPECT_EQ(JfrFile::Open(path_).error().code, ELOOP);
  std::filesystem::remove(JfrPartPath(path_));
  Result<JfrFile> file = JfrFile::Open(path_);
  ASSERT_TRUE(file.has_value());
  std::filesystem::create_symlink(target, JfrPartPath(path_));
  EXPECT_FALSE(file->AppendPart(Chunk(1)).has_value());
  EXPECT_EQ(Read(target), "");
}

TEST_F(JfrFileTest, AForkedChildWritesNothing) {
  Result<JfrFile> file = JfrFile::Open(path_);
  ASSERT_TRUE(file->AppendPart(Chunk(1)).has_value());
  const std::string chunk = Chunk(2);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !file->AppendPart(chunk) && !file->FinishChunk(chunk);
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(SamplesInFile(), 1u);
}

TEST_F(JfrFileTest, OneProcessAtATime) {
  Result<JfrFile> file = JfrFile::Open(path_);
  const pid_t child = fork();
  if (child == 0) {
    const Result<JfrFile> second = JfrFile::Open(path_);
    _exit(!second && second.error().code == EBUSY ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(JfrFileTest, TakesOnlyCompleteChunks) {
  Result<JfrFile> file = JfrFile::Open(path_);
  const std::string chunk = Chunk(1);
  EXPECT_FALSE(file->AppendPart("").has_value());
  EXPECT_FALSE(file->AppendPart(chunk.substr(1)).has_value());
  EXPECT_FALSE(file->FinishChunk(chunk.substr(0, chunk.size() - 1)).has_value());
  EXPECT_EQ(Read(path_), "");
}

TEST_F(JfrFileTest, APartSaysWhereItBelongs) {
  const std::string chunk = Chunk(3);
  EXPECT_EQ(jfr::FinishedBytesOfPart(chunk), std::nullopt);
  const std::string marked = jfr::MarkAsPart(chunk, 123456);
  EXPECT_EQ(CompleteJfrPrefix(marked), marked.size());
  EXPECT_EQ(jfr::FinishedBytesOfPart(marked), 123456u);
  EXPECT_EQ(ReadJfr(marked, {})->samples().size(), 3u);
}

}  // namespace
}  // namespace spanprof::format
