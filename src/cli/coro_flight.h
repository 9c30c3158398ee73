#pragma once

// The flight recorder of `spanprof coro record --flight`: what it keeps is written to a file when
// somebody asks (SIGUSR1, `spanprof coro dump`), when a coroutine gets stuck, and at the end.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "coroutine/flight_buffer.h"
#include "coroutine/harvester.h"

namespace spanprof::cli {

struct CoroFlightOptions {
  std::chrono::nanoseconds window{0};  // 0: no flight recorder
  uint64_t max_bytes = uint64_t{256} << 20;
  std::chrono::nanoseconds stuck_after{0};  // 0: stuck coroutines are not looked for
};

class CoroFlight {
 public:
  CoroFlight(const CoroFlightOptions& options, std::string output)
      : options_(options), output_(std::move(output)), buffer_(options.window, options.max_bytes) {}
  ~CoroFlight();
  CoroFlight(const CoroFlight&) = delete;
  CoroFlight& operator=(const CoroFlight&) = delete;

  [[nodiscard]] coroutine::FlightBuffer& buffer() { return buffer_; }
  // SIGUSR1 asks for a dump from now on, and does not end the process.
  static void CatchSignal();
  // Whether it was asked for since the last look.
  static bool TakeSignal();
  // Looks for reasons to write, and writes.
  [[nodiscard]] Result<void> Work(coroutine::Harvester& harvester);
  // The last dump, when the harvester has finished. Waits for those that are being written.
  [[nodiscard]] Result<void> Finish();

 private:
  [[nodiscard]] Result<void> Dump(coroutine::Harvester& harvester, std::string_view reason,
                                  std::vector<UniqueFd> askers);
  [[nodiscard]] Result<void> LookForStuck(coroutine::Harvester& harvester);
  [[nodiscard]] std::string NextName();
  void WaitForWriters(bool all);

  CoroFlightOptions options_;
  std::string output_;
  coroutine::FlightBuffer buffer_;
  std::vector<pid_t> writers_;
  uint64_t dumps_ = 0;
  uint64_t stuck_not_dumped_ = 0;
  std::chrono::steady_clock::time_point last_look_;
  std::chrono::steady_clock::time_point last_stuck_dump_;
};

}  // namespace spanprof::cli
