#include "base/resource_attributes.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/printable_text.h"

#if defined(__linux__)
#include <unistd.h>
#elif defined(__APPLE__)
#include <stdlib.h>  // getprogname
#endif

namespace spanprof {
namespace {

using AttributeMap = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kServiceName = "service.name";
constexpr std::size_t kMaxWarnings = 8;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<unsigned> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// Absent if a percent sign is not followed by two hexadecimal digits. A plus sign is a plus sign.
std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const std::optional<unsigned> high = HexDigit(text[i + 1]);
    const std::optional<unsigned> low = HexDigit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

bool IsPlainText(std::string_view text) { return IsUtf8(text) && !HasControlCharacter(text); }

// Adds one `key=value` to `attributes`, or returns why not.
std::string AddEntry(std::string_view entry, AttributeMap& attributes) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return "has no '='";
  std::optional<std::string> key = PercentDecode(Trim(entry.substr(0, equals)));
  std::optional<std::string> value = PercentDecode(Trim(entry.substr(equals + 1)));
  if (!key || !value) return "has a '%' without two hexadecimal digits";
  if (key->empty()) return "has no key before '='";
  if (!IsPlainText(*key) || !IsPlainText(*value)) {
    return "is not UTF-8 without control characters";
  }
  if (*key == kServiceName && value->empty()) return "has an empty service name";
  attributes.insert_or_assign(*std::move(key), *std::move(value));
  return {};
}

void AddWarning(std::vector<std::string>& warnings, std::string warning) {
  if (warnings.size() < kMaxWarnings) {
    warnings.push_back(std::move(warning));
  } else if (warnings.size() == kMaxWarnings) {
    warnings.emplace_back("OTEL_RESOURCE_ATTRIBUTES has more entries that were skipped");
  }
}

void AddEntries(std::string_view entries, Resource& resource, AttributeMap& attributes) {
  while (!entries.empty()) {
    const std::size_t comma = entries.find(',');
    const std::string_view entry = Trim(entries.substr(0, comma));
    entries = comma == std::string_view::npos ? std::string_view() : entries.substr(comma + 1);
    if (entry.empty()) continue;
    if (const std::string problem = AddEntry(entry, attributes); !problem.empty()) {
      AddWarning(resource.warnings, "OTEL_RESOURCE_ATTRIBUTES: the entry " + Quoted(entry) + " " +
                                        problem + " and was skipped");
    }
  }
}

std::string DefaultServiceName(std::string_view executable) {
  // npos + 1 is 0: a name without a slash is its own base name.
  const std::string_view base = executable.substr(executable.rfind('/') + 1);
  if (base.empty() || !IsPlainText(base)) return "unknown_service";
  return std::string("unknown_service:").append(base);
}

std::string ReadVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string ReadExecutable() {
#if defined(__linux__)
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  std::string_view text(path.data(), static_cast<std::size_t>(length));
  // The kernel adds this when the file was replaced, as by an upgrade of a running service.
  constexpr std::string_view kDeleted = " (deleted)";
  if (text.ends_with(kDeleted)) text.remove_suffix(kDeleted.size());
  return std::string(text);
#elif defined(__APPLE__)
  const char* const name = getprogname();
  return name == nullptr ? std::string() : std::string(name);
#else
  return {};
#endif
}

}  // namespace

std::string_view Resource::Find(std::string_view key) const {
  for (const ResourceAttribute& attribute : attributes) {
    if (attribute.key == key) return attribute.value;
  }
  return {};
}

Resource MergeResource(const Options& options, const ResourceEnvironment& environment) {
  Resource resource;
  AttributeMap merged;
  AddEntries(environment.otel_resource_attributes, resource, merged);

  const std::string_view service_name = Trim(environment.otel_service_name);
  if (!service_name.empty()) {
    if (IsPlainText(service_name)) {
      merged.insert_or_assign(std::string(kServiceName), std::string(service_name));
    } else {
      resource.warnings.push_back("OTEL_SERVICE_NAME: " + Quoted(service_name) +
                                  " is not UTF-8 without control characters and was skipped");
    }
  }

  for (const ResourceAttribute& attribute : options.resource) {
    if (attribute.key == kServiceName && attribute.value.empty()) {
      resource.warnings.emplace_back("resource=service.name= has an empty name and was skipped");
      continue;
    }
    merged.insert_or_assign(attribute.key, attribute.value);
  }
  if (options.service) merged.insert_or_assign(std::string(kServiceName), *options.service);
  if (options.version) merged.insert_or_assign("service.version", *options.version);
  if (options.environment) {
    merged.insert_or_assign("deployment.environment.name", *options.environment);
  }
  merged.try_emplace(std::string(kServiceName), DefaultServiceName(environment.executable));

  resource.attributes.reserve(merged.size());
  for (auto& [key, value] : merged) resource.attributes.push_back({key, std::move(value)});
  return resource;
}

Resource ReadResource(const Options& options) {
  return MergeResource(options,
                       {.otel_resource_attributes = ReadVariable("OTEL_RESOURCE_ATTRIBUTES"),
                        .otel_service_name = ReadVariable("OTEL_SERVICE_NAME"),
                        .executable = ReadExecutable()});
}

}  // namespace spanprof
