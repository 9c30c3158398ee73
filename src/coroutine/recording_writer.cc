#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/printable_text.h"
#include "coroutine/byte_codec.h"
#include "coroutine/recording.h"
#include "coroutine/recording_block.h"

namespace spanprof::coroutine {
namespace {

std::string ErrorText(int error_number) { return std::generic_category().message(error_number); }

class FileSink : public BlockSink {
 public:
  FileSink(UniqueFd file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  Result<void> Take(BlockType /*type*/, std::string_view block) override {
    while (!block.empty()) {
      const ssize_t done = write(file_.get(), block.data(), block.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        return Fail(errno, Quoted(name_) + " cannot be written to: " + ErrorText(errno),
                    errno == ENOSPC ? "make room, or record to another disk" : "");
      }
      block.remove_prefix(static_cast<std::size_t>(done));
    }
    return {};
  }

 private:
  UniqueFd file_;
  std::string name_;
};

}  // namespace

Result<RecordingWriter> RecordingWriter::Create(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) {
    return Fail(errno, "the recording " + Quoted(path) + " cannot be made: " + ErrorText(errno),
                errno == EEXIST ? "give another name, or remove that file" : "");
  }
  return Open(std::move(file), path);
}

Result<RecordingWriter> RecordingWriter::Open(UniqueFd file, std::string name) {
  auto sink = std::make_unique<FileSink>(std::move(file), std::move(name));
  const std::string_view magic(kRecordingMagic, kRecordingMagicBytes);
  if (auto written = sink->Take(BlockType::kEnd, magic); !written) {
    return tl::make_unexpected(written.error());
  }
  RecordingWriter writer(std::move(sink));
  writer.bytes_ = kRecordingMagicBytes;
  return writer;
}

Result<void> RecordingWriter::WriteBlock(BlockType type, std::string_view block) {
  bytes_ += block.size();
  return sink_->Take(type, block);
}

void RecordingWriter::Begin() { block_.assign(sizeof(BlockHead), '\0'); }

Result<void> RecordingWriter::End(BlockType type) {
  const BlockHead head =
      MakeBlockHead(type, static_cast<uint32_t>(block_.size() - sizeof(BlockHead)));
  std::memcpy(block_.data(), &head, sizeof head);
  return WriteBlock(type, block_);
}

Result<void> RecordingWriter::Write(const TargetInfo& target) {
  Begin();
  PutNumber(block_, target.target);
  PutNumber(block_, target.pid);
  PutNumber(block_, target.start_ticks);
  PutNumber(block_, target.clock_kind);
  PutText(block_, target.name);
  return End(BlockType::kTarget);
}

Result<void> RecordingWriter::Write(const ClockPair& clock) {
  Begin();
  PutNumber(block_, clock.target);
  PutNumber(block_, clock.counter);
  PutNumber(block_, clock.nanoseconds);
  return End(BlockType::kClock);
}

Result<void> RecordingWriter::Write(const CoroutineInfo& coroutine) {
  Begin();
  PutNumber(block_, coroutine.target);
  PutNumber(block_, coroutine.station);
  PutNumber(block_, coroutine.generation);
  PutNumber(block_, coroutine.probe_id);
  PutNumber(block_, coroutine.birth_nanoseconds);
  PutNumber(block_, coroutine.frame);
  PutNumber(block_, coroutine.resume_function);
  PutNumber(block_, coroutine.adopted ? 1 : 0);
  PutText(block_, coroutine.name);
  return End(BlockType::kCoroutine);
}

Result<void> RecordingWriter::Write(const PlaceInfo& place) {
  Begin();
  PutNumber(block_, place.target);
  PutNumber(block_, place.place);
  PutNumber(block_, place.line);
  PutNumber(block_, place.column);
  PutText(block_, place.file);
  PutText(block_, place.function);
  return End(BlockType::kPlace);
}

Result<void> RecordingWriter::Write(const PassMark& pass) {
  Begin();
  PutNumber(block_, pass.target);
  PutNumber(block_, pass.stamp);
  return End(BlockType::kPass);
}

Result<void> RecordingWriter::Write(const Counters& counters) {
  Begin();
  PutNumber(block_, counters.target);
  PutNumber(block_, counters.values.size());
  for (const auto& [name, value] : counters.values) {
    PutText(block_, name);
    PutNumber(block_, value);
  }
  return End(BlockType::kCounters);
}

Result<void> RecordingWriter::Write(const std::vector<SlotEventInfo>& events) {
  Begin();
  PutNumber(block_, events.size());
  for (const SlotEventInfo& event : events) {
    PutNumber(block_, event.target);
    PutNumber(block_, event.station);
    PutNumber(block_, event.probe_id);
    PutNumber(block_, event.number);
    PutNumber(block_, event.nanoseconds);
    PutNumber(block_, event.tid);
    PutNumber(block_, event.addr);
    PutNumber(block_, event.active ? 1 : 0);
  }
  return End(BlockType::kSlotEvents);
}

Result<void> RecordingWriter::WriteEvents(uint32_t target, uint32_t ring, uint32_t tid,
                                          uint64_t first, std::span<const RingEvent> events) {
  Begin();
  PutNumber(block_, target);
  PutNumber(block_, ring);
  PutNumber(block_, tid);
  PutNumber(block_, first);
  PutNumber(block_, events.size());
  const std::size_t most = block_.size() + events.size() * kMostEventBytes + kEncodingSlack;
  if (events_.size() < most) events_.resize(most);
  std::memcpy(events_.data(), block_.data(), block_.size());
  const char* end = EncodeEvents(events, events_.data() + block_.size());
  const auto bytes = static_cast<std::size_t>(end - events_.data());
  const BlockHead head =
      MakeBlockHead(BlockType::kEvents, static_cast<uint32_t>(bytes - sizeof(BlockHead)));
  std::memcpy(events_.data(), &head, sizeof head);
  return WriteBlock(BlockType::kEvents, {events_.data(), bytes});
}

Result<void> RecordingWriter::WriteEnd() {
  Begin();
  return End(BlockType::kEnd);
}

}  // namespace spanprof::coroutine
