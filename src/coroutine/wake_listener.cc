#include "coroutine/wake_listener.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/printable_text.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

constexpr std::size_t kMaxConnections = 4096;

std::string ErrorText(int error_number) { return std::generic_category().message(error_number); }

// One message. False: the connection is over. `memory` becomes valid if a descriptor came along.
bool ReceiveBytes(int socket, UniqueFd& memory, bool& wants_dump) {
  char bytes[256];
  iovec data = {bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      memory = UniqueFd(descriptor);  // the last one counts; the others are closed
    }
  }
  wants_dump = got > 0 && bytes[0] == kDumpRequest;
  return got > 0;
}

constexpr std::string_view kFolderPrefix = "spanprof-coro-";

// What a harvester that was killed has left: a folder of ours whose socket nobody listens at.
void RemoveLeftFolders(const std::string& base) {
  DIR* directory = opendir(base.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    if (!std::string_view(entry->d_name).starts_with(kFolderPrefix)) continue;
    const std::string folder = base + "/" + entry->d_name;
    struct stat status = {};
    if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != geteuid() || (status.st_mode & 0777) != 0700) {
      continue;
    }
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = folder + "/wake";
    if (path.size() >= sizeof address.sun_path) continue;
    path.copy(address.sun_path, path.size());
    const UniqueFd attempt(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!attempt.valid()) break;
    // Refused: there is a socket, and it is nobody's. One without a socket may be in the making.
    if (connect(attempt.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
        errno != ECONNREFUSED) {
      continue;
    }
    unlink(path.c_str());
    unlink((folder + "/stations").c_str());
    rmdir(folder.c_str());
  }
  closedir(directory);
}

}  // namespace

Result<WakeListener> WakeListener::Create() {
  const char* base = getenv("XDG_RUNTIME_DIR");
  if (base == nullptr || *base != '/' || access(base, W_OK) != 0) base = getenv("TMPDIR");
  if (base == nullptr || *base != '/') base = "/tmp";
  RemoveLeftFolders(base);
  std::string folder = std::string(base) + "/" + std::string(kFolderPrefix) + "XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {  // mode 0700
    return Fail(errno, "a folder cannot be made at " + Quoted(folder) + ": " + ErrorText(errno),
                "set TMPDIR to a folder that you can write to");
  }
  WakeListener listener(folder,
                        UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = listener.socket_path();
  if (path.size() >= sizeof address.sun_path) {
    return Fail(ENAMETOOLONG, "the path " + Quoted(path) + " is too long for a socket",
                "set TMPDIR to a shorter one");
  }
  // It gets its name when it listens: who finds a socket of that name that refuses him knows that
  // its harvester is dead.
  const std::string unfinished = folder + "/made";
  static_assert(sizeof "/made" == sizeof "/wake");
  unfinished.copy(address.sun_path, unfinished.size());
  if (!listener.socket_.valid() ||
      bind(listener.socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0 ||
      chmod(unfinished.c_str(), 0600) != 0 || listen(listener.socket_.get(), SOMAXCONN) != 0 ||
      rename(unfinished.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    unlink(unfinished.c_str());
    return Fail(error_number,
                "the socket " + Quoted(path) + " cannot be made: " + ErrorText(error_number));
  }
  return listener;
}

WakeListener::WakeListener(WakeListener&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      socket_(std::move(other.socket_)),
      connections_(std::move(other.connections_)),
      dump_requests_(std::move(other.dump_requests_)),
      refused_peers_(other.refused_peers_) {}

WakeListener::~WakeListener() {
  if (folder_.empty()) return;
  unlink(socket_path().c_str());
  unlink(file_path().c_str());
  rmdir(folder_.c_str());
}

Result<UniqueFd> WakeListener::CreateFile(uint32_t stations) {
  namespace wire = internal::coroutine;
  UniqueFd file(
      open(file_path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const uint64_t bytes =
      sizeof(wire::GlobalHeader) + uint64_t{stations} * sizeof(wire::StationData);
  auto header = std::make_unique<wire::GlobalHeader>();
  header->magic_number = wire::kMagic;
  header->version = wire::kVersion;
  header->max_stations = stations;
  header->mode = wire::kModeRings;  // a probe of ours hands its own memory over instead
  header->extension_version = wire::kExtensionVersion;
  header->extension_magic = wire::kExtensionMagic;
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      pwrite(file.get(), header.get(), sizeof *header, 0) != sizeof *header) {
    return Fail(errno, Quoted(file_path()) + " cannot be made: " + ErrorText(errno));
  }
  return file;
}

void WakeListener::Accept() {
  for (;;) {
    UniqueFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    ucred peer = {};
    socklen_t size = sizeof peer;
    const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    const bool trusted = known && (peer.uid == geteuid() || geteuid() == 0 || peer.uid == 0);
    if (!trusted || connections_.size() >= kMaxConnections) {
      ++refused_peers_;
      continue;
    }
    connections_.push_back({std::move(socket), peer.pid});
  }
}

void WakeListener::Wait(int milliseconds, const std::vector<int>& others) {
  std::vector<pollfd> waited;
  waited.push_back({socket_.get(), POLLIN, 0});
  for (const Connection& connection : connections_) {
    waited.push_back({connection.socket.get(), POLLIN, 0});
  }
  for (const int other : others) waited.push_back({other, POLLIN, 0});
  poll(waited.data(), waited.size(), milliseconds);
}

std::vector<HandedOver> WakeListener::Receive() {
  Accept();
  std::vector<HandedOver> received;
  std::vector<Connection> open_ones;
  for (Connection& connection : connections_) {
    UniqueFd memory;
    bool wants_dump = false;
    const bool is_open = ReceiveBytes(connection.socket.get(), memory, wants_dump);
    if (memory.valid()) received.push_back({std::move(memory), connection.pid});
    if (wants_dump) {
      dump_requests_.push_back(std::move(connection.socket));
      continue;
    }
    if (is_open) open_ones.push_back(std::move(connection));
  }
  connections_ = std::move(open_ones);
  return received;
}

}  // namespace spanprof::coroutine
