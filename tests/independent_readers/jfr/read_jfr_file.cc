// Reads a JFR file and prints as JSON what the model has of it: how many samples of each kind, and
// how often each function and each thread is in them.
//
//   read_jfr_file profile.jfr

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "format/format.h"
#include "format/jfr_file.h"
#include "profile/names.h"
#include "profile/profile.h"

// A test's tool: an exception may end it.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  using nlohmann::json;
  using spanprof::profile::Profile;
  if (argc != 2) {
    std::fprintf(stderr, "usage: read_jfr_file FILE\n");
    return 2;
  }
  const auto contents = spanprof::format::ReadJfrFile(argv[1], {});
  if (!contents) {
    std::fprintf(stderr, "%s\n", contents.error().message.c_str());
    return 1;
  }
  const Profile& profile = contents->profile;
  json kinds = json::object();
  json functions = json::object();
  json threads = json::object();
  for (const auto& sample : profile.samples()) {
    json& kind = kinds[std::string(NameOf(sample.kind))];
    if (kind.is_null()) kind = {{"samples", 0}, {"value", 0}, {"with_stack", 0}};
    kind["samples"] = kind["samples"].get<int>() + 1;
    kind["value"] = kind["value"].get<uint64_t>() + sample.value;
    if (sample.stack != spanprof::profile::kNone) {
      kind["with_stack"] = kind["with_stack"].get<int>() + 1;
    }
    std::set<std::string> names;
    for (const auto frame : profile.FramesOf(sample.stack)) {
      names.insert(spanprof::profile::FrameName(profile, frame));
    }
    for (const std::string& name : names) functions[name] = functions.value(name, 0) + 1;
    const std::string thread(profile.Text(profile.threads()[sample.thread].name));
    threads[thread] = threads.value(thread, 0) + 1;
  }
  const json summary = {{"kinds", kinds},
                        {"functions", functions},
                        {"threads", threads},
                        {"start_ns", profile.start_time_ns},
                        {"duration_ns", profile.duration_ns},
                        {"warning", contents->warning}};
  std::puts(summary.dump(1).c_str());
  return 0;
}
