#include "export/http_post.h"

#include <cerrno>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "export/test_server.h"

namespace spanprof::sending {
namespace {

using Connection = TestServer::Connection;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Long for what has to happen, so that a slow machine does not matter.
constexpr HttpTimeouts kLong = {
    .connect = seconds(60), .send = seconds(60), .receive = seconds(60), .total = seconds(120)};

PostOutcome Post(const std::string& url, const HttpTimeouts& timeouts = kLong,
                 std::string_view body = "body") {
  const SendDeadline deadline(steady_clock::now() + seconds(200));
  return HttpPost({.url = *ParseHttpUrl(url), .headers = {}, .body = body}, timeouts, deadline);
}

TEST(HttpPost, SendsARequest) {
  std::string head;
  std::string body;
  TestServer server([&](Connection& c) {
    body = c.ReadRequest();
    head = c.head;
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer");
  });
  const SendDeadline deadline(steady_clock::now() + seconds(200));
  const PostOutcome outcome = HttpPost({.url = *ParseHttpUrl(server.url() + "/a?b=c"),
                                        .headers = {{"X-Key", "secret"},
                                                    {"user-agent", "mine"},
                                                    {"X-Bad", "a\r\nX-Evil: b"},
                                                    {"Content-Length", "7"}},
                                        .body = std::string_view("a\0b", 3)},
                                       kLong, deadline);
  ASSERT_EQ(outcome.result, PostResult::kAnswered) << outcome.message;
  EXPECT_EQ(outcome.response.status, 200);
  EXPECT_EQ(outcome.body, "answer");
  EXPECT_EQ(outcome.body_result, BodyResult::kComplete);
  EXPECT_EQ(body, std::string("a\0b", 3));
  EXPECT_EQ(head, "POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                      "\r\nContent-Type: application/x-protobuf\r\nX-Key: secret\r\n"
                      "user-agent: mine\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n"
                      "Connection: close\r\n\r\n");
}

TEST(HttpPost, WritesTheHostOfAnIpv6AddressInBrackets) {
  const HttpRequest request{.url = *ParseHttpUrl("http://[::1]:4318"), .headers = {}, .body = {}};
  EXPECT_NE(RequestHead(request).find("\r\nHost: [::1]:4318\r\n"), std::string::npos);
}

TEST(HttpPost, RefusesHeadersThatWouldEndTheHead) {
  for (const HttpHeader& header :
       {HttpHeader{"A", "b\r\nC: d"}, HttpHeader{"A", "b\n"}, HttpHeader{"A", std::string(1, '\0')},
        HttpHeader{"A\r\nB", "c"}, HttpHeader{"", "c"}, HttpHeader{"A b", "c"},
        HttpHeader{"content-LENGTH", "1"}, HttpHeader{"Transfer-Encoding", "chunked"}}) {
    const Result<void> check = CheckHeader(header);
    ASSERT_FALSE(check) << header.name;
    EXPECT_EQ(check.error().code, EINVAL);
    EXPECT_EQ(check.error().message.find('\n'), std::string::npos);
  }
  EXPECT_TRUE(CheckHeader({"Authorization", "Bearer x.y-z=\t\xc3\xa9"}));
}

TEST(HttpPost, ADeadPortIsAConnectError) {
  const PostOutcome outcome = Post("http://127.0.0.1:" + std::to_string(DeadPort()));
  EXPECT_EQ(outcome.result, PostResult::kConnectFailed);
  EXPECT_EQ(outcome.error_number, ECONNREFUSED);
  EXPECT_NE(outcome.message.find("127.0.0.1"), std::string::npos);
}

TEST(HttpPost, AHostThatIsNotThereIsAnErrorOfItsOwn) {
  EXPECT_EQ(Post("http://no-such-host.invalid:1").result, PostResult::kUnresolved);
}

TEST(HttpPost, AServerThatSaysNothingTimesOut) {
  TestServer server([](Connection& c) { c.HoldOpen(); });
  HttpTimeouts timeouts = kLong;
  timeouts.receive = milliseconds(50);
  EXPECT_EQ(Post(server.url(), timeouts).result, PostResult::kReceiveTimedOut);
}

TEST(HttpPost, AServerThatReadsNothingTimesOut) {
  TestServer server([](Connection& c) {
    while (!c.stopping()) std::this_thread::sleep_for(milliseconds(5));
  });
  HttpTimeouts timeouts = kLong;
  timeouts.send = milliseconds(50);
  const std::string body(std::size_t{64} << 20, 'x');  // more than any socket's buffer
  EXPECT_EQ(Post(server.url(), timeouts, body).result, PostResult::kSendTimedOut);
}

TEST(HttpPost, AServerThatIsFullTimesOutInConnect) {
  // A listener with a full queue answers no further SYN.
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::vector<UniqueFd> fillers;
  for (int i = 0; i < 8; ++i) {
    fillers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)connect(fillers.back().get(), reinterpret_cast<sockaddr*>(&address), size);
  }
  HttpTimeouts timeouts = kLong;
  timeouts.connect = milliseconds(100);
  const PostOutcome outcome =
      Post("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), timeouts);
  EXPECT_EQ(outcome.result, PostResult::kConnectTimedOut) << outcome.message;
}

TEST(HttpPost, ADripOfBytesDoesNotExtendTheWhole) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\n");
    while (!c.stopping() && c.Write("X: y\r\n")) std::this_thread::sleep_for(milliseconds(5));
  });
  HttpTimeouts timeouts = kLong;
  timeouts.total = milliseconds(300);
  EXPECT_EQ(Post(server.url(), timeouts).result, PostResult::kTotalTimedOut);
}

TEST(HttpPost, ADripInTheBodyLeavesTheStatus) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\n\r\n");
    while (!c.stopping() && c.Write("x")) std::this_thread::sleep_for(milliseconds(5));
  });
  HttpTimeouts timeouts = kLong;
  timeouts.total = seconds(2);
  const PostOutcome outcome = Post(server.url(), timeouts);
  ASSERT_EQ(outcome.result, PostResult::kAnswered) << outcome.message;
  EXPECT_EQ(outcome.body_result, BodyResult::kTimedOut);
}

TEST(HttpPost, ADeadlineThatIsBroughtForwardEndsIt) {
  TestServer server([](Connection& c) { c.HoldOpen(); });
  SendDeadline deadline(steady_clock::now() + std::chrono::hours(1));
  std::thread thread([&] {
    server.AwaitConnections(1);
    deadline.BringForward(steady_clock::now());
  });
  const HttpTimeouts timeouts = {.connect = std::chrono::hours(1),
                                 .send = std::chrono::hours(1),
                                 .receive = std::chrono::hours(1),
                                 .total = std::chrono::hours(1)};
  const HttpRequest request{.url = *ParseHttpUrl(server.url()), .headers = {}, .body = "x"};
  EXPECT_EQ(HttpPost(request, timeouts, deadline).result, PostResult::kTotalTimedOut);
  thread.join();
}

TEST(HttpPost, AResetIsAnErrorOfItsOwn) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Reset();
  });
  const PostOutcome outcome = Post(server.url());
  EXPECT_EQ(outcome.result, PostResult::kReset) << outcome.message;
}

TEST(HttpPost, AResetWhileSendingIsOneToo) {
  TestServer server([](Connection& c) { c.Reset(); });
  const std::string body(std::size_t{64} << 20, 'x');
  const PostOutcome outcome = Post(server.url(), kLong, body);
  EXPECT_EQ(outcome.result, PostResult::kReset) << outcome.message;
}

TEST(HttpPost, SendingToWhoHungUpRaisesNoSignal) {
  // After the end of the answer, a reset makes send() fail with EPIPE, which comes with SIGPIPE. In
  // some of the attempts both arrive between two calls of it.
  TestServer server([](Connection& c) { c.ReadSome(), c.EndAnswer(), c.Reset(); });
  const std::string body(std::size_t{1} << 20, 'x');
  int unexpected = 0;
  for (int i = 0; i < 300; ++i) {
    const PostResult result = Post(server.url(), kLong, body).result;
    if (result != PostResult::kReset && result != PostResult::kClosedEarly) ++unexpected;
  }
  EXPECT_EQ(unexpected, 0);
}

TEST(HttpPost, AnAnswerBeforeTheEndOfTheRequestCounts) {
  TestServer server([](Connection& c) {
    c.Write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    while (!c.stopping()) std::this_thread::sleep_for(milliseconds(5));  // and reads nothing
  });
  const std::string body(std::size_t{64} << 20, 'x');
  const PostOutcome outcome = Post(server.url(), kLong, body);
  ASSERT_EQ(outcome.result, PostResult::kAnswered) << outcome.message;
  EXPECT_EQ(outcome.response.status, 413);
}

TEST(HttpPost, AConnectionThatIsClosedIsAnErrorOfItsOwn) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    if (c.number() == 2) c.Write("HTTP/1.1 200 OK\r\nContent-");
  });
  EXPECT_EQ(Post(server.url()).result, PostResult::kClosedEarly);
  EXPECT_EQ(Post(server.url()).result, PostResult::kClosedEarly);
}

TEST(HttpPost, ALyingLengthLeavesTheStatus) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nshort");
  });
  const PostOutcome outcome = Post(server.url());
  ASSERT_EQ(outcome.result, PostResult::kAnswered) << outcome.message;
  EXPECT_EQ(outcome.body_result, BodyResult::kCut);
  EXPECT_EQ(outcome.body, "short");
}

TEST(HttpPost, AnEndlessBodyIsNotRead) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (c.Write(std::string(4096, 'x'))) {
    }
  });
  const PostOutcome outcome = Post(server.url());
  ASSERT_EQ(outcome.result, PostResult::kAnswered) << outcome.message;
  EXPECT_EQ(outcome.body_result, BodyResult::kTooLarge);
  EXPECT_LE(outcome.body.size(), kMaxResponseBytes);
}

TEST(HttpPost, AnEndlessHeadIsNotRead) {
  TestServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\n");
    while (c.Write("X-Filler: " + std::string(4096, 'x') + "\r\n")) {
    }
  });
  EXPECT_EQ(Post(server.url()).result, PostResult::kHeadTooLarge);
}

TEST(HttpPost, GarbageIsAnErrorOfItsOwn) {
  TestServer server([](Connection& c) { c.Write("SSH-2.0-OpenSSH_9.2p1\r\n"), c.HoldOpen(); });
  EXPECT_EQ(Post(server.url()).result, PostResult::kGarbage);
}

}  // namespace
}  // namespace spanprof::sending
