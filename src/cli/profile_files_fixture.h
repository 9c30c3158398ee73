#pragma once

// For tests of the commands that work on profile files: a folder of its own, a small profile of a
// shop, and the built command run on it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/command_fixture.h"
#include "format/format.h"
#include "profile/profile.h"

namespace spanprof::cli {

inline constexpr uint64_t kShopStart = 1'794'744'000'000'000'000;  // 2026-11-15T12:00:00Z
inline constexpr uint64_t kShopMillisecond = 1'000'000;

// A name that would clear the screen of whoever shows it as it is.
inline constexpr std::string_view kEvilName = "evil\033[2J";

// Two requests (cart, spans 0x11 and 0x12 of root 0x10; pay, span and root 0x20) and idle work:
// 70, 20 and 10 samples of 10 ms, the first at the start and one every 100 ms; 5 wall samples.
inline profile::Profile ShopProfile() {
  profile::Profile shop;
  shop.start_time_ns = kShopStart;
  shop.duration_ns = 10'000 * kShopMillisecond;
  shop.resource = {{"service.name", "shop"},
                   {"service.version", "1.2"},
                   {"host.name", "host-1"},
                   {"process.pid", "8134"}};
  shop.attribute_names = {"tenant"};
  shop.periods[0] = {.requested_ns = 1'000'000, .actual_ns = 4'000'000};
  shop.SetEndpoint(0x10, "GET /cart");
  shop.SetEndpoint(0x20, "POST /pay");
  shop.AddToCounter("sampler.buffer_full", 7);
  uint64_t time = kShopStart;
  const auto add = [&](int count, profile::SampleKind kind, uint64_t span, uint64_t root,
                       const char* tenant, const char* thread,
                       std::initializer_list<std::string_view> functions) {
    profile::Context context{
        .trace_id_high = root, .trace_id_low = root, .span_id = span, .root_span_id = root};
    context.tags[0] = shop.Intern(tenant);
    profile::StackId stack = profile::kNone;
    for (const std::string_view name : functions) {
      const auto function = shop.AddFunction({.name = shop.Intern(name)});
      stack = shop.AddStack(stack, shop.AddFrame({.function = function}));
    }
    for (int i = 0; i < count; ++i, time += 100 * kShopMillisecond) {
      shop.AddSample({.time_ns = time,
                      .thread = shop.AddThread(thread[0] == 'w' ? 11 : 12, thread),
                      .context = shop.AddContext(context),
                      .stack = stack,
                      .kind = kind,
                      .value = 10 * kShopMillisecond});
    }
  };
  using enum profile::SampleKind;
  add(50, kCpu, 0x11, 0x10, "acme", "worker", {"main", "Cart", "Price"});
  add(20, kCpu, 0x12, 0x10, "globex", "worker", {"main", "Cart"});
  add(20, kCpu, 0x20, 0x20, "acme", "worker", {"main", "Pay", "Price"});
  add(10, kCpu, 0, 0, "", "background", {"main", kEvilName});
  add(5, kWall, 0x20, 0x20, "acme", "worker", {"main", "Pay", "Wait"});
  return shop;
}

class ProfileFilesTest : public ::testing::Test {
 protected:
  ProfileFilesTest() {
    std::string pattern = testing::TempDir() + "spanprof-cli-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ProfileFilesTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void WriteBytes(const std::string& name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  [[nodiscard]] std::string ReadBytes(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Writes it in the format of the name's end, and returns the path.
  std::string WriteProfileFile(const std::string& name, const profile::Profile& profile) const {
    const auto format = format::FormatOfFile(name);
    EXPECT_TRUE(format) << name;
    const auto bytes = format::WriteProfile(profile, *format, {});
    EXPECT_TRUE(bytes) << name;
    WriteBytes(name, *bytes);
    return Path(name);
  }

  [[nodiscard]] profile::Profile ReadProfileFile(const std::string& name) const {
    const std::string bytes = ReadBytes(name);
    const auto format = format::FormatOfBytes(bytes);
    EXPECT_TRUE(format) << name << ": " << (format ? "" : format.error().message);
    if (!format) return profile::Profile();
    auto profile = format::ReadProfile(bytes, *format, {});
    EXPECT_TRUE(profile) << name << ": " << (profile ? "" : profile.error().message);
    return profile ? std::move(*profile) : profile::Profile();
  }

  // Runs the command to its end.
  int Run(std::vector<std::string> arguments) {
    Command command(std::move(arguments));
    const int code = command.Wait();
    out_ = command.out;
    err_ = command.err;
    return code;
  }

  std::string folder_;
  std::string out_;
  std::string err_;
};

}  // namespace spanprof::cli
