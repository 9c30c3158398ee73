#include <nlohmann/json.hpp>

#include "cli/report_output.h"
#include "cli/time_option.h"
#include "profile/names.h"

namespace spanprof::cli {
namespace {

using Json = nlohmann::ordered_json;

// `levels` of groupings, the one of `rows` among them.
Json RowsJson(const std::vector<ReportRow>& rows, std::size_t levels) {
  Json all = Json::array();
  for (const ReportRow& row : rows) {
    Json json;
    json["name"] = row.group.name;
    if (!row.endpoint.empty()) json["endpoint"] = row.endpoint;
    json["self_value"] = row.group.self_value;
    json["self_count"] = row.group.self_count;
    json["total_value"] = row.group.total_value;
    json["total_count"] = row.group.total_count;
    if (levels > 1) {
      json["rows"] = RowsJson(row.rows, levels - 1);
      json["rows_left_out"] = row.rows_left_out;
    }
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace

std::string ReportJson(const Report& report, const profile::Profile& profile,
                       const ReportSource& source) {
  Json json;
  json["files"] = source.files;
  json["resource"] = Json::object();
  for (const profile::Attribute& attribute : profile.resource) {
    json["resource"][attribute.key] = attribute.value;
  }
  if (profile.start_time_ns != 0) json["start_time"] = TimeText(profile.start_time_ns);
  json["duration_ns"] = profile.duration_ns;
  json["type"] = NameOf(report.options.kind);
  json["unit"] = UnitOf(report.options.kind);
  const profile::Period& period = profile.periods[static_cast<unsigned>(report.options.kind)];
  json["period_requested"] = period.requested_ns;
  json["period_actual"] = period.actual_ns;
  json["total_value"] = report.total_value;
  json["total_count"] = report.total_count;
  if (source.is_filtered) json["unfiltered_count"] = source.unfiltered_count;
  json["by"] = Json::array();
  for (const Grouping& by : report.options.by) json["by"].push_back(by.word);
  json["rows"] = RowsJson(report.rows, report.options.by.size());
  json["rows_left_out"] = report.rows_left_out;
  json["counters"] = Json::object();
  for (const auto& [name, value] : profile.counters()) json["counters"][name] = value;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace spanprof::cli
