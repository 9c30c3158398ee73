// Fuzzes the option string and OTEL_RESOURCE_ATTRIBUTES, with what options_property_test.cc checks.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/options.h"
#include "base/printable_text.h"
#include "base/resource_attributes.h"

namespace {

// Unlike assert(), stands in every kind of build.
void Require(bool condition) {
  if (!condition) std::abort();
}

bool IsPrintable(std::string_view text) {
  return spanprof::IsUtf8(text) && !spanprof::HasControlCharacter(text);
}

void FuzzOptions(std::string_view text) {
  const spanprof::Result<spanprof::Options> options = spanprof::ParseOptions(text);
  if (!options) {
    Require(!options.error().message.empty() && options.error().message.size() < 400);
    Require(!options.error().hint.empty());
    Require(IsPrintable(options.error().message) && IsPrintable(options.error().hint));
    return;
  }
  const std::string written = spanprof::ToString(*options);
  const spanprof::Result<spanprof::Options> again = spanprof::ParseOptions(written);
  Require(again.has_value() && *again == *options);
  Require(spanprof::ToString(*again) == written);
}

void FuzzResource(std::string_view text) {
  const spanprof::Resource resource =
      spanprof::MergeResource({}, {.otel_resource_attributes = std::string(text),
                                   .otel_service_name = std::string(text),
                                   .executable = std::string(text)});
  Require(!resource.Find("service.name").empty());
  for (const spanprof::ResourceAttribute& attribute : resource.attributes) {
    Require(!attribute.key.empty());
    Require(IsPrintable(attribute.key) && IsPrintable(attribute.value));
  }
  for (const std::string& warning : resource.warnings) Require(IsPrintable(warning));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  FuzzOptions(text);
  FuzzResource(text);
  return 0;
}
