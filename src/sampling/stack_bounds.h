#pragma once

// Where threads' stacks are. Within them the walker reads memory directly. Not for handlers.

#include <cstdint>
#include <vector>

namespace spanprof::sampling {

struct StackBounds {
  uint64_t low = 0;
  uint64_t high = 0;  // 0: not known
};

// Of the calling thread, unless it is the first one, whose stack grows.
StackBounds OwnStackBounds(uint32_t tid);

// The process's readable mappings at one moment.
class ReadableMappings {
 public:
  ReadableMappings();
  // Of the stack that this stack pointer was seen in.
  StackBounds StackAround(uint64_t stack_pointer) const;

 private:
  struct Range {
    uint64_t low;
    uint64_t high;
    bool is_main_stack;
  };
  std::vector<Range> ranges_;
};

}  // namespace spanprof::sampling
