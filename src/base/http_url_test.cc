#include "base/http_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof {
namespace {

using ::testing::HasSubstr;

void ExpectUrl(std::string_view text, bool is_https, std::string_view host, int port,
               std::string_view target) {
  SCOPED_TRACE(text);
  const Result<HttpUrl> url = ParseHttpUrl(text);
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->is_https, is_https);
  EXPECT_EQ(url->host, host);
  EXPECT_EQ(url->port, port);
  EXPECT_EQ(url->target, target);
}

TEST(HttpUrl, TakesApart) {
  ExpectUrl("http://localhost", false, "localhost", 80, "/");
  ExpectUrl("https://collector.example/", true, "collector.example", 443, "/");
  ExpectUrl("HTTP://10.0.0.1:4318/v1/profiles?a=b@c", false, "10.0.0.1", 4318,
            "/v1/profiles?a=b@c");
  ExpectUrl("http://[::1]:4318/x#part", false, "::1", 4318, "/x");
  ExpectUrl("http://[fe80::1%25eth0]", false, "fe80::1%25eth0", 80, "/");
  ExpectUrl("http://host?q", false, "host", 80, "/?q");
  ExpectUrl("http://host:65535", false, "host", 65535, "/");
}

void ExpectRefused(std::string_view text, std::string_view reason) {
  SCOPED_TRACE(text);
  const Result<HttpUrl> url = ParseHttpUrl(text);
  ASSERT_FALSE(url);
  EXPECT_THAT(url.error().message, HasSubstr(reason));
  EXPECT_NE(url.error().hint, "");
}

TEST(HttpUrl, RefusesAndSaysWhy) {
  ExpectRefused("", "begin with http:// or https://");
  ExpectRefused("localhost:4318", "begin with http:// or https://");
  ExpectRefused("ftp://host", "begin with http:// or https://");
  ExpectRefused("http://host/a b", "a space");
  ExpectRefused("http://host/\r\nHost: other", "a space");
  ExpectRefused("http://h\xC3\xB6st", "a space or another character");
  ExpectRefused("http://user:secret@host", "user name");
  ExpectRefused("http://", "host");
  ExpectRefused("http:///path", "host");
  ExpectRefused("http://:80", "host");
  ExpectRefused("http://a,b", "host");
  ExpectRefused("http://[::1", "host");
  ExpectRefused("http://[]:80", "host");
  ExpectRefused("http://[::1]80", "host");
  ExpectRefused("http://[:/:]", "host");
  for (const char* text : {"http://h:", "http://h:0", "http://h:65536", "http://h:80x",
                           "http://h:-1", "http://h:+1", "http://::1", "http://h:99999999999999"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(ParseHttpUrl(text));
  }
  ExpectRefused("http://h:65536", "port");
}

}  // namespace
}  // namespace spanprof
