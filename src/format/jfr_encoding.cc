#include "format/jfr_encoding.h"

namespace spanprof::format::jfr {
namespace {

constexpr unsigned kMaxVarintSize = 9;

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  while (size < kMaxVarintSize && value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

void AppendUtf8(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (code_point >> 6)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (code_point >> 12)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xf0 | (code_point >> 18)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 12) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | ((code_point >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
  }
}

bool IsHighSurrogate(uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool IsLowSurrogate(uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

std::string FromUtf16(std::string_view units) {
  constexpr uint32_t kReplacement = 0xfffd;
  std::string text;
  uint32_t high = 0;
  Input input(units, 0, units.size());
  while (!input.at_end()) {
    const auto unit = static_cast<uint32_t>(input.Varint() & 0xffff);
    if (high != 0 && IsLowSurrogate(unit)) {
      AppendUtf8(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00), text);
      high = 0;
      continue;
    }
    if (high != 0) AppendUtf8(kReplacement, text);
    high = IsHighSurrogate(unit) ? unit : 0;
    if (high == 0) AppendUtf8(IsLowSurrogate(unit) ? kReplacement : unit, text);
  }
  if (high != 0) AppendUtf8(kReplacement, text);
  return text;
}

}  // namespace

void Output::Varint(uint64_t value) {
  for (unsigned i = 1; i < kMaxVarintSize; ++i) {
    if (value < 0x80) {
      Byte(static_cast<uint8_t>(value));
      return;
    }
    Byte(static_cast<uint8_t>(value | 0x80));
    value >>= 7;
  }
  Byte(static_cast<uint8_t>(value));
}

void Output::BigEndian(uint64_t value, unsigned size) {
  for (unsigned i = size; i > 0; --i) Byte(static_cast<uint8_t>(value >> (8 * (i - 1))));
}

void Output::Utf8(std::string_view text) {
  Byte(static_cast<uint8_t>(StringEncoding::kUtf8));
  Varint(text.size());
  Append(text);
}

void Output::PooledString(uint64_t key) {
  Byte(static_cast<uint8_t>(StringEncoding::kPooled));
  Varint(key);
}

void Output::Event(std::string_view body) {
  size_t prefix = 1;
  while (VarintSize(body.size() + prefix) != prefix) ++prefix;
  Varint(body.size() + prefix);
  Append(body);
}

std::string TextOf(const EncodedString& string) {
  std::string text;
  switch (string.encoding) {
    case StringEncoding::kUtf8:
      text = string.payload;
      break;
    case StringEncoding::kLatin1:
      for (const char c : string.payload) AppendUtf8(static_cast<uint8_t>(c), text);
      break;
    case StringEncoding::kUtf16:
      text = FromUtf16(string.payload);
      break;
    case StringEncoding::kNull:
    case StringEncoding::kEmpty:
    case StringEncoding::kPooled:
      break;
  }
  return text;
}

uint8_t Input::Byte() {
  if (failed_ || position_ >= bytes_.size()) {
    failed_ = true;
    return 0;
  }
  return static_cast<uint8_t>(bytes_[position_++]);
}

uint64_t Input::Varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 56; shift += 7) {
    const uint8_t byte = Byte();
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return value | uint64_t{Byte()} << 56;
}

uint64_t Input::BigEndian(unsigned size) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) value = value << 8 | Byte();
  return value;
}

std::string_view Input::Bytes(uint64_t size) {
  if (failed_ || size > bytes_.size() - position_) {
    failed_ = true;
    return {};
  }
  const std::string_view bytes = bytes_.substr(position_, size);
  position_ += size;
  return bytes;
}

EncodedString Input::String() {
  EncodedString string;
  const uint8_t encoding = Byte();
  if (encoding > static_cast<uint8_t>(StringEncoding::kLatin1)) failed_ = true;
  if (failed_) return string;
  string.encoding = static_cast<StringEncoding>(encoding);
  switch (string.encoding) {
    case StringEncoding::kNull:
    case StringEncoding::kEmpty:
      break;
    case StringEncoding::kPooled:
      string.key = Varint();
      break;
    case StringEncoding::kUtf8:
    case StringEncoding::kLatin1:
      string.payload = Bytes(Varint());
      break;
    case StringEncoding::kUtf16: {
      const uint64_t count = Varint();
      const size_t begin = position_;
      for (uint64_t i = 0; i < count && !failed_; ++i) Varint();
      if (!failed_) string.payload = bytes_.substr(begin, position_ - begin);
      break;
    }
  }
  return string;
}

}  // namespace spanprof::format::jfr
