#include "base/option_spec.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "base/nearest_name.h"
#include "base/option_words.h"
#include "base/printable_text.h"
#include "base/quantity.h"

namespace spanprof {

std::string Seen(const OptionSpec& spec, std::string_view value) {
  std::string seen(spec.name);
  if (spec.is_secret) return seen + "=(" + std::to_string(value.size()) + " bytes, not shown)";
  if (spec.name == "to") {
    // A password stands before an @, an API key in the query.
    if (value.find('@') != std::string_view::npos) return seen + "=(not shown)";
    value = value.substr(0, value.find('?'));
  }
  return seen + "=" + Quoted(value);
}

std::string AcceptedValues(const OptionSpec& spec) {
  std::string accepted;
  switch (spec.kind) {
    case OptionKind::kFlag:
      break;
    case OptionKind::kChoice:
    case OptionKind::kChoiceList:
      for (const std::string_view choice : spec.choices) {
        if (!accepted.empty()) accepted += ", ";
        accepted += choice;
      }
      break;
    case OptionKind::kInteger:
      accepted = std::to_string(spec.min) + " to " + std::to_string(spec.max);
      break;
    case OptionKind::kDuration:
      accepted = FormatDuration(std::chrono::nanoseconds(static_cast<std::int64_t>(spec.min))) +
                 " to " +
                 FormatDuration(std::chrono::nanoseconds(static_cast<std::int64_t>(spec.max)));
      break;
    case OptionKind::kSize:
      accepted = FormatSize(spec.min) + " to " + FormatSize(spec.max);
      break;
    case OptionKind::kText:
      accepted = spec.accepts;
      break;
  }
  return accepted;
}

std::string HintFor(const OptionSpec& spec) {
  const bool is_choice = spec.kind == OptionKind::kChoice || spec.kind == OptionKind::kChoiceList;
  return (is_choice ? "one of " : "") + AcceptedValues(spec) + "; for instance " +
         std::string(spec.name) + "=" + std::string(spec.example);
}

tl::unexpected<Error> Refuse(const OptionSpec& spec, std::string_view value,
                             std::string_view problem) {
  return Fail(EINVAL, Seen(spec, value) + std::string(problem), "give " + HintFor(spec));
}

Result<std::string> UnescapeValue(const OptionSpec& spec, std::string_view value) {
  std::optional<std::string> plain = UnescapeOption(value);
  if (!plain) {
    return Fail(EINVAL, Seen(spec, value) + " has a backslash that escapes nothing",
                "write a backslash as two; before a comma, a semicolon or a space one makes it an "
                "ordinary character");
  }
  return *std::move(plain);
}

Result<void> CheckText(const OptionSpec& spec, std::string_view value, std::string_view text,
                       std::string_view part, std::size_t max_bytes) {
  std::string problem;
  if (text.size() > max_bytes) {
    problem =
        "is " + std::to_string(text.size()) + " bytes long, more than " + std::to_string(max_bytes);
  } else if (HasControlCharacter(text)) {
    problem = "has a control character";
  } else if (!IsUtf8(text)) {
    problem = "is not UTF-8";
  } else {
    return {};
  }
  const std::string subject = part.empty() ? " " : ": the " + std::string(part) + " ";
  return Refuse(spec, value, subject + problem);
}

Result<std::size_t> FindChoice(const OptionSpec& spec, std::string_view value,
                               std::string_view name) {
  const auto found = std::find(spec.choices.begin(), spec.choices.end(), name);
  if (found != spec.choices.end()) return static_cast<std::size_t>(found - spec.choices.begin());
  const std::string item = spec.kind == OptionKind::kChoiceList ? ": " + Quoted(name) : "";
  const std::string_view nearest = NearestName(name, spec.choices);
  return Fail(EINVAL, Seen(spec, value) + item + " is not one of " + AcceptedValues(spec),
              nearest.empty() ? "give " + HintFor(spec) : "did you mean " + Quoted(nearest) + "?");
}

Result<void> CheckRange(const OptionSpec& spec, std::string_view value, std::uint64_t number) {
  if (number >= spec.min && number <= spec.max) return {};
  const bool below = number < spec.min;
  const std::uint64_t limit = below ? spec.min : spec.max;
  std::string limit_text;
  std::string hint = "give " + HintFor(spec);
  const bool is_bare = value.find_first_not_of("0123456789") == std::string_view::npos;
  if (spec.kind == OptionKind::kDuration) {
    limit_text = FormatDuration(std::chrono::nanoseconds(static_cast<std::int64_t>(limit)));
    if (is_bare) hint += "; a number without a unit is nanoseconds";
  } else if (spec.kind == OptionKind::kSize) {
    limit_text = FormatSize(limit);
    if (is_bare) hint += "; a number without a unit is bytes";
  } else {
    limit_text = std::to_string(limit);
  }
  return Fail(EINVAL, Seen(spec, value) + (below ? " is below " : " is above ") + limit_text,
              std::move(hint));
}

}  // namespace spanprof
