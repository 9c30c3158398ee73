// Writes profiles as pprof and OTLP, and beside each a JSON file made directly from the model, for
// the tests that read the former with other people's decoders and compare with the latter.
//
//   write_profile_files DIRECTORY
//
// Also writes own_address.pb.gz: one sample, at an address in this very program, without a name.

#include <cstdint>
#include <cstdio>
#include <elf.h>
#include <fstream>
#include <link.h>
#include <string>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "format/format.h"
#include "profile/names.h"
#include "profile/profile_query.h"
#include "profile/profile_testing.h"

// To be found by its name, whatever the compiler would like to call it.
extern "C" __attribute__((noinline, used)) int spanprof_test_landmark(int value) {
  return value * 3 + 1;
}

namespace spanprof::format {
namespace {

using nlohmann::json;
using profile::Profile;

json FrameAsJson(const Profile& profile, profile::FrameId id) {
  const profile::Frame& frame = profile.frames()[id];
  const profile::Function& function = profile.functions()[frame.function];
  const profile::Mapping& mapping = profile.mappings()[frame.mapping];
  return {{"kind", NameOf(frame.kind)},
          {"inlined", frame.inlined},
          {"address", frame.address},
          {"line", frame.line},
          {"column", frame.column},
          {"function", profile.Text(function.name)},
          {"system_name", profile.Text(function.system_name)},
          {"file", profile.Text(function.file)},
          {"start_line", function.start_line},
          {"mapping", {mapping.start, mapping.end, mapping.file_offset}},
          {"path", profile.Text(mapping.path)},
          {"build_id", profile.Text(mapping.build_id)}};
}

json SampleAsJson(const Profile& profile, const profile::Sample& sample) {
  const profile::Context& context = profile.contexts()[sample.context];
  const profile::Thread& thread = profile.threads()[sample.thread];
  json frames = json::array();
  for (const profile::FrameId id : profile.FramesOf(sample.stack)) {
    frames.push_back(FrameAsJson(profile, id));
  }
  json tags = json::object();
  for (unsigned i = 0; i < profile::kTagCount; ++i) {
    if (context.tags[i] != profile::kNone) {
      tags[TagName(profile, i)] = profile.Text(context.tags[i]);
    }
  }
  return {{"kind", NameOf(sample.kind)},
          {"time", sample.time_ns},
          {"folded", sample.folded},
          {"state", NameOf(sample.state)},
          {"count", sample.count},
          {"value", sample.value},
          {"tid", thread.tid},
          {"thread_name", profile.Text(thread.name)},
          {"trace_id", profile::TraceIdText(context.trace_id_high, context.trace_id_low)},
          {"span_id", profile::SpanIdText(context.span_id)},
          {"root_span_id", profile::SpanIdText(context.root_span_id)},
          {"endpoint", profile.Text(profile.EndpointOf(context.root_span_id))},
          {"tags", tags},
          {"frames", frames}};
}

json FunctionsAsJson(const Profile& profile, profile::SampleKind kind) {
  json functions = json::object();
  for (const auto& group : GroupSamples(profile, profile::GroupBy::kFunction, kind)) {
    functions[group.name] = {group.self_value, group.total_value};
  }
  return functions;
}

json ProfileAsJson(const Profile& profile) {
  json samples = json::array();
  for (const profile::Sample& sample : profile.samples()) {
    samples.push_back(SampleAsJson(profile, sample));
  }
  json resource = json::object();
  for (const profile::Attribute& attribute : profile.resource) {
    resource[attribute.key] = attribute.value;
  }
  json functions = json::object();
  for (unsigned i = 0; i < profile::kSampleKindCount; ++i) {
    const auto kind = static_cast<profile::SampleKind>(i);
    functions[std::string(NameOf(kind))] = FunctionsAsJson(profile, kind);
  }
  return {{"start", profile.start_time_ns},
          {"duration", profile.duration_ns},
          {"resource", resource},
          {"counters", profile.counters()},
          {"attribute_names", profile.attribute_names},
          {"functions", functions},
          {"samples", samples}};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file) std::exit(1);
}

// The address of the landmark as the program's file has it, not as it was loaded.
uint64_t LandmarkAddress() {
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the first is the program itself
      },
      &base);
  return reinterpret_cast<uintptr_t>(&spanprof_test_landmark) - base;
}

Profile OwnAddress() {
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0) std::exit(1);
  Profile profile;
  // Some bounds that have nothing to do with the address: symbolising must not need them.
  const auto mapping = profile.AddMapping({.start = 0x5555'5555'6000,
                                           .end = 0x5555'5557'0000,
                                           .file_offset = 0x2000,
                                           .path = profile.Intern(path)});
  const auto frame = profile.AddFrame({.mapping = mapping, .address = LandmarkAddress() + 4});
  profile.AddSample({.time_ns = 1, .stack = profile.AddStack(profile::kNone, frame), .value = 7});
  return profile;
}

}  // namespace
}  // namespace spanprof::format

int main(int argc, char** argv) {
  using namespace spanprof;
  if (argc != 2) return 2;
  const std::string directory = std::string(argv[1]) + "/";
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const profile::Profile profile = profile::RandomProfile(
        seed, {.sample_count = seed * 50, .variety = 5 * seed, .max_depth = 2 * seed});
    const std::string name = directory + std::to_string(seed);
    format::WriteFile(name + ".pb.gz", format::WritePprof(profile, {}).value());
    format::WriteFile(name + ".otlp", format::WriteOtlp(profile, {}).value());
    format::WriteFile(name + ".json", format::ProfileAsJson(profile).dump(1));
  }
  format::WriteFile(directory + "own_address.pb.gz",
                    format::WritePprof(format::OwnAddress(), {}).value());
  return 0;
}
