#include "collect/process_context_payload.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

namespace spanprof::collect {
namespace {

using protozero::pbf_writer;

std::string StringValue(const std::string& text) {
  std::string value;
  pbf_writer(value).add_string(1, text);
  return value;
}

std::string ListValue(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) pbf_writer(list).add_message(1, StringValue(text));
  std::string value;
  pbf_writer(value).add_message(5, list);
  return value;
}

std::string KeyValue(const std::string& key, const std::string& value) {
  std::string pair;
  pbf_writer writer(pair);
  writer.add_string(1, key);
  writer.add_message(2, value);
  return pair;
}

std::string ResourceWith(const std::vector<std::string>& pairs) {
  std::string resource;
  for (const std::string& pair : pairs) pbf_writer(resource).add_message(1, pair);
  std::string payload;
  pbf_writer(payload).add_message(1, resource);
  return payload;
}

std::string AttributesWith(const std::vector<std::string>& pairs) {
  std::string payload;
  for (const std::string& pair : pairs) pbf_writer(payload).add_message(2, pair);
  return payload;
}

TEST(ProcessContextPayload, ReadsEveryKindOfValue) {
  std::string flag;
  pbf_writer(flag).add_bool(2, true);
  std::string number;
  pbf_writer(number).add_int64(3, -5);
  std::string real;
  pbf_writer(real).add_double(4, 0.5);
  std::string bytes;
  pbf_writer(bytes).add_bytes(7, std::string("\x00\xff", 2));
  std::string pairs;
  pbf_writer(pairs).add_message(1, KeyValue("a", StringValue("b")));
  pbf_writer(pairs).add_message(1, KeyValue("c", number));
  std::string map;
  pbf_writer(map).add_message(6, pairs);

  const auto context = ParseProcessContext(ResourceWith(
      {KeyValue("service.name", StringValue("old")), KeyValue("service.name", StringValue("shop")),
       KeyValue("flag", flag), KeyValue("number", number), KeyValue("real", real),
       KeyValue("list", ListValue({"x", "y"})), KeyValue("bytes", bytes), KeyValue("map", map)}));
  ASSERT_TRUE(context) << context.error().message;
  const auto& resource = context->resource;
  EXPECT_EQ(resource.at("service.name"), AttributeValue(std::string("shop")));
  EXPECT_EQ(resource.at("flag"), AttributeValue(true));
  EXPECT_EQ(resource.at("number"), AttributeValue(int64_t{-5}));
  EXPECT_EQ(resource.at("real"), AttributeValue(0.5));
  EXPECT_EQ(resource.at("list"), AttributeValue(std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(resource.at("bytes"), AttributeValue(std::string("00ff")));
  EXPECT_EQ(resource.at("map"), AttributeValue(std::string("{a=b, c=-5}")));
  EXPECT_EQ(AttributeText(resource.at("list")), "[x, y]");
  EXPECT_EQ(context->dropped_attributes, 0u);
}

TEST(ProcessContextPayload, ReadsKeyMapAndSchemaVersion) {
  const auto context = ParseProcessContext(
      AttributesWith({KeyValue("threadlocal.schema_version", StringValue("tlsdesc_v1_dev")),
                      KeyValue("threadlocal.attribute_key_map", ListValue({"root", "http.route"})),
                      KeyValue("something.else", StringValue("ignored"))}));
  ASSERT_TRUE(context);
  EXPECT_EQ(context->schema_version, "tlsdesc_v1_dev");
  EXPECT_EQ(context->key_map, (std::vector<std::string>{"root", "http.route"}));
  EXPECT_TRUE(context->resource.empty());
}

TEST(ProcessContextPayload, KeepsPositionsOfAKeyMapWithAnEmptyElement) {
  std::string list;
  pbf_writer(list).add_message(1, StringValue("first"));
  pbf_writer(list).add_message(1, std::string());
  pbf_writer(list).add_message(1, StringValue("third"));
  std::string value;
  pbf_writer(value).add_message(5, list);
  const auto context =
      ParseProcessContext(AttributesWith({KeyValue("threadlocal.attribute_key_map", value)}));
  ASSERT_TRUE(context);
  EXPECT_EQ(context->key_map, (std::vector<std::string>{"first", "", "third"}));
}

TEST(ProcessContextPayload, LimitsKeyMapAndResource) {
  const auto keys = ParseProcessContext(AttributesWith(
      {KeyValue("threadlocal.attribute_key_map", ListValue(std::vector<std::string>(300, "k")))}));
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->key_map.size(), kMaxKeyMapEntries);
  EXPECT_EQ(keys->dropped_attributes, 44u);

  std::vector<std::string> pairs;
  for (unsigned i = 0; i < kMaxResourceAttributes + 3; ++i) {
    pairs.push_back(KeyValue("k" + std::to_string(i), StringValue("v")));
  }
  const auto many = ParseProcessContext(ResourceWith(pairs));
  ASSERT_TRUE(many);
  EXPECT_EQ(many->resource.size(), kMaxResourceAttributes);
  EXPECT_EQ(many->dropped_attributes, 3u);
}

TEST(ProcessContextPayload, StopsAtDeepNesting) {
  std::string value = StringValue("deep");
  for (unsigned i = 0; i < 1000; ++i) {
    std::string list;
    pbf_writer(list).add_message(1, value);
    value.clear();
    pbf_writer(value).add_message(5, list);
  }
  const auto context = ParseProcessContext(ResourceWith({KeyValue("nested", value)}));
  ASSERT_TRUE(context);
  EXPECT_EQ(AttributeText(context->resource.at("nested")).find("deep"), std::string::npos);
}

TEST(ProcessContextPayload, CountsAttributesWithoutAUsableValue) {
  std::string number;
  pbf_writer(number).add_int64(3, 1);
  const auto context = ParseProcessContext(
      ResourceWith({KeyValue("empty", ""), KeyValue("", StringValue("nameless"))}) +
      AttributesWith({KeyValue("threadlocal.attribute_key_map", number),
                      KeyValue("threadlocal.schema_version", number)}));
  ASSERT_TRUE(context);
  EXPECT_TRUE(context->resource.empty());
  EXPECT_EQ(context->dropped_attributes, 4u);
}

TEST(ProcessContextPayload, RefusesWhatIsNoMessage) {
  const std::string good = ResourceWith({KeyValue("service.name", StringValue("shop"))});
  for (std::size_t length = 1; length < good.size(); ++length) {
    const auto context = ParseProcessContext(std::string_view(good).substr(0, length));
    ASSERT_FALSE(context) << length;
    EXPECT_EQ(context.error().code, EBADMSG);
  }
  // The tag of a flag, and no flag: nothing is read behind the end (the sanitizer sees it).
  const std::string flag = ResourceWith({KeyValue("flag", "\x10")});
  EXPECT_FALSE(
      ParseProcessContext({std::vector<char>(flag.begin(), flag.end()).data(), flag.size()}));
  EXPECT_TRUE(ParseProcessContext(""));
  EXPECT_FALSE(ParseProcessContext("\x07\x07\x07"));
  // A field of the right number and another wire type is skipped.
  std::string other;
  pbf_writer(other).add_uint64(1, 5);
  pbf_writer(other).add_fixed64(2, 5);
  EXPECT_TRUE(ParseProcessContext(other));
  const auto large = ParseProcessContext(std::string(kMaxProcessContextBytes + 1, 'x'));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, EFBIG);
}

}  // namespace
}  // namespace spanprof::collect
