#include "collect/jvm_attach.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/fake_jvm.h"

namespace spanprof::collect {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// ---- What JDK 17 and JDK 25 really say ----

TEST(LoadAnswer, HasTheReturnCodeOfTheAgent) {
  EXPECT_EQ(ParseLoadAnswer("0\nreturn code: 0\n", "x.so").value(), 0);
  EXPECT_EQ(ParseLoadAnswer("0\nreturn code: -1\n", "x.so").value(), -1);
  EXPECT_EQ(ParseLoadAnswer("0\n0\n", "x.so").value(), 0);  // JDK 8
}

TEST(LoadAnswer, WithoutAReturnCodeIsAFailureAlsoWhereTheJvmSaysZero) {
  const char* const reason = "\n/x.so was not loaded.\n/x.so: cannot open shared object file\n";
  for (const char* status : {"-1", "0"}) {
    const auto code = ParseLoadAnswer(std::string(status) + reason, "/x.so");
    ASSERT_FALSE(code) << status;
    EXPECT_EQ(code.error().code, ENOEXEC);
    EXPECT_THAT(code.error().message, AllOf(HasSubstr("/x.so was not loaded. /x.so: cannot open")));
  }
}

TEST(LoadAnswer, OfAJvmThatForbidsItSaysWhatToDo) {
  const auto code = ParseLoadAnswer(
      "0\nDynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch "
      "target VM.\n",
      "/x.so");
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().hint, HasSubstr("-XX:+EnableDynamicAgentLoading"));
}

TEST(LoadAnswer, ThatIsNoneIsRefused) {
  for (const char* text : {"\033[2J", "", "ok\n", "0x\nreturn code: 0\n", "99999999999\n"}) {
    const auto code = ParseLoadAnswer(text, "/x.so");
    ASSERT_FALSE(code) << text;
    EXPECT_EQ(code.error().code, EPROTO) << text;
    EXPECT_EQ(code.error().message.find('\033'), std::string::npos);
  }
  EXPECT_FALSE(ParseLoadAnswer("0\n", "/x.so"));
  EXPECT_FALSE(ParseLoadAnswer("0\nreturn code: 0 and more\n", "/x.so"));
  EXPECT_EQ(ParseLoadAnswer("101\n", "/x.so").error().code, EPROTONOSUPPORT);
}

// ---- The protocol ----

class JvmAttach : public testing::Test {
 protected:
  static AttachLimits Limits() {
    AttachLimits limits;
    limits.connect = milliseconds(20'000);
    limits.answer = milliseconds(20'000);
    return limits;
  }

  // The whole way; the error's code, or the agent's.
  Result<int> Load(const FakeJvm& fake, const AttachLimits& limits = Limits(),
                   const std::string& options = "status") {
    const auto jvm = JvmProcess::Open(fake.pid(), "spanprof jvm");
    if (!jvm) return tl::make_unexpected(jvm.error());
    auto connection = JvmConnection::Open(*jvm, limits);
    if (!connection) return tl::make_unexpected(connection.error());
    return connection->Load("/a/x.so", options);
  }
  static void ExpectLeftAlone(const FakeJvm& fake) {
    EXPECT_TRUE(fake.IsAlive());
    EXPECT_FALSE(std::filesystem::exists(fake.attach_file()));
  }
};

TEST_F(JvmAttach, SendsTheRequestAndTakesTheAnswer) {
  FakeJvm::Behaviour behaviour;
  behaviour.answer = [](int connection, const std::string& request) {
    const std::string expected("1\0load\0/a/x.so\0true\0status\0", 27);
    FakeJvm::Say(connection, request == expected ? "0\nreturn code: 7\n" : "0\nother request\n");
  };
  const FakeJvm fake(behaviour);
  const auto code = Load(fake);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(*code, 7);
  ExpectLeftAlone(fake);
  // By now it listens: no more signals.
  EXPECT_EQ(Load(fake).value(), 7);
}

TEST_F(JvmAttach, AProcessThatWouldDieOfTheSignalGetsNone) {
  FakeJvm::Behaviour behaviour;
  behaviour.catches_quit = false;
  const FakeJvm fake(behaviour);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("-Xrs"));
  ExpectLeftAlone(fake);
}

TEST_F(JvmAttach, AStoppedProcessIsToldOf) {
  const FakeJvm fake({});
  kill(fake.pid(), SIGSTOP);
  waitpid(fake.pid(), nullptr, WUNTRACED);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("is stopped"));
}

TEST_F(JvmAttach, OneThatNeverListensIsGivenUp) {
  FakeJvm::Behaviour behaviour;
  behaviour.listens = false;
  const FakeJvm fake(behaviour);
  AttachLimits limits = Limits();
  limits.connect = milliseconds(300);
  const auto code = Load(fake, limits);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ETIMEDOUT);
  ExpectLeftAlone(fake);
}

TEST_F(JvmAttach, OneThatNeverAnswersIsGivenUp) {
  FakeJvm::Behaviour behaviour;
  behaviour.answer = [](int, const std::string&) {
    for (;;) pause();
  };
  const FakeJvm fake(behaviour);
  AttachLimits limits = Limits();
  limits.answer = milliseconds(300);
  const auto code = Load(fake, limits);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ETIMEDOUT);
  ExpectLeftAlone(fake);
}

TEST_F(JvmAttach, AnAnswerThatIsTooLongIsRefused) {
  FakeJvm::Behaviour behaviour;
  behaviour.answer = [](int connection, const std::string&) {
    FakeJvm::Say(connection, std::string(kMaxAttachAnswer + 1, 'x'));
  };
  const FakeJvm fake(behaviour);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, EMSGSIZE);
}

TEST_F(JvmAttach, OneThatTakesNobodySaysWhom) {
  FakeJvm::Behaviour behaviour;
  behaviour.answer = [](int, const std::string&) {};
  const FakeJvm fake(behaviour);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("its own user and group only"));
}

TEST_F(JvmAttach, OneThatEndsMeanwhileIsToldOf) {
  FakeJvm::Behaviour behaviour;
  behaviour.answer = [](int, const std::string&) { _exit(0); };
  const FakeJvm fake(behaviour);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ESRCH) << code.error().message;
  EXPECT_THAT(code.error().message, HasSubstr("has ended"));
}

TEST_F(JvmAttach, AnInterruptEndsTheWaitAndCleansUp) {
  FakeJvm::Behaviour behaviour;
  behaviour.listens = false;
  const FakeJvm fake(behaviour);
  std::atomic<bool> interrupted{false};
  AttachLimits limits = Limits();
  limits.interrupted = &interrupted;
  std::thread user([&] {
    while (!std::filesystem::exists(fake.attach_file())) std::this_thread::yield();
    interrupted = true;
  });
  const auto code = Load(fake, limits);
  user.join();
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, EINTR);
  ExpectLeftAlone(fake);
}

TEST_F(JvmAttach, OptionsThatNoJvmTakesAreNotSent) {
  const FakeJvm fake({});
  const auto code = Load(fake, Limits(), std::string(kMaxAttachArgument + 1, 'x'));
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, E2BIG);
}

// ---- /tmp is everybody's ----

TEST_F(JvmAttach, ASocketOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  const FakeJvm fake({});
  const UniqueFd listener = ListenAt(JavaSocket(fake.pid()));
  ASSERT_EQ(chown(JavaSocket(fake.pid()).c_str(), kNobody, kNobody), 0);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("belongs to user 65534"));
  ExpectLeftAlone(fake);
}

TEST_F(JvmAttach, ASocketOfAnotherProcessIsNotUsed) {
  const FakeJvm fake({});
  const UniqueFd listener = ListenAt(JavaSocket(fake.pid()));
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message,
              HasSubstr("is process " + std::to_string(getpid()) + ", not the JVM"));
}

TEST_F(JvmAttach, ALinkToASocketIsNotFollowed) {
  const FakeJvm fake({});
  const std::string elsewhere = JavaSocket(getpid());
  const UniqueFd listener = ListenAt(elsewhere);
  ASSERT_EQ(symlink(elsewhere.c_str(), JavaSocket(fake.pid()).c_str()), 0);
  const auto code = Load(fake);
  unlink(elsewhere.c_str());
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("is not a socket"));
}

TEST_F(JvmAttach, ASocketThatNobodyListensToIsReplaced) {
  const FakeJvm fake({});
  (void)ListenAt(JavaSocket(fake.pid()));  // closed at once, the file stays
  const auto code = Load(fake);
  EXPECT_TRUE(code) << code.error().message;
}

TEST_F(JvmAttach, AnAttachFileOfAnotherUserIsToldOf) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  const FakeJvm fake({});
  std::ofstream(fake.attach_file()) << "";
  ASSERT_EQ(chown(fake.attach_file().c_str(), kNobody, kNobody), 0);
  const auto code = Load(fake);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().hint, HasSubstr("another user's"));
  EXPECT_TRUE(std::filesystem::exists(fake.attach_file())) << "it is not ours to remove";
}

TEST_F(JvmAttach, AnAttachFileThatWasLeftServes) {
  const FakeJvm fake({});
  std::ofstream(fake.attach_file()) << "";
  const auto code = Load(fake);
  EXPECT_TRUE(code) << code.error().message;
}

}  // namespace
}  // namespace spanprof::collect
