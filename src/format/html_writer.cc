// Writes a page that shows a profile as a flame graph: one file that needs nothing else, not even
// the network, and forbids itself to.
//
// The page's own source is in html_page_*.inc. The profile stands in it as JSON in an element that
// browsers do not run: names as texts, trees and sums as columns of varints in base64.
//   nodes:   for each its distance to its parent (0: the root), then its name
//   entries: for each the distance to the node of the one before, endpoint, thread, value, count

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "format/html_sha256.h"
#include "format/html_text.h"
#include "format/html_tree.h"
#include "profile/names.h"
#include "profile/profile_query.h"

namespace spanprof::format {
namespace {

// clang-format off: it would sort the parts of the script.
constexpr std::string_view kStyle =
#include "format/html_page_css.inc"
;
constexpr std::string_view kBody =
#include "format/html_page_body.inc"
;
constexpr std::string_view kScript =
#include "format/html_page_data_js.inc"
#include "format/html_page_flame_js.inc"
#include "format/html_page_tables_js.inc"
#include "format/html_page_controls_js.inc"
;
// clang-format on

constexpr size_t kMaxNameBytes = 400;
constexpr size_t kMinNameBytes = 25;
constexpr size_t kMaxAllNameBytes = size_t{4} << 20;
constexpr size_t kMaxFunctions = 200;
constexpr size_t kMaxRows = 500;  // of resource attributes, and of counters

std::string SourceHash(std::string_view source) {
  const auto digest = Sha256(source);
  return "'sha256-" + Base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

void AppendKey(std::string& out, std::string_view key) {
  if (!out.ends_with('{')) out += ',';
  AppendJsonText(out, key);
  out += ':';
}

void AppendTexts(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (const std::string& text : texts) {
    if (!out.ends_with('[')) out += ',';
    AppendJsonText(out, VisibleText(text, kMaxNameBytes));
  }
  out += ']';
}

// [["key","value"],...]
class Rows {
 public:
  void Add(std::string_view key, std::string_view value) {
    if (count_++ >= kMaxRows) return;
    text_ += text_.empty() ? "[" : ",[";
    AppendJsonText(text_, VisibleText(key, kMaxNameBytes));
    text_ += ',';
    AppendJsonText(text_, VisibleText(value, kMaxNameBytes));
    text_ += ']';
  }
  std::string Text() {
    if (count_ > kMaxRows) {
      const size_t more = count_ - kMaxRows;
      count_ = 0;
      Add("(more)", std::to_string(more) + " more are not shown");
    }
    return "[" + text_ + "]";
  }

 private:
  std::string text_;
  size_t count_ = 0;
};

class Writer {
 public:
  explicit Writer(const profile::Profile& profile)
      : profile_(profile), trees_(BuildHtmlTrees(profile)) {}

  std::string Write() {
    const std::string title = HtmlEscaped(VisibleText(Title(), kMaxNameBytes));
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    page +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src ";
    page += SourceHash(kScript) + "; style-src " + SourceHash(kStyle);
    page += "; base-uri 'none'; form-action 'none'\">\n";
    page += "<meta name=\"referrer\" content=\"no-referrer\">\n";
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<title>" + title + "</title>\n<style>";
    page += kStyle;
    page += "</style>\n</head>\n<body>\n<script type=\"application/json\" id=\"profile\">";
    AppendData(page);
    page += "</script>\n";
    page += kBody;
    page += "<script>";
    page += kScript;
    page += "</script>\n</body>\n</html>\n";
    return page;
  }

 private:
  std::string Title() const {
    for (const profile::Attribute& attribute : profile_.resource) {
      if (attribute.key == "service.name") return attribute.value + " - spanprof";
    }
    return "spanprof profile";
  }

  void AppendData(std::string& out) {
    out += '{';
    AppendKey(out, "title");
    AppendJsonText(out, VisibleText(Title(), kMaxNameBytes));
    // Milliseconds, as JavaScript counts them.
    AppendKey(out, "start");
    out += std::to_string(profile_.start_time_ns / 1'000'000);
    AppendKey(out, "duration");
    out += std::to_string(profile_.duration_ns / 1'000'000);
    Rows resource;
    for (const profile::Attribute& attribute : profile_.resource) {
      resource.Add(attribute.key, attribute.value);
    }
    AppendKey(out, "resource");
    out += resource.Text();
    Rows counters;
    for (const auto& [name, count] : profile_.counters()) counters.Add(name, std::to_string(count));
    AppendKey(out, "counters");
    out += counters.Text();
    AppendKey(out, "endpoints");
    AppendTexts(out, trees_.endpoints);
    AppendKey(out, "threads");
    AppendTexts(out, trees_.threads);
    AppendKinds(out);
    AppendNames(out);
    out += '}';
  }

  void AppendKinds(std::string& out) {
    // Only names that a tree uses are written, in the order of use.
    AppendKey(out, "kinds");
    out += '[';
    bool is_first = true;
    for (size_t kind = 0; kind < trees_.kinds.size(); ++kind) {
      const HtmlTree& tree = trees_.kinds[kind];
      if (tree.nodes.empty()) continue;
      out += is_first ? "{" : ",{";
      is_first = false;
      AppendKey(out, "kind");
      AppendJsonText(out, NameOf(static_cast<profile::SampleKind>(kind)));
      AppendKey(out, "unit");
      AppendJsonText(out, UnitOf(static_cast<profile::SampleKind>(kind)));
      AppendKey(out, "requested_ns");
      out += std::to_string(profile_.periods[kind].requested_ns);
      AppendKey(out, "actual_ns");
      out += std::to_string(profile_.periods[kind].actual_ns);
      AppendKey(out, "left_out");
      out += std::to_string(tree.nodes_left_out);
      if (tree.nodes_left_out != 0) AppendFunctions(out, static_cast<profile::SampleKind>(kind));
      AppendKey(out, "nodes");
      out += "\"" + Base64(NodeColumns(tree)) + "\"";
      AppendKey(out, "entries");
      out += "\"" + Base64(EntryColumns(tree)) + "\"";
      out += '}';
    }
    out += ']';
  }

  // Where a tree was trimmed, the page could not add up its functions any more.
  void AppendFunctions(std::string& out, profile::SampleKind kind) const {
    auto groups = GroupSamples(profile_, profile::GroupBy::kFunction, kind);
    groups.resize(std::min(groups.size(), kMaxFunctions));
    AppendKey(out, "functions");
    out += '[';
    for (const profile::Group& group : groups) {
      out += out.ends_with('[') ? "[" : ",[";
      AppendJsonText(out, VisibleText(group.name, kMaxNameBytes));
      out += ',' + std::to_string(group.self_value) + ',' + std::to_string(group.total_value) + ']';
    }
    out += ']';
  }

  uint32_t WrittenName(uint32_t name) {
    if (number_of_name_.empty()) number_of_name_.resize(trees_.names.size());
    uint32_t& number = number_of_name_[name];
    if (number == 0) {
      written_names_.push_back(name);
      number = static_cast<uint32_t>(written_names_.size());
    }
    return number - 1;
  }

  std::string NodeColumns(const HtmlTree& tree) {
    std::string bytes;
    for (uint32_t i = 0; i < tree.nodes.size(); ++i) {
      AppendVarint(bytes, i - tree.nodes[i].parent);
      AppendVarint(bytes, WrittenName(tree.nodes[i].name));
    }
    return bytes;
  }

  static std::string EntryColumns(const HtmlTree& tree) {
    std::string bytes;
    uint32_t previous = 0;
    for (const HtmlTreeEntry& entry : tree.entries) {
      AppendVarint(bytes, entry.node - previous);
      previous = entry.node;
      AppendVarint(bytes, entry.endpoint);
      AppendVarint(bytes, entry.thread);
      AppendVarint(bytes, entry.value);
      AppendVarint(bytes, entry.count);
    }
    return bytes;
  }

  // Long names are cut at the right end, the shorter the more there are of them.
  void AppendNames(std::string& out) const {
    size_t max_bytes = kMaxNameBytes;
    const auto all_bytes = [&] {
      size_t sum = 0;
      for (const uint32_t name : written_names_) {
        sum += std::min(trees_.names[name].text.size(), max_bytes);
      }
      return sum;
    };
    while (max_bytes > kMinNameBytes && all_bytes() > kMaxAllNameBytes) max_bytes /= 2;
    AppendKey(out, "frame_kinds");
    out += '"';
    for (const uint32_t name : written_names_) {
      out += static_cast<char>('0' + static_cast<int>(trees_.names[name].kind));
    }
    out += '"';
    AppendKey(out, "names");
    out += '[';
    for (const uint32_t name : written_names_) {
      if (!out.ends_with('[')) out += ',';
      AppendJsonText(out, VisibleText(trees_.names[name].text, max_bytes));
    }
    out += ']';
  }

  const profile::Profile& profile_;
  HtmlTrees trees_;
  std::vector<uint32_t> number_of_name_;  // plus 1; 0: not written yet
  std::vector<uint32_t> written_names_;
};

}  // namespace

Result<std::string> WriteHtml(const profile::Profile& profile, const WriteOptions& /*options*/) {
  return Writer(profile).Write();
}

}  // namespace spanprof::format
