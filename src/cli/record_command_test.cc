// `spanprof record`, the built command, on programs that every machine has.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/profile_files_fixture.h"

namespace spanprof::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Uses CPU time for some hundred samples of a millisecond.
constexpr const char* kBusy = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; ";
constexpr const char* kForever = "while :; do :; done";

class RecordCommand : public ProfileFilesTest {
 protected:
  RecordCommand() {
    std::filesystem::create_directory(Path("tmp"));
    setenv("TMPDIR", Path("tmp").c_str(), 1);
    unsetenv("LD_PRELOAD");
  }
  ~RecordCommand() override {
    EXPECT_TRUE(std::filesystem::is_empty(Path("tmp"))) << "a temporary folder was left";
  }

  std::vector<std::string> Recording(std::vector<std::string> command,
                                     std::vector<std::string> options = {}) const {
    std::vector<std::string> words = {"record", "-o", Path("profile.pb.gz"), "--cpu", "1ms"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  int RecordShell(const std::string& script, std::vector<std::string> options = {}) {
    return Run(Recording({"/bin/sh", "-c", script}, std::move(options)));
  }

  [[nodiscard]] uint64_t Samples() const {
    const profile::Profile profile = ReadProfileFile("profile.pb.gz");
    uint64_t samples = 0;
    for (const profile::Sample& sample : profile.samples()) samples += sample.count;
    return samples;
  }
  [[nodiscard]] std::set<std::string> ThreadNames() const {
    std::set<std::string> names;
    const profile::Profile profile = ReadProfileFile("profile.pb.gz");
    for (const profile::Sample& sample : profile.samples()) {
      names.emplace(profile.Text(profile.threads()[sample.thread].name));
    }
    return names;
  }
  // A shell with another name, so that its samples can be told.
  [[nodiscard]] std::string Kid() const {
    std::filesystem::copy_file(std::filesystem::canonical("/bin/sh"), Path("kid"));
    return Path("kid");
  }
  [[nodiscard]] bool Exists(const std::string& name) const {
    return std::filesystem::exists(Path(name));
  }

  // The command is refused, with a message, and has not been run.
  void ExpectRefused(std::vector<std::string> words, const std::string& why) {
    EXPECT_EQ(Run(std::move(words)), 1);
    EXPECT_THAT(err_, HasSubstr(why));
    EXPECT_FALSE(Exists("has-run"));
    EXPECT_FALSE(Exists("profile.pb.gz"));
  }
};

TEST_F(RecordCommand, WritesAProfileOfTheCommandForItsUserOnly) {
  ASSERT_EQ(RecordShell(std::string(kBusy) + "echo done"), 0) << err_;
  EXPECT_EQ(out_, "done\n");
  EXPECT_GT(Samples(), 10u);
  EXPECT_THAT(err_, AllOf(HasSubstr("samples of 1 process"), HasSubstr("spanprof report")));
  struct stat status = {};
  ASSERT_EQ(stat(Path("profile.pb.gz").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(RecordCommand, TheExitCodeIsTheCommands) {
  EXPECT_EQ(RecordShell("exit 3"), 3);
  EXPECT_THAT(err_, HasSubstr("there are no samples"));
  EXPECT_EQ(RecordShell("kill -TERM $$"), 128 + SIGTERM);
  EXPECT_EQ(RecordShell("kill -SEGV $$"), 128 + SIGSEGV);
}

TEST_F(RecordCommand, CtrlCEndsTheCommandAndTheProfileIsWritten) {
  Command command(Recording({"/bin/sh", "-c", std::string(kBusy) + "echo $$; " + kForever}));
  const auto child = static_cast<pid_t>(std::stol(command.ReadLine()));
  // A terminal sends it to the whole group.
  kill(command.pid(), SIGINT);
  kill(child, SIGINT);
  EXPECT_EQ(command.Wait(), 128 + SIGINT) << command.err;
  EXPECT_GT(Samples(), 10u) << command.err;
}

TEST_F(RecordCommand, ASignalToRecordIsPassedOn) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Command command(Recording({"/bin/sh", "-c", std::string(kBusy) + "echo $$; " + kForever}));
    command.ReadLine();
    command.Signal(signal);
    EXPECT_EQ(command.Wait(), 128 + signal) << command.err;
    EXPECT_GT(Samples(), 10u);
  }
}

// At once, before the command could have said that it runs.
TEST_F(RecordCommand, AnEarlySignalLeavesNothingBehind) {
  for (const unsigned microseconds : {0u, 2000u, 5000u, 10000u, 20000u, 40000u}) {
    Command command(Recording({"/bin/sh", "-c", kForever}));
    usleep(microseconds);
    command.Signal(SIGTERM);
    command.Wait();  // either record itself was ended, or it has ended the command
  }
}

TEST_F(RecordCommand, EndsTheCommandAfterTheDuration) {
  ExpectRefused({"record", "-d", "soon", "-o", Path("a.pb.gz"), "--", "touch", Path("has-run")},
                "--duration 'soon' is not a duration");
  EXPECT_EQ(RecordShell(kForever, {"-d", "1500ms"}), 128 + SIGTERM) << err_;
  EXPECT_GT(Samples(), 0u);
}

TEST_F(RecordCommand, ChildrenAreInTheProfile) {
  const std::string kid = Kid() + " -c '" + kBusy + ":'; ";
  ASSERT_EQ(RecordShell(kBusy + kid + "(" + kBusy + "true); true"), 0) << err_;
  EXPECT_THAT(ThreadNames(), AllOf(Contains("sh"), Contains("kid")));
  EXPECT_THAT(err_, HasSubstr("samples of 3 processes"));
}

TEST_F(RecordCommand, ChildrenAreLeftOutIfAsked) {
  const std::string kid = Kid() + " -c '" + kBusy + ":'; ";
  ASSERT_EQ(RecordShell(kBusy + kid + "(" + kBusy + "true); env", {"--no-children"}), 0) << err_;
  EXPECT_THAT(ThreadNames(), AllOf(Contains("sh"), Not(Contains("kid"))));
  EXPECT_THAT(err_, HasSubstr("samples of 1 process "));
  EXPECT_THAT(out_, AllOf(Not(HasSubstr("SPANPROF")), Not(HasSubstr("LD_PRELOAD"))));
}

TEST_F(RecordCommand, WhatWasPreloadedStays) {
  setenv("LD_PRELOAD", "libm.so.6", 1);
  ASSERT_EQ(RecordShell("env; true"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("libspanprof-preload.so:libm.so.6\n"));
  ASSERT_EQ(RecordShell("env; true", {"--no-children"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("LD_PRELOAD=libm.so.6\n"));
}

TEST_F(RecordCommand, AKilledCommandLeavesItsLastSeconds) {
  Command command(Recording({"/bin/sh", "-c", std::string("echo $$; ") + kForever}));
  const auto child = static_cast<pid_t>(std::stol(command.ReadLine()));
  // What is written as it goes.
  const auto written = [this] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Path("tmp"))) {
      if (entry.is_regular_file() && entry.file_size() > 0) return true;
    }
    return false;
  };
  for (int i = 0; i < 600 && !written(); ++i) usleep(100'000);
  kill(child, SIGKILL);
  EXPECT_EQ(command.Wait(), 128 + SIGKILL) << command.err;
  EXPECT_GT(Samples(), 10u);
}

TEST_F(RecordCommand, TheNamesEndIsTheFormat) {
  const std::pair<const char*, const char*> starts[] = {
      {"a.pb.gz", "\x1f\x8b"}, {"a.pprof", ""},           {"a.otlp", ""},      {"a.jfr", "FLR"},
      {"a.html", "<!"},        {"a.json.gz", "\x1f\x8b"}, {"a.pftrace", "\n"}, {"a.folded", ""},
  };
  for (const auto& [name, start] : starts) {
    ASSERT_EQ(Run({"record", "-o", Path(name), "--cpu", "1ms", "--", "/bin/sh", "-c",
                   std::string(kBusy)}),
              0)
        << name << err_;
    EXPECT_EQ(ReadBytes(name).substr(0, std::string(start).size()), start) << name;
    EXPECT_GT(ReadBytes(name).size(), 20u) << name;
  }
  ExpectRefused({"record", "-o", Path("a.unknown"), "--", "touch", Path("has-run")}, "a.unknown");
}

TEST_F(RecordCommand, AnOutputThatCannotBeWrittenIsSaidBeforeTheCommandRuns) {
  ExpectRefused({"record", "-o", Path("absent/a.pb.gz"), "--", "touch", Path("has-run")}, "absent");
  std::filesystem::create_directory(Path("folder.pb.gz"));
  ExpectRefused({"record", "-o", Path("folder.pb.gz"), "--", "touch", Path("has-run")},
                "is a folder");
  std::filesystem::create_directory(Path("closed"));
  chmod(Path("closed").c_str(), 0555);
  chmod(folder_.c_str(), 0777);
  // Root may write everywhere.
  constexpr uid_t kNobody = 65534;
  Command command({"record", "-o", Path("closed/a.pb.gz"), "--", "touch", Path("has-run")},
                  geteuid() == 0 ? kNobody : 0);
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, AllOf(HasSubstr("cannot write"), HasSubstr("closed/a.pb.gz")));
  EXPECT_FALSE(Exists("has-run"));
}

TEST_F(RecordCommand, RunsScripts) {
  WriteBytes("script", std::string("#!/bin/sh\n") + kBusy + "echo script $1\n");
  chmod(Path("script").c_str(), 0755);
  ASSERT_EQ(Run(Recording({Path("script"), "argument"})), 0) << err_;
  EXPECT_EQ(out_, "script argument\n");
  EXPECT_GT(Samples(), 10u);
}

TEST_F(RecordCommand, SaysWhatCannotBeRun) {
  ExpectRefused(Recording({"no-such-program-here"}), "there is no program");
  ExpectRefused(Recording({Path("absent")}), "No such file");
  WriteBytes("plain", "#!/bin/sh\n");
  chmod(Path("plain").c_str(), 0644);
  ExpectRefused(Recording({Path("plain")}), "make it executable");
}

TEST_F(RecordCommand, RefusesStaticPrograms) {
  const char* const ldconfig = "/sbin/ldconfig";
  if (access(ldconfig, X_OK) != 0) GTEST_SKIP() << "there is no static program here";
  ExpectRefused(Recording({ldconfig, "-p"}), "linked statically");
}

TEST_F(RecordCommand, RefusesProgramsThatGainPrivileges) {
  std::string program = "/usr/bin/passwd";
  if (geteuid() == 0) {
    program = Path("setuid");
    std::filesystem::copy_file("/bin/true", program);
    ASSERT_EQ(chown(program.c_str(), 65534, 65534), 0);
    ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  } else if (access(program.c_str(), X_OK) != 0) {
    GTEST_SKIP() << "there is no setuid program here";
  }
  ExpectRefused(Recording({program}), "setuid");
}

TEST_F(RecordCommand, RefusesGoPrograms) {
  std::string go;
  for (const char* path : {"/usr/local/go/bin/go", "/usr/lib/go/bin/go", "/usr/bin/go"}) {
    if (go.empty() && access(path, X_OK) == 0) go = path;
  }
  if (go.empty()) GTEST_SKIP() << "there is no Go here";
  ExpectRefused(Recording({go, "version"}), "Go program");
}

}  // namespace
}  // namespace spanprof::cli
