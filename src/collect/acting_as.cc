#include "collect/acting_as.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

namespace spanprof::collect {

Result<ActingAs> ActingAs::User(uid_t uid, gid_t gid) {
  const uid_t own_uid = geteuid();
  const gid_t own_gid = getegid();
  if (own_uid == uid && own_gid == gid) return ActingAs(own_uid, own_gid, false);
  // The group first: afterwards there is no right to change it.
  if (setegid(gid) != 0 || seteuid(uid) != 0) {
    const int code = errno;
    if (setegid(own_gid) != 0) std::abort();
    return Fail(code,
                "cannot act as user " + std::to_string(uid) + " and group " + std::to_string(gid) +
                    ": " + std::strerror(code),
                "run it as that user, or as root with CAP_SETUID and CAP_SETGID");
  }
  return ActingAs(own_uid, own_gid, true);
}

ActingAs::~ActingAs() {
  if (!changed_) return;
  // The real user is still ours, so this cannot be refused; going on as somebody else would be
  // worse than not going on.
  if (seteuid(own_uid_) != 0 || setegid(own_gid_) != 0) std::abort();
}

}  // namespace spanprof::collect
