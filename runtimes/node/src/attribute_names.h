#pragma once

// The names of tags, by position: the same for all threads of the process and for its life. The
// first are those of attributes=. Any thread.

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace spanprof::node {

class AttributeNames {
 public:
  static AttributeNames& Instance();

  // The position of a name, which is added if it is new; -1: all positions have a name.
  int PositionOf(std::string_view name);
  std::vector<std::string> names();

 private:
  std::mutex mutex_;
  std::vector<std::string> names_;
};

}  // namespace spanprof::node
