#pragma once

// The smallest pieces of JFR: compressed integers, the encodings of strings, and events with their
// size in front.
//
//   Output body;
//   body.Varint(kCounterEventId);
//   body.Varint(ticks);
//   body.Utf8("samples.dropped");
//   out.Event(body.bytes());
//
//   Input input(bytes, offset, end);
//   uint64_t type = input.Varint();
//   if (input.failed()) return Fail(...);  // asked for once, at the end

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spanprof::format::jfr {

enum class StringEncoding : uint8_t { kNull, kEmpty, kPooled, kUtf8, kUtf16, kLatin1 };

class Output {
 public:
  void Byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  // Seven bits a byte, the lowest first; a ninth byte is taken whole.
  void Varint(uint64_t value);
  void BigEndian(uint64_t value, unsigned size);
  void Append(std::string_view bytes) { bytes_.append(bytes); }
  void Utf8(std::string_view text);
  void NullString() { Byte(static_cast<uint8_t>(StringEncoding::kNull)); }
  void PooledString(uint64_t key);
  // The body (type number and fields) behind its size, which counts itself.
  void Event(std::string_view body);

  size_t size() const { return bytes_.size(); }
  void Clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// A string as it stands in the file.
struct EncodedString {
  StringEncoding encoding = StringEncoding::kNull;
  std::string_view payload;  // of kUtf8 and kLatin1 the bytes, of kUtf16 one varint a character
  uint64_t key = 0;          // of kPooled
};

// Text in UTF-8. What is pooled, empty or null gives an empty one.
std::string TextOf(const EncodedString& string);

// A position in bytes that never leaves [begin, end). What would leave it fails, for ever, and
// gives zeros; so a caller may read a whole structure and ask once.
class Input {
 public:
  Input(std::string_view bytes, size_t begin, size_t end)
      : bytes_(bytes.substr(0, end)), position_(begin), failed_(begin > bytes_.size()) {}

  uint64_t Varint();
  uint8_t Byte();
  uint64_t BigEndian(unsigned size);
  std::string_view Bytes(uint64_t size);
  EncodedString String();

  bool failed() const { return failed_; }
  bool at_end() const { return failed_ || position_ == bytes_.size(); }
  size_t position() const { return position_; }
  size_t remaining() const { return failed_ ? 0 : bytes_.size() - position_; }

 private:
  std::string_view bytes_;
  size_t position_;
  bool failed_;
};

}  // namespace spanprof::format::jfr
