#include "attribute_names.h"

#include "process_publication.h"
#include "profile/profile.h"

namespace spanprof::node {

AttributeNames& AttributeNames::Instance() {
  static auto* const kNames = new AttributeNames();  // other threads may use it during exit
  return *kNames;
}

int AttributeNames::PositionOf(std::string_view name) {
  int position = -1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return static_cast<int>(i);
    }
    if (names_.size() >= profile::kTagCount) return -1;
    names_.emplace_back(name);
    position = static_cast<int>(names_.size() - 1);
  }
  // Readers have the name before there is a record that uses it.
  ProcessPublication::Instance().NamesChanged();
  return position;
}

std::vector<std::string> AttributeNames::names() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_;
}

}  // namespace spanprof::node
