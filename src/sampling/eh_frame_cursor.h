#pragma once

// Reads numbers from bytes that nobody vouches for. A read beyond the end gives 0 and marks the
// cursor as failed; it stays failed, so a caller may check once at the end.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace spanprof::sampling {

class EhFrameCursor {
 public:
  // `address`: where bytes[0] lies in the object (or process), for pc-relative pointers.
  EhFrameCursor(std::span<const std::byte> bytes, uint64_t address)
      : bytes_(bytes), address_(address) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return failed_ || position_ >= bytes_.size(); }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t remaining() const { return failed_ ? 0 : bytes_.size() - position_; }
  [[nodiscard]] uint64_t address() const { return address_ + position_; }

  template <class T>
  T Read() {
    T value{};
    if (failed_ || bytes_.size() - position_ < sizeof(T)) {
      failed_ = true;
      return T{};
    }
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  void Skip(uint64_t count) { (void)Take(count); }

  // The next `count` bytes as a cursor of their own.
  EhFrameCursor Take(uint64_t count) {
    if (failed_ || bytes_.size() - position_ < count) {
      failed_ = true;
      return {{}, 0};
    }
    EhFrameCursor part(bytes_.subspan(position_, count), address());
    position_ += count;
    return part;
  }

  uint64_t Uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = Read<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    failed_ = true;
    return 0;
  }

  int64_t Sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const auto byte = Read<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) {
        if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
        return static_cast<int64_t>(value);
      }
    }
    failed_ = true;
    return 0;
  }

  // Text up to its zero byte.
  std::string_view Text() {
    if (failed_) return {};
    const auto rest = bytes_.subspan(position_);
    const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (end == nullptr) {
      failed_ = true;
      return {};
    }
    const char* begin = reinterpret_cast<const char*>(rest.data());
    const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - begin);
    position_ += length + 1;
    return {begin, length};
  }

  // A pointer in one of the DW_EH_PE encodings, `data_base` being that of DW_EH_PE_datarel. What is
  // to be loaded from elsewhere (DW_EH_PE_indirect) or relative to something unknown: nullopt, with
  // the bytes passed.
  std::optional<uint64_t> Pointer(uint8_t encoding, uint64_t data_base) {
    const uint64_t place = address();
    uint64_t value = 0;
    switch (encoding & 0x0F) {
      case 0x00:  // DW_EH_PE_absptr
      case 0x04:  // DW_EH_PE_udata8
      case 0x0C:  // DW_EH_PE_sdata8
        value = Read<uint64_t>();
        break;
      case 0x01:
        value = Uleb();
        break;
      case 0x02:
        value = Read<uint16_t>();
        break;
      case 0x03:
        value = Read<uint32_t>();
        break;
      case 0x09:
        value = static_cast<uint64_t>(Sleb());
        break;
      case 0x0A:
        value = static_cast<uint64_t>(int64_t{Read<int16_t>()});
        break;
      case 0x0B:
        value = static_cast<uint64_t>(int64_t{Read<int32_t>()});
        break;
      default:
        failed_ = true;
        break;
    }
    if (failed_ || (encoding & 0x80) != 0) return std::nullopt;
    switch (encoding & 0x70) {
      case 0x00:
        return value;
      case 0x10:  // DW_EH_PE_pcrel
        return place + value;
      case 0x30:  // DW_EH_PE_datarel
        return data_base + value;
      default:
        return std::nullopt;
    }
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t address_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace spanprof::sampling
