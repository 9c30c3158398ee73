#include "cli/command_tree.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/completion_script.h"
#include "cli/man_page.h"

namespace spanprof::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CommandTreeTest : public ::testing::Test {
 protected:
  CommandTreeTest() : app_("Profiles things.", "spanprof") {
    CLI::App* show = app_.add_subcommand("show", "Show a file's contents");
    show->add_option("FILE", files_, "What to show")->required()->type_name("FILE");
    show->add_option("-s,--sort", sort_, ".order: by [name] or size; it's up to you")
        ->check(CLI::IsMember({"name", "size"}));
    show->add_flag("--all", all_, "Back\\slash");
    show->add_option("--secret", sort_, "Not for people")->group("");
    show->footer("Reads twice.\n\nExamples:\n  spanprof show --all a-b");
    app_.add_subcommand("hidden", "Not for people")->group("");
  }

  CLI::App app_;
  std::vector<std::string> files_;
  std::string sort_;
  bool all_ = false;
};

TEST_F(CommandTreeTest, DescribesWhatTheHelpShows) {
  const CommandDescription root = DescribeCommand(app_);
  ASSERT_EQ(root.commands.size(), 1u);
  const CommandDescription& show = root.commands[0];
  EXPECT_EQ(show.name, "show");
  ASSERT_EQ(show.arguments.size(), 1u);
  EXPECT_TRUE(show.arguments[0].required);
  EXPECT_TRUE(show.arguments[0].repeated);
  ASSERT_EQ(show.options.size(), 3u);
  EXPECT_THAT(show.options[0].names, ElementsAre("-h", "--help"));
  EXPECT_THAT(show.options[1].names, ElementsAre("-s", "--sort"));
  EXPECT_THAT(show.options[1].choices, ElementsAre("name", "size"));
  EXPECT_EQ(ValueName(show.options[1]), "name|size");
  EXPECT_FALSE(show.options[1].repeated);
  EXPECT_EQ(show.options[2].value, "");
}

TEST_F(CommandTreeTest, AManPageShowsTextAsItIs) {
  const CommandDescription root = DescribeCommand(app_);
  const std::string page = ManPage(root, root.commands[0], "1.0");
  EXPECT_THAT(page, AllOf(HasSubstr(".TH \"SPANPROF-SHOW\" \"1\""),
                          HasSubstr("spanprof\\-show \\- Show a file's contents"),
                          HasSubstr("\\fB\\-s\\fR, \\fB\\-\\-sort\\fR \\fIname|size\\fR"),
                          HasSubstr("\n\\&.order"), HasSubstr("Back\\eslash"),
                          HasSubstr(".SH EXAMPLES\n.RS 4\n.nf\nspanprof show \\-\\-all a\\-b\n"),
                          HasSubstr(".PP\nReads twice.\n"), Not(HasSubstr("secret"))));
  EXPECT_THAT(ManPage(root, "1.0"),
              AllOf(HasSubstr("spanprof\\-show\\fR(1)"), Not(HasSubstr("hidden"))));
}

TEST_F(CommandTreeTest, CompletionQuotesWhatShellsWouldTakeForTheirOwn) {
  const CommandDescription root = DescribeCommand(app_);
  EXPECT_THAT(ZshCompletion(root), AllOf(HasSubstr("show:Show a file'\\''s contents"),
                                         HasSubstr("(-s --sort)--sort[.order]:TEXT:(name size)")));
  EXPECT_THAT(FishCompletion(root), HasSubstr("-d 'Show a file\\'s contents'"));
  EXPECT_THAT(BashCompletion(root), HasSubstr("-s | --sort) words=(-W 'name size') ;;"));
}

}  // namespace
}  // namespace spanprof::cli
