// Writes JFR files for other people's readers, each beside a JSON file that says what is in it.
//
//   write_jfr_files DIRECTORY

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/format.h"
#include "format/jfr_fixture.h"
#include "format/jfr_frame_pools.h"
#include "profile/names.h"
#include "profile/profile.h"

namespace spanprof::format {
namespace {

using nlohmann::json;

json ExpectedSample(const profile::Profile& p, const profile::Sample& sample) {
  const profile::Context& context = p.contexts()[sample.context];
  json expected = {
      {"kind", NameOf(sample.kind)},
      {"time_ns", sample.time_ns},
      {"thread",
       sample.thread == profile::kNone ? json() : json(p.Text(p.threads()[sample.thread].name))},
      {"tid", p.threads()[sample.thread].tid},
      {"count", sample.count},
      {"value", sample.value},
      {"folded", sample.folded},
      {"context", json()},
      {"frames", json::array()}};
  if (sample.context != profile::kNone) {
    // Java has no unsigned integers.
    expected["context"] = {
        {"spanId", static_cast<int64_t>(context.span_id)},
        {"localRootSpanId", static_cast<int64_t>(context.root_span_id)},
        {"traceId", profile::TraceIdText(context.trace_id_high, context.trace_id_low)},
        {"endpoint", p.Text(p.EndpointOf(context.root_span_id))}};
    for (unsigned i = 0; i < p.attribute_names.size(); ++i) {
      expected["context"]["tags"][p.attribute_names[i]] =
          context.tags[i] == profile::kNone ? json() : json(p.Text(context.tags[i]));
    }
  }
  for (const profile::FrameId id : p.FramesOf(sample.stack)) {
    const jfr::FrameLabel label = jfr::LabelOf(p, id);
    expected["frames"].push_back({label.class_name, label.method_name, p.frames()[id].line});
  }
  return expected;
}

// Names that are not ASCII, attributes that are called like fields, an unfriendly file name.
profile::Profile MakeUnicodeProfile() {
  profile::Profile p;
  p.start_time_ns = 1'790'000'100'000'000'000;
  p.attribute_names = {"endpoint", "käse.größe", "state", "名前"};
  const profile::MappingId mapping = p.AddMapping({.path = p.Intern("/tmp/ü ☕/bibliothek.so")});
  const profile::FunctionId function = p.AddFunction({.name = p.Intern("größe::💡<日本>()")});
  const profile::FunctionId ruby =
      p.AddFunction({.name = p.Intern("Käse#essen"), .file = p.Intern("app/käse.rb")});
  const profile::StackId stack = p.AddStack(
      p.AddStack(profile::kNone,
                 p.AddFrame({.kind = profile::FrameKind::kRuby, .function = ruby, .line = 3})),
      p.AddFrame({.mapping = mapping, .address = 16, .function = function, .line = 7}));
  profile::Context context{.span_id = UINT64_MAX, .root_span_id = 1};
  for (unsigned i = 0; i < p.attribute_names.size(); ++i) {
    context.tags[i] = p.Intern("Wert-é-𝄞-" + std::to_string(i));
  }
  p.SetEndpoint(1, "GET /straße");
  p.AddSample({.time_ns = p.start_time_ns + 1,
               .thread = p.AddThread(7, "Fädchen-🧵"),
               .context = p.AddContext(context),
               .stack = stack,
               .value = 1});
  return p;
}

bool WriteFiles(const std::string& path, const std::vector<profile::Profile>& profiles,
                JfrContext context) {
  std::ofstream file(path + ".jfr", std::ios::binary);
  json expected = {{"chunks", profiles.size()},
                   {"flat", context == JfrContext::kFlat},
                   {"counters", json::array()},
                   {"samples", json::array()}};
  WriteOptions options;
  options.jfr_context = context;
  for (const profile::Profile& p : profiles) {
    const Result<std::string> chunk = WriteJfr(p, options);
    if (!chunk) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), chunk.error().message.c_str());
      return false;
    }
    file << *chunk;
    for (const auto& [name, value] : p.counters()) expected["counters"].push_back({name, value});
    for (const profile::Sample& sample : p.samples()) {
      expected["samples"].push_back(ExpectedSample(p, sample));
    }
  }
  std::ofstream(path + ".json") << expected.dump(1);
  return file.good();
}

bool WriteAll(const std::string& directory) {
  std::vector<profile::Profile> many;
  // Chunks whose keys mean something else in each. Mission Control reads one chunk of each start.
  for (unsigned i = 0; i < 5; ++i) {
    many.push_back(MakeLargeProfile({.samples = 50 + 20 * i, .threads = 1 + i, .stacks = 10 + i}));
    many.back().start_time_ns += uint64_t{i} * 1'000;
    many.push_back(MakeSmallProfile());
    many.back().start_time_ns += uint64_t{i} * 1'000;
  }
  const auto one = [](profile::Profile p) {
    std::vector<profile::Profile> profiles;
    profiles.push_back(std::move(p));
    return profiles;
  };
  const std::string path = directory + "/";
  return WriteFiles(path + "small", one(MakeSmallProfile()), JfrContext::kPool) &&
         WriteFiles(path + "small-flat", one(MakeSmallProfile()), JfrContext::kFlat) &&
         WriteFiles(path + "empty", one(profile::Profile()), JfrContext::kPool) &&
         WriteFiles(path + "unicode", one(MakeUnicodeProfile()), JfrContext::kPool) &&
         WriteFiles(path + "unicode-flat", one(MakeUnicodeProfile()), JfrContext::kFlat) &&
         WriteFiles(path + "large", one(MakeLargeProfile()), JfrContext::kPool) &&
         WriteFiles(path + "chunks", many, JfrContext::kPool) &&
         WriteFiles(path + "chunks-flat", many, JfrContext::kFlat);
}

}  // namespace
}  // namespace spanprof::format

// A test's tool: an exception may end it.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_jfr_files DIRECTORY\n");
    return 2;
  }
  return spanprof::format::WriteAll(argv[1]) ? 0 : 1;
}
