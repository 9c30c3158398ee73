#pragma once

// What the tests of the exporter share.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "export/exporter.h"
#include "export/temporary_directory.h"
#include "export/test_server.h"
#include "format/gzip.h"

namespace spanprof::sending {

class ExporterTest : public testing::Test {
 protected:
  using Connection = TestServer::Connection;

  // Far beyond what has to happen, so that a slow machine does not matter.
  static SteadyTime Later() { return std::chrono::steady_clock::now() + std::chrono::minutes(4); }

  static SendSettings SettingsFor(std::uint16_t port) {
    SendSettings settings;
    settings.url = {.is_https = false, .host = "127.0.0.1", .port = port, .target = "/x"};
    settings.timeouts = {.connect = std::chrono::seconds(60),
                         .send = std::chrono::seconds(60),
                         .receive = std::chrono::seconds(60),
                         .total = std::chrono::seconds(120)};
    settings.retry = {.first = std::chrono::milliseconds(1),
                      .longest = std::chrono::milliseconds(4),
                      .longest_retry_after = std::chrono::milliseconds(20),
                      .deadline = std::chrono::minutes(3)};
    return settings;
  }

  std::unique_ptr<Exporter> Start(const SendSettings& settings,
                                  const std::string& bytes = "profile", std::int64_t time_ns = 1) {
    return Exporter::Start(std::make_shared<const SendSettings>(settings),
                           {.format = settings.format, .time_ns = time_ns, .bytes = bytes},
                           counters_);
  }
  Outcome Send(const SendSettings& settings, const std::string& bytes = "profile",
               std::int64_t time_ns = 1) {
    return Start(settings, bytes, time_ns)->Finish(Later()).outcome;
  }
  static std::string Unzip(std::string_view bytes) {
    return format::Decompress(bytes, 1000000).value_or("not gzip");
  }
  std::uint64_t Count(SendCounter counter) const { return counters_->Get(counter); }

  TemporaryDirectory directory_;
  std::shared_ptr<SendCounters> counters_ = std::make_shared<SendCounters>();
};

}  // namespace spanprof::sending
