#include "coroutine/coroutine_groups.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spanprof::coroutine {

std::vector<CoroutineGroup> GroupCoroutines(const CoroutineHistory& history) {
  std::map<std::string, CoroutineGroup> by_name;
  for (std::size_t i = 0; i < history.coroutines().size(); ++i) {
    const Coroutine& coroutine = history.coroutines()[i];
    CoroutineGroup& group = by_name[history.GroupName(coroutine)];
    ++group.coroutines;
    group.finished += coroutine.finished ? 1 : 0;
    group.resumes += coroutine.resumes;
    group.migrations += coroutine.migrations;
    group.run_nanoseconds += coroutine.run_nanoseconds;
    group.longest_run = std::max(group.longest_run, coroutine.longest_run);
    if (coroutine.status != CoroutineStatus::kDead) continue;
    ++group.destroyed;
    if (!coroutine.adopted) {
      group.lifetimes.Add(coroutine.since - std::min(coroutine.since, coroutine.birth), i);
    }
  }
  std::vector<CoroutineGroup> groups;
  groups.reserve(by_name.size());
  for (auto& [name, group] : by_name) {
    group.name = name;
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(), [](const CoroutineGroup& a, const CoroutineGroup& b) {
    if (a.run_nanoseconds != b.run_nanoseconds) return a.run_nanoseconds > b.run_nanoseconds;
    return a.name < b.name;
  });
  return groups;
}

}  // namespace spanprof::coroutine
