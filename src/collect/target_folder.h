#pragma once

// Files for another process, in its own filesystem: that of a container, say. Its folders are
// reached from its root without ever leaving it, whatever links stand in the way.
//
//   UniqueFd tmp = OpenBeneathRoot(root, "tmp", O_PATH | O_DIRECTORY);
//   Result<TargetFolder> folder = TargetFolder::Create(root, pid, owner, TargetFolder::Use::kData);
//   Result<UniqueFd> file = folder->CreateFile("answer", 0600);
//   Tell(folder->PathOf("answer"));   // "/tmp/spanprof-8134-6b1f.../answer", as it sees it
//
// To be used while ActingAs the owner, so that the files are the owner's. Not thread-safe.

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spanprof::collect {

// Opens a path beneath the folder `root` as a process would whose root that is. Not valid on
// failure, with errno.
[[nodiscard]] UniqueFd OpenBeneathRoot(int root, const std::string& path, int flags);

// A new folder that only its owner can look into, with a name that nobody can foresee. It is
// removed at the end with the files that were made in it, unless it is to be kept.
class TargetFolder {
 public:
  enum class Use { kData, kCode };  // code: not where mounts are noexec

  // `pid` is the target's, as it sees it itself: part of the name, for people who find the folder.
  [[nodiscard]] static Result<TargetFolder> Create(int root, std::uint32_t pid, uid_t owner,
                                                   Use use);
  ~TargetFolder();
  TargetFolder(TargetFolder&& other) noexcept;
  TargetFolder& operator=(TargetFolder&&) = delete;

  // Open for reading and writing, whatever its mode.
  [[nodiscard]] Result<UniqueFd> CreateFile(const std::string& name, mode_t mode);
  [[nodiscard]] std::string PathOf(const std::string& name) const { return path_ + "/" + name; }
  void Keep() { kept_ = true; }

 private:
  TargetFolder(UniqueFd parent, UniqueFd folder, std::string name, std::string path)
      : parent_(std::move(parent)),
        folder_(std::move(folder)),
        name_(std::move(name)),
        path_(std::move(path)) {}

  UniqueFd parent_;
  UniqueFd folder_;
  std::string name_;
  std::string path_;
  std::vector<std::string> files_;
  bool kept_ = false;
};

}  // namespace spanprof::collect
