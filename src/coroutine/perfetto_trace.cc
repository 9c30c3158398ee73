#include "coroutine/perfetto_trace.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "coroutine/coroutine_history.h"
#include "format/format_text.h"
#include "format/perfetto_fields.h"
#include "format/perfetto_names.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;
using namespace format::perfetto;  // NOLINT(google-build-using-namespace): the field numbers

constexpr uint32_t kSequence = 1;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

// Tracks, by what they are of.
uint64_t ProcessTrack(uint32_t target) { return (uint64_t{1} << 60) | target; }
uint64_t ThreadTrack(uint32_t target, uint64_t tid) {
  return (uint64_t{2} << 60) | (uint64_t{target} << 32) | (tid & 0xFFFFFFFF);
}
uint64_t CoroutineTrack(std::size_t coroutine) { return (uint64_t{3} << 60) | coroutine; }

class PerfettoTrace : public HistoryObserver {
 public:
  explicit PerfettoTrace(const std::function<Result<void>(std::string_view)>& take)
      : take_(&take), trace_(bytes_) {}

  void OnEvent(const CoroutineHistory& history, const HistoryEvent& event) override {
    if (!problem_) return;
    if (!begun_) WriteClocks(event.nanoseconds);
    const Coroutine& coroutine = history.coroutines()[event.coroutine];
    DescribeProcess(history, coroutine.target);
    DescribeThread(history, coroutine.target, event.tid);
    DescribeCoroutine(history, event.coroutine);
    switch (event.kind) {
      case wire::kKindResume:
        BeginRun(history, event);
        BeginState(event, "running");
        break;
      case wire::kKindSuspend:
      case wire::kKindYield:
        EndRun(coroutine.target, event);
        BeginState(event, (event.kind == wire::kKindYield ? "yielded at " : "waits at ") +
                              history.PlaceText(coroutine.target, event.place));
        break;
      case wire::kKindDone:
        EndRun(coroutine.target, event);
        BeginState(event, "done");
        break;
      case wire::kKindDeath:
        EndRun(coroutine.target, event);
        EndState(event);
        break;
      case wire::kKindReady: {
        const uint64_t track = ThreadTrack(coroutine.target, event.tid);
        WriteEvent(event, track, kInstant, "makes ready " + history.CoroutineText(coroutine), true);
        break;
      }
      default:
        break;
    }
    if (bytes_.size() >= kPieceBytes) Pass();
  }

  Result<void> Finish() {
    Pass();
    return problem_;
  }

 private:
  protozero::pbf_writer Packet() {
    protozero::pbf_writer packet(trace_, TraceField::kPacket);
    packet.add_uint32(PacketField::kSequenceId, kSequence);
    return packet;
  }

  void WriteClocks(uint64_t nanoseconds) {
    begun_ = true;
    protozero::pbf_writer packet = Packet();
    packet.add_bool(PacketField::kFirstPacketOnSequence, true);
    packet.add_uint32(PacketField::kSequenceFlags, kStateCleared);
    packet.add_uint64(PacketField::kTimestamp, nanoseconds);
    protozero::pbf_writer snapshot(packet, PacketField::kClockSnapshot);
    for (const uint32_t id : {kClockBoottime, kClockMonotonic}) {
      protozero::pbf_writer clock(snapshot, ClockSnapshotField::kClocks);
      clock.add_uint32(ClockField::kId, id);
      clock.add_uint64(ClockField::kTimestamp, nanoseconds);
    }
    snapshot.add_enum(ClockSnapshotField::kPrimaryClock, static_cast<int32_t>(kClockBoottime));
  }

  static int32_t PidOf(const CoroutineHistory& history, uint32_t target) {
    for (const TargetInfo& known : history.targets()) {
      if (known.target == target) return static_cast<int32_t>(known.pid);
    }
    return 0;
  }

  void DescribeProcess(const CoroutineHistory& history, uint32_t target) {
    const uint64_t uuid = ProcessTrack(target);
    if (!described_.insert(uuid).second) return;
    std::string name = "coroutines of other probes";
    for (const TargetInfo& known : history.targets()) {
      if (known.target == target) name = known.name;
    }
    protozero::pbf_writer packet = Packet();
    protozero::pbf_writer track(packet, PacketField::kTrackDescriptor);
    track.add_uint64(TrackField::kUuid, uuid);
    protozero::pbf_writer process(track, TrackField::kProcess);
    process.add_int32(ProcessField::kPid, PidOf(history, target));
    process.add_string(ProcessField::kName, format::ToUtf8(name));
  }

  void DescribeThread(const CoroutineHistory& history, uint32_t target, uint64_t tid) {
    const uint64_t uuid = ThreadTrack(target, tid);
    if (!described_.insert(uuid).second) return;
    protozero::pbf_writer packet = Packet();
    protozero::pbf_writer track(packet, PacketField::kTrackDescriptor);
    track.add_uint64(TrackField::kUuid, uuid);
    track.add_uint64(TrackField::kParentUuid, ProcessTrack(target));
    protozero::pbf_writer thread(track, TrackField::kThread);
    thread.add_int32(ThreadField::kPid, PidOf(history, target));
    thread.add_int32(ThreadField::kTid, static_cast<int32_t>(tid));
  }

  void DescribeCoroutine(const CoroutineHistory& history, std::size_t index) {
    const uint64_t uuid = CoroutineTrack(index);
    if (!described_.insert(uuid).second) return;
    const Coroutine& coroutine = history.coroutines()[index];
    protozero::pbf_writer packet = Packet();
    protozero::pbf_writer track(packet, PacketField::kTrackDescriptor);
    track.add_uint64(TrackField::kUuid, uuid);
    track.add_uint64(TrackField::kParentUuid, ProcessTrack(coroutine.target));
    track.add_string(TrackField::kName, format::ToUtf8(history.CoroutineText(coroutine)));
  }

  // An end has no name.
  void WriteEvent(const HistoryEvent& event, uint64_t track, int32_t type, std::string_view name,
                  bool with_arrow) {
    interned_.clear();
    const uint64_t number = name.empty() ? 0 : names_.Number(name, interned_);
    protozero::pbf_writer packet = Packet();
    packet.add_uint64(PacketField::kTimestamp, event.nanoseconds);
    packet.add_uint32(PacketField::kSequenceFlags, kNeedsState);
    if (!interned_.empty()) packet.add_message(PacketField::kInternedData, interned_);
    protozero::pbf_writer message(packet, PacketField::kTrackEvent);
    message.add_enum(EventField::kType, type);
    message.add_uint64(EventField::kTrackUuid, track);
    if (number != 0) message.add_uint64(EventField::kNameIid, number);
    // What has the same flow is joined by arrows, one after the other.
    if (with_arrow) message.add_fixed64(EventField::kFlowIds, event.coroutine + 1);
  }

  // ---- What runs on a thread: coroutines may resume each other, so runs may be nested ----

  void BeginRun(const CoroutineHistory& history, const HistoryEvent& event) {
    const Coroutine& coroutine = history.coroutines()[event.coroutine];
    runs_[{coroutine.target, event.tid}].push_back(event.coroutine);
    WriteEvent(event, ThreadTrack(coroutine.target, event.tid), kSliceBegin,
               history.CoroutineText(coroutine), true);
  }

  void EndRun(uint32_t target, const HistoryEvent& event) {
    std::vector<std::size_t>& runs = runs_[{target, event.tid}];
    // If it is not there its resume was lost; what was resumed behind it must have ended too.
    if (std::find(runs.begin(), runs.end(), event.coroutine) == runs.end()) return;
    std::size_t ended = 0;
    do {
      ended = runs.back();
      runs.pop_back();
      WriteEvent(event, ThreadTrack(target, event.tid), kSliceEnd, {}, false);
    } while (ended != event.coroutine);
  }

  // ---- What a coroutine does: one thing at a time ----

  void EndState(const HistoryEvent& event) {
    if (in_state_.erase(event.coroutine) == 0) return;
    WriteEvent(event, CoroutineTrack(event.coroutine), kSliceEnd, {}, false);
  }

  void BeginState(const HistoryEvent& event, std::string_view name) {
    EndState(event);
    in_state_.insert(event.coroutine);
    WriteEvent(event, CoroutineTrack(event.coroutine), kSliceBegin, name, false);
  }

  void Pass() {
    if (problem_) problem_ = (*take_)(bytes_);
    bytes_.clear();
  }

  const std::function<Result<void>(std::string_view)>* take_;
  std::string bytes_;
  protozero::pbf_writer trace_;
  std::string interned_;
  format::PerfettoNames names_{InternedField::kEventNames};
  std::unordered_set<uint64_t> described_;
  std::unordered_set<std::size_t> in_state_;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<std::size_t>> runs_;
  Result<void> problem_;
  bool begun_ = false;
};

}  // namespace

Result<void> ExportPerfetto(const std::string& path,
                            const std::function<Result<void>(std::string_view)>& take) {
  PerfettoTrace trace(take);
  if (auto read = CoroutineHistory::Read(path, &trace); !read) {
    return tl::make_unexpected(read.error());
  }
  return trace.Finish();
}

}  // namespace spanprof::coroutine
