// The metadata event: a table of strings and a tree of elements that refer to it.
//
//   root { metadata { class {name, id, superType} [ annotation, field {name, class} [annotation] ]
//   }
//          region {locale, gmtOffset} }

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>

#include "format/jfr_chunk.h"
#include "format/jfr_metadata.h"

namespace spanprof::format::jfr {
namespace {

// The JDK has some 500 types with 3,000 fields.
constexpr size_t kMaxStrings = size_t{1} << 20;
constexpr size_t kMaxTypes = size_t{1} << 16;
constexpr size_t kMaxFields = size_t{1} << 20;
constexpr unsigned kMaxElementDepth = 8;

constexpr std::string_view kLabelType = "jdk.jfr.Label";
constexpr std::string_view kCategoryType = "jdk.jfr.Category";

struct UnitAnnotation {
  Unit unit;
  std::string_view type;
  std::string_view value;  // empty: the annotation has none
};

constexpr std::array kUnitAnnotations = {
    UnitAnnotation{Unit::kTimestampTicks, "jdk.jfr.Timestamp", "TICKS"},
    UnitAnnotation{Unit::kTimespanTicks, "jdk.jfr.Timespan", "TICKS"},
    UnitAnnotation{Unit::kTimespanNs, "jdk.jfr.Timespan", "NANOSECONDS"},
    UnitAnnotation{Unit::kBytes, "jdk.jfr.DataAmount", "BYTES"},
    UnitAnnotation{Unit::kAddress, "jdk.jfr.MemoryAddress", ""}};

struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<Element> children;
};

uint64_t IdOf(const std::vector<Type>& types, std::string_view name) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const Type& type) { return type.name == name; });
  return found == types.end() ? 0 : found->id;
}

Element Annotation(const std::vector<Type>& types, std::string_view type, std::string_view value) {
  Element element{.name = "annotation",
                  .attributes = {{"class", std::to_string(IdOf(types, type))}},
                  .children = {}};
  if (!value.empty()) element.attributes.emplace_back("value", value);
  return element;
}

Element FieldElement(const std::vector<Type>& types, const Field& field) {
  Element element{
      .name = "field",
      .attributes = {{"name", std::string(field.name)}, {"class", std::to_string(field.type_id)}},
      .children = {}};
  if (field.pooled) element.attributes.emplace_back("constantPool", "true");
  if (field.array) element.attributes.emplace_back("dimension", "1");
  if (!field.label.empty()) element.children.push_back(Annotation(types, kLabelType, field.label));
  for (const UnitAnnotation& annotation : kUnitAnnotations) {
    if (annotation.unit == field.unit) {
      element.children.push_back(Annotation(types, annotation.type, annotation.value));
    }
  }
  return element;
}

Element ClassElement(const std::vector<Type>& types, const Type& type) {
  Element element{.name = "class",
                  .attributes = {{"name", std::string(type.name)}, {"id", std::to_string(type.id)}},
                  .children = {}};
  if (!type.super_type.empty()) element.attributes.emplace_back("superType", type.super_type);
  if (type.simple) element.attributes.emplace_back("simpleType", "true");
  if (!type.label.empty()) element.children.push_back(Annotation(types, kLabelType, type.label));
  if (!type.category.empty()) {
    Element category = Annotation(types, kCategoryType, {});
    category.attributes.emplace_back("value-0", type.category);
    element.children.push_back(std::move(category));
  }
  for (const Field& field : type.fields) element.children.push_back(FieldElement(types, field));
  return element;
}

class ElementWriter {
 public:
  void Write(const Element& element) {
    tree_.Varint(Number(element.name));
    tree_.Varint(element.attributes.size());
    for (const auto& [key, value] : element.attributes) {
      tree_.Varint(Number(key));
      tree_.Varint(Number(value));
    }
    tree_.Varint(element.children.size());
    for (const Element& child : element.children) Write(child);
  }

  void Finish(Output& out) const {
    out.Varint(strings_.size());
    for (const std::string& text : strings_) out.Utf8(text);
    out.Append(tree_.bytes());
  }

 private:
  uint64_t Number(const std::string& text) {
    const auto [found, added] = numbers_.try_emplace(text, strings_.size());
    if (added) strings_.push_back(text);
    return found->second;
  }

  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> strings_;
  Output tree_;
};

}  // namespace

void WriteMetadataEvent(const std::vector<Type>& types, uint64_t start_ticks, uint64_t id,
                        Output& out) {
  Element metadata{.name = "metadata", .attributes = {}, .children = {}};
  for (const Type& type : types) metadata.children.push_back(ClassElement(types, type));
  Element region{
      .name = "region", .attributes = {{"locale", "en_US"}, {"gmtOffset", "0"}}, .children = {}};
  Element root{.name = "root", .attributes = {}, .children = {}};
  root.children.push_back(std::move(metadata));
  root.children.push_back(std::move(region));
  ElementWriter writer;
  writer.Write(root);

  Output body;
  body.Varint(kMetadataEventId);
  body.Varint(start_ticks);
  body.Varint(0);  // duration
  body.Varint(id);
  writer.Finish(body);
  out.Event(body.bytes());
}

// Reads the tree without making one: types and fields are noted where they are met.
class MetadataParser {
 public:
  MetadataParser(std::string_view bytes, size_t begin, size_t end)
      : begin_(begin), input_(bytes, begin, end) {}

  Result<Metadata> Parse() {
    input_.Varint();  // start
    input_.Varint();  // duration
    input_.Varint();  // id
    const uint64_t count = input_.Varint();
    if (count > kMaxStrings) return TooMany("strings", count);
    for (uint64_t i = 0; i < count && !input_.failed(); ++i) {
      metadata_.strings_.push_back(TextOf(input_.String()));
    }
    ReadElement(0);
    if (!error_.empty() || input_.failed()) {
      return Fail(EBADMSG, "JFR metadata at byte " + std::to_string(begin_) + ": " +
                               (error_.empty() ? "it is cut" : error_));
    }
    ApplyAnnotations();
    if (Result<void> resolved = metadata_.Resolve(begin_); !resolved) {
      return tl::make_unexpected(resolved.error());
    }
    return std::move(metadata_);
  }

 private:
  struct PendingAnnotation {
    uint32_t type = 0;
    uint32_t field = 0;
    uint64_t annotation_id = 0;
    std::string_view value;
  };

  static tl::unexpected<Error> TooMany(std::string_view what, uint64_t count) {
    return Fail(EFBIG, "JFR metadata with " + std::to_string(count) + " " + std::string(what));
  }

  std::string_view Text() {
    const uint64_t number = input_.Varint();
    if (number < metadata_.strings_.size()) return metadata_.strings_[number];
    if (error_.empty()) error_ = "string " + std::to_string(number) + " is not in its table";
    return {};
  }

  static uint64_t Number(std::string_view text) {
    uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  bool going() const { return error_.empty() && !input_.failed(); }

  void ReadElement(unsigned depth) {
    if (depth > kMaxElementDepth) {
      error_ = "its elements nest more than " + std::to_string(kMaxElementDepth) + " deep";
      return;
    }
    const std::string_view element = Text();
    Type type;
    Field field;
    std::string_view value;
    const uint64_t attribute_count = input_.Varint();
    for (uint64_t i = 0; i < attribute_count && going(); ++i) {
      const std::string_view key = Text();
      const std::string_view text = Text();
      if (key == "name") {
        type.name = field.name = text;
      } else if (key == "id") {
        type.id = Number(text);
      } else if (key == "superType") {
        type.super_type = text;
      } else if (key == "simpleType") {
        type.simple = text == "true";
      } else if (key == "class") {
        field.type_id = Number(text);
      } else if (key == "constantPool") {
        field.pooled = text == "true";
      } else if (key == "dimension") {
        field.array = Number(text) != 0;
      } else if (key == "value") {
        value = text;
      }
    }
    if (!going()) return;
    if (element == "class") {
      metadata_.types_.push_back(std::move(type));
    } else if (element == "field" && !metadata_.types_.empty()) {
      metadata_.types_.back().fields.push_back(field);
      ++field_count_;
    }
    if (metadata_.types_.size() > kMaxTypes || field_count_ > kMaxFields) {
      error_ = "it has too many types or fields";
      return;
    }
    // A field's annotations are its children, two levels below the class.
    if (element == "annotation" && depth == 4 && !metadata_.types_.empty() &&
        !metadata_.types_.back().fields.empty()) {
      annotations_.push_back(
          {.type = static_cast<uint32_t>(metadata_.types_.size() - 1),
           .field = static_cast<uint32_t>(metadata_.types_.back().fields.size() - 1),
           .annotation_id = field.type_id,
           .value = value});
    }
    const uint64_t child_count = input_.Varint();
    for (uint64_t i = 0; i < child_count && going(); ++i) ReadElement(depth + 1);
  }

  void ApplyAnnotations() {
    std::map<uint64_t, std::string_view> names;
    for (const Type& type : metadata_.types_) {
      if (type.super_type == kAnnotationSuperType) names.emplace(type.id, type.name);
    }
    for (const PendingAnnotation& annotation : annotations_) {
      const auto name = names.find(annotation.annotation_id);
      if (name == names.end()) continue;
      Field& field = metadata_.types_[annotation.type].fields[annotation.field];
      if (name->second == kLabelType) field.label = annotation.value;
      for (const UnitAnnotation& unit : kUnitAnnotations) {
        if (unit.type == name->second && unit.value == annotation.value) field.unit = unit.unit;
      }
    }
  }

  size_t begin_;
  Input input_;
  Metadata metadata_;
  size_t field_count_ = 0;
  std::vector<PendingAnnotation> annotations_;
  std::string error_;
};

Result<Metadata> Metadata::Read(std::string_view bytes, size_t begin, size_t end) {
  return MetadataParser(bytes, begin, end).Parse();
}

}  // namespace spanprof::format::jfr
