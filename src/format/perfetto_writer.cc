// Writes a Perfetto trace: each thread's spans as slices on its track, and the samples of each kind
// as those of a perf session, in a packet sequence of its own with its own interned call stacks.
//
// Timestamps are Unix time: the one clock snapshot says that boot time, which readers take them to
// be in, is the same. A sample's weight is in its timebase_count, which as a counter's value grows
// from sample to sample. Resource and counters are labels of the process.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "format/format.h"
#include "format/format_text.h"
#include "format/perfetto_callstacks.h"
#include "format/perfetto_fields.h"
#include "format/perfetto_names.h"
#include "format/perfetto_timeline.h"
#include "profile/names.h"

namespace spanprof::format {
namespace {

using namespace perfetto;  // NOLINT(google-build-using-namespace): the field numbers

constexpr uint32_t kTrackSequence = 1;
constexpr uint32_t kFirstSampleSequence = 2;  // plus the kind
constexpr uint64_t kProcessTrack = 1;
constexpr uint64_t kFirstThreadTrack = 1000;  // plus the thread's index
constexpr uint32_t kMadeUpPid = kFirstMadeUpTid - 1;
constexpr uint64_t kSpanCategory = 1;
constexpr size_t kMaxLabels = 1000;

class Writer {
 public:
  explicit Writer(const profile::Profile& profile)
      : profile_(profile), timelines_(BuildTimelines(profile)), trace_(bytes_) {}

  std::string Write() {
    WriteClocks();
    for (unsigned kind = 0; kind < profile::kSampleKindCount; ++kind) {
      WriteSamples(static_cast<profile::SampleKind>(kind));
    }
    WriteTracks();
    WriteSlices();
    return std::move(bytes_);
  }

 private:
  uint32_t Pid() const { return timelines_.pid != 0 ? timelines_.pid : kMadeUpPid; }

  void WriteClocks() {
    protozero::pbf_writer packet(trace_, TraceField::kPacket);
    packet.add_uint32(PacketField::kSequenceId, kTrackSequence);
    packet.add_bool(PacketField::kFirstPacketOnSequence, true);
    packet.add_uint32(PacketField::kSequenceFlags, kStateCleared);
    packet.add_uint64(PacketField::kTimestamp, timelines_.begin_ns);
    protozero::pbf_writer snapshot(packet, PacketField::kClockSnapshot);
    for (const uint32_t id : {kClockBoottime, kClockRealtime}) {
      protozero::pbf_writer clock(snapshot, ClockSnapshotField::kClocks);
      clock.add_uint32(ClockField::kId, id);
      clock.add_uint64(ClockField::kTimestamp, timelines_.begin_ns);
    }
    snapshot.add_enum(ClockSnapshotField::kPrimaryClock, static_cast<int32_t>(kClockBoottime));
  }

  void WriteTracks() {
    {
      protozero::pbf_writer packet(trace_, TraceField::kPacket);
      packet.add_uint32(PacketField::kSequenceId, kTrackSequence);
      protozero::pbf_writer track(packet, PacketField::kTrackDescriptor);
      track.add_uint64(TrackField::kUuid, kProcessTrack);
      protozero::pbf_writer process(track, TrackField::kProcess);
      process.add_int32(ProcessField::kPid, static_cast<int32_t>(Pid()));
      process.add_string(ProcessField::kName, ToUtf8(timelines_.process));
      for (const std::string& label : Labels()) {
        process.add_string(ProcessField::kLabels, ToUtf8(label));
      }
    }
    for (size_t i = 0; i < timelines_.threads.size(); ++i) {
      const ThreadTimeline& thread = timelines_.threads[i];
      protozero::pbf_writer packet(trace_, TraceField::kPacket);
      packet.add_uint32(PacketField::kSequenceId, kTrackSequence);
      protozero::pbf_writer track(packet, PacketField::kTrackDescriptor);
      track.add_uint64(TrackField::kUuid, kFirstThreadTrack + i);
      track.add_uint64(TrackField::kParentUuid, kProcessTrack);
      protozero::pbf_writer description(track, TrackField::kThread);
      description.add_int32(ThreadField::kPid, static_cast<int32_t>(Pid()));
      description.add_int32(ThreadField::kTid, static_cast<int32_t>(thread.tid));
      if (!thread.name.empty()) description.add_string(ThreadField::kName, ToUtf8(thread.name));
    }
  }

  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (const auto& [key, value] : profile_.resource) labels.push_back(key + "=" + value);
    for (const auto& [name, count] : profile_.counters()) {
      labels.push_back("counter " + name + "=" + std::to_string(count));
    }
    if (labels.size() > kMaxLabels) labels.resize(kMaxLabels);
    if (timelines_.spans_left_out != 0) {
      labels.push_back("counter perfetto.spans_left_out=" +
                       std::to_string(timelines_.spans_left_out));
    }
    if (stacks_cut_ != 0) {
      labels.push_back("counter perfetto.stacks_cut=" + std::to_string(stacks_cut_));
    }
    return labels;
  }

  void WriteSlices() {
    PerfettoNames names(InternedField::kEventNames);
    PerfettoNames annotation_names(InternedField::kAnnotationNames);
    std::string interned;
    PerfettoNames(InternedField::kCategories).Number("span", interned);
    for (size_t i = 0; i < timelines_.threads.size(); ++i) {
      for (const SpanInterval& span : timelines_.threads[i].spans) {
        const profile::Context& context = profile_.contexts()[span.context];
        const uint64_t name = names.Number(SpanTitle(profile_, context), interned);
        const auto annotations = Annotations(context, annotation_names, interned);
        {
          protozero::pbf_writer packet = SlicePacket(span.begin_ns);
          if (!interned.empty()) packet.add_message(PacketField::kInternedData, interned);
          interned.clear();
          protozero::pbf_writer event(packet, PacketField::kTrackEvent);
          event.add_enum(EventField::kType, kSliceBegin);
          event.add_uint64(EventField::kTrackUuid, kFirstThreadTrack + i);
          event.add_uint64(EventField::kCategoryIids, kSpanCategory);
          event.add_uint64(EventField::kNameIid, name);
          for (const std::string& annotation : annotations) {
            event.add_message(EventField::kAnnotations, annotation);
          }
        }
        protozero::pbf_writer packet = SlicePacket(span.end_ns);
        protozero::pbf_writer event(packet, PacketField::kTrackEvent);
        event.add_enum(EventField::kType, kSliceEnd);
        event.add_uint64(EventField::kTrackUuid, kFirstThreadTrack + i);
      }
    }
  }

  protozero::pbf_writer SlicePacket(uint64_t time) {
    protozero::pbf_writer packet(trace_, TraceField::kPacket);
    packet.add_uint64(PacketField::kTimestamp, time);
    packet.add_uint32(PacketField::kSequenceId, kTrackSequence);
    packet.add_uint32(PacketField::kSequenceFlags, kNeedsState);
    return packet;
  }

  std::vector<std::string> Annotations(const profile::Context& context, PerfettoNames& names,
                                       std::string& interned) const {
    std::vector<std::string> annotations;
    const auto add = [&](std::string_view key, std::string_view value) {
      protozero::pbf_writer annotation(annotations.emplace_back());
      annotation.add_uint64(AnnotationField::kNameIid, names.Number(key, interned));
      annotation.add_string(AnnotationField::kString, ToUtf8(value));
    };
    if (context.trace_id_high != 0 || context.trace_id_low != 0) {
      add(kTraceIdLabel, profile::TraceIdText(context.trace_id_high, context.trace_id_low));
    }
    add(kSpanIdLabel, profile::SpanIdText(context.span_id));
    add(kRootSpanIdLabel, profile::SpanIdText(context.root_span_id));
    const auto endpoint = profile_.EndpointOf(context.root_span_id);
    if (endpoint != profile::kNone) add(kEndpointLabel, profile_.Text(endpoint));
    for (unsigned i = 0; i < profile::kTagCount; ++i) {
      if (context.tags[i] != profile::kNone)
        add(TagName(profile_, i), profile_.Text(context.tags[i]));
    }
    return annotations;
  }

  void WriteSampleDefaults(profile::SampleKind kind, uint32_t sequence) {
    protozero::pbf_writer packet(trace_, TraceField::kPacket);
    packet.add_uint32(PacketField::kSequenceId, sequence);
    packet.add_bool(PacketField::kFirstPacketOnSequence, true);
    packet.add_uint32(PacketField::kSequenceFlags, kStateCleared);
    protozero::pbf_writer defaults(packet, PacketField::kDefaults);
    protozero::pbf_writer perf(defaults, DefaultsField::kPerfSample);
    protozero::pbf_writer timebase(perf, PerfDefaultsField::kTimebase);
    const uint64_t period = profile_.periods[static_cast<size_t>(kind)].actual_ns;
    timebase.add_uint64(TimebaseField::kPeriod, std::max<uint64_t>(1, period));
    timebase.add_enum(TimebaseField::kCounter, kSoftwareCpuClock);
    timebase.add_string(TimebaseField::kName,
                        std::string(NameOf(kind)) + " " + std::string(UnitOf(kind)));
  }

  void WriteSamples(profile::SampleKind kind) {
    std::vector<uint32_t> indices;
    uint64_t any_value = 0;
    for (uint32_t i = 0; i < profile_.samples().size(); ++i) {
      if (profile_.samples()[i].kind != kind) continue;
      indices.push_back(i);
      any_value |= profile_.samples()[i].value;
    }
    if (indices.empty()) return;
    std::sort(indices.begin(), indices.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(profile_.samples()[a].time_ns, a) <
             std::pair(profile_.samples()[b].time_ns, b);
    });
    const uint32_t sequence = kFirstSampleSequence + static_cast<uint32_t>(kind);
    WriteSampleDefaults(kind, sequence);
    PerfettoCallstacks callstacks(profile_);
    uint64_t sum = 0;
    std::string interned;
    for (const uint32_t index : indices) {
      const profile::Sample& sample = profile_.samples()[index];
      const profile::Thread& thread = profile_.threads()[sample.thread];
      sum += any_value != 0 ? sample.value : sample.count;
      interned.clear();
      const uint64_t callstack = callstacks.Intern(sample.stack, interned);
      protozero::pbf_writer packet(trace_, TraceField::kPacket);
      packet.add_uint64(PacketField::kTimestamp, TimeOf(timelines_, sample));
      packet.add_uint32(PacketField::kSequenceId, sequence);
      packet.add_uint32(PacketField::kSequenceFlags, kNeedsState);
      if (!interned.empty()) packet.add_message(PacketField::kInternedData, interned);
      protozero::pbf_writer perf(packet, PacketField::kPerfSample);
      perf.add_uint32(PerfSampleField::kCpu, 0);
      perf.add_uint32(PerfSampleField::kPid, Pid());
      perf.add_uint32(PerfSampleField::kTid,
                      thread.tid != 0 ? thread.tid : kFirstMadeUpTid + sample.thread);
      if (callstack != 0) perf.add_uint64(PerfSampleField::kCallstack, callstack);
      const bool is_kernel = profile_.frames()[profile_.stacks()[sample.stack].frame].kind ==
                             profile::FrameKind::kKernel;
      perf.add_enum(PerfSampleField::kCpuMode, is_kernel ? kModeKernel : kModeUser);
      perf.add_uint64(PerfSampleField::kTimebaseCount, sum);
    }
    stacks_cut_ += callstacks.stacks_cut();
  }

  const profile::Profile& profile_;
  Timelines timelines_;
  std::string bytes_;
  protozero::pbf_writer trace_;
  size_t stacks_cut_ = 0;
};

}  // namespace

Result<std::string> WritePerfetto(const profile::Profile& profile,
                                  const WriteOptions& /*options*/) {
  return Writer(profile).Write();
}

}  // namespace spanprof::format
