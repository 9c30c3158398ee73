#pragma once

// Reports that could not be sent, kept on disk until they can: `spool=DIR`. It survives a restart,
// and several processes of one user may share it.
//
//   Result<Spool> spool = Spool::Open("/var/spool/shop", {}, counters);
//   if (!spool) return spool.error();
//   spool->Add(report);
//   while (std::optional<Spool::Item> item = spool->TakeOldest(OutputFormat::kOtlp)) {
//     if (!Send(item->report)) break;  // it stays
//     spool->Remove(*item);
//   }
//
// A profile tells what a program does, so the directory has to be this user's own, closed to others
// (mode 0700; it is made so if it is missing) and not a symbolic link; files have mode 0600. What
// is not a plain file of this user named as the spool names files is never touched.
//
// Bounded: the oldest are removed to make room. A file that is broken is renamed to NAME.corrupt
// and counted; it takes room like any other, until it is the oldest.
//
// One thread at a time. Not to be kept across a fork: it holds the directory's descriptor.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/options.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "export/send_counters.h"
#include "export/spool_file.h"

namespace spanprof::sending {

struct SpoolLimits {
  std::uint64_t max_files = 240;
  std::uint64_t max_bytes = std::uint64_t{128} << 20;
};

class Spool {
 public:
  // A report that this process is sending: no other process takes it as long as this lives.
  struct Item {
    std::string name;
    Report report;
    UniqueFd lock;
  };

  // EPERM, ELOOP, ENOTDIR, ENOENT (the parent) with what to do.
  [[nodiscard]] static Result<Spool> Open(const std::string& directory, SpoolLimits limits,
                                          std::shared_ptr<SendCounters> counters);

  // Keeps `report`, after removing the oldest if need be. EFBIG for one that alone is beyond the
  // bound; ENOSPC and others from the file system.
  [[nodiscard]] Result<void> Add(const Report& report);

  // Returns the oldest report of `format` that it has not returned yet; absent if there is none.
  [[nodiscard]] std::optional<Item> TakeOldest(OutputFormat format);

  void Remove(Item& item);
  // Lets another process take it.
  static void PutBack(Item& item);

 private:
  Spool(UniqueFd directory, SpoolLimits limits, std::shared_ptr<SendCounters> counters);

  void MakeRoom(std::uint64_t size);

  UniqueFd directory_;
  SpoolLimits limits_;
  std::shared_ptr<SendCounters> counters_;
  std::set<std::string> seen_;
};

}  // namespace spanprof::sending
