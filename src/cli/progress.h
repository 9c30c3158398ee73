#pragma once

// One line on the standard error that says what a long command is doing, and is gone afterwards.
// Nothing at all where that is not a terminal.
//
//   Progress progress;
//   progress.Show("reading profile.jfr");

#include <string_view>

namespace spanprof::cli {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(std::string_view what);
  // Before anything else is written to the terminal.
  void Clear();

 private:
  bool is_terminal_;
  bool shown_ = false;
};

}  // namespace spanprof::cli
