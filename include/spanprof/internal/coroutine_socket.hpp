#pragma once

// The probe's end of the harvester's Unix socket: one byte wakes it. Nothing here blocks or raises
// SIGPIPE; what fails is ignored, because the harvester also wakes by itself.
//
// The descriptor keeps its number for the life of the process, and before a byte is sent it is
// checked to be still the socket it was: a program that closes descriptors it does not know may
// have got the number back for a file of its own.

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

namespace spanprof::internal::coroutine {

class WakeSocket {
 public:
  // Connects, in place of the connection before. With `hand_over` >= 0 the first byte carries that
  // descriptor. Calls of this are not to overlap.
  bool Connect(const char* path, int hand_over) {
    const int fresh = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fresh < 0) return false;
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) {
      close(fresh);
      return false;
    }
    std::strcpy(address.sun_path, path);
    if (connect(fresh, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        !PeerIsTrusted(fresh) || (hand_over >= 0 && !HandOver(fresh, hand_over))) {
      close(fresh);
      return false;
    }
    int number = number_.load(std::memory_order_relaxed);
    if (number >= 0 && IsOurs(number)) {
      if (dup3(fresh, number, O_CLOEXEC) < 0) number = -1;
      close(fresh);
    } else {
      number = fresh;
    }
    struct stat status = {};
    if (number < 0 || fstat(number, &status) != 0) return false;
    inode_.store(status.st_ino, std::memory_order_relaxed);
    number_.store(number, std::memory_order_release);
    return true;
  }

  // False: there is no connection.
  bool SendByte() {
    const int number = number_.load(std::memory_order_acquire);
    if (number < 0 || !IsOurs(number)) return false;
    const char byte = '1';
    if (send(number, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return true;
    return errno == EAGAIN || errno == EINTR;  // it has bytes enough to wake by
  }

  void CloseInChild() {
    const int number = number_.exchange(-1, std::memory_order_relaxed);
    if (number >= 0 && IsOurs(number)) close(number);
  }

 private:
  bool IsOurs(int number) const {
    struct stat status = {};
    return fstat(number, &status) == 0 && S_ISSOCK(status.st_mode) &&
           status.st_ino == inode_.load(std::memory_order_relaxed);
  }

  static bool PeerIsTrusted(int fd) {
    ucred peer = {};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
  }

  static bool HandOver(int fd, int descriptor) {
    char byte = '1';
    iovec data = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
  }

  std::atomic<int> number_{-1};
  std::atomic<ino_t> inode_{0};
};

}  // namespace spanprof::internal::coroutine
