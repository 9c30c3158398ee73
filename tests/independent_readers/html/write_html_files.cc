// Writes pages for a browser to open, and what they must show, as the model adds it up.
//
//   write_html_files FOLDER
//
// shop.html: a service with endpoints. hostile.html: names that would like to be code. empty.html.
// Beside each NAME.html stands NAME.json: {kind: {endpoint|thread|function: {name: [self,
// total]}}}.

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "format/format.h"
#include "profile/names.h"
#include "profile/profile.h"
#include "profile/profile_query.h"

namespace {

using spanprof::profile::FrameKind;
using spanprof::profile::GroupBy;
using spanprof::profile::Profile;
using spanprof::profile::SampleKind;

constexpr uint64_t kStart = 1'700'000'000'000'000'000;

struct Call {
  std::vector<const char*> names;  // the outermost first
  FrameKind kind;
};

void AddCall(Profile& profile, const Call& call, uint64_t number, const char* endpoint,
             const char* thread, SampleKind kind, uint64_t value) {
  std::vector<spanprof::profile::FrameId> frames;
  for (const char* name : call.names) {
    frames.push_back(profile.AddFrame(
        {.kind = call.kind, .function = profile.AddFunction({.name = profile.Intern(name)})}));
  }
  if (endpoint != nullptr) profile.SetEndpoint(number, endpoint);
  const auto context = endpoint == nullptr ? spanprof::profile::kNone
                                           : profile.AddContext({.trace_id_high = 1,
                                                                 .trace_id_low = number,
                                                                 .span_id = number,
                                                                 .root_span_id = number});
  profile.AddSample({.time_ns = kStart + number * 1'000'000,
                     .thread = profile.AddThread(100 + thread[0] % 7, thread),
                     .context = context,
                     .stack = profile.AddStack(frames),
                     .kind = kind,
                     .value = value});
}

Profile Shop() {
  Profile profile;
  profile.start_time_ns = kStart;
  profile.duration_ns = 12'345'000'000;
  profile.resource = {{"service.name", "shop"}, {"host.name", "example"}, {"process.pid", "4711"}};
  profile.periods[0] = {1'000'000, 4'000'000};
  profile.periods[1] = {10'000'000, 10'000'000};
  profile.AddToCounter("sampler.torn_reads", 3);
  profile.AddToCounter("sampler.ring_full", 17);
  const Call calls[] = {
      {{"_start", "main", "Serve", "HandleCart", "Database::Query", "read"}, FrameKind::kNative},
      {{"_start", "main", "Serve", "HandleCart", "Render", "Escape"}, FrameKind::kNative},
      {{"_start", "main", "Serve", "HandleSearch", "Match", "Match", "Match"}, FrameKind::kNative},
      {{"_start", "main", "Serve", "HandleSearch", "Sort", "std::sort<Item*, ByPrice>"},
       FrameKind::kRust},
      {{"java.lang.Thread.run", "shop.Checkout.pay", "shop.Tax.of"}, FrameKind::kJava},
      {{"<main>", "Worker#run", "Worker#step"}, FrameKind::kRuby},
      {{"(root)", "processTicks", "handle"}, FrameKind::kJavaScript},
      {{"_start", "main", "Serve", "Log", "write", "vfs_write"}, FrameKind::kKernel},
  };
  const char* const endpoints[] = {"GET /cart", "GET /search", "POST /checkout", nullptr};
  const char* const threads[] = {"worker-1", "worker-2", "main"};
  uint64_t state = 1;
  for (uint64_t i = 1; i <= 4000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = state >> 33;
    AddCall(profile, calls[random % 8 * (random % 3 != 0)], i, endpoints[random / 8 % 4],
            threads[random / 32 % 3], i % 3 == 0 ? SampleKind::kWall : SampleKind::kCpu,
            1'000'000 + random % 1000);
  }
  return profile;
}

Profile Hostile() {
  Profile profile;
  const char* const kScript = "</script><script>document.title='owned'</script>";
  const char* const kImage = "<img src=x onerror=\"document.title='owned'\">";
  profile.start_time_ns = kStart;
  profile.resource = {{"service.name", kScript}, {kImage, kScript}};
  profile.AddToCounter(kImage, 1);
  const Call calls[] = {
      {{kScript, kImage, "\" onclick=\"document.title='owned'", "<!--<script>"},
       FrameKind::kNative},
      {{"javascript:document.title='owned'", "safe\xE2\x80\xAEgnp.exe", "a\x01\x1B[31mb\nc"},
       FrameKind::kMarker},
      {{"\xFF\xFE not UTF-8", "__proto__", "constructor", "{{7*7}}", "${7*7}"}, FrameKind::kNative},
  };
  uint64_t number = 1;
  for (const Call& call : calls) {
    AddCall(profile, call, number, number == 1 ? kScript : kImage, kScript, SampleKind::kCpu,
            number * 1000);
    ++number;
  }
  return profile;
}

nlohmann::json Expected(const Profile& profile) {
  nlohmann::json kinds = nlohmann::json::object();
  for (unsigned kind = 0; kind < spanprof::profile::kSampleKindCount; ++kind) {
    const auto sample_kind = static_cast<SampleKind>(kind);
    nlohmann::json views = nlohmann::json::object();
    for (const auto& [view, by] :
         {std::pair("endpoints", GroupBy::kEndpoint), std::pair("threads", GroupBy::kThread),
          std::pair("functions", GroupBy::kFunction)}) {
      for (const auto& group : GroupSamples(profile, by, sample_kind)) {
        views[view][group.name] = {group.self_value, group.total_value};
      }
    }
    if (!views.empty()) kinds[std::string(NameOf(sample_kind))] = views;
  }
  return kinds;
}

bool WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  return static_cast<bool>(file.flush());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_html_files FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  const auto write = [&](const std::string& name, const Profile& profile) {
    const auto page = spanprof::format::WriteHtml(profile, {});
    const std::string expected =
        Expected(profile).dump(1, ' ', true, nlohmann::json::error_handler_t::replace);
    return page && WriteFile(folder + "/" + name + ".html", *page) &&
           WriteFile(folder + "/" + name + ".json", expected);
  };
  const bool done =
      write("shop", Shop()) && write("hostile", Hostile()) && write("empty", Profile());
  if (!done) std::cerr << "cannot write to " << folder << "\n";
  return done ? 0 : 1;
}
