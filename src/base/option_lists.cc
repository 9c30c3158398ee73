#include "base/option_lists.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/option_words.h"
#include "base/printable_text.h"

namespace spanprof {
namespace {

constexpr std::size_t kMaxKeyBytes = 256;

// True for the characters of a token of RFC 9110, which is what a header may be named.
bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

Result<void> ParseAttributes(const OptionSpec& spec, std::string_view value, Options& options) {
  std::vector<std::string> names;
  for (const std::string_view item : SplitEscaped(value, ';')) {
    Result<std::string> name = UnescapeValue(spec, item);
    if (!name) return tl::make_unexpected(name.error());
    if (name->empty()) {
      return Refuse(spec, value, " has no name at position " + std::to_string(names.size() + 1));
    }
    if (Result<void> check = CheckText(spec, *name, *name, "name", kMaxAttributeBytes); !check) {
      return check;
    }
    if (std::find(names.begin(), names.end(), *name) != names.end()) {
      return Refuse(spec, value, " has the name " + Quoted(*name) + " twice");
    }
    names.push_back(*std::move(name));
    if (names.size() > kMaxAttributes) {
      return Refuse(spec, value, " has more than " + std::to_string(kMaxAttributes) + " names");
    }
  }
  options.attributes = std::move(names);
  return {};
}

void WriteAttributes(const OptionSpec&, const Options& options, std::vector<std::string>& values) {
  if (options.attributes.empty()) return;
  std::string& joined = values.emplace_back();
  for (const std::string& name : options.attributes) {
    if (!joined.empty()) joined += ';';
    joined += EscapeOption(name, OptionPosition::kListItem);
  }
}

Result<void> ParseResource(const OptionSpec& spec, std::string_view value, Options& options) {
  for (const std::string_view item : SplitEscaped(value, ';')) {
    if (item.empty()) continue;
    const KeyAndValue pair = SplitAtFirst(item, '=');
    if (!pair.value) return Refuse(spec, item, " has no '=' between key and value");
    Result<std::string> key = UnescapeValue(spec, pair.key);
    if (!key) return tl::make_unexpected(key.error());
    Result<std::string> text = UnescapeValue(spec, *pair.value);
    if (!text) return tl::make_unexpected(text.error());
    if (key->empty()) return Refuse(spec, item, " has no key before '='");
    Result<void> check = CheckText(spec, item, *key, "key", kMaxKeyBytes);
    if (check) check = CheckText(spec, item, *text, "value", kMaxTextBytes);
    if (!check) return check;
    const auto same_key = [&key](const ResourceAttribute& other) { return other.key == *key; };
    if (std::any_of(options.resource.begin(), options.resource.end(), same_key)) {
      return Refuse(spec, item, " has a key that was given before");
    }
    options.resource.push_back({*std::move(key), *std::move(text)});
    if (options.resource.size() > spec.max) {
      return Refuse(spec, item, " is more than " + std::to_string(spec.max) + " attributes");
    }
  }
  return {};
}

void WriteResource(const OptionSpec&, const Options& options, std::vector<std::string>& values) {
  if (options.resource.empty()) return;
  std::string& joined = values.emplace_back();
  for (const ResourceAttribute& attribute : options.resource) {
    if (!joined.empty()) joined += ';';
    joined += EscapeOption(attribute.key, OptionPosition::kListItem) + "=" +
              EscapeOption(attribute.value, OptionPosition::kListItem);
  }
}

Result<void> ParseHeader(const OptionSpec& spec, std::string_view value, Options& options) {
  const KeyAndValue pair = SplitAtFirst(value, ':');
  if (!pair.value) return Refuse(spec, value, " has no ':' between name and value");
  if (pair.key.empty() || !std::all_of(pair.key.begin(), pair.key.end(), IsTokenCharacter)) {
    return Refuse(spec, value, " has a name that is not letters, digits and dashes");
  }
  Result<std::string> text = UnescapeValue(spec, *pair.value);
  if (!text) return tl::make_unexpected(text.error());
  Result<void> check = CheckText(spec, value, pair.key, "name", kMaxKeyBytes);
  if (check) check = CheckText(spec, value, *text, "value", kMaxTextBytes);
  if (!check) return check;
  if (options.headers.size() >= spec.max) {
    return Refuse(spec, value, " is more than " + std::to_string(spec.max) + " headers");
  }
  options.headers.push_back({std::string(pair.key), *std::move(text)});
  return {};
}

void WriteHeaders(const OptionSpec&, const Options& options, std::vector<std::string>& values) {
  for (const HttpHeader& header : options.headers) {
    values.push_back(header.name + ":" + EscapeOption(header.value, OptionPosition::kWholeValue));
  }
}

Result<void> ParseLabels(const OptionSpec& spec, std::string_view value, Options& options) {
  std::vector<LabelScheme> labels;
  for (const std::string_view item : SplitEscaped(value, ';')) {
    const Result<std::size_t> index = FindChoice(spec, value, item);
    if (!index) return tl::make_unexpected(index.error());
    const auto scheme = static_cast<LabelScheme>(*index);
    if (std::find(labels.begin(), labels.end(), scheme) != labels.end()) {
      return Refuse(spec, value, " has " + Quoted(item) + " twice");
    }
    labels.push_back(scheme);
  }
  options.labels = std::move(labels);
  return {};
}

void WriteLabels(const OptionSpec& spec, const Options& options, std::vector<std::string>& values) {
  std::string joined;
  for (const LabelScheme scheme : options.labels) {
    const auto index = static_cast<std::size_t>(scheme);
    if (index >= spec.choices.size()) continue;
    if (!joined.empty()) joined += ';';
    joined += spec.choices[index];
  }
  if (!joined.empty()) values.push_back(std::move(joined));
}

}  // namespace spanprof
