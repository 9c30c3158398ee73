#include "export/http_response.h"

#include <string>

#include <gtest/gtest.h>

namespace spanprof::sending {
namespace {

constexpr std::time_t kNow = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT

ParsedResponse Parse(std::string_view bytes) { return ParseHttpResponse(bytes, kNow); }

TEST(HttpResponse, HasStatusAndBody) {
  const std::string head = "HTTP/1.1 200 OK\r\ncontent-LENGTH:  12 \r\nX: y\r\n\r\n";
  const ParsedResponse parsed = Parse(head + "body");
  ASSERT_EQ(parsed.state, ResponseState::kComplete);
  EXPECT_EQ(parsed.response.status, 200);
  EXPECT_EQ(parsed.response.body_offset, head.size());
  EXPECT_EQ(parsed.response.body_size, 12u);
  EXPECT_FALSE(parsed.response.chunked);
  for (std::size_t size = 0; size < head.size(); ++size) {
    EXPECT_EQ(Parse(head.substr(0, size)).state, ResponseState::kIncomplete) << size;
  }
}

TEST(HttpResponse, TakesWhatServersReallySend) {
  EXPECT_EQ(Parse("HTTP/1.0 503\r\n\r\n").response.status, 503);        // no reason
  EXPECT_EQ(Parse("HTTP/1.1 404 Not Found\n\n").response.status, 404);  // bare line feeds
  EXPECT_EQ(Parse("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").response.status, 200);
  EXPECT_EQ(Parse("HTTP/1.1 100 Continue\r\n\r\nHT").state, ResponseState::kIncomplete);
  EXPECT_TRUE(Parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").response.chunked);
  EXPECT_EQ(Parse("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n").response.body_size, 0u);
}

TEST(HttpResponse, RecognisesGarbage) {
  for (const std::string_view bytes :
       {"SSH-2.0-OpenSSH_9.2\r\n", "x", "HTTP/2 200\r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 999 X\r\n", "HTTP/1.1 -20 X\r\n", "\r\n", "http/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nrubbish\r\n"}) {
    EXPECT_EQ(Parse(bytes).state, ResponseState::kGarbage) << bytes;
  }
  EXPECT_EQ(Parse("HTTP/1.1 200 " + std::string(2000, 'x')).state, ResponseState::kGarbage);
}

TEST(HttpResponse, DoesNotBelieveLengths) {
  const auto size = [](const std::string& value) {
    return Parse("HTTP/1.1 200 OK\r\nContent-Length: " + value + "\r\n\r\n").response.body_size;
  };
  EXPECT_EQ(size("99999999999999999999999"), UINT64_MAX);
  EXPECT_EQ(size("-1"), std::nullopt);
  EXPECT_EQ(size("12x"), std::nullopt);
  EXPECT_EQ(size(""), std::nullopt);
}

TEST(HttpResponse, ReadsRetryAfter) {
  const auto after = [](const std::string& value) {
    return Parse("HTTP/1.1 429 Slow\r\nRetry-After: " + value + "\r\n\r\n").response.retry_after;
  };
  EXPECT_EQ(after("7"), std::chrono::seconds(7));
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:50:37 GMT"), std::chrono::seconds(60));
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:40:37 GMT"), std::chrono::seconds(0));
  EXPECT_EQ(after("99999999999999999999"), std::chrono::hours(24));
  EXPECT_EQ(after("Sun, 06 Nov 9999 08:40:37 GMT"), std::chrono::hours(24));
  for (const char* value : {"-1", "soon", "", "1.5", "Sun, 06 Foo 1994 08:50:37 GMT",
                            "Sun, 06 anF 1994 08:50:37 GMT"}) {
    EXPECT_EQ(after(value), std::nullopt) << value;
  }
}

TEST(HttpResponse, SeesThatProfilesWereRefused) {
  EXPECT_FALSE(SaysPartialSuccess(""));
  EXPECT_TRUE(SaysPartialSuccess("\x0a\x02\x08\x05"));
  EXPECT_FALSE(SaysPartialSuccess(std::string_view("\x0a\x02\x08\x00", 4)));
  EXPECT_FALSE(SaysPartialSuccess(std::string_view("\x0a\x00", 2)));
  EXPECT_FALSE(SaysPartialSuccess("\x0a\xff"));
  EXPECT_FALSE(SaysPartialSuccess("{}"));
}

}  // namespace
}  // namespace spanprof::sending
