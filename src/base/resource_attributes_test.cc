#include "base/resource_attributes.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

Options Parsed(std::string_view text) {
  const Result<Options> options = ParseOptions(text);
  EXPECT_TRUE(options) << options.error().message;
  return options.value_or(Options{});
}

Resource FromVariable(std::string attributes) {
  return MergeResource({}, {.otel_resource_attributes = std::move(attributes),
                            .otel_service_name = "",
                            .executable = "/usr/bin/app"});
}

TEST(ResourceAttributes, DefaultServiceNameHasTheExecutable) {
  const auto name_of = [](std::string executable) {
    const Resource resource = MergeResource({}, {.otel_resource_attributes = "",
                                                 .otel_service_name = "",
                                                 .executable = std::move(executable)});
    EXPECT_THAT(resource.warnings, IsEmpty());
    EXPECT_THAT(resource.attributes, SizeIs(1));
    return std::string(resource.Find("service.name"));
  };
  EXPECT_EQ(name_of("/usr/bin/java"), "unknown_service:java");
  EXPECT_EQ(name_of("java"), "unknown_service:java");
  EXPECT_EQ(name_of(""), "unknown_service");
  EXPECT_EQ(name_of("/usr/bin/"), "unknown_service");
  EXPECT_EQ(name_of("/usr/bin/\xFF"), "unknown_service");
}

TEST(ResourceAttributes, PrecedenceOfTheServiceName) {
  ResourceEnvironment environment{.otel_resource_attributes = "service.name=from-attributes",
                                  .otel_service_name = "from-variable",
                                  .executable = "app"};
  const auto name_with = [&environment](std::string_view options) {
    return std::string(MergeResource(Parsed(options), environment).Find("service.name"));
  };
  EXPECT_EQ(name_with("service=from-option,resource=service.name=from-resource"), "from-option");
  EXPECT_EQ(name_with("resource=service.name=from-resource"), "from-resource");
  EXPECT_EQ(name_with(""), "from-variable");
  environment.otel_service_name = " ";
  EXPECT_EQ(name_with(""), "from-attributes");
  environment.otel_resource_attributes = "";
  EXPECT_EQ(name_with(""), "unknown_service:app");
}

TEST(ResourceAttributes, OptionsGoOverTheEnvironmentKeyByKey) {
  const Resource resource =
      MergeResource(Parsed("version=2,environment=test,resource=team=b;zone=z"),
                    {.otel_resource_attributes =
                         "team=a,host=h,service.version=1,deployment.environment.name=prod",
                     .otel_service_name = "shop",
                     .executable = ""});
  EXPECT_THAT(resource.attributes,
              ElementsAre(ResourceAttribute{"deployment.environment.name", "test"},
                          ResourceAttribute{"host", "h"}, ResourceAttribute{"service.name", "shop"},
                          ResourceAttribute{"service.version", "2"}, ResourceAttribute{"team", "b"},
                          ResourceAttribute{"zone", "z"}));
  EXPECT_THAT(resource.warnings, IsEmpty());
}

TEST(ResourceAttributes, DecodesThePercentEncoding) {
  const Resource resource =
      FromVariable("a=x%2Cy%3d%20z, b = 50%25 ,c=K%C3%A4se+1,d%3De=f,g=h=i,j=");
  EXPECT_THAT(resource.warnings, IsEmpty());
  EXPECT_EQ(resource.Find("a"), "x,y= z");
  EXPECT_EQ(resource.Find("b"), "50%");
  EXPECT_EQ(resource.Find("c"), "K\xC3\xA4se+1");
  EXPECT_EQ(resource.Find("d=e"), "f");
  EXPECT_EQ(resource.Find("g"), "h=i");
  EXPECT_THAT(resource.attributes, testing::Contains(ResourceAttribute{"j", ""}));
}

TEST(ResourceAttributes, SkipsWhatIsNotValidAndSaysSo) {
  const Resource resource =
      FromVariable("good=1,bad,=x,half=%4,wrong=%zz,bytes=%FF,line=a%0Ab,service.name=,last=2");
  EXPECT_THAT(resource.attributes,
              ElementsAre(ResourceAttribute{"good", "1"}, ResourceAttribute{"last", "2"},
                          ResourceAttribute{"service.name", "unknown_service:app"}));
  EXPECT_THAT(
      resource.warnings,
      ElementsAre("OTEL_RESOURCE_ATTRIBUTES: the entry 'bad' has no '=' and was skipped",
                  "OTEL_RESOURCE_ATTRIBUTES: the entry '=x' has no key before '=' and was skipped",
                  AllOf(HasSubstr("'half=%4' has a '%' without two"), HasSubstr("was skipped")),
                  HasSubstr("'wrong=%zz' has a '%' without two"),
                  HasSubstr("'bytes=%FF' is not UTF-8"),
                  HasSubstr("'line=a%0Ab' is not UTF-8 without control characters"),
                  HasSubstr("'service.name=' has an empty service name")));
}

TEST(ResourceAttributes, IgnoresEmptyEntriesAndTakesTheLastOfEqualKeys) {
  const Resource resource = FromVariable(",, a=1 ,a=2,");
  EXPECT_THAT(resource.warnings, IsEmpty());
  EXPECT_EQ(resource.Find("a"), "2");
  EXPECT_EQ(resource.Find("b"), "");
}

TEST(ResourceAttributes, WarningsAreFewAndShort) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::string(1000, '\x1B') + ",";
  const Resource resource = FromVariable(text);
  ASSERT_THAT(resource.warnings, SizeIs(9));
  for (const std::string& warning : resource.warnings) {
    EXPECT_LT(warning.size(), 200u);
    EXPECT_EQ(warning.find('\x1B'), std::string::npos);
  }
}

TEST(ResourceAttributes, SkipsServiceNamesThatAreNotText) {
  const Resource resource = MergeResource({}, {.otel_resource_attributes = "service.name=good",
                                               .otel_service_name = "a\nb",
                                               .executable = ""});
  EXPECT_EQ(resource.Find("service.name"), "good");
  EXPECT_THAT(resource.warnings, ElementsAre(StartsWith("OTEL_SERVICE_NAME: 'a\\nb' is not")));
  const Resource empty = MergeResource(
      Parsed("resource=service.name="),
      {.otel_resource_attributes = "", .otel_service_name = "shop", .executable = ""});
  EXPECT_EQ(empty.Find("service.name"), "shop");
  EXPECT_THAT(empty.warnings, SizeIs(1));
}

TEST(ResourceAttributes, ReadsThisProcess) {
  unsetenv("OTEL_SERVICE_NAME");
  unsetenv("OTEL_RESOURCE_ATTRIBUTES");
#if defined(__linux__) || defined(__APPLE__)
  EXPECT_THAT(std::string(ReadResource({}).Find("service.name")), HasSubstr("unknown_service:"));
#endif
  setenv("OTEL_RESOURCE_ATTRIBUTES", "a=1,service.name=x", 1);
  EXPECT_EQ(ReadResource({}).Find("service.name"), "x");
  EXPECT_EQ(ReadResource({}).Find("a"), "1");
  setenv("OTEL_SERVICE_NAME", "y", 1);
  EXPECT_EQ(ReadResource({}).Find("service.name"), "y");
  unsetenv("OTEL_SERVICE_NAME");
  unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}

}  // namespace
}  // namespace spanprof
