#include <algorithm>
#include <cstdio>
#include <rapidcheck.h>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collect/process_maps.h"

namespace spanprof::collect {
namespace {

// As the kernel writes it.
std::string Line(const Mapping& mapping) {
  char text[128];
  std::snprintf(text, sizeof(text), "%08lx-%08lx %c%c%c%c %08lx 08:01 %lu", mapping.start,
                mapping.end, mapping.readable ? 'r' : '-', mapping.writable ? 'w' : '-',
                mapping.executable ? 'x' : '-', mapping.shared ? 's' : 'p', mapping.offset,
                mapping.inode);
  std::string line = text;
  line.resize(std::max<std::size_t>(line.size() + 1, 73), ' ');
  for (const char letter : mapping.name) {
    line += letter == '\n' ? std::string("\\012") : std::string(1, letter);
  }
  return line + (mapping.deleted ? " (deleted)\n" : "\n");
}

rc::Gen<std::string> Names() {
  return rc::gen::map(
      rc::gen::container<std::string>(rc::gen::element('a', ' ', '/', '\n', '[', ']', '\xFF')),
      [](std::string tail) { return "/" + std::move(tail); });
}

TEST(ProcessMapsProperty, ParsesWhatTheKernelWrites) {
  EXPECT_TRUE(rc::check([] {
    const auto count = *rc::gen::inRange<std::size_t>(0, 20);
    std::vector<Mapping> mappings;
    std::string text;
    uint64_t end = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Mapping mapping;
      mapping.start = end + *rc::gen::inRange<uint64_t>(0, 1ull << 40);
      mapping.end = end = mapping.start + *rc::gen::inRange<uint64_t>(1, 1ull << 40);
      mapping.offset = *rc::gen::arbitrary<uint64_t>();
      mapping.inode = *rc::gen::arbitrary<uint64_t>();
      mapping.readable = *rc::gen::arbitrary<bool>();
      mapping.writable = *rc::gen::arbitrary<bool>();
      mapping.executable = *rc::gen::arbitrary<bool>();
      mapping.shared = *rc::gen::arbitrary<bool>();
      mapping.deleted = *rc::gen::arbitrary<bool>();
      mapping.name = *Names();
      text += Line(mapping);
      mappings.push_back(mapping);
    }
    const ProcessMaps parsed = ParseProcessMaps(text);
    RC_ASSERT(parsed.malformed_lines == 0u);
    RC_ASSERT(parsed.mappings.size() == mappings.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Mapping& expected = mappings[i];
      const Mapping& actual = parsed.mappings[i];
      RC_ASSERT(actual.start == expected.start);
      RC_ASSERT(actual.end == expected.end);
      RC_ASSERT(actual.offset == expected.offset);
      RC_ASSERT(actual.inode == expected.inode);
      RC_ASSERT(actual.readable == expected.readable);
      RC_ASSERT(actual.writable == expected.writable);
      RC_ASSERT(actual.executable == expected.executable);
      RC_ASSERT(actual.shared == expected.shared);
      RC_ASSERT(actual.deleted == expected.deleted);
      RC_ASSERT(actual.name == expected.name);
    }
  }));
}

}  // namespace
}  // namespace spanprof::collect
