#pragma once

// The rights of another process's user, for as long as this lives.
//
//   Result<ActingAs> user = ActingAs::User(uid, gid);
//   ... files that are made here are that user's, and nothing is touched that they could not touch
//
// Root works so in folders that others can write to: whatever they put in the way, they gain
// nothing. For the whole process, so only where there are no other threads.

#include <utility>

#include <sys/types.h>

#include "base/result.h"

namespace spanprof::collect {

class ActingAs {
 public:
  // Fails with EPERM if this process may not. Nothing is done where it is that user already.
  [[nodiscard]] static Result<ActingAs> User(uid_t uid, gid_t gid);
  ~ActingAs();
  ActingAs(ActingAs&& other) noexcept
      : own_uid_(other.own_uid_),
        own_gid_(other.own_gid_),
        changed_(std::exchange(other.changed_, false)) {}
  ActingAs& operator=(ActingAs&&) = delete;

 private:
  ActingAs(uid_t own_uid, gid_t own_gid, bool changed)
      : own_uid_(own_uid), own_gid_(own_gid), changed_(changed) {}

  uid_t own_uid_;
  gid_t own_gid_;
  bool changed_;
};

}  // namespace spanprof::collect
