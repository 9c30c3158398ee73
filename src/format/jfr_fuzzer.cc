// ReadJfr on any bytes: it ends, stays within its memory, and what it accepts can be written and
// read again. The first byte chooses whether the input is a file, or changes to one of ours.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "format/format.h"
#include "format/jfr.h"
#include "format/jfr_fixture.h"
#include "format/jfr_part.h"

namespace {

using namespace spanprof;          // NOLINT(google-build-using-namespace)
using namespace spanprof::format;  // NOLINT(google-build-using-namespace)

const std::string& OurFile(bool flat) {
  static const auto make = [](JfrContext context) {
    WriteOptions options;
    options.jfr_context = context;
    return WriteJfr(MakeSmallProfile(), options).value();
  };
  static const std::string pool_file = make(JfrContext::kPool);
  static const std::string flat_file = make(JfrContext::kFlat);
  return flat ? flat_file : pool_file;
}

// Three bytes a change: position and value.
std::string Changed(std::string file, std::string_view changes) {
  for (; changes.size() >= 3; changes.remove_prefix(3)) {
    const size_t position =
        size_t{static_cast<uint8_t>(changes[0])} << 8 | static_cast<uint8_t>(changes[1]);
    file[position % file.size()] = changes[2];
  }
  return file;
}

void Check(std::string_view bytes) {
  ReadLimits limits;
  limits.max_memory = size_t{32} << 20;
  const size_t prefix = CompleteJfrPrefix(bytes);
  if (prefix > bytes.size()) std::abort();
  (void)jfr::FinishedBytesOfPart(bytes);
  std::string warning;
  const Result<profile::Profile> read = ReadJfrLenient(bytes, limits, &warning);
  if (!read) {
    if (read.error().message.empty()) std::abort();
    return;
  }
  if (prefix == 0) std::abort();
  const Result<std::string> written = WriteJfr(*read, {});
  if (!written || CompleteJfrPrefix(*written) != written->size()) std::abort();
  const Result<profile::Profile> again = ReadJfr(*written, {});
  if (!again || DescribeSamples(*again) != DescribeSamples(*read)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      Check(input);
      break;
    case 1:
      Check(Changed(OurFile(false), input));
      break;
    default:
      Check(Changed(OurFile(true), input));
      break;
  }
  return 0;
}
