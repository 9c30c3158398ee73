#include "export/send_settings.h"

#include <cerrno>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace spanprof::sending {
namespace {

using Headers = std::vector<HttpHeader>;

Result<std::optional<SendSettings>> Merge(const std::string& options,
                                          const SendEnvironment& environment = {}) {
  const Result<Options> parsed = ParseOptions(options);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return MergeSendSettings(*parsed, environment);
}

SendSettings Settings(const std::string& options, const SendEnvironment& environment = {}) {
  const auto settings = Merge(options, environment);
  EXPECT_TRUE(settings) << settings.error().message;
  EXPECT_TRUE(settings->has_value());
  return **settings;
}

TEST(SendSettings, SendNothingUnasked) {
  const auto settings = Merge("cpu=10ms", {.endpoint = "http://collector:4318"});
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->has_value());
}

TEST(SendSettings, AddThePathOfOtlpWhereThereIsNone) {
  EXPECT_EQ(Settings("to=otlp+http://h:4318").url.target, "/v1development/profiles");
  EXPECT_EQ(Settings("to=http://h:4318/").url.target, "/v1development/profiles");
  EXPECT_EQ(Settings("to=http://h:4318?a=b").url.target, "/v1development/profiles?a=b");
  EXPECT_EQ(Settings("to=otlp+http://h/own").url.target, "/own");
  EXPECT_EQ(Settings("to=otlp+http://h/own").format, OutputFormat::kOtlp);
  EXPECT_EQ(Settings("to=pprof+http://h").url.target, "/");
  EXPECT_EQ(Settings("to=pprof+http://h/a?b=c").url.target, "/a?b=c");
  EXPECT_EQ(Settings("to=pprof+http://h/a?b=c").format, OutputFormat::kPprof);
}

TEST(SendSettings, TakeTheAddressFromTheEnvironmentForOtlp) {
  const SendSettings unset = Settings("to=otlp");
  EXPECT_EQ(unset.url.host, "localhost");
  EXPECT_EQ(unset.url.port, 4318);
  EXPECT_EQ(unset.url.target, "/v1development/profiles");

  const SendSettings base = Settings("to=otlp", {.endpoint = " http://c:9/base/ "});
  EXPECT_EQ(base.url.host, "c");
  EXPECT_EQ(base.url.target, "/base/v1development/profiles");

  const SendSettings own =
      Settings("to=otlp", {.endpoint = "http://c:9", .profiles_endpoint = "http://d:8/x"});
  EXPECT_EQ(own.url.host, "d");
  EXPECT_EQ(own.url.target, "/x");

  EXPECT_EQ(Settings("to=http://h:1", {.endpoint = "http://c:9"}).url.host, "h");
}

TEST(SendSettings, RefuseHttpsAndNameWhatCan) {
  for (const auto& settings :
       {Merge("to=https://h"), Merge("to=otlp+https://h"), Merge("to=pprof+https://h"),
        Merge("to=otlp", {.endpoint = "https://h"})}) {
    ASSERT_FALSE(settings);
    EXPECT_EQ(settings.error().code, EPROTONOSUPPORT);
    EXPECT_NE(settings.error().hint.find("curl"), std::string::npos);
    EXPECT_NE(settings.error().hint.find("OpenTelemetry Collector"), std::string::npos);
  }
}

TEST(SendSettings, ABadVariableIsAnErrorOnlyWhereItIsUsed) {
  const auto settings = Merge("to=otlp", {.endpoint = "collector:4318"});
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, EINVAL);
  EXPECT_NE(settings.error().message.find("OTEL_EXPORTER_OTLP_ENDPOINT"), std::string::npos);
  EXPECT_TRUE(Merge("to=http://h", {.endpoint = "collector:4318"}));
}

TEST(SendSettings, DecodeTheVariablesHeadersUnderThoseOfTheOptions) {
  const SendSettings settings =
      Settings("to=otlp,header=X-A:mine", {.headers = "x-a=theirs, X-B = b%20c%2C%3D ,,X-C=d=e"});
  EXPECT_EQ(settings.headers, (Headers{{"X-A", "mine"}, {"X-B", "b c,="}, {"X-C", "d=e"}}));
  EXPECT_TRUE(settings.warnings.empty());
  EXPECT_EQ(Settings("to=otlp", {.headers = "A=b", .profiles_headers = "C=d"}).headers,
            (Headers{{"C", "d"}}));
}

TEST(SendSettings, SkipHeadersThatAreNotValidWithoutShowingThem) {
  const SendSettings settings =
      Settings("to=otlp", {.headers = "A=hunter2%0d%0aB: c,D,E=%zz,=f,Content-Length=3,G=h"});
  EXPECT_EQ(settings.headers, (Headers{{"G", "h"}}));
  EXPECT_EQ(settings.warnings.size(), 5u);
  for (const std::string& warning : settings.warnings) {
    EXPECT_EQ(warning.find("hunter2"), std::string::npos);
  }
}

TEST(SendSettings, KeepKeysFromOtherHosts) {
  const SendEnvironment environment = {.endpoint = "https://vendor.example", .headers = "Key=k"};
  const SendSettings other = Settings("to=otlp+http://localhost:4318", environment);
  EXPECT_TRUE(other.headers.empty());
  ASSERT_EQ(other.warnings.size(), 1u);
  EXPECT_EQ(Settings("to=http://h:4318", {.endpoint = "http://H:4318", .headers = "Key=k"})
                .headers.size(),
            1u);
  EXPECT_EQ(Settings("to=http://h:4318", {.headers = "Key=k"}).headers.size(), 1u);
  EXPECT_TRUE(Settings("to=pprof+http://h:4318", {.headers = "Key=k"}).headers.empty());
}

TEST(SendSettings, TakeTheTimeoutInMilliseconds) {
  const SendSettings settings = Settings("to=otlp", {.timeout = "2500"});
  EXPECT_EQ(settings.timeouts.total, std::chrono::milliseconds(2500));
  EXPECT_LE(settings.timeouts.connect, settings.timeouts.total);
  EXPECT_EQ(Settings("to=otlp", {.timeout = "1", .profiles_timeout = "7"}).timeouts.total,
            std::chrono::milliseconds(7));
  for (const char* bad : {"0", "-1", "10s", "99999999999999999999"}) {
    const SendSettings skipped = Settings("to=otlp", {.timeout = bad});
    EXPECT_EQ(skipped.timeouts.total, HttpTimeouts{}.total) << bad;
    EXPECT_EQ(skipped.warnings.size(), 1u) << bad;
  }
}

}  // namespace
}  // namespace spanprof::sending
