#pragma once

// The record's layout for the Java writer: RecordLayout.java, made from the C++ declarations, so
// that the two implementations of the write protocol cannot drift apart. The file is kept in the
// tree; record_layout_java_test compares it with what this gives.

#include <string>

namespace spanprof::jvm {

// Changes with every constant in the file. The native library tells it to the Java half, which
// refuses a library of another layout.
int RecordLayoutVersion();

std::string RecordLayoutJava();

}  // namespace spanprof::jvm
