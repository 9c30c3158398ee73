#include "export/http_post.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/socket.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"

namespace spanprof::sending {
namespace {

using std::chrono::steady_clock;

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

class Exchange {
 public:
  Exchange(const HttpRequest& request, const HttpTimeouts& timeouts, const SendDeadline& deadline)
      : request_(request),
        timeouts_(timeouts),
        deadline_(deadline),
        total_end_(steady_clock::now() + timeouts.total) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    // A child that was forked meanwhile has a copy of the descriptor, which must not keep the
    // connection open.
    if (socket_.valid()) shutdown(socket_.get(), SHUT_RDWR);
  }

  PostOutcome Run() {
    if (Connect() && Send()) Receive();
    if (outcome_.result != PostResult::kAnswered) {
      outcome_.message = Quoted(request_.url.host) + " port " + std::to_string(request_.url.port) +
                         ": " + outcome_.message;
      if (outcome_.error_number != 0) {
        outcome_.message += ": " + std::generic_category().message(outcome_.error_number);
      }
    }
    return std::move(outcome_);
  }

 private:
  bool Fail(PostResult result, int error_number, std::string message) {
    outcome_.result = result;
    outcome_.error_number = error_number;
    outcome_.message = std::move(message);
    return false;
  }

  // A step's own time-out, or that of the whole, whichever it was.
  bool FailTimedOut(PostResult step, const char* message) {
    const bool is_total = steady_clock::now() >= std::min(total_end_, deadline_.at());
    return Fail(is_total ? PostResult::kTotalTimedOut : step, ETIMEDOUT, message);
  }

  bool FailBroken(int error_number, const char* message) {
    const bool is_reset = error_number == ECONNRESET || error_number == EPIPE;
    return Fail(is_reset ? PostResult::kReset : PostResult::kFailed, error_number, message);
  }

  short Wait(short events, std::chrono::nanoseconds timeout) {
    return deadline_.Wait(socket_.get(), events,
                          std::min(steady_clock::now() + timeout, total_end_));
  }

  Addresses Resolve(int& failed) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    const std::string port = std::to_string(request_.url.port);
    addrinfo* found = nullptr;
    failed = getaddrinfo(request_.url.host.c_str(), port.c_str(), &hints, &found);
    if (failed == EAI_NONAME) {
      hints.ai_flags = AI_NUMERICSERV;
      failed = getaddrinfo(request_.url.host.c_str(), port.c_str(), &hints, &found);
    }
    return {failed == 0 ? found : nullptr, freeaddrinfo};
  }

  bool Connect() {
    int failed = 0;
    const Addresses addresses = Resolve(failed);
    if (addresses == nullptr) {
      return Fail(PostResult::kUnresolved, 0,
                  std::string("cannot find this host: ") + gai_strerror(failed));
    }
    Fail(PostResult::kTotalTimedOut, ETIMEDOUT, "no time left to connect");
    for (const addrinfo* address = addresses.get(); address != nullptr;
         address = address->ai_next) {
      if (steady_clock::now() >= std::min(total_end_, deadline_.at())) return false;
      if (ConnectTo(*address)) return true;
    }
    return false;
  }

  bool ConnectTo(const addrinfo& address) {
    socket_ = UniqueFd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) return Fail(PostResult::kFailed, errno, "cannot make a socket");
    int failed = 0;
    if (connect(socket_.get(), address.ai_addr, address.ai_addrlen) != 0) {
      failed = errno;
      if (failed == EINPROGRESS || failed == EINTR) {
        if (Wait(POLLOUT, timeouts_.connect) == 0) {
          return FailTimedOut(PostResult::kConnectTimedOut, "cannot connect");
        }
        socklen_t size = sizeof(failed);
        if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = errno;
      }
    }
    if (failed == 0) return true;
    if (failed == ECONNRESET || failed == EPIPE) return FailBroken(failed, "the connection broke");
    const bool timed_out = failed == ETIMEDOUT;
    return Fail(timed_out ? PostResult::kConnectTimedOut : PostResult::kConnectFailed, failed,
                "cannot connect");
  }

  // A server may answer before it has read everything, and close: then the answer counts.
  bool Send() {
    const std::string head = RequestHead(request_);
    for (std::string_view bytes : {std::string_view(head), request_.body}) {
      while (!bytes.empty()) {
        const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
          bytes.remove_prefix(static_cast<std::size_t>(sent));
          // Otherwise a server that takes a little at a time never lets us wait.
          if (steady_clock::now() < std::min(total_end_, deadline_.at())) continue;
          return FailTimedOut(PostResult::kSendTimedOut, "cannot send");
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
          const short ready = Wait(POLLOUT | POLLIN, timeouts_.send);
          if (ready == 0) return FailTimedOut(PostResult::kSendTimedOut, "cannot send");
          if ((ready & POLLIN) != 0) return true;
          continue;
        }
        send_error_ = errno;
        return true;
      }
    }
    return true;
  }

  void Receive() {
    std::string bytes(kMaxResponseBytes, '\0');
    std::size_t size = 0;
    while (true) {
      const ssize_t got = recv(socket_.get(), bytes.data() + size, bytes.size() - size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (send_error_ != 0) return EndOfAnswer(send_error_);
        if (Wait(POLLIN, timeouts_.receive) != 0) continue;
        if (outcome_.result != PostResult::kAnswered) {
          FailTimedOut(PostResult::kReceiveTimedOut, "no answer");
        }
        outcome_.body_result = BodyResult::kTimedOut;
        return;
      }
      if (got < 0) return EndOfAnswer(send_error_ != 0 ? send_error_ : errno);
      if (got == 0) return EndOfAnswer(send_error_);
      size += static_cast<std::size_t>(got);
      if (!Take(std::string_view(bytes).substr(0, size))) return;
      // Otherwise a server that drips never lets us wait.
      if (steady_clock::now() >= std::min(total_end_, deadline_.at())) {
        if (outcome_.result != PostResult::kAnswered) {
          FailTimedOut(PostResult::kReceiveTimedOut, "no answer");
        }
        outcome_.body_result = BodyResult::kTimedOut;
        return;
      }
    }
  }

  // Takes what was received so far; false once there is nothing more to wait for.
  bool Take(std::string_view bytes) {
    if (outcome_.result != PostResult::kAnswered) {
      const ParsedResponse parsed = ParseHttpResponse(bytes, std::time(nullptr));
      if (parsed.state == ResponseState::kGarbage) {
        return Fail(PostResult::kGarbage, 0, "the answer is not HTTP");
      }
      if (parsed.state == ResponseState::kIncomplete) {
        if (bytes.size() < kMaxResponseBytes) return true;
        return Fail(PostResult::kHeadTooLarge, 0, "the answer's head does not end");
      }
      outcome_.result = PostResult::kAnswered;
      outcome_.response = parsed.response;
      outcome_.error_number = 0;
      outcome_.message = "status " + std::to_string(parsed.response.status);
    }
    outcome_.body = bytes.substr(outcome_.response.body_offset);
    const auto size = outcome_.response.body_size;
    if (size && outcome_.body.size() >= *size) {
      outcome_.body.resize(static_cast<std::size_t>(*size));
      return false;
    }
    if (outcome_.response.chunked && outcome_.body.ends_with("0\r\n\r\n")) return false;
    if (bytes.size() < kMaxResponseBytes) return true;
    outcome_.body_result = BodyResult::kTooLarge;
    return false;
  }

  // The connection ended, well if `error_number` is 0.
  void EndOfAnswer(int error_number) {
    if (outcome_.result == PostResult::kAnswered) {
      const bool is_cut =
          outcome_.response.body_size.has_value() || outcome_.response.chunked || error_number != 0;
      if (is_cut) outcome_.body_result = BodyResult::kCut;
    } else if (error_number != 0) {
      FailBroken(error_number, "the connection broke");
    } else {
      Fail(PostResult::kClosedEarly, 0, "the connection was closed without an answer");
    }
  }

  const HttpRequest& request_;
  const HttpTimeouts& timeouts_;
  const SendDeadline& deadline_;
  const SteadyTime total_end_;
  UniqueFd socket_;
  int send_error_ = 0;
  PostOutcome outcome_;
};

}  // namespace

PostOutcome HttpPost(const HttpRequest& request, const HttpTimeouts& timeouts,
                     const SendDeadline& deadline) {
  return Exchange(request, timeouts, deadline).Run();
}

}  // namespace spanprof::sending
