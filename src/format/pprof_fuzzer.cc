#include "format/round_trip_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spanprof::format::ReadWriteAndReadAgain(data, size, spanprof::format::ReadPprof,
                                          spanprof::format::WritePprof);
  return 0;
}
