#include "coroutine/event_export.h"

#include <cinttypes>
#include <cstdio>
#include <unordered_map>

#include "base/printable_text.h"
#include "coroutine/coroutine_history.h"
#include "coroutine/ordered_events.h"
#include "coroutine/recording_names.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

// Bytes that are not UTF-8, which JSON cannot have, become question marks.
void AppendJsonText(std::string& out, std::string_view text) {
  const bool valid = IsUtf8(text);
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += byte >= 0x80 && !valid ? '?' : c;
    }
  }
  out += '"';
}

void AppendCsvText(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

class Exporter : public OrderedEvents {
 public:
  Exporter(const RecordingNames& names, ExportFormat format,
           const std::function<Result<void>(std::string_view)>& take)
      : names_(&names), format_(format), take_(&take) {
    for (const TargetInfo& target : names.targets) pids_[target.target] = target.pid;
    if (format == ExportFormat::kCsv) text_ = "ts,pid,tid,probe_id,kind,name,place\n";
  }

  void OnSlotEvent(const SlotEventInfo& event) override {
    Line line;
    line.tid = event.tid;
    line.probe_id = event.probe_id;
    line.addr = event.addr;
    line.seq = 2 * event.number;
    line.kind = event.active ? wire::kKindResume : wire::kKindSuspend;
    line.ts = event.nanoseconds;
    Append(line);
  }

  Result<void> Finish() {
    Flush();
    Pass();
    return problem_;
  }

 protected:
  void OnEvent(const Event& event) override {
    const uint64_t word = event.record.word;
    Line line;
    line.kind = wire::KindOf(word);
    if (line.kind >= wire::kKindCount) return;
    line.pid = pids_[event.target];
    line.tid = event.tid;
    line.ts = names_->clock.Nanoseconds(event.target, event.record.stamp);
    if (const CoroutineInfo* coroutine = names_->Describe(event.target, word)) {
      line.probe_id = coroutine->probe_id;
      line.addr = coroutine->frame;
      line.name = coroutine->name;
    }
    if (line.kind == wire::kKindAwaits) {
      line.place = "station " + std::to_string(wire::PlaceOf(word));
    } else if (const PlaceInfo* place = names_->PlaceAt(event.target, wire::PlaceOf(word))) {
      line.place = place->file + ":" + std::to_string(place->line);
    }
    if (IsChange(line.kind)) line.seq = sequences_[line.probe_id ^ (line.pid << 40)] += 2;
    Append(line);
  }

 private:
  struct Line {
    uint64_t pid = 0;
    uint64_t tid = 0;
    uint64_t probe_id = 0;
    uint64_t addr = 0;
    uint64_t seq = 0;
    uint64_t ts = 0;
    uint32_t kind = 0;
    std::string_view name;
    std::string place;
  };

  static bool IsChange(uint32_t kind) {
    return kind == wire::kKindResume || kind == wire::kKindSuspend || kind == wire::kKindYield ||
           kind == wire::kKindDone;
  }

  void Append(const Line& line) {
    if (!problem_) return;
    char numbers[192];
    if (format_ == ExportFormat::kJsonLines) {
      if (!IsChange(line.kind)) return;
      std::snprintf(numbers, sizeof numbers,
                    "{\"probe_id\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"addr\":\"0x%016" PRIx64
                    "\",\"seq\":%" PRIu64 ",\"is_active\":%s,\"ts\":%" PRIu64 ",\"pid\":%" PRIu64
                    ",\"kind\":\"%s\",\"name\":",
                    line.probe_id, line.tid, line.addr, line.seq,
                    line.kind == wire::kKindResume ? "true" : "false", line.ts, line.pid,
                    EventKindText(line.kind));
      text_ += numbers;
      AppendJsonText(text_, line.name);
      text_ += ",\"place\":";
      AppendJsonText(text_, line.place);
      text_ += "}\n";
    } else {
      std::snprintf(numbers, sizeof numbers, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,",
                    line.ts, line.pid, line.tid, line.probe_id, EventKindText(line.kind));
      text_ += numbers;
      AppendCsvText(text_, line.name);
      text_ += ',';
      AppendCsvText(text_, line.place);
      text_ += '\n';
    }
    if (text_.size() >= kPieceBytes) Pass();
  }

  void Pass() {
    if (problem_) problem_ = (*take_)(text_);
    text_.clear();
  }

  const RecordingNames* names_;
  ExportFormat format_;
  const std::function<Result<void>(std::string_view)>* take_;
  std::unordered_map<uint32_t, uint64_t> pids_;
  std::unordered_map<uint64_t, uint64_t> sequences_;
  std::string text_;
  Result<void> problem_;
};

}  // namespace

Result<void> ExportEvents(const std::string& path, ExportFormat format,
                          const std::function<Result<void>(std::string_view)>& take) {
  RecordingNames names;
  if (const auto read = ReadRecordingFile(path, names); !read) {
    return tl::make_unexpected(read.error());
  }
  Exporter exporter(names, format, take);
  if (const auto read = ReadRecordingFile(path, exporter); !read) {
    return tl::make_unexpected(read.error());
  }
  return exporter.Finish();
}

}  // namespace spanprof::coroutine
