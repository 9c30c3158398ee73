#pragma once

// Reads the tables of a pprof file into a profile: strings, mappings, functions, locations.

#include <cstdint>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>
#include <tsl/robin_map.h>

#include "format/format_budget.h"
#include "format/pprof_cursor.h"
#include "profile/profile.h"

namespace spanprof::format::pprof {

class Tables {
 public:
  // All three have to outlive this.
  Tables(Cursor& cursor, ReadBudget& budget, profile::Profile& profile)
      : cursor_(cursor), budget_(budget), profile_(profile) {}

  // Each false if the cursor has a problem, or if it would need too much memory. The strings first.
  bool ReadStrings();
  bool ReadRest();

  const std::vector<std::string_view>& strings() const { return strings_; }
  // The empty text, counted, for a number that is not there.
  std::string_view Text(int64_t index);
  // Puts the frames of the location behind the others, innermost first.
  bool AddLocation(uint64_t id, std::vector<profile::FrameId>& frames);

 private:
  using Numbers = tsl::robin_map<uint64_t, uint32_t>;  // by the file's own
  struct FrameRange {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  profile::StringId Intern(int64_t index) { return profile_.Intern(Text(index)); }
  bool Remember(Numbers& numbers, uint64_t id, uint32_t number);
  uint32_t Find(const Numbers& numbers, uint64_t id);
  bool ReadMapping(protozero::pbf_reader message);
  bool ReadFunction(protozero::pbf_reader message);
  bool ReadLocation(protozero::pbf_reader message);
  profile::Frame ReadLine(protozero::pbf_reader message);

  Cursor& cursor_;
  ReadBudget& budget_;
  profile::Profile& profile_;
  std::vector<std::string_view> strings_;
  Numbers mappings_, functions_;
  tsl::robin_map<uint64_t, FrameRange> locations_;
  std::vector<profile::FrameId> location_frames_;
  std::vector<profile::Frame> lines_;  // of the location that is being read
};

}  // namespace spanprof::format::pprof
