// A chunk is its header, the events, the metadata, and one checkpoint with all constant pools.
// Behind it comes a chunk without events: see WriteSeparator.

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

// The JDK takes equal ids for equal metadata.
constexpr uint64_t kMetadataId = 0x5350'0001;
constexpr uint64_t kSeparatorMetadataId = 0x5350'0002;

// A tick is a nanosecond since the beginning of 2026, in every chunk: JDK 25 takes the times of all
// chunks of a file by the first one's header, so a chunk cannot count from its own start. Eight
// bytes hold this until April 2028, and nine from then on.
uint64_t Ticks(uint64_t unix_ns) {
  constexpr uint64_t kTickZeroNs = 1'767'225'600'000'000'000;
  return unix_ns - kTickZeroNs;
}

class ChunkWriter {
 public:
  ChunkWriter(const profile::Profile& profile, JfrContext context)
      : profile_(profile), context_(context), pools_(profile, context) {
    FillHeader();
  }

  Result<std::string> Write() {
    Output events;
    WriteFacts(events);
    for (const Sample& sample : profile_.samples()) WriteSample(sample, events);
    Output metadata;
    WriteMetadataEvent(MakeSchema(profile_, context_).types, header_.start_ticks, kMetadataId,
                       metadata);
    Output checkpoint;
    pools_.WriteCheckpoint(header_.start_ticks, checkpoint);
    if (checkpoint.size() > std::numeric_limits<int32_t>::max()) {
      return Fail(EFBIG,
                  "the constant pools of a JFR chunk would take " +
                      std::to_string(checkpoint.size()) + " bytes",
                  "write profiles more often (every=)");
    }
    Output out;
    WriteChunk(events, metadata, checkpoint, out);
    WriteSeparator(out);
    return out.Take();
  }

 private:
  // Without a start time the first sample is the start.
  void FillHeader() {
    header_.start_ns = profile_.start_time_ns;
    if (header_.start_ns == 0 && !profile_.samples().empty()) {
      header_.start_ns = std::numeric_limits<uint64_t>::max();
      for (const Sample& sample : profile_.samples()) {
        header_.start_ns = std::min(header_.start_ns, sample.time_ns);
      }
    }
    header_.duration_ns = profile_.duration_ns;
    header_.start_ticks = Ticks(header_.start_ns);
    header_.ticks_per_second = 1'000'000'000;
  }

  void WriteChunk(const Output& events, const Output& metadata, const Output& checkpoint,
                  Output& out) {
    header_.metadata = ChunkHeader::kSize + events.size();
    header_.checkpoint = header_.metadata + metadata.size();
    header_.size = header_.checkpoint + checkpoint.size();
    WriteChunkHeader(header_, out);
    out.Append(events.bytes());
    out.Append(metadata.bytes());
    out.Append(checkpoint.bytes());
  }

  // A chunk of nothing, behind each. The JDK assumes that a key has one value in all chunks of a
  // file: where the chunk before had the key, it takes that chunk's value. Our keys begin at 1 in
  // every chunk, so between two of them there is one without keys.
  void WriteSeparator(Output& out) {
    Output metadata;
    WriteMetadataEvent({}, header_.start_ticks, kSeparatorMetadataId, metadata);
    Output body;
    body.Varint(kCheckpointEventId);
    body.Varint(header_.start_ticks);
    body.Varint(0);  // duration
    body.Varint(0);  // offset of the next checkpoint
    body.Byte(0);    // does not end a flush
    body.Varint(0);  // pools
    Output checkpoint;
    checkpoint.Event(body.bytes());
    header_.duration_ns = 0;
    WriteChunk({}, metadata, checkpoint, out);
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
    const uint64_t ticks = Ticks(sample.time_ns);
    switch (sample.kind) {
      case SampleKind::kCpu:
      case SampleKind::kWall:
        Begin(sample.kind == SampleKind::kCpu ? kExecutionSampleId : kWallSampleId, ticks);
        WriteThreadAndStack(sample);
        body_.Varint(ConstantPoolWriter::State(sample.state));
        break;
      case SampleKind::kAllocation:
        Begin(kAllocationSampleId, ticks);
        WriteThreadAndStack(sample);
        body_.Varint(0);  // class
        body_.Varint(sample.value);
        break;
      case SampleKind::kLock:
        Begin(kLockId, ticks);
        body_.Varint(sample.value);
        WriteThreadAndStack(sample);
        body_.Varint(0);  // class of the monitor
        body_.Varint(0);  // its previous owner
        body_.Varint(0);  // its address
        break;
    }
    extension_.Clear();
    WriteExtension(sample);
    body_.Event(extension_.bytes());
    events.Event(body_.bytes());
  }

  void WriteThreadAndStack(const Sample& sample) {
    body_.Varint(pools_.Thread(sample.thread));
    body_.Varint(pools_.StackTrace(sample.stack));
  }

  // Our fields behind extensionSize.
  void WriteExtension(const Sample& sample) {
    const bool is_time = sample.kind == SampleKind::kCpu || sample.kind == SampleKind::kWall;
    if (is_time && context_ == JfrContext::kPool) {
      extension_.Varint(pools_.Value(sample));
    } else {
      extension_.Byte(sample.folded ? 1 : 0);
      if (is_time) extension_.Varint(sample.value);
    }
    extension_.Varint(sample.count);
    if (!is_time) extension_.Varint(ConstantPoolWriter::State(sample.state));
    if (context_ == JfrContext::kPool) {
      extension_.Varint(pools_.Context(sample.context));
    } else {
      pools_.WriteContext(profile_.contexts()[sample.context], extension_);
    }
  }

  const profile::Profile& profile_;
  JfrContext context_;
  ConstantPoolWriter pools_;
  ChunkHeader header_;
  Output body_;
  Output extension_;
};

}  // namespace
}  // namespace jfr

Result<std::string> WriteJfr(const profile::Profile& profile, const WriteOptions& options) {
  return jfr::ChunkWriter(profile, options.jfr_context).Write();
}

}  // namespace spanprof::format
