#include "format/firefox_tables.h"

#include <utility>

#include "format/html_text.h"
#include "profile/names.h"

namespace spanprof::format {
namespace {

constexpr std::string_view kColours[] = {"blue",   "orange", "green",    "yellow",
                                         "purple", "brown",  "lightblue"};

// The id by which symbol servers know a file: the build id's first 16 bytes as a GUID, and an age.
std::string BreakpadId(std::string_view build_id) {
  std::string hex(build_id);
  hex.resize(32, '0');
  std::string id;
  for (const size_t at : {6, 4, 2, 0, 10, 8, 14, 12}) id += hex.substr(at, 2);
  id += hex.substr(16);
  for (char& c : id) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  return id + "0";
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonText(json, text);
  return json;
}

}  // namespace

void JsonList::AddText(std::string_view text) { AddRaw(Quoted(text)); }

void JsonList::AddKey(std::string_view key, std::string_view json) {
  AddText(key);
  text_ += ':';
  text_ += json;
}

std::string MillisecondsText(uint64_t nanoseconds) {
  std::string text = std::to_string(nanoseconds / 1'000'000);
  if (uint64_t rest = nanoseconds % 1'000'000; rest != 0) {
    std::string digits = std::to_string(rest + 1'000'000);
    digits[0] = '.';
    while (digits.back() == '0') digits.pop_back();
    text += digits;
  }
  return text;
}

FirefoxTables::FirefoxTables(const profile::Profile& profile) : profile_(profile) { AddFrames(); }

uint32_t FirefoxTables::Text(std::string_view text) {
  const auto [entry, is_new] = string_numbers_.emplace(text, strings_.size());
  if (is_new) strings_.push_back(&entry->first);
  return entry->second;
}

int64_t FirefoxTables::ResourceOf(profile::MappingId id) {
  const profile::Mapping& mapping = profile_.mappings()[id];
  if (mapping.path == profile::kNone) return -1;
  const auto [entry, is_new] = resource_numbers_.emplace(
      std::pair(mapping.path, mapping.build_id), static_cast<uint32_t>(resource_numbers_.size()));
  if (is_new) {
    const std::string_view path = profile_.Text(mapping.path);
    const std::string_view build_id = profile_.Text(mapping.build_id);
    JsonList library;
    library.AddKey("arch", "null");
    library.AddKey("name", Quoted(BaseName(path)));
    library.AddKey("path", Quoted(path));
    library.AddKey("debugName", Quoted(BaseName(path)));
    library.AddKey("debugPath", Quoted(path));
    library.AddKey("breakpadId", Quoted(build_id.empty() ? "" : BreakpadId(build_id)));
    library.AddKey("codeId", build_id.empty() ? "null" : Quoted(build_id));
    libraries_.AddRaw(library.AsObject());
    resource_names_.AddNumber(Text(BaseName(path)));
    resource_libraries_.AddNumber(entry->second);
    resource_hosts_.AddRaw("null");
    resource_types_.AddNumber(1);  // a library
  }
  return entry->second;
}

uint32_t FirefoxTables::FunctionOf(const profile::Frame& frame, profile::FrameId id) {
  const profile::Function& function = profile_.functions()[frame.function];
  const uint32_t name = Text(profile::FrameName(profile_, id));
  const int64_t resource = ResourceOf(frame.mapping);
  const bool is_js = frame.kind == profile::FrameKind::kJavaScript;
  const auto [entry, is_new] = function_numbers_.emplace(
      FunctionKey(name, resource, function.file, is_js, function.start_line),
      static_cast<uint32_t>(function_numbers_.size()));
  if (!is_new) return entry->second;
  function_names_.AddNumber(name);
  function_is_js_.AddRaw(is_js ? "true" : "false");
  function_relevant_.AddRaw("false");
  function_resources_.AddRaw(std::to_string(resource));
  function_lines_.AddNumberOrNull(function.start_line);
  function_nulls_.AddRaw("null");
  if (function.file == profile::kNone) {
    function_sources_.AddRaw("null");
    return entry->second;
  }
  const auto [source, is_new_source] =
      source_numbers_.emplace(function.file, static_cast<uint32_t>(source_numbers_.size()));
  if (is_new_source) {
    source_files_.AddNumber(Text(profile_.Text(function.file)));
    source_nulls_.AddRaw("null");
    source_ones_.AddNumber(1);
  }
  function_sources_.AddNumber(source->second);
  return entry->second;
}

void FirefoxTables::AddFrames() {
  for (profile::FrameId id = 1; id < profile_.frames().size(); ++id) {
    const profile::Frame& frame = profile_.frames()[id];
    const bool has_address = frame.mapping != profile::kNone && frame.address != 0;
    frame_addresses_.AddRaw(has_address ? std::to_string(frame.address) : "-1");
    frame_categories_.AddNumber(CategoryOf(frame.kind));
    frame_functions_.AddNumber(FunctionOf(frame, id));
    frame_depths_.AddNumber(frame.inlined ? 1 : 0);
    frame_lines_.AddNumberOrNull(frame.line);
    frame_columns_.AddNumberOrNull(frame.column);
    frame_zeros_.AddNumber(0);
    frame_nulls_.AddRaw("null");
  }
}

std::string FirefoxTables::Categories() {
  JsonList categories;
  categories.AddRaw(R"({"name":"Other","color":"grey","subcategories":["Other"]})");
  for (size_t kind = 0; kind < std::size(kColours); ++kind) {
    JsonList category;
    category.AddKey("name", Quoted(NameOf(static_cast<profile::FrameKind>(kind))));
    category.AddKey("color", Quoted(kColours[kind]));
    category.AddKey("subcategories", R"(["Other"])");
    categories.AddRaw(category.AsObject());
  }
  return categories.AsArray();
}

std::string FirefoxTables::Write() const {
  JsonList shared;
  const auto add_table =
      [&](std::string_view name, size_t length,
          std::initializer_list<std::pair<std::string_view, const JsonList*>> columns) {
        JsonList table;
        table.AddKey("length", std::to_string(length));
        for (const auto& [column, list] : columns) table.AddKey(column, list->AsArray());
        shared.AddKey(name, table.AsObject());
      };
  JsonList stack_frames;
  JsonList stack_prefixes;
  for (profile::StackId id = 1; id < profile_.stacks().size(); ++id) {
    const profile::Stack& stack = profile_.stacks()[id];
    stack_frames.AddNumber(stack.frame - 1);
    stack_prefixes.AddRaw(stack.parent == profile::kNone ? "null"
                                                         : std::to_string(stack.parent - 1));
  }
  add_table("stackTable", profile_.stacks().size() - 1,
            {{"frame", &stack_frames}, {"prefix", &stack_prefixes}});
  add_table("frameTable", profile_.frames().size() - 1,
            {{"address", &frame_addresses_},
             {"inlineDepth", &frame_depths_},
             {"category", &frame_categories_},
             {"subcategory", &frame_zeros_},
             {"func", &frame_functions_},
             {"nativeSymbol", &frame_nulls_},
             {"innerWindowID", &frame_zeros_},
             {"line", &frame_lines_},
             {"column", &frame_columns_}});
  add_table("funcTable", function_numbers_.size(),
            {{"name", &function_names_},
             {"isJS", &function_is_js_},
             {"relevantForJS", &function_relevant_},
             {"resource", &function_resources_},
             {"source", &function_sources_},
             {"lineNumber", &function_lines_},
             {"columnNumber", &function_nulls_}});
  add_table("resourceTable", resource_numbers_.size(),
            {{"lib", &resource_libraries_},
             {"name", &resource_names_},
             {"host", &resource_hosts_},
             {"type", &resource_types_}});
  add_table("sources", source_numbers_.size(),
            {{"filename", &source_files_},
             {"id", &source_nulls_},
             {"startLine", &source_ones_},
             {"startColumn", &source_ones_},
             {"sourceMapURL", &source_nulls_}});
  const JsonList none;
  add_table("nativeSymbols", 0,
            {{"libIndex", &none}, {"address", &none}, {"name", &none}, {"functionSize", &none}});
  JsonList strings;
  for (const std::string* text : strings_) strings.AddText(*text);
  shared.AddKey("stringArray", strings.AsArray());
  return shared.AsObject();
}

}  // namespace spanprof::format
