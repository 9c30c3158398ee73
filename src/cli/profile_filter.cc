#include "cli/profile_filter.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/printable_text.h"
#include "cli/empty_selection.h"
#include "profile/names.h"

namespace spanprof::cli {
namespace {

std::optional<std::uint64_t> ParseHex(std::string_view text) {
  std::uint64_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, id, 16);
  if (text.empty() || error != std::errc() || rest != end) return std::nullopt;
  return id;
}

std::uint64_t ParseSpanId(const std::string& option, const std::string& text) {
  const auto id = text.size() <= 16 ? ParseHex(text) : std::nullopt;
  if (!id) {
    throw CLI::ValidationError(option, Quoted(text) + " is not a span id of up to 16 hex digits");
  }
  return *id;
}

std::pair<std::uint64_t, std::uint64_t> ParseTraceId(const std::string& text) {
  const std::size_t low_digits = std::min<std::size_t>(text.size(), 16);
  const std::string_view all = text;
  const std::string_view high = all.substr(0, all.size() - low_digits);
  const auto low_half = ParseHex(all.substr(high.size()));
  const auto high_half = high.empty() ? std::optional<std::uint64_t>(0) : ParseHex(high);
  if (text.size() > 32 || !low_half || !high_half) {
    throw CLI::ValidationError("--trace-id",
                               Quoted(text) + " is not a trace id of up to 32 hex digits");
  }
  return {*high_half, *low_half};
}

std::pair<std::string, std::string> ParseTag(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw CLI::ValidationError("--tag", Quoted(text) + " is not NAME=VALUE");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

TimeOption ParseTimeOption(const std::string& option, const std::string& text) {
  const Result<TimeOption> time = ParseTime(text);
  if (!time) {
    throw CLI::ValidationError(option, time.error().message + ": " + time.error().hint);
  }
  return *time;
}

bool IsEmpty(const profile::Filter& filter) {
  return !filter.endpoint && !filter.trace_id && !filter.span_id && !filter.root_span_id &&
         filter.tags.empty() && !filter.thread && !filter.kind && !filter.from_ns && !filter.to_ns;
}

// When the profile began, as far as it says so: other people's files may not.
std::uint64_t StartOf(const profile::Profile& profile) {
  if (profile.start_time_ns != 0) return profile.start_time_ns;
  std::uint64_t first = ~std::uint64_t{0};
  for (const profile::Sample& sample : profile.samples()) {
    if (sample.time_ns != 0) first = std::min(first, sample.time_ns);
  }
  return first;
}

Result<profile::Filter> WithTimes(const profile::Profile& profile, const FilterOptions& options) {
  profile::Filter filter = options.filter;
  if (!options.from && !options.to) return filter;
  const auto has_time = [](const profile::Sample& sample) { return sample.time_ns != 0; };
  const auto& samples = profile.samples();
  if (std::none_of(samples.begin(), samples.end(), has_time)) {
    return Fail(EINVAL,
                "the samples of this profile have no times, so --from and --to cannot apply",
                "leave them out, or take the file that it was made from");
  }
  const std::uint64_t start = StartOf(profile);
  if (options.from) filter.from_ns = options.from->UnixNanoseconds(start);
  if (options.to) filter.to_ns = options.to->UnixNanoseconds(start);
  if (filter.from_ns && filter.to_ns && *filter.from_ns >= *filter.to_ns) {
    return Fail(EINVAL,
                "--from (" + TimeText(*filter.from_ns) + ") is not before --to (" +
                    TimeText(*filter.to_ns) + ")",
                "the profile begins at " + TimeText(start));
  }
  return filter;
}

}  // namespace

std::vector<std::string> SampleTypeNames() {
  std::vector<std::string> names;
  for (unsigned kind = 0; kind < profile::kSampleKindCount; ++kind) {
    names.emplace_back(NameOf(profile::SampleKind{static_cast<std::uint8_t>(kind)}));
  }
  return names;
}

void AddFilterOptions(CLI::App& command, FilterOptions& options) {
  profile::Filter& filter = options.filter;
  const std::string group = "Filters (all that are given have to hold)";
  command
      .add_option("--endpoint", filter.endpoint, "Samples of this endpoint, such as 'GET /cart'")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--trace-id",
          [&filter](const std::string& text) { filter.trace_id = ParseTraceId(text); },
          "Samples of this trace, in hex")
      ->type_name("ID")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--span-id",
          [&filter](const std::string& text) { filter.span_id = ParseSpanId("--span-id", text); },
          "Samples of this span, in hex")
      ->type_name("ID")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--root-span-id",
          [&filter](const std::string& text) {
            filter.root_span_id = ParseSpanId("--root-span-id", text);
          },
          "Samples of all spans of this process below this one, in hex")
      ->type_name("ID")
      ->group(group);
  command
      .add_option_function<std::vector<std::string>>(
          "--tag",
          [&filter](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) filter.tags.push_back(ParseTag(text));
          },
          "Samples with this tag, such as tenant=acme; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group(group);
  command.add_option("--thread", filter.thread, "Samples of the threads of this name, or of a tid")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--from",
          [&options](const std::string& text) { options.from = ParseTimeOption("--from", text); },
          "Samples from this time on: 2026-11-15T12:00:00Z, Unix seconds, or +10s since the start")
      ->type_name("TIME")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--to",
          [&options](const std::string& text) { options.to = ParseTimeOption("--to", text); },
          "Samples before this time")
      ->type_name("TIME")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--type",
          [&filter](const std::string& text) { filter.kind = profile::SampleKindOf(text); },
          "Samples of this type")
      ->check(CLI::IsMember(SampleTypeNames()))
      ->group(group);
}

Result<Selection> ApplyFilter(profile::Profile profile, const FilterOptions& options) {
  const Result<profile::Filter> filter = WithTimes(profile, options);
  if (!filter) return tl::make_unexpected(filter.error());
  if (IsEmpty(*filter)) return Selection{.profile = std::move(profile)};
  Selection selection{.profile = profile::Select(profile, *filter), .is_filtered = true};
  if (selection.profile.samples().empty()) {
    return tl::make_unexpected(ExplainEmptySelection(profile, *filter));
  }
  const auto& samples = profile.samples();
  const auto folded = std::count_if(samples.begin(), samples.end(),
                                    [](const profile::Sample& sample) { return sample.folded; });
  if ((filter->from_ns || filter->to_ns) && folded != 0) {
    selection.notes.push_back(std::to_string(folded) + " of " + std::to_string(samples.size()) +
                              " samples stand for those of a whole minute: --from and --to take "
                              "them by the minute's start");
  }
  return selection;
}

}  // namespace spanprof::cli
