#pragma once

// Which labels a pprof sample carries: names, and whether the value is a text or a number.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "profile/profile.h"

namespace spanprof::format::pprof {

struct Label {
  std::string_view key;
  std::string_view text;  // empty: the value is the number
  uint64_t number = 0;
  std::string_view unit;  // of the number; may be empty
};

// Makes the labels of samples. The labels are valid until the next call.
class LabelMaker {
 public:
  LabelMaker(const profile::Profile& profile, const WriteOptions& options);

  const std::vector<Label>& LabelsOf(const profile::Sample& sample);

 private:
  void AddText(std::string_view key, std::string_view text);
  void AddNumber(std::string_view key, uint64_t number, std::string_view unit = {});
  void AddContext(const profile::Context& context);
  void AddThread(const profile::Thread& thread);
  void AddTime(const profile::Sample& sample);

  const profile::Profile& profile_;
  bool datadog_ = false;
  bool pyroscope_ = false;
  std::vector<std::string> tag_keys_;  // by position
  std::string trace_id_, span_id_, root_span_id_;
  std::vector<Label> labels_;
};

}  // namespace spanprof::format::pprof
