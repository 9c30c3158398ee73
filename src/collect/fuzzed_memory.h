#pragma once

// Another process's memory made of a fuzzer's bytes: a map of regions, their contents, and the list
// of mappings that describes them.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collect/fake_memory.h"

namespace spanprof::collect {

class FuzzedMemory {
 public:
  // Regions follow one another in the input: a byte that says which name they have, two bytes of
  // size, the bytes. Each becomes memory at its own fixed address.
  explicit FuzzedMemory(std::span<const uint8_t> input) {
    static constexpr const char* kNames[] = {"", "/memfd:DD_OTEL_CTX (deleted)", "[anon:OTEL_CTX]",
                                             "/memfd:SPANPROF_CORE (deleted)",
                                             "/usr/lib/libfuzzed.so"};
    for (unsigned region = 0; region < 8 && input.size() >= 3; ++region) {
      const char* name = kNames[input[0] % std::size(kNames)];
      const std::size_t wanted = input[1] | (std::size_t{input[2]} << 8);
      input = input.subspan(3);
      const auto bytes = input.first(wanted < input.size() ? wanted : input.size());
      input = input.subspan(bytes.size());
      std::vector<std::byte> content((bytes.size() + 4096) / 4096 * 4096);
      if (!bytes.empty()) std::memcpy(content.data(), bytes.data(), bytes.size());
      const uint64_t address = Address(region);
      char line[80];
      std::snprintf(line, sizeof(line), "%lx-%lx rw-p 00000000 00:01 %u ", address,
                    address + content.size(), name[0] == '\0' ? 0u : region + 1);
      maps += line;
      maps += name;
      maps += '\n';
      memory.Add(address, std::move(content));
    }
  }

  // Small, so that a fuzzer finds pointers by itself.
  static uint64_t Address(unsigned region) { return 0x100000 * (uint64_t{region} + 1); }

  FakeMemory memory;
  std::string maps;
};

}  // namespace spanprof::collect
