#include "collect/target_folder.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "collect/acting_as.h"
#include "collect/jvm_agent.h"

namespace spanprof::collect {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// A folder that plays the root of a container.
class TargetFolders : public testing::Test {
 protected:
  TargetFolders() {
    std::string pattern = testing::TempDir() + "target-root-XXXXXX";
    path_ = mkdtemp(pattern.data());
    root_ = UniqueFd(open(path_.c_str(), O_PATH | O_DIRECTORY));
    Make("tmp", 01777);
  }
  ~TargetFolders() override { std::filesystem::remove_all(path_); }

  void Make(const std::string& name, mode_t mode) const {
    std::filesystem::create_directories(path_ + "/" + name);
    chmod((path_ + "/" + name).c_str(), mode);
  }
  [[nodiscard]] Result<TargetFolder> Create() const {
    return TargetFolder::Create(root_.get(), 8134, geteuid(), TargetFolder::Use::kData);
  }
  [[nodiscard]] bool TmpIsEmpty() const { return std::filesystem::is_empty(path_ + "/tmp"); }

  std::string path_;
  UniqueFd root_;
};

TEST_F(TargetFolders, LinksDoNotLeadOutOfTheRoot) {
  std::filesystem::remove(path_ + "/tmp");
  Make("real", 01777);
  std::ofstream(path_ + "/real/here") << "";
  for (const char* link : {"/real", "../../../../real", "real"}) {
    std::filesystem::create_symlink(link, path_ + "/tmp");
    const UniqueFd folder = OpenBeneathRoot(root_.get(), "tmp", O_PATH | O_DIRECTORY);
    ASSERT_TRUE(folder.valid()) << link;
    EXPECT_EQ(faccessat(folder.get(), "here", F_OK, 0), 0) << link;
    std::filesystem::remove(path_ + "/tmp");
  }
}

TEST_F(TargetFolders, IsPrivateAndGoesWithItsFiles) {
  std::string first;
  {
    auto folder = Create();
    ASSERT_TRUE(folder) << folder.error().message;
    const auto file = folder->CreateFile("answer", 0600);
    ASSERT_TRUE(file) << file.error().message;
    first = folder->PathOf("answer");
    EXPECT_THAT(first, testing::StartsWith("/tmp/spanprof-8134-"));
    struct stat status = {};
    ASSERT_EQ(stat((path_ + first).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600U);
    const std::string parent = std::filesystem::path(path_ + first).parent_path();
    ASSERT_EQ(stat(parent.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700U);
    const auto other = Create();
    ASSERT_TRUE(other);
    EXPECT_NE(other->PathOf("answer"), first);
  }
  EXPECT_TRUE(TmpIsEmpty());
}

TEST_F(TargetFolders, StaysIfItIsToBeKept) {
  Create()->Keep();
  EXPECT_FALSE(TmpIsEmpty());
}

TEST_F(TargetFolders, IsNotMadeWhereOthersCouldReplaceIt) {
  Make("tmp", 0777);
  const auto refused = Create();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("/tmp: others can replace files in it"));
  Make("var/tmp", 01777);
  const auto folder = Create();
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_THAT(folder->PathOf("x"), testing::StartsWith("/var/tmp/"));
}

TEST_F(TargetFolders, BelongsToTheUserForWhomItIsMade) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act for others";
  chmod(path_.c_str(), 0755);
  std::optional<TargetFolder> folder;
  {
    const auto user = ActingAs::User(kNobody, kNobody);
    ASSERT_TRUE(user) << user.error().message;
    auto made = TargetFolder::Create(root_.get(), 8134, kNobody, TargetFolder::Use::kData);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(made->CreateFile("answer", 0600));
    folder.emplace(*std::move(made));
    EXPECT_EQ(geteuid(), kNobody);
  }
  EXPECT_EQ(geteuid(), 0U);
  EXPECT_EQ(getegid(), 0U);
  struct stat status = {};
  ASSERT_EQ(stat((path_ + folder->PathOf("answer")).c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kNobody);
}

TEST(AgentAnswer, IsTextOrAnErrorWithItsHint) {
  EXPECT_EQ(ParseAgentAnswer("ok\nrecording\na=1\n").value(), "recording\na=1\n");
  EXPECT_EQ(ParseAgentAnswer("ok\n").value(), "");
  const auto error = ParseAgentAnswer("error\nno file\nsay which\n");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, "no file");
  EXPECT_EQ(error.error().hint, "say which");
  EXPECT_THAT(ParseAgentAnswer("error\n").error().message, HasSubstr("without a reason"));
  EXPECT_THAT(ParseAgentAnswer("").error().message, HasSubstr("no answer"));
  EXPECT_THAT(ParseAgentAnswer("okay\n").error().message, HasSubstr("'okay'"));
}

}  // namespace
}  // namespace spanprof::collect
