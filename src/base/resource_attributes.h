#pragma once

// What a profile says about the process it is of: service.name and the other attributes of its
// OpenTelemetry resource.
//
//   const Resource resource = ReadResource(options);
//   for (const std::string& warning : resource.warnings) ...
//
// Precedence, highest first: service=, version= and environment=; resource=; OTEL_SERVICE_NAME;
// OTEL_RESOURCE_ATTRIBUTES; `unknown_service:<executable>`. None of these is for a signal handler.

#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace spanprof {

// What the environment has to say. An empty variable counts as one that is not set, as the
// OpenTelemetry specification has it.
struct ResourceEnvironment {
  std::string otel_resource_attributes;  // key=value,key=value with percent-encoding
  std::string otel_service_name;
  std::string executable;  // its path or name; empty if unknown
};

struct Resource {
  std::vector<ResourceAttribute> attributes;  // each key once, sorted by key; UTF-8 throughout
  std::vector<std::string> warnings;          // what of the environment was skipped, and why

  // Returns the value, or an empty text.
  [[nodiscard]] std::string_view Find(std::string_view key) const;
};

// Merges the options over the environment. Always has a service.name. An entry of
// OTEL_RESOURCE_ATTRIBUTES that is not valid is skipped with a warning, and the others stand.
[[nodiscard]] Resource MergeResource(const Options& options,
                                     const ResourceEnvironment& environment);

// Does the same with this process's environment. It calls getenv(), so no other thread may be
// changing the environment meanwhile.
[[nodiscard]] Resource ReadResource(const Options& options);

}  // namespace spanprof
