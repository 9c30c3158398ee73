#pragma once

// Walks the fields of a pprof file's top level, and remembers where it is, for error messages.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <protozero/pbf_reader.hpp>

namespace spanprof::format::pprof {

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  // Calls `handle` with the reader at each field of this number and type, until it returns false.
  // It has to read the field. Throws protozero::exception where the file is broken.
  template <class Handle>
  bool ForEach(protozero::pbf_tag_type field, protozero::pbf_wire_type type, Handle handle) {
    return ForEachField([&](protozero::pbf_reader& top) {
      if (top.tag() == field && top.wire_type() == type) return handle(top);
      top.skip();
      return true;
    });
  }

  // The same with each message of this number.
  template <class Handle>
  bool ForEachMessage(protozero::pbf_tag_type field, Handle handle) {
    return ForEach(field, protozero::pbf_wire_type::length_delimited,
                   [&](protozero::pbf_reader& top) { return handle(top.get_message()); });
  }

  template <class Handle>
  bool ForEachField(Handle handle) {
    protozero::pbf_reader top(bytes_.data(), bytes_.size());
    while (true) {
      offset_ = bytes_.size() - top.length();
      if (!top.next()) return true;
      if (!handle(top)) return false;
    }
  }

  // Notes what is wrong with the field that is being read. Returns false, for ForEach().
  bool Broken(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  size_t offset() const { return offset_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string_view bytes_;
  size_t offset_ = 0;  // of the field that is being read
  std::string problem_;
};

}  // namespace spanprof::format::pprof
