#include "cli/context_output.h"

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal_text.h"

namespace spanprof::cli {
namespace {

using collect::ContextSnapshot;
using collect::ThreadContextSnapshot;
using Json = nlohmann::ordered_json;

bool IsShown(const ThreadContextSnapshot& thread, ThreadFilter filter) {
  return filter == ThreadFilter::kAll || thread.HasContext();
}

std::string Hex(uint64_t id) { return fmt::format("{:016x}", id); }

Json ThreadJson(const ThreadContextSnapshot& thread) {
  Json json;
  json["tid"] = thread.tid;
  json["name"] = thread.name;
  if (!thread.HasContext()) return json;
  if (thread.HasTraceId()) json["trace_id"] = Hex(thread.trace_id_high) + Hex(thread.trace_id_low);
  if (thread.span_id != 0) json["span_id"] = Hex(thread.span_id);
  if (thread.root_span_id != 0) json["root_span_id"] = Hex(thread.root_span_id);
  if (!thread.attributes.empty()) json["attributes"] = thread.attributes;
  json["source"] = collect::RecordKindName(thread.source);
  return json;
}

// `name=value name=value`
template <class Map, class ValueText>
std::string Pairs(const Map& map, ValueText value_text) {
  std::string text;
  for (const auto& [name, value] : map) {
    if (!text.empty()) text += ' ';
    text += TerminalText(name, Separators::kEscape);
    text += '=';
    text += TerminalText(value_text(value), Separators::kEscape);
  }
  return text;
}

std::string Attributes(const ThreadContextSnapshot& thread) {
  return Pairs(thread.attributes, [](const std::string& value) { return value; });
}

// Columns as wide as their widest cell, the last one open-ended.
class Table {
 public:
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  [[nodiscard]] std::string Text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        line += i == 0 ? fmt::format("{:>{}}", row[i], widths[i])
                       : fmt::format("  {:<{}}", row[i], widths[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + '\n';
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string RecordNames(const ContextSnapshot& snapshot) {
  std::string names;
  for (const collect::RecordKind kind : snapshot.records) {
    if (!names.empty()) names += ", ";
    names += collect::RecordKindName(kind);
  }
  return names;
}

}  // namespace

std::string ContextJson(const ContextSnapshot& snapshot, ThreadFilter filter, int indent) {
  Json json;
  json["pid"] = snapshot.pid;
  json["records"] = Json::array();
  for (const collect::RecordKind kind : snapshot.records) {
    json["records"].push_back(collect::RecordKindName(kind));
  }
  json["resource"] = Json::object();
  for (const auto& [name, value] : snapshot.resource) {
    json["resource"][name] = std::visit([](const auto& of_type) { return Json(of_type); }, value);
  }
  json["threads"] = Json::array();
  for (const ThreadContextSnapshot& thread : snapshot.threads) {
    if (IsShown(thread, filter)) json["threads"].push_back(ThreadJson(thread));
  }
  json["counters"] = Json::object();
  for (std::size_t i = 0; i < collect::kContextCounterNames.size(); ++i) {
    json["counters"][std::string(collect::kContextCounterNames[i])] = snapshot.counters.values()[i];
  }
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string ContextTable(const ContextSnapshot& snapshot, ThreadFilter filter) {
  std::string text = fmt::format("process {} publishes {}\n", snapshot.pid, RecordNames(snapshot));
  if (!snapshot.resource.empty()) {
    text += "resource: " + Pairs(snapshot.resource, collect::AttributeText) + '\n';
  }
  for (const std::string& note : snapshot.notes) text += "note: " + TerminalText(note) + '\n';

  const auto id = [](uint64_t value) { return value == 0 ? std::string("-") : Hex(value); };
  Table table;
  table.AddRow({"TID", "NAME", "TRACE", "SPAN", "ROOT", "SOURCE", "TAGS"});
  std::size_t shown = 0;
  for (const ThreadContextSnapshot& thread : snapshot.threads) {
    if (!IsShown(thread, filter)) continue;
    ++shown;
    std::string source = "-";
    if (thread.HasContext()) source = collect::RecordKindName(thread.source);
    if (thread.unsequenced) source += " (unsequenced)";
    table.AddRow({std::to_string(thread.tid), TerminalText(thread.name),
                  thread.HasTraceId() ? Hex(thread.trace_id_high) + Hex(thread.trace_id_low) : "-",
                  id(thread.span_id), id(thread.root_span_id), std::move(source),
                  Attributes(thread)});
  }
  text += '\n';
  if (shown != 0) text += table.Text();
  const std::size_t hidden = snapshot.threads.size() - shown;
  if (hidden != 0) {
    text += fmt::format("{}{} of {} threads have no context\n", shown != 0 ? "\n" : "", hidden,
                        snapshot.threads.size());
  }
  std::string counters;
  for (std::size_t i = 0; i < collect::kContextCounterNames.size(); ++i) {
    const uint64_t value = snapshot.counters.values()[i];
    if (value != 0) counters += fmt::format(" {}={}", collect::kContextCounterNames[i], value);
  }
  if (!counters.empty()) text += "counters:" + counters + '\n';
  return text;
}

}  // namespace spanprof::cli
