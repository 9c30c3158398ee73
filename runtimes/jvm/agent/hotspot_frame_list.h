#pragma once

// SIGNAL-SAFE. The words of a stack that is being walked, innermost first.

#include <cstdint>

namespace spanprof::jvm {

class FrameList {
 public:
  FrameList(uint64_t* words, unsigned capacity) noexcept : words_(words), capacity_(capacity) {}
  void Add(uint64_t word) noexcept {
    if (count_ == capacity_) {
      full_ = true;
      return;
    }
    words_[count_++] = word;
  }
  [[nodiscard]] uint64_t word(unsigned index) const { return words_[index]; }
  [[nodiscard]] unsigned count() const { return count_; }
  // Whether there was one too many.
  [[nodiscard]] bool full() const { return full_; }

 private:
  uint64_t* const words_;
  const unsigned capacity_;
  unsigned count_ = 0;
  bool full_ = false;
};

}  // namespace spanprof::jvm
