#pragma once

// The interned strings of a sequence of Perfetto packets: those of one field of InternedData. Each
// is written once, with the first packet that needs it.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <protozero/pbf_writer.hpp>

#include "format/format_text.h"
#include "format/perfetto_fields.h"

namespace spanprof::format {

class PerfettoNames {
 public:
  explicit PerfettoNames(uint32_t field) : field_(field) {}

  // The text's number; one that a reader does not know yet is added to `interned_data`.
  uint64_t Number(std::string_view text, std::string& interned_data) {
    const auto [entry, is_new] = numbers_.emplace(text, numbers_.size() + 1);
    if (is_new) {
      protozero::pbf_writer out(interned_data);
      protozero::pbf_writer name(out, field_);
      name.add_uint64(perfetto::InternedStringField::kIid, entry->second);
      name.add_string(perfetto::InternedStringField::kText, ToUtf8(text));
    }
    return entry->second;
  }

 private:
  uint32_t field_;
  std::unordered_map<std::string, uint64_t> numbers_;
};

}  // namespace spanprof::format
