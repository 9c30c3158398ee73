#include "format/format.h"

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/gzip.h"
#include "profile/profile_testing.h"

namespace spanprof::format {
namespace {

using ::testing::HasSubstr;

TEST(FormatOfFile, GoesByTheEnd) {
  EXPECT_EQ(FormatOfFile("a/profile.pb.gz").value(), OutputFormat::kPprof);
  EXPECT_EQ(FormatOfFile("cpu.pprof").value(), OutputFormat::kPprof);
  EXPECT_EQ(FormatOfFile("cpu.pb").value(), OutputFormat::kPprof);
  EXPECT_EQ(FormatOfFile("x.otlp").value(), OutputFormat::kOtlp);
  EXPECT_EQ(FormatOfFile("x.folded").value(), OutputFormat::kFolded);
  EXPECT_EQ(FormatOfFile("x.txt").value(), OutputFormat::kFolded);
  EXPECT_EQ(FormatOfFile("x.jfr").value(), OutputFormat::kJfr);
  EXPECT_EQ(FormatOfFile("x.html").value(), OutputFormat::kHtml);
  EXPECT_EQ(FormatOfFile("x.json.gz").value(), OutputFormat::kFirefox);
  EXPECT_EQ(FormatOfFile("x.firefox.json").value(), OutputFormat::kFirefox);
  EXPECT_EQ(FormatOfFile("x.perfetto-trace").value(), OutputFormat::kPerfetto);
  EXPECT_EQ(FormatOfFile("x.pftrace").value(), OutputFormat::kPerfetto);
}

TEST(FormatOfFile, NamesAllEndings) {
  const auto result = FormatOfFile("profile.json");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EINVAL);
  EXPECT_THAT(result.error().message, HasSubstr("'profile.json'"));
  for (const char* ending : {".pb.gz", ".otlp", ".folded", ".jfr", ".html", ".firefox.json"}) {
    EXPECT_THAT(result.error().hint, HasSubstr(ending));
  }
}

TEST(FormatOfBytes, KnowsWhatWeWrite) {
  const profile::Profile profile = profile::RandomProfile(1);
  for (const OutputFormat format :
       {OutputFormat::kPprof, OutputFormat::kOtlp, OutputFormat::kFolded}) {
    const auto bytes = WriteProfile(profile, format, {});
    ASSERT_TRUE(bytes);
    EXPECT_EQ(FormatOfBytes(*bytes).value(), format);
    EXPECT_TRUE(ReadProfile(*bytes, format, {}));
  }
  // Without its compression too, and with only the first bytes.
  const std::string plain = *Decompress(*WritePprof(profile, {}), 1 << 30);
  EXPECT_EQ(FormatOfBytes(plain).value(), OutputFormat::kPprof);
  EXPECT_EQ(FormatOfBytes(plain.substr(0, 100)).value(), OutputFormat::kPprof);
  EXPECT_EQ(FormatOfBytes(std::string_view("FLR\0\0\2\0\0", 8)).value(), OutputFormat::kJfr);
  EXPECT_EQ(FormatOfBytes("<!DOCTYPE html>").value(), OutputFormat::kHtml);
  EXPECT_EQ(FormatOfBytes("{\"meta\":{}}").value(), OutputFormat::kFirefox);
  EXPECT_EQ(FormatOfBytes(*Compress("{\"meta\":{}}")).value(), OutputFormat::kFirefox);
}

TEST(FormatOfBytes, RefusesTheRest) {
  EXPECT_THAT(FormatOfBytes("").error().message, HasSubstr("empty"));
  EXPECT_EQ(FormatOfBytes("\x7F"
                          "ELF")
                .error()
                .code,
            EINVAL);
  EXPECT_FALSE(FormatOfBytes("just some text\n"));
}

TEST(ReadProfile, OfAFormatThatIsOnlyWrittenSaysSo) {
  const auto result = ReadProfile("<!DOCTYPE html>", OutputFormat::kHtml, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ENOTSUP);
  EXPECT_FALSE(result.error().hint.empty());
}

}  // namespace
}  // namespace spanprof::format
