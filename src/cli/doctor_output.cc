#include "cli/doctor_output.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal_text.h"

namespace spanprof::cli {
namespace {

using Json = nlohmann::ordered_json;

std::size_t Count(const std::vector<CheckGroup>& groups, CheckStatus status) {
  std::size_t count = 0;
  for (const CheckGroup& group : groups) {
    count += static_cast<std::size_t>(
        std::count_if(group.checks.begin(), group.checks.end(),
                      [status](const Check& check) { return check.status == status; }));
  }
  return count;
}

std::string Summary(const std::vector<CheckGroup>& groups) {
  const std::size_t failed = Count(groups, CheckStatus::kFailed);
  const std::size_t limited = Count(groups, CheckStatus::kLimited);
  if (failed == 0 && limited == 0) return "all fine";
  return fmt::format("{} failed, {} limited, {} fine", failed, limited,
                     Count(groups, CheckStatus::kFine));
}

}  // namespace

std::string DoctorText(const std::vector<CheckGroup>& groups) {
  std::size_t width = 0;
  for (const CheckGroup& group : groups) {
    for (const Check& check : group.checks) width = std::max(width, check.name.size());
  }
  constexpr std::size_t kStatusWidth = 7;
  const std::string indent(kStatusWidth + 2 + width + 2, ' ');
  std::string text;
  for (const CheckGroup& group : groups) {
    text += TerminalText(group.title) + '\n';
    for (const Check& check : group.checks) {
      std::string line = fmt::format("{:<{}}  {:<{}}  {}", NameOf(check.status), kStatusWidth,
                                     check.name, width, TerminalText(check.value));
      if (!check.meaning.empty()) line += ": " + TerminalText(check.meaning);
      text += line + '\n';
      if (!check.fix.empty()) text += indent + "fix: " + TerminalText(check.fix) + '\n';
    }
    text += '\n';
  }
  return text + Summary(groups) + '\n';
}

std::string DoctorJson(const std::vector<CheckGroup>& groups) {
  Json json;
  json["groups"] = Json::array();
  for (const CheckGroup& group : groups) {
    Json checks = Json::array();
    for (const Check& check : group.checks) {
      Json each;
      each["name"] = check.name;
      each["status"] = NameOf(check.status);
      each["value"] = check.value;
      each["meaning"] = check.meaning;
      if (!check.fix.empty()) each["fix"] = check.fix;
      checks.push_back(std::move(each));
    }
    json["groups"].push_back({{"title", group.title}, {"checks", std::move(checks)}});
  }
  json["failed"] = Count(groups, CheckStatus::kFailed);
  json["limited"] = Count(groups, CheckStatus::kLimited);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

bool AnyFailed(const std::vector<CheckGroup>& groups) {
  return Count(groups, CheckStatus::kFailed) != 0;
}

}  // namespace spanprof::cli
