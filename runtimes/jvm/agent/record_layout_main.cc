// Prints RecordLayout.java; the target record_layout puts it where it belongs.

#include <cstdio>

#include "agent/record_layout_java.h"

int main() {
  const std::string text = spanprof::jvm::RecordLayoutJava();
  return fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
