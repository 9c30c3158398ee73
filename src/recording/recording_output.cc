#include "recording/recording_output.h"

#include <cerrno>
#include <unistd.h>
#include <utility>

#include "base/log.h"
#include "base/printable_text.h"

namespace spanprof::recording {
namespace {

// A killed process loses at most so much of a JFR recording.
constexpr std::chrono::nanoseconds kPartInterval = std::chrono::seconds(5);

bool HasConversion(const std::string& file, const char* letters) {
  for (size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] != '%') continue;
    ++i;
    if (std::string_view(letters).find(file[i]) != std::string_view::npos) return true;
  }
  return false;
}

Result<OutputFormat> FormatFor(const std::string& file, std::optional<OutputFormat> format) {
  return format ? Result<OutputFormat>(*format) : format::FormatOfFile(file);
}

// A JFR file is opened by its name, so what the name has of the moment is put in once.
std::string WithProcessId(const std::string& file) {
  std::string name;
  for (size_t i = 0; i < file.size(); ++i) {
    if (file[i] == '%' && i + 1 < file.size() && file[i + 1] == 'p') {
      name += std::to_string(getpid());
      ++i;
    } else if (file[i] == '%' && i + 1 < file.size() && file[i + 1] == '%') {
      name += '%';
      ++i;
    } else {
      name += file[i];
    }
  }
  return name;
}

}  // namespace

Result<std::unique_ptr<RecordingOutput>> RecordingOutput::Open(const Options& options) {
  std::unique_ptr<RecordingOutput> output(new RecordingOutput());
  output->log_ = options.log.value_or(kDefaultLog);
  output->write_options_.labels = options.labels;
  output->write_options_.jfr_context = options.jfr_context.value_or(kDefaultJfrContext);
  const auto every = static_cast<uint64_t>(options.every.value_or(kDefaultEvery).count());
  if (options.every) output->cut_interval_ns_ = every;

  if (options.file) {
    output->file_ = *options.file;
    const Result<OutputFormat> format = FormatFor(*options.file, options.format);
    if (!format) return tl::make_unexpected(format.error());
    output->file_format_ = *format;
    Result<sending::FileRotation> rotation =
        sending::FileRotation::Open(*options.file, {}, output->counters_);
    if (!rotation) return tl::make_unexpected(rotation.error());
    const bool grows = *format == OutputFormat::kJfr && !HasConversion(*options.file, "tn");
    if (grows) {
      output->cut_interval_ns_ = every;
      output->part_interval_ns_ = std::min(every, static_cast<uint64_t>(kPartInterval.count()));
    } else {
      output->rotation_ = *std::move(rotation);
      if (options.every && !HasConversion(*options.file, "tn")) {
        LogWarning(output->log_, "file=" + Quoted(*options.file) +
                                     " has no %t or %n in its name: each profile of every= "
                                     "replaces the one before");
      }
    }
  }

  Result<std::optional<sending::SendSettings>> destination = sending::ReadSendSettings(options);
  if (!destination) return tl::make_unexpected(destination.error());
  if (*destination) {
    for (const std::string& warning : (*destination)->warnings) LogWarning(output->log_, warning);
    output->destination_ = std::make_shared<sending::SendSettings>(**std::move(destination));
    output->cut_interval_ns_ = every;
  }
  return output;
}

Result<format::JfrFile*> RecordingOutput::OpenJfr() {
  if (!jfr_) {
    Result<format::JfrFile> opened = format::JfrFile::Open(WithProcessId(file_));
    if (!opened) return tl::make_unexpected(opened.error());
    jfr_ = *std::move(opened);
  }
  return &*jfr_;
}

void RecordingOutput::TakePart(const profile::Profile& part) {
  if (part.samples().empty()) return;
  const Result<void> kept = [&]() -> Result<void> {
    const Result<format::JfrFile*> file = OpenJfr();
    if (!file) return tl::make_unexpected(file.error());
    const Result<std::string> chunk = format::WriteJfr(part, write_options_);
    if (!chunk) return tl::make_unexpected(chunk.error());
    return (*file)->AppendPart(*chunk);
  }();
  if (kept) return;
  counters_->Add(sending::SendCounter::kFileFailed);
  Tell(kept.error());
}

Result<void> RecordingOutput::WriteFile(const profile::Profile& profile) {
  const Result<std::string> bytes = format::WriteProfile(profile, file_format_, write_options_);
  if (!bytes) {
    counters_->Add(sending::SendCounter::kFileFailed);
    return tl::make_unexpected(bytes.error());
  }
  if (rotation_) {
    const Result<std::string> path =
        rotation_->Write(*bytes, static_cast<int64_t>(profile.start_time_ns));
    if (!path) return tl::make_unexpected(path.error());
    return {};
  }
  const Result<format::JfrFile*> file = OpenJfr();
  Result<void> written =
      file ? (*file)->FinishChunk(*bytes) : Result<void>(tl::make_unexpected(file.error()));
  counters_->Add(written ? sending::SendCounter::kFileWritten : sending::SendCounter::kFileFailed);
  return written;
}

void RecordingOutput::Send(const profile::Profile& profile) {
  exporter_.reset();  // what has not been sent in a whole interval is spooled or dropped
  Result<std::string> bytes = format::WriteProfile(profile, destination_->format, write_options_);
  if (!bytes) {
    counters_->Add(sending::SendCounter::kReportDropped);
    Tell(bytes.error());
    return;
  }
  exporter_ = sending::Exporter::Start(
      destination_,
      sending::Report{destination_->format, static_cast<int64_t>(profile.start_time_ns),
                      *std::move(bytes)},
      counters_);
}

void RecordingOutput::TakeProfile(const profile::Profile& profile) {
  if (!file_.empty()) {
    if (const Result<void> written = WriteFile(profile); !written) Tell(written.error());
  }
  if (destination_ != nullptr) Send(profile);
}

Result<void> RecordingOutput::TakeLastProfile(const profile::Profile& profile,
                                              std::chrono::nanoseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  Result<void> written;
  if (!file_.empty()) written = WriteFile(profile);
  if (destination_ != nullptr) {
    Send(profile);
    if (exporter_ != nullptr) {
      const sending::Settlement settlement = exporter_->Finish(deadline);
      if (settlement.outcome != sending::Outcome::kSent && written) {
        written = Fail(EIO, "the last profile was not sent: " + settlement.message,
                       "give spool=DIRECTORY, so that it is sent when the program starts again");
      }
    }
  }
  return written;
}

void RecordingOutput::Tell(const Error& error) {
  const std::string text = TextOf(error);
  if (text == last_told_) return;  // once, not every minute
  last_told_ = text;
  LogWarning(log_, text);
}

std::map<std::string, uint64_t> RecordingOutput::counters() const {
  std::map<std::string, uint64_t> result;
  for (const auto& [name, value] : counters_->Read()) {
    if (value != 0) result["send." + name] = value;
  }
  return result;
}

Result<std::string> WriteProfileFile(const profile::Profile& profile, const std::string& file,
                                     std::optional<OutputFormat> format,
                                     const format::WriteOptions& options) {
  const Result<OutputFormat> chosen = FormatFor(file, format);
  if (!chosen) return tl::make_unexpected(chosen.error());
  Result<sending::FileRotation> rotation =
      sending::FileRotation::Open(file, {}, std::make_shared<sending::SendCounters>());
  if (!rotation) return tl::make_unexpected(rotation.error());
  const Result<std::string> bytes = format::WriteProfile(profile, *chosen, options);
  if (!bytes) return tl::make_unexpected(bytes.error());
  return rotation->Write(*bytes, static_cast<int64_t>(profile.start_time_ns));
}

std::string FileOfForkedChild(const std::string& file) {
  if (HasConversion(file, "p")) return file;
  // Before the first dot of the name: "profile.pb.gz" becomes "profile-%p.pb.gz".
  const size_t slash = file.rfind('/');
  const size_t dot = file.find('.', slash == std::string::npos ? 1 : slash + 2);
  const size_t at = std::min(dot, file.size());
  return file.substr(0, at) + "-%p" + file.substr(at);
}

}  // namespace spanprof::recording
