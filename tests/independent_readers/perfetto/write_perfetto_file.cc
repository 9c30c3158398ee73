// Writes a trace for Perfetto's own decoder, and what it must find there, as JSON.
//
//   write_perfetto_file FOLDER      trace.pftrace and trace.json

#include <fstream>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "format/format.h"
#include "profile/names.h"
#include "profile/profile.h"
#include "profile/profile_testing.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_perfetto_file FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  auto profile = spanprof::profile::RandomProfile(42, {.sample_count = 2000, .minutes = 1});
  profile.resource = {{"service.name", "shop"}, {"process.pid", "4711"}};
  const auto bytes = spanprof::format::WritePerfetto(profile, {});
  if (!bytes) {
    std::cerr << bytes.error().message << "\n";
    return 1;
  }
  // Each sample: kind, time, tid (0: made up) and frames, the outermost first.
  nlohmann::json samples = nlohmann::json::array();
  for (const auto& sample : profile.samples()) {
    nlohmann::json frames = nlohmann::json::array();
    for (const auto frame : profile.FramesOf(sample.stack)) {
      frames.insert(frames.begin(), FrameName(profile, frame));
    }
    samples.push_back({std::string(NameOf(sample.kind)), sample.time_ns,
                       profile.threads()[sample.thread].tid, frames, sample.value});
  }
  std::ofstream(folder + "/trace.json") << samples.dump();
  std::ofstream trace(folder + "/trace.pftrace", std::ios::binary);
  trace << *bytes;
  return trace.flush() ? 0 : 1;
}
