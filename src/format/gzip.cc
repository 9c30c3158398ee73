#include "format/gzip.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <zlib.h>

namespace spanprof::format {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 16: gzip, neither zlib nor raw
constexpr size_t kFirstSize = size_t{64} << 10;

class Inflater {
 public:
  explicit Inflater(std::string_view bytes) : bytes_(bytes) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    usable_ = inflateInit2(&stream_, kGzipWindow) == Z_OK;
  }
  ~Inflater() {
    if (usable_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool usable() const { return usable_; }
  size_t offset() const {
    return static_cast<size_t>(reinterpret_cast<const char*>(stream_.next_in) - bytes_.data());
  }
  bool AtEnd() const { return offset() == bytes_.size(); }
  const char* message() const { return stream_.msg != nullptr ? stream_.msg : "broken data"; }

  // Fills `out` from `filled` on as far as it goes. Z_OK: `out` is full; Z_STREAM_END: the last
  // member is finished; anything else is an error, Z_BUF_ERROR among them: the input is cut off.
  int Fill(std::string& out, size_t& filled) {
    while (true) {
      constexpr size_t kMax = std::numeric_limits<uInt>::max();
      const size_t room = std::min(out.size() - filled, kMax);
      const size_t input = std::min(bytes_.size() - offset(), kMax);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream_.avail_out = static_cast<uInt>(room);
      stream_.avail_in = static_cast<uInt>(input);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      filled += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        if (!IsGzip(bytes_.substr(offset()))) return Z_STREAM_END;
        inflateReset(&stream_);
        continue;
      }
      if (status != Z_OK) return filled == out.size() && status == Z_BUF_ERROR ? Z_OK : status;
      if (filled == out.size()) return Z_OK;
    }
  }

 private:
  std::string_view bytes_;
  z_stream stream_{};
  bool usable_ = false;
};

}  // namespace

bool IsGzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

Result<std::string> Compress(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return Fail(ENOMEM, "no memory to compress " + std::to_string(bytes.size()) + " bytes");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  size_t in_left = bytes.size();
  size_t out_left = out.size();
  int status = Z_OK;
  while (status == Z_OK) {
    constexpr size_t kMax = std::numeric_limits<uInt>::max();
    const auto in = static_cast<uInt>(std::min(in_left, kMax));
    const auto room = static_cast<uInt>(std::min(out_left, kMax));
    stream.avail_in = in;
    stream.avail_out = room;
    status = deflate(&stream, in == in_left ? Z_FINISH : Z_NO_FLUSH);
    in_left -= in - stream.avail_in;
    out_left -= room - stream.avail_out;
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return Fail(EIO, "zlib did not finish: " + std::to_string(status));
  out.resize(out.size() - out_left);
  return out;
}

Result<std::string> Decompress(std::string_view bytes, size_t max_size) {
  if (!IsGzip(bytes)) return Fail(EINVAL, "not gzip: the file does not begin with 1f 8b");
  Inflater inflater(bytes);
  if (!inflater.usable()) return Fail(ENOMEM, "no memory to decompress");
  // One byte more than allowed, to see whether there is more.
  const size_t limit = std::max(max_size, max_size + 1);
  std::string out(std::min(limit, std::max(kFirstSize, bytes.size() * 4)), '\0');
  size_t filled = 0;
  while (true) {
    const int status = inflater.Fill(out, filled);
    if (filled > max_size) {
      return Fail(EFBIG,
                  "the compressed file of " + std::to_string(bytes.size()) +
                      " bytes holds more than " + std::to_string(max_size) + " bytes",
                  "a profile is never that large; if this one is, convert it with a larger limit");
    }
    if (status == Z_STREAM_END) break;
    if (status == Z_BUF_ERROR) {
      return Fail(EINVAL, "the compressed file is cut off at byte " + std::to_string(bytes.size()),
                  "copy the file again");
    }
    if (status != Z_OK) {
      return Fail(EINVAL, "the compressed file is broken at byte " +
                              std::to_string(inflater.offset()) + ": " + inflater.message());
    }
    out.resize(std::min(limit, out.size() * 2));
  }
  if (!inflater.AtEnd()) {
    return Fail(EINVAL, "the compressed file ends at byte " + std::to_string(inflater.offset()) +
                            ", but is " + std::to_string(bytes.size()) + " bytes long");
  }
  out.resize(filled);
  return out;
}

std::string DecompressPrefix(std::string_view bytes, size_t size) {
  std::string out(size, '\0');
  size_t filled = 0;
  Inflater inflater(bytes);
  if (inflater.usable()) static_cast<void>(inflater.Fill(out, filled));
  out.resize(filled);
  return out;
}

}  // namespace spanprof::format
