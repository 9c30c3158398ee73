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
  RecordingWriter writer(std::move(file), std::move(name));
  writer.block_.assign(kRecordingMagic, kRecordingMagicBytes);
  if (write(writer.file_.get(), writer.block_.data(), writer.block_.size()) !=
      static_cast<ssize_t>(writer.block_.size())) {
    return Fail(errno, Quoted(writer.name_) + " cannot be written to: " + ErrorText(errno));
  }
  writer.bytes_ = kRecordingMagicBytes;
  return writer;
}

Result<void> RecordingWriter::Block(BlockType type, std::string_view payload) {
  const BlockHead head = MakeBlockHead(type, static_cast<uint32_t>(payload.size()));
  block_.assign(reinterpret_cast<const char*>(&head), sizeof head);
  block_.append(payload);
  std::string_view left = block_;
  while (!left.empty()) {
    const ssize_t done = write(file_.get(), left.data(), left.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return Fail(errno, Quoted(name_) + " cannot be written to: " + ErrorText(errno),
                  errno == ENOSPC ? "make room, or record to another disk" : "");
    }
    left.remove_prefix(static_cast<std::size_t>(done));
  }
  bytes_ += block_.size();
  return {};
}

Result<void> RecordingWriter::Write(const TargetInfo& target) {
  payload_.clear();
  PutNumber(payload_, target.target);
  PutNumber(payload_, target.pid);
  PutNumber(payload_, target.start_ticks);
  PutNumber(payload_, target.clock_kind);
  PutText(payload_, target.name);
  return Block(BlockType::kTarget, payload_);
}

Result<void> RecordingWriter::Write(const ClockPair& clock) {
  payload_.clear();
  PutNumber(payload_, clock.target);
  PutNumber(payload_, clock.counter);
  PutNumber(payload_, clock.nanoseconds);
  return Block(BlockType::kClock, payload_);
}

Result<void> RecordingWriter::Write(const CoroutineInfo& coroutine) {
  payload_.clear();
  PutNumber(payload_, coroutine.target);
  PutNumber(payload_, coroutine.station);
  PutNumber(payload_, coroutine.generation);
  PutNumber(payload_, coroutine.probe_id);
  PutNumber(payload_, coroutine.birth_nanoseconds);
  PutNumber(payload_, coroutine.frame);
  PutNumber(payload_, coroutine.resume_function);
  PutNumber(payload_, coroutine.adopted ? 1 : 0);
  PutText(payload_, coroutine.name);
  return Block(BlockType::kCoroutine, payload_);
}

Result<void> RecordingWriter::Write(const PlaceInfo& place) {
  payload_.clear();
  PutNumber(payload_, place.target);
  PutNumber(payload_, place.place);
  PutNumber(payload_, place.line);
  PutNumber(payload_, place.column);
  PutText(payload_, place.file);
  PutText(payload_, place.function);
  return Block(BlockType::kPlace, payload_);
}

Result<void> RecordingWriter::Write(const PassMark& pass) {
  payload_.clear();
  PutNumber(payload_, pass.target);
  PutNumber(payload_, pass.stamp);
  return Block(BlockType::kPass, payload_);
}

Result<void> RecordingWriter::Write(const Counters& counters) {
  payload_.clear();
  PutNumber(payload_, counters.target);
  PutNumber(payload_, counters.values.size());
  for (const auto& [name, value] : counters.values) {
    PutText(payload_, name);
    PutNumber(payload_, value);
  }
  return Block(BlockType::kCounters, payload_);
}

Result<void> RecordingWriter::Write(const std::vector<SlotEventInfo>& events) {
  payload_.clear();
  PutNumber(payload_, events.size());
  for (const SlotEventInfo& event : events) {
    PutNumber(payload_, event.target);
    PutNumber(payload_, event.station);
    PutNumber(payload_, event.probe_id);
    PutNumber(payload_, event.number);
    PutNumber(payload_, event.nanoseconds);
    PutNumber(payload_, event.tid);
    PutNumber(payload_, event.addr);
    PutNumber(payload_, event.active ? 1 : 0);
  }
  return Block(BlockType::kSlotEvents, payload_);
}

Result<void> RecordingWriter::WriteEvents(uint32_t target, uint32_t ring, uint32_t tid,
                                          uint64_t first, std::span<const RingEvent> events) {
  payload_.clear();
  PutNumber(payload_, target);
  PutNumber(payload_, ring);
  PutNumber(payload_, tid);
  PutNumber(payload_, first);
  PutNumber(payload_, events.size());
  AppendEvents(payload_, events);
  return Block(BlockType::kEvents, payload_);
}

Result<void> RecordingWriter::WriteEnd() { return Block(BlockType::kEnd, {}); }

}  // namespace spanprof::coroutine
