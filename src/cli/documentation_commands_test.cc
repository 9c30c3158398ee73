// The built command's man pages and completion, tried by the programs that they are for.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/profile_files_fixture.h"

namespace spanprof::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DocumentationCommands : public ProfileFilesTest {
 protected:
  // What a shell command prints, errors too.
  static std::string Shell(const std::string& command) {
    std::string text;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    char buffer[4096];
    while (const std::size_t count = fread(buffer, 1, sizeof(buffer), pipe)) {
      text.append(buffer, count);
    }
    pclose(pipe);
    return text;
  }
  static bool Has(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
  }
  void WriteCompletion(const std::string& shell) {
    ASSERT_EQ(Run({"completion", shell}), 0) << err_;
    WriteBytes(shell, out_);
  }

  // What bash would offer behind these words, one a line.
  std::string BashOffers(const std::string& words) {
    WriteBytes("try.bash", "source " + Path("bash") + "\nCOMP_WORDS=(" + words +
                               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_spanprof\n"
                               "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    return Shell("bash --norc " + Path("try.bash"));
  }
};

TEST_F(DocumentationCommands, EveryCommandHasAPageThatRoffAccepts) {
  ASSERT_EQ(Run({"man", "--folder", Path("man1")}), 0) << err_;
  for (const char* name : {"spanprof", "spanprof-export", "spanprof-report", "spanprof-doctor",
                           "spanprof-context", "spanprof-completion", "spanprof-man"}) {
    EXPECT_TRUE(std::filesystem::exists(Path("man1/") + name + ".1")) << name;
  }
  if (!Has("groff")) GTEST_SKIP() << "no groff to read them";
  for (const auto& page : std::filesystem::directory_iterator(Path("man1"))) {
    EXPECT_EQ(Shell("groff -man -Tutf8 -ww " + page.path().string() + " >/dev/null"), "") << page;
  }
}

TEST_F(DocumentationCommands, APageHasWhatTheHelpHas) {
  ASSERT_EQ(Run({"man", "report"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("\\-\\-by"), HasSubstr("\\-\\-trace\\-id"),
                          HasSubstr(".SH EXAMPLES"), HasSubstr("EXIT STATUS")));
  EXPECT_EQ(Run({"man", "repotr"}), 1);
  EXPECT_THAT(err_, HasSubstr("did you mean report?"));
}

TEST_F(DocumentationCommands, BashCompletes) {
  WriteCompletion("bash");
  EXPECT_EQ(BashOffers("spanprof exp"), "export\n");
  EXPECT_EQ(BashOffers("spanprof export a.jfr --forma"), "--format\n");
  EXPECT_EQ(BashOffers("spanprof export --format p"), "perfetto\npprof\n");
  EXPECT_EQ(BashOffers("spanprof completion z"), "zsh\n");
  WriteBytes("two words.jfr", "");
  EXPECT_EQ(BashOffers("spanprof report " + Path("two")), Path("two words.jfr") + "\n");
  EXPECT_EQ(BashOffers("spanprof report --endpoint /"), "\n");
  if (Has("shellcheck")) {
    EXPECT_EQ(Shell("shellcheck -s bash " + Path("bash")), "");
  }
}

TEST_F(DocumentationCommands, FishCompletes) {
  if (!Has("fish")) GTEST_SKIP() << "no fish to try it";
  WriteCompletion("fish");
  const auto offers = [&](const std::string& line) {
    return Shell("HOME=" + folder_ + " fish --no-config -c 'source " + Path("fish") +
                 "; complete -C \"" + line + "\"'");
  };
  EXPECT_THAT(offers("spanprof exp"), HasSubstr("export\tConvert"));
  EXPECT_THAT(offers("spanprof export --for"), HasSubstr("--format"));
  EXPECT_THAT(offers("spanprof export --format "), AllOf(HasSubstr("pprof"), HasSubstr("jfr")));
  EXPECT_THAT(offers("spanprof completion "), AllOf(HasSubstr("zsh"), Not(HasSubstr(".jfr"))));
}

TEST_F(DocumentationCommands, ZshReadsIt) {
  if (!Has("zsh")) GTEST_SKIP() << "no zsh to try it";
  WriteCompletion("zsh");
  EXPECT_EQ(Shell("zsh -f -n " + Path("zsh")), "");
  EXPECT_EQ(Shell("zsh -f -c 'autoload -Uz compinit && compinit -u -d " + Path("dump") +
                  " && source " + Path("zsh") + " && print $_comps[spanprof]'"),
            "_spanprof\n");
}

TEST_F(DocumentationCommands, AnotherShellIsAUsageError) {
  EXPECT_EQ(Run({"completion", "tcsh"}), 2);
  EXPECT_EQ(Run({"completion"}), 2);
}

}  // namespace
}  // namespace spanprof::cli
