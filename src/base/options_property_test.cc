// What holds for every option string: it parses or says why not, and what was parsed survives being
// written and parsed again.

#include <algorithm>
#include <chrono>
#include <optional>
#include <rapidcheck.h>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/options.h"
#include "base/printable_text.h"
#include "base/resource_attributes.h"

namespace spanprof {
namespace {

void CheckParses(const std::string& text) {
  const Result<Options> options = ParseOptions(text);
  if (!options) {
    const Error& error = options.error();
    RC_ASSERT(!error.message.empty());
    RC_ASSERT(!error.hint.empty());
    RC_ASSERT(error.message.size() < 400u);
    RC_ASSERT(IsUtf8(error.message));
    RC_ASSERT(!HasControlCharacter(error.message));
    return;
  }
  const Result<Options> again = ParseOptions(ToString(*options));
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == *options);
}

RC_GTEST_PROP(OptionsProperty, AnyTextParsesOrIsRefusedWithAMessage, (const std::string& text)) {
  CheckParses(text);
}

// Strings of the right words and characters get further into the parser than random ones.
rc::Gen<std::string> GenNearlyValid() {
  std::vector<std::string> pieces = {
      ",",   ";",    "=",        "\\",  " ",     ":",    "\\,", "\\;", "\\ ",      "\n",
      "a",   "b",    "1",        "5",   "10",    "ms",   "s",   "m",   "g",        "on",
      "off", "otel", "http://h", "jfr", "start", "stop", "@",   "?",   "\xC3\xA4", "\xFF"};
  for (const OptionDescription& option : DescribeOptions()) {
    pieces.push_back(option.name);
    pieces.push_back("," + option.name + "=");
    pieces.push_back("," + option.name + "=" + option.default_value);
  }
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::move(pieces))),
      [](const std::vector<std::string>& chosen) {
        std::string text;
        for (const std::string& piece : chosen) text += piece;
        return text;
      });
}

RC_GTEST_PROP(OptionsProperty, NearlyValidTextParsesOrIsRefusedWithAMessage, ()) {
  CheckParses(*GenNearlyValid());
}

// Text that needs escapes, and is not empty unless `min_size` is 0.
rc::Gen<std::string> GenText(std::size_t min_size) {
  return rc::gen::suchThat(
      rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                       "a", "b", " ", ",", ";", "\\", "=", ":", "'", "%", "\xC3\xA4")),
                   [](const std::vector<std::string>& chosen) {
                     std::string text;
                     for (const std::string& piece : chosen) text += piece;
                     return text.substr(0, text.size() > 100 ? 0 : text.size());
                   }),
      [min_size](const std::string& text) { return text.size() >= min_size; });
}

std::string WithoutEquals(std::string text) {
  std::replace(text.begin(), text.end(), '=', '-');
  return text;
}

template <class T>
std::optional<T> Maybe(const rc::Gen<T>& gen) {
  if (!*rc::gen::arbitrary<bool>()) return std::nullopt;
  return *gen;
}

rc::Gen<std::chrono::nanoseconds> GenDuration(std::int64_t min, std::int64_t max) {
  return rc::gen::map(
      rc::gen::oneOf(
          rc::gen::inRange<std::int64_t>(min, max + 1),
          rc::gen::map(
              rc::gen::inRange<std::int64_t>((min + 999'999) / 1'000'000, max / 1'000'000 + 1),
              [](std::int64_t milliseconds) { return milliseconds * 1'000'000; })),
      [](std::int64_t count) { return std::chrono::nanoseconds(count); });
}

Options ArbitraryOptions() {
  Options options;
  options.command = static_cast<Command>(*rc::gen::inRange(0, 5));
  options.context_storage =
      Maybe(rc::gen::element(ContextStorage::kProfiler, ContextStorage::kOtel));
  options.context_slots = Maybe(rc::gen::inRange<std::uint32_t>(1, 4194305));
  const auto names = *rc::gen::container<std::set<std::string>>(GenText(1));
  for (const std::string& name : names) {
    if (options.attributes.size() < kMaxAttributes) options.attributes.push_back(name);
  }
  options.latency = Maybe(rc::gen::arbitrary<bool>());
  options.log = Maybe(rc::gen::element(LogTarget::kStderr, LogTarget::kNone));
  options.service = Maybe(GenText(1));
  options.version = Maybe(GenText(1));
  options.environment = Maybe(GenText(1));
  std::set<std::string> keys;
  for (const std::string& key : *rc::gen::container<std::vector<std::string>>(GenText(1))) {
    const std::string plain = WithoutEquals(key);
    if (keys.size() < 128 && keys.insert(plain).second) {
      options.resource.push_back({plain, *GenText(0)});
    }
  }
  options.cpu = Maybe(GenDuration(100'000, 10'000'000'000));
  options.wall = Maybe(GenDuration(1'000'000, 10'000'000'000));
  options.wall_threads = Maybe(rc::gen::inRange<std::uint32_t>(1, 4097));
  options.max_memory =
      Maybe(rc::gen::inRange<std::uint64_t>(std::uint64_t{1} << 20, (std::uint64_t{1} << 40) + 1));
  options.fork = Maybe(rc::gen::element(ForkPolicy::kFollow, ForkPolicy::kQuiet));
  options.file = Maybe(GenText(1));
  if (*rc::gen::arbitrary<bool>()) {
    options.format = static_cast<OutputFormat>(*rc::gen::inRange(0, 7));
  }
  options.to = Maybe(rc::gen::element<std::string>("http://h", "https://[::1]:1/a,b;c?d=\\"));
  options.every = Maybe(GenDuration(1'000'000'000, 86'400'000'000'000));
  options.spool = Maybe(GenText(1));
  const int headers = *rc::gen::inRange(0, 4);
  for (int i = 0; i < headers; ++i) {
    options.headers.push_back({*rc::gen::element<std::string>("A", "X-b", "'"), *GenText(0)});
  }
  using Labels = std::vector<LabelScheme>;
  options.labels = *rc::gen::elementOf(std::vector<Labels>{
      {},
      {LabelScheme::kDatadog},
      {LabelScheme::kPyroscope},
      {LabelScheme::kPyroscope, LabelScheme::kDatadog},
  });
  options.jfr_context = Maybe(rc::gen::element(JfrContext::kPool, JfrContext::kFlat));
  return options;
}

RC_GTEST_PROP(OptionsProperty, ToStringRoundTrips, ()) {
  const Options options = ArbitraryOptions();
  const std::string text = ToString(options);
  const Result<Options> again = ParseOptions(text);
  if (!again) RC_FAIL(text + ": " + again.error().message);
  RC_ASSERT(*again == options);
  RC_ASSERT(ToString(*again) == text);
}

RC_GTEST_PROP(OptionsProperty, ResourceIsAlwaysTextWithAServiceName,
              (const std::string& attributes, const std::string& service_name,
               const std::string& executable)) {
  const Resource resource = MergeResource({}, {.otel_resource_attributes = attributes,
                                               .otel_service_name = service_name,
                                               .executable = executable});
  RC_ASSERT(!resource.Find("service.name").empty());
  for (const ResourceAttribute& attribute : resource.attributes) {
    RC_ASSERT(IsUtf8(attribute.key) && IsUtf8(attribute.value));
  }
}

RC_GTEST_PROP(OptionsProperty, PercentEncodingOfAnyTextDecodesToIt, ()) {
  const std::string value = *GenText(0);
  std::string encoded;
  for (const char c : value) {
    const unsigned byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += "0123456789ABCDEF"[byte >> 4];
    encoded += "0123456789abcdef"[byte & 15];
  }
  const Resource resource = MergeResource(
      {},
      {.otel_resource_attributes = "key=" + encoded, .otel_service_name = "", .executable = ""});
  RC_ASSERT(resource.warnings.empty());
  RC_ASSERT(resource.Find("key") == value);
}

}  // namespace
}  // namespace spanprof
