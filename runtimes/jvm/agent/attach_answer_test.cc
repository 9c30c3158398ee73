#include "agent/attach_answer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace spanprof::jvm {
namespace {

using testing::HasSubstr;

class AttachAnswers : public testing::Test {
 protected:
  AttachAnswers() {
    std::string pattern = testing::TempDir() + "attach-answer-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::ofstream(Path("answer")) << "";
  }
  ~AttachAnswers() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Whether the answer would be written there.
  [[nodiscard]] Result<AttachAnswer> Take(const std::string& name) const {
    const std::string text = "answer=" + Path(name) + ",stop";
    std::string_view options = text;
    return AttachAnswer::Take(options);
  }

  std::string folder_;
};

TEST_F(AttachAnswers, LeaveTheOptionsBehind) {
  const std::string text = "answer=" + Path("answer") + ",start,cpu=1ms";
  std::string_view options = text;
  const auto answer = AttachAnswer::Take(options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->is_awaited());
  EXPECT_EQ(options, "start,cpu=1ms");
  std::string_view none = "start,file=answer=x";
  const auto nobody = AttachAnswer::Take(none);
  ASSERT_TRUE(nobody);
  EXPECT_FALSE(nobody->is_awaited());
  EXPECT_EQ(none, "start,file=answer=x");
}

TEST_F(AttachAnswers, AreWrittenAsTheCommandReadsThem) {
  Take("answer")->Write(std::string("recording\na=1"));
  EXPECT_EQ(Read("answer"), "ok\nrecording\na=1");
  std::ofstream(Path("other")) << "";
  Take("other")->Write(Fail(EINVAL, "no\nfile", "say which"));
  EXPECT_EQ(Read("other"), "error\nno file\nsay which\n");
}

TEST_F(AttachAnswers, MakeNoFile) {
  const auto answer = Take("none");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("No such file"));
  EXPECT_FALSE(std::filesystem::exists(Path("none")));
}

TEST_F(AttachAnswers, GoToPlainFilesOnly) {
  std::filesystem::create_symlink(Path("answer"), Path("link"));
  EXPECT_FALSE(Take("link"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(Take("pipe"));
  std::filesystem::create_directory(Path("folder"));
  EXPECT_FALSE(Take("folder"));
  std::filesystem::create_hard_link(Path("answer"), Path("second-name"));
  EXPECT_FALSE(Take("second-name"));
  std::string_view device = "answer=/dev/null,stop";
  EXPECT_FALSE(AttachAnswer::Take(device));
}

TEST_F(AttachAnswers, DoNotGoToFilesOfOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  ASSERT_EQ(chown(Path("answer").c_str(), 65534, 65534), 0);
  const auto answer = Take("answer");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("belongs to user 65534"));
}

}  // namespace
}  // namespace spanprof::jvm
