#include "export/send_counters.h"

namespace spanprof::sending {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(SendCounter::kCount)> kNames = {
    "report.sent",
    "report.spooled",
    "report.refused",
    "report.dropped",
    "report.left_to_parent",
    "report.sent_late",
    "send.attempts",
    "send.retries",
    "send.error.resolve",
    "send.error.connect",
    "send.error.connect_timeout",
    "send.error.send_timeout",
    "send.error.receive_timeout",
    "send.error.total_timeout",
    "send.error.reset",
    "send.error.closed_early",
    "send.error.garbage",
    "send.error.head_too_large",
    "send.error.other",
    "answer.retryable",
    "answer.retry_after",
    "answer.body_cut",
    "answer.body_too_large",
    "answer.body_timeout",
    "answer.partial_success",
    "spool.written",
    "spool.write_failed",
    "spool.unusable",
    "spool.sent",
    "spool.refused",
    "spool.corrupt",
    "spool.evicted",
    "spool.other_format",
    "spool.busy",
    "file.written",
    "file.failed",
    "file.removed",
    "thread.failed",
    "memory.failed",
};
static_assert(!kNames.back().empty(), "a counter has no name");

}  // namespace

std::string_view NameOf(SendCounter counter) { return kNames[static_cast<std::size_t>(counter)]; }

std::map<std::string, std::uint64_t> SendCounters::Read() const {
  std::map<std::string, std::uint64_t> read;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    read.emplace(kNames[i], Get(static_cast<SendCounter>(i)));
  }
  return read;
}

}  // namespace spanprof::sending
