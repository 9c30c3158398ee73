// A chunk is its header, the events, the metadata, and one checkpoint with all constant pools. One
// tick is a nanosecond, and ticks count from the earliest time that the chunk knows, which keeps an
// event's time to six bytes for 70 minutes.

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>

#include "format/format.h"
#include "format/jfr_chunk.h"
#include "format/jfr_constant_pools.h"
#include "format/jfr_encoding.h"
#include "format/jfr_metadata.h"
#include "format/jfr_schema.h"
#include "profile/names.h"

namespace spanprof::format {
namespace jfr {
namespace {

using profile::Sample;
using profile::SampleKind;

class ChunkWriter {
 public:
  ChunkWriter(const profile::Profile& profile, JfrContext context)
      : profile_(profile), context_(context), pools_(profile, context) {
    ChooseTicks();
  }

  Result<std::string> Write() {
    Output events;
    WriteFacts(events);
    for (const Sample& sample : profile_.samples()) WriteSample(sample, events);

    uint64_t hash = pools_.Hash(HashBytes(events.bytes(), header_.start_ns));
    for (const std::string& name : profile_.attribute_names) hash = HashBytes(name, hash);
    const uint64_t pool_id_base = PoolIdBase(hash);
    const Schema schema = MakeSchema(profile_, context_, pool_id_base);

    Output tail;
    WriteMetadataEvent(schema.types, header_.start_ticks, hash >> 1, tail);
    header_.metadata = ChunkHeader::kSize + events.size();
    header_.checkpoint = header_.metadata + tail.size();
    pools_.WriteCheckpoint(pool_id_base, header_.start_ticks, tail);
    header_.size = header_.metadata + tail.size();
    if (header_.size - header_.checkpoint > std::numeric_limits<int32_t>::max()) {
      return Fail(EFBIG,
                  "the constant pools of a JFR chunk would take " +
                      std::to_string(header_.size - header_.checkpoint) + " bytes",
                  "write profiles more often (every=)");
    }

    Output chunk;
    WriteChunkHeader(header_, chunk);
    chunk.Append(events.bytes());
    chunk.Append(tail.bytes());
    return chunk.Take();
  }

 private:
  void ChooseTicks() {
    uint64_t first = std::numeric_limits<uint64_t>::max();
    for (const Sample& sample : profile_.samples()) first = std::min(first, sample.time_ns);
    header_.start_ns = profile_.start_time_ns;
    if (header_.start_ns == 0 && !profile_.samples().empty()) header_.start_ns = first;
    tick_zero_ns_ = std::min(first, header_.start_ns);
    header_.duration_ns = profile_.duration_ns;
    header_.start_ticks = header_.start_ns - tick_zero_ns_;
    header_.ticks_per_second = 1'000'000'000;
  }

  void Begin(EventId id, uint64_t ticks) {
    body_.Clear();
    body_.Varint(id);
    body_.Varint(ticks);
  }

  // Everything that is not a sample, first: a reader knows the periods before it needs them.
  void WriteFacts(Output& events) {
    const uint64_t now = header_.start_ticks;
    for (const profile::Attribute& attribute : profile_.resource) {
      Begin(kResourceId, now);
      body_.Utf8(attribute.key);
      body_.Utf8(attribute.value);
      events.Event(body_.bytes());
    }
    for (unsigned kind = 0; kind < profile::kSampleKindCount; ++kind) {
      const profile::Period& period = profile_.periods[kind];
      if (period == profile::Period{}) continue;
      Begin(kPeriodId, now);
      body_.Utf8(NameOf(static_cast<SampleKind>(kind)));
      body_.Varint(period.requested_ns);
      body_.Varint(period.actual_ns);
      events.Event(body_.bytes());
    }
    for (const auto& [name, value] : profile_.counters()) {
      Begin(kCounterId, now);
      body_.Utf8(name);
      body_.Varint(value);
      events.Event(body_.bytes());
    }
    for (const auto& [root, endpoint] : profile_.endpoints()) {
      if (pools_.HasRoot(root)) continue;
      Begin(kEndpointId, now);
      body_.Varint(root);
      body_.Utf8(profile_.Text(endpoint));
      events.Event(body_.bytes());
    }
  }

  void WriteSample(const Sample& sample, Output& events) {
    const uint64_t ticks = sample.time_ns - tick_zero_ns_;
    switch (sample.kind) {
      case SampleKind::kCpu:
      case SampleKind::kWall:
        Begin(sample.kind == SampleKind::kCpu ? kExecutionSampleId : kWallSampleId, ticks);
        WriteThreadAndStack(sample);
        body_.Varint(ConstantPoolWriter::State(sample.state));
        body_.Varint(sample.count);
        body_.Varint(pools_.Value(sample));
        break;
      case SampleKind::kAllocation:
        Begin(kAllocationSampleId, ticks);
        WriteThreadAndStack(sample);
        body_.Varint(0);  // class
        body_.Varint(sample.value);
        WriteCountStateFolded(sample);
        break;
      case SampleKind::kLock:
        Begin(kLockId, ticks);
        body_.Varint(sample.value);
        WriteThreadAndStack(sample);
        body_.Varint(0);  // class of the monitor
        body_.Varint(0);  // its previous owner
        body_.Varint(0);  // its address
        WriteCountStateFolded(sample);
        break;
    }
    if (context_ == JfrContext::kPool) {
      body_.Varint(pools_.Context(sample.context));
    } else {
      pools_.WriteContext(profile_.contexts()[sample.context], body_);
    }
    events.Event(body_.bytes());
  }

  void WriteThreadAndStack(const Sample& sample) {
    body_.Varint(pools_.Thread(sample.thread));
    body_.Varint(pools_.StackTrace(sample.stack));
  }

  void WriteCountStateFolded(const Sample& sample) {
    body_.Varint(sample.count);
    body_.Varint(ConstantPoolWriter::State(sample.state));
    body_.Byte(sample.folded ? 1 : 0);
  }

  const profile::Profile& profile_;
  JfrContext context_;
  ConstantPoolWriter pools_;
  ChunkHeader header_;
  uint64_t tick_zero_ns_ = 0;
  Output body_;
};

}  // namespace
}  // namespace jfr

Result<std::string> WriteJfr(const profile::Profile& profile, const WriteOptions& options) {
  return jfr::ChunkWriter(profile, options.jfr_context).Write();
}

}  // namespace spanprof::format
