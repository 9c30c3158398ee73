#include "format/jfr_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "format/jfr.h"
#include "format/jfr_chunk.h"
#include "format/jfr_part.h"

namespace spanprof::format {
namespace {

constexpr mode_t kMode = 0600;

tl::unexpected<Error> FailedTo(std::string_view what, const std::string& path, int error,
                               std::string hint = {}) {
  if (error == ELOOP) hint = "it is a symbolic link; give the file it leads to";
  return Fail(error, std::string(what) + " '" + path + "': " + std::strerror(error),
              std::move(hint));
}

// O_NONBLOCK: opening a pipe must not wait for its other end.
Result<UniqueFd> OpenRegular(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMode));
  if (fd.get() < 0) return FailedTo("cannot open", path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return FailedTo("cannot look at", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Fail(EINVAL, "'" + path + "' is not a regular file", "give the name of a file");
  }
  return fd;
}

Result<std::string> ReadAll(int fd, const std::string& path) {
  std::string bytes;
  constexpr size_t kStep = size_t{1} << 20;
  while (true) {
    const size_t begin = bytes.size();
    bytes.resize(begin + kStep);
    const ssize_t count = ::pread(fd, bytes.data() + begin, kStep, static_cast<off_t>(begin));
    if (count < 0 && errno != EINTR) return FailedTo("cannot read", path, errno);
    bytes.resize(begin + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return bytes;
  }
}

// Writes at the end that is known, over whatever a failed write left there.
Result<void> WriteAt(int fd, uint64_t offset, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return FailedTo("cannot write", path, count < 0 ? errno : EIO);
    offset += static_cast<uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> Append(int fd, uint64_t end, std::string_view bytes, const std::string& path) {
  Result<void> written = WriteAt(fd, end, bytes, path);
  if (!written && ::ftruncate(fd, static_cast<off_t>(end)) != 0) {
    written.error().hint = "its end was cut; readers of spanprof leave that out";
  }
  return written;
}

Result<void> CheckComplete(std::string_view bytes) {
  if (!bytes.empty() && CompleteJfrPrefix(bytes) == bytes.size()) return {};
  return Fail(EINVAL, std::to_string(bytes.size()) + " bytes are not a complete JFR chunk");
}

// What of the chunks of a part file is not in the named file, whose complete chunks are its first
// `complete` bytes.
std::string_view RestOfParts(std::string_view parts, std::string_view named, uint64_t complete) {
  const std::optional<uint64_t> mark = jfr::FinishedBytesOfPart(parts);
  if (!mark) return {};
  if (*mark >= complete) return parts;
  // The named file has grown. If it grew by these very chunks, a process was killed while it took
  // them over; otherwise by the finished chunk that replaces them all.
  const std::string_view grown = named.substr(0, complete).substr(*mark);
  return parts.starts_with(grown) ? parts.substr(grown.size()) : std::string_view();
}

}  // namespace

std::string JfrPartPath(std::string_view path) { return std::string(path) + ".part"; }

JfrFile::JfrFile(std::string path, UniqueFd file, pid_t owner)
    : path_(std::move(path)), file_(std::move(file)), owner_(owner) {}

Result<JfrFile> JfrFile::Open(std::string path) {
  Result<UniqueFd> fd = OpenRegular(path, O_RDWR | O_CREAT);
  if (!fd) return tl::make_unexpected(std::move(fd.error()));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd->get(), F_SETLK, &lock) != 0) {
    if (errno != EACCES && errno != EAGAIN) return FailedTo("cannot lock", path, errno);
    return Fail(EBUSY, "another process is writing '" + path + "'", "give another file name");
  }
  JfrFile file(std::move(path), std::move(*fd), ::getpid());
  if (Result<void> mended = file.MendNamedFile(); !mended) {
    return tl::make_unexpected(std::move(mended.error()));
  }
  if (Result<void> taken = file.TakeOverPartFile(); !taken) {
    return tl::make_unexpected(std::move(taken.error()));
  }
  return file;
}

Result<void> JfrFile::CheckOwner() const {
  if (::getpid() == owner_) return {};
  return Fail(EPERM, "process " + std::to_string(::getpid()) + " did not open '" + path_ + "'",
              "a forked child opens a file of its own");
}

// Only what can be a chunk that was cut is removed: whoever names another file by mistake keeps it.
Result<void> JfrFile::MendNamedFile() {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return FailedTo("cannot look at", path_, errno);
  const auto size = static_cast<uint64_t>(status.st_size);
  while (finished_bytes_ < size) {
    std::string start(jfr::ChunkHeader::kSize, '\0');
    const ssize_t count =
        ::pread(file_.get(), start.data(), start.size(), static_cast<off_t>(finished_bytes_));
    if (count < 0) return FailedTo("cannot read", path_, errno);
    start.resize(static_cast<size_t>(count));
    const Result<jfr::ChunkHeader> header = jfr::ReadChunkHeader(start, 0);
    if (header && jfr::IsComplete(*header, size - finished_bytes_)) {
      finished_bytes_ += header->size;
      continue;
    }
    const bool is_cut = header ? header->size > size - finished_bytes_
                               : start.size() < jfr::ChunkHeader::kSize &&
                                     std::string_view("FLR\0", 4).starts_with(start.substr(0, 4));
    if (!is_cut) {
      return Fail(EEXIST,
                  "'" + path_ + "' exists, and what it has from byte " +
                      std::to_string(finished_bytes_) + " on is not a JFR chunk",
                  "give another file name, or remove it");
    }
    removed_bytes_ = size - finished_bytes_;
    if (::ftruncate(file_.get(), static_cast<off_t>(finished_bytes_)) != 0) {
      return FailedTo("cannot shorten", path_, errno);
    }
    break;
  }
  return {};
}

// The part file of a process that was killed: its chunks are complete, so the named file can have
// them as they are.
Result<void> JfrFile::TakeOverPartFile() {
  const std::string part_path = JfrPartPath(path_);
  const Result<UniqueFd> part = OpenRegular(part_path, O_RDONLY);
  if (!part && part.error().code == ENOENT) return {};
  if (!part) return tl::make_unexpected(part.error());
  struct stat status{};
  if (::fstat(part->get(), &status) != 0) return FailedTo("cannot look at", part_path, errno);
  if (status.st_uid != ::geteuid() || status.st_nlink != 1) {
    return Fail(EPERM, "'" + part_path + "' belongs to somebody else",
                "remove it, or give another file name");
  }
  const Result<std::string> bytes = ReadAll(part->get(), part_path);
  if (!bytes) return tl::make_unexpected(bytes.error());
  const std::string_view parts = std::string_view(*bytes).substr(0, CompleteJfrPrefix(*bytes));
  const Result<std::string> named = ReadAll(file_.get(), path_);
  if (!named) return tl::make_unexpected(named.error());
  const std::string_view rest = RestOfParts(parts, *named, finished_bytes_);
  if (Result<void> done = Append(file_.get(), finished_bytes_, rest, path_); !done) return done;
  finished_bytes_ += rest.size();
  recovered_bytes_ = rest.size();
  if (::unlink(part_path.c_str()) != 0) return FailedTo("cannot remove", part_path, errno);
  return {};
}

Result<void> JfrFile::CreatePartFile() {
  if (part_.get() >= 0) return {};
  Result<UniqueFd> part = OpenRegular(JfrPartPath(path_), O_RDWR | O_CREAT | O_EXCL);
  if (!part) return tl::make_unexpected(std::move(part.error()));
  part_ = std::move(*part);
  part_bytes_ = 0;
  return {};
}

Result<void> JfrFile::AppendPart(std::string_view chunk) {
  if (Result<void> owner = CheckOwner(); !owner) return owner;
  if (Result<void> checked = CheckComplete(chunk); !checked) return checked;
  if (Result<void> created = CreatePartFile(); !created) return created;
  const std::string marked = jfr::MarkAsPart(chunk, finished_bytes_);
  Result<void> written = Append(part_.get(), part_bytes_, marked, JfrPartPath(path_));
  if (written) part_bytes_ += marked.size();
  return written;
}

Result<void> JfrFile::FinishChunk(std::string_view chunk) {
  if (Result<void> owner = CheckOwner(); !owner) return owner;
  if (Result<void> checked = CheckComplete(chunk); !checked) return checked;
  if (Result<void> done = Append(file_.get(), finished_bytes_, chunk, path_); !done) return done;
  finished_bytes_ += chunk.size();
  if (part_.get() < 0) return {};
  // Not the other way round on the disk: the chunk, then no part.
  const int synced = ::fdatasync(file_.get());
  const int sync_error = errno;
  const std::string part_path = JfrPartPath(path_);
  part_ = UniqueFd();
  if (::unlink(part_path.c_str()) != 0 && errno != ENOENT) {
    return FailedTo("cannot remove", part_path, errno);
  }
  if (synced != 0) return FailedTo("cannot sync", path_, sync_error);
  return {};
}

Result<JfrFileContents> ReadJfrFile(const std::string& path, const ReadLimits& limits) {
  // The part file is read first: what is finished meanwhile is then found in the named file.
  const std::string part_path = JfrPartPath(path);
  std::string part;
  struct stat part_status{};
  if (const Result<UniqueFd> fd = OpenRegular(part_path, O_RDONLY)) {
    Result<std::string> bytes = ReadAll(fd->get(), part_path);
    if (!bytes) return tl::make_unexpected(std::move(bytes.error()));
    part = std::move(*bytes);
    if (::fstat(fd->get(), &part_status) != 0) return FailedTo("cannot look at", part_path, errno);
  }
  const Result<UniqueFd> fd = OpenRegular(path, O_RDONLY);
  if (!fd) return tl::make_unexpected(fd.error());
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) return FailedTo("cannot look at", path, errno);
  Result<std::string> bytes = ReadAll(fd->get(), path);
  if (!bytes) return tl::make_unexpected(std::move(bytes.error()));

  const std::string_view parts = std::string_view(part).substr(0, CompleteJfrPrefix(part));
  const size_t complete = CompleteJfrPrefix(*bytes);
  const std::string_view rest = status.st_uid == part_status.st_uid
                                    ? RestOfParts(parts, std::string_view(*bytes), complete)
                                    : std::string_view();
  std::string warning;
  if (rest.empty()) {
    Result<profile::Profile> profile = ReadJfrLenient(*bytes, limits, &warning);
    if (!profile) return tl::make_unexpected(std::move(profile.error()));
    return JfrFileContents{.profile = std::move(*profile), .warning = std::move(warning)};
  }
  // A cut end of the named file is no loss here: its samples are in the part file.
  bytes->resize(complete);
  bytes->append(rest);
  Result<profile::Profile> profile = ReadJfr(*bytes, limits);
  if (!profile) return tl::make_unexpected(std::move(profile.error()));
  if (parts.size() < part.size()) {
    warning = "the last " + std::to_string(part.size() - parts.size()) + " bytes of '" + part_path +
              "' are no complete chunk and were left out";
  }
  return JfrFileContents{.profile = std::move(*profile), .warning = std::move(warning)};
}

}  // namespace spanprof::format
