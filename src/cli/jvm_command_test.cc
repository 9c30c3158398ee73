// `spanprof jvm`, the built command, on real JVMs.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "cli/java_fixture.h"
#include "cli/profile_files_fixture.h"

namespace spanprof::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr uid_t kNobody = 65534;

// Of the process that has this number in its own namespace.
std::vector<std::string> PrivateFoldersIn(const std::string& folder, pid_t pid) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("spanprof-" + std::to_string(pid) + "-")) names.push_back(entry.path());
  }
  return names;
}

// The agents that a process has loaded.
std::set<std::string> LoadedAgents(pid_t pid) {
  std::set<std::string> agents;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.find("libspanprof-jvm.so") != std::string::npos) {
      agents.insert(line.substr(path));
    }
  }
  return agents;
}

class JvmCommand : public ProfileFilesTest, public testing::WithParamInterface<Jdk> {
 protected:
  JvmCommand() {
    WriteBytes("Busy.java", kBusyJava);
    // For a JVM of another user.
    chmod(folder_.c_str(), 0755);
  }

  [[nodiscard]] static std::string Tool(const std::string& name) {
    return GetParam().home + "/bin/" + name;
  }
  [[nodiscard]] std::vector<std::string> Java(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {Tool("java"), "-XX:+UseSerialGC"});
    options.push_back(Path("Busy.java"));
    return options;
  }
  int Ask(const JavaProcess& java, const std::string& request, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"jvm", java.pid_text(), request};
    words.insert(words.end(), more.begin(), more.end());
    return Run(std::move(words));
  }
  // Asks until there are samples in the dump: how soon that is, is the machine's affair.
  void DumpWithSamples(const JavaProcess& java, const std::string& file) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(Ask(java, "dump,file=" + file), 0) << err_;
      if (!ReadProfileFile("now.jfr").samples().empty()) return;
      usleep(50'000);
    }
    FAIL() << "no samples";
  }
  [[nodiscard]] std::string JfrSummary(const std::string& file) const {
    Command jfr({"summary", file}, 0, Tool("jfr").c_str());
    EXPECT_EQ(jfr.Wait(), 0) << jfr.err;
    return jfr.out;
  }
  void ExpectRefused(const JavaProcess& java, const std::string& why) {
    EXPECT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("x.jfr")), 1);
    EXPECT_THAT(err_, AllOf(HasSubstr(why), HasSubstr("hint: ")));
    EXPECT_TRUE(java.IsAlive());
    EXPECT_THAT(LoadedAgents(java.pid()), IsEmpty());
  }
};

TEST_P(JvmCommand, RecordsAJvmThatRuns) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  EXPECT_EQ(Ask(java, "status"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("not recording"));
  EXPECT_THAT(LoadedAgents(java.pid()), IsEmpty()) << "a question changes nothing";

  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("all.jfr")), 0) << err_;
  EXPECT_EQ(out_, "started\n");
  EXPECT_EQ(Ask(java, "status"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("recording\n"));
  EXPECT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("second.jfr")), 1);
  EXPECT_THAT(err_, HasSubstr("under way already"));
  EXPECT_FALSE(std::filesystem::exists(Path("second.jfr")));

  DumpWithSamples(java, Path("now.jfr"));
  EXPECT_THAT(out_, HasSubstr("now.jfr"));
  EXPECT_THAT(JfrSummary(Path("now.jfr")), HasSubstr("jdk.ExecutionSample"));
  EXPECT_EQ(Ask(java, "stop"), 0) << err_;
  EXPECT_EQ(out_, "stopped\n");
  EXPECT_FALSE(ReadProfileFile("all.jfr").samples().empty());
  EXPECT_THAT(JfrSummary(Path("all.jfr")), HasSubstr("jdk.ExecutionSample"));

  EXPECT_EQ(Ask(java, "stop"), 1);
  EXPECT_THAT(err_, HasSubstr("nothing is being recorded"));
  EXPECT_EQ(Ask(java, "status"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("not recording"));
  EXPECT_EQ(LoadedAgents(java.pid()).size(), 1U);
  EXPECT_TRUE(java.IsAlive());
  EXPECT_THAT(PrivateFoldersIn("/tmp", java.pid()), IsEmpty());
}

TEST_P(JvmCommand, ARelativeFileIsOneOfTheCallersFolder) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("all.jfr")), 0) << err_;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_EQ(Ask(java, "dump,file=here.jfr"), 0) << err_;
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(Path("here.jfr")));
}

TEST_P(JvmCommand, AThreadIsAsGoodAsItsProcess) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  std::string thread;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + java.pid_text() + "/task")) {
    if (entry.path().filename() != java.pid_text()) thread = entry.path().filename();
  }
  EXPECT_EQ(Run({"jvm", thread, "start,cpu=1ms,file=" + Path("x.jfr")}), 0) << err_;
}

TEST_P(JvmCommand, AnAgentWhoseFileIsGoneStillAnswers) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  const std::string library = Path("libspanprof-jvm.so");
  std::filesystem::copy_file(SPANPROF_JVM_LIBRARY, library);
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("x.jfr"), {"--library", library}), 0) << err_;
  std::filesystem::remove(library);
  EXPECT_EQ(Ask(java, "status"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("recording"));
  EXPECT_EQ(LoadedAgents(java.pid()).size(), 1U);
}

// With -Xrs a JVM listens from its start. When the socket is gone, only a SIGQUIT would help.
TEST_P(JvmCommand, AJvmThatWouldDieOfTheSignalGetsNone) {
  const JavaProcess java(Java({"-Xrs"}));
  ASSERT_TRUE(java.is_ready());
  ASSERT_EQ(unlink(("/tmp/.java_pid" + java.pid_text()).c_str()), 0);
  ExpectRefused(java, "-Xrs");
}

TEST_P(JvmCommand, AJvmThatListensNeedsNoSignal) {
  const JavaProcess java(Java({"-Xrs"}));
  ASSERT_TRUE(java.is_ready());
  EXPECT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("x.jfr")), 0) << err_;
  EXPECT_TRUE(java.IsAlive());
}

TEST_P(JvmCommand, AJvmThatForbidsAttachingIsRefused) {
  const JavaProcess java(Java({"-XX:+DisableAttachMechanism"}));
  ASSERT_TRUE(java.is_ready());
  ExpectRefused(java, "-XX:+DisableAttachMechanism");
}

TEST_P(JvmCommand, AJvmThatForbidsLateAgentsIsRefused) {
  const JavaProcess java(Java({"-XX:-EnableDynamicAgentLoading"}));
  ASSERT_TRUE(java.is_ready());
  ExpectRefused(java, "Dynamic agent loading is not enabled");
}

TEST_P(JvmCommand, ALibraryThatIsNoAgentIsRefused) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  const std::string start = "start,cpu=1ms,file=" + Path("x.jfr");
  WriteBytes("text.so", "no library");
  EXPECT_EQ(Ask(java, start, {"--library", Path("text.so")}), 1);
  EXPECT_THAT(err_, HasSubstr("did not load"));
  EXPECT_EQ(Ask(java, start, {"--library", Path("none.so")}), 1);
  EXPECT_THAT(err_, HasSubstr("there is no library"));
  EXPECT_TRUE(java.IsAlive());
}

TEST_P(JvmCommand, BadRequestsTouchNothing) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  for (const auto& [request, why] : std::vector<std::pair<std::string, std::string>>{
           {"start,cpu=soon", "cpu='soon'"},
           {"begin", "begin"},
           {"cpu=1ms", "does not begin with a command"},
           {"dump", "dump needs a file"},
           {"stop", "the agent is not loaded"}}) {
    EXPECT_EQ(Ask(java, request), 1) << request;
    EXPECT_THAT(err_, HasSubstr(why));
  }
  EXPECT_THAT(LoadedAgents(java.pid()), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists("/tmp/.java_pid" + java.pid_text()));
}

TEST_P(JvmCommand, ACommandThatGaveUpIsNotObeyedLater) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("x.jfr")), 0) << err_;
  java.Stop();
  EXPECT_EQ(Ask(java, "stop", {"--timeout", "300ms"}), 1);
  EXPECT_THAT(err_, HasSubstr("did not answer within 300 ms"));
  kill(java.pid(), SIGCONT);
  EXPECT_EQ(Ask(java, "status"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("recording"));
  EXPECT_THAT(PrivateFoldersIn("/tmp", java.pid()), IsEmpty());
}

TEST_P(JvmCommand, AJvmThatEndsMeanwhileIsToldOf) {
  JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("x.jfr")), 0) << err_;
  java.Stop();
  Command command({"jvm", java.pid_text(), "status"});
  while (PrivateFoldersIn("/tmp", java.pid()).empty()) usleep(1000);
  kill(java.pid(), SIGKILL);
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, HasSubstr("has ended"));
  EXPECT_THAT(PrivateFoldersIn("/tmp", java.pid()), IsEmpty());
}

TEST_P(JvmCommand, AnInterruptLeavesNothingBehind) {
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("x.jfr")), 0) << err_;
  java.Stop();
  Command command({"jvm", java.pid_text(), "status"});
  while (PrivateFoldersIn("/tmp", java.pid()).empty()) usleep(1000);
  command.Signal(SIGINT);
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(PrivateFoldersIn("/tmp", java.pid()), IsEmpty());
  kill(java.pid(), SIGCONT);
}

TEST_P(JvmCommand, RootAsksTheJvmOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const JavaProcess java(Java(), kNobody);
  ASSERT_TRUE(java.is_ready());
  std::filesystem::create_directory(Path("theirs"));
  ASSERT_EQ(chown(Path("theirs").c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=" + Path("theirs/x.jfr")), 0) << err_;
  // A file where that user may not write is the agent's to refuse.
  EXPECT_EQ(Ask(java, "dump,file=" + Path("ours.jfr")), 1);
  EXPECT_THAT(err_, HasSubstr("ours.jfr"));
  EXPECT_EQ(Ask(java, "stop"), 0) << err_;
  EXPECT_TRUE(std::filesystem::exists(Path("theirs/x.jfr")));
  EXPECT_TRUE(java.IsAlive());
}

TEST_P(JvmCommand, AnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const JavaProcess java(Java());
  ASSERT_TRUE(java.is_ready());
  Command command({"jvm", java.pid_text(), "status"}, kNobody);
  EXPECT_EQ(command.Wait(), 1);
  EXPECT_THAT(command.err, AllOf(HasSubstr("not permitted"), HasSubstr("hint: ")));
}

// As in a container: its own processes, its own /tmp, and our library is not there.
TEST_P(JvmCommand, RecordsAJvmInOtherNamespaces) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  if (std::system("unshare -m -p --fork --mount-proc true 2>/dev/null") != 0) {
    GTEST_SKIP() << "unshare does not work here";
  }
  setenv("SOURCE", kBusyJava, 1);
  const std::string library_folder = std::filesystem::path(SPANPROF_JVM_LIBRARY).parent_path();
  JavaProcess java({"/usr/bin/unshare", "-m", "-p", "--fork", "--mount-proc", "/bin/sh", "-c",
                    "mount -t tmpfs tmpfs '" + library_folder +
                        "' && mount -t tmpfs -o mode=1777 tmpfs /tmp && cd /tmp && printf %s "
                        "\"$SOURCE\" >Busy.java && exec '" +
                        Tool("java") + "' -XX:+UseSerialGC Busy.java"});
  ASSERT_TRUE(java.is_ready());
  java.UseOnlyChild();
  const std::string root = "/proc/" + java.pid_text() + "/root";
  ASSERT_FALSE(std::filesystem::exists(root + SPANPROF_JVM_LIBRARY)) << "not what is to be tested";
  ASSERT_EQ(Ask(java, "start,cpu=1ms,file=all.jfr"), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("/proc/" + java.pid_text() + "/cwd/all.jfr"));
  // The library stays for later commands, the answer does not.
  const std::vector<std::string> folders = PrivateFoldersIn(root + "/tmp", 1);
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(folders[0] + "/libspanprof-jvm.so"));
  EXPECT_EQ(Ask(java, "status"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("recording"));
  EXPECT_EQ(Ask(java, "stop"), 0) << err_;
  EXPECT_TRUE(std::filesystem::exists(root + "/tmp/all.jfr"));
  EXPECT_EQ(PrivateFoldersIn(root + "/tmp", 1).size(), 1U);
  EXPECT_EQ(LoadedAgents(java.pid()).size(), 1U);
  EXPECT_FALSE(std::filesystem::exists("/tmp/.java_pid1")) << "that is the container's number";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(JvmCommand);
INSTANTIATE_TEST_SUITE_P(Jdk, JvmCommand, testing::ValuesIn(FindJdks()),
                         [](const auto& test) { return test.param.version; });

class OtherProcess : public ProfileFilesTest {};

TEST_F(OtherProcess, IsRefusedAndLives) {
  const Target target([] {});
  EXPECT_EQ(Run({"jvm", target.pid_text(), "start,cpu=1ms,file=x.jfr"}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("is not a JVM"), HasSubstr("hint: ")));
  EXPECT_EQ(waitpid(target.pid(), nullptr, WNOHANG), 0);
}

TEST_F(OtherProcess, ThatIsNotThereIsRefused) {
  EXPECT_EQ(Run({"jvm", "4194304", "status"}), 1);
  EXPECT_THAT(err_, HasSubstr("there is no process 4194304"));
  EXPECT_EQ(Run({"jvm", "0", "status"}), 2);
  EXPECT_EQ(Run({"jvm", "1"}), 2);
}

TEST_F(OtherProcess, TestsNeedAJdk) {
  if (FindJdks().empty()) GTEST_SKIP() << "no JDK with javac and jfr: JVMs were not tested";
}

}  // namespace
}  // namespace spanprof::cli
