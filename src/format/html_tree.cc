#include "format/html_tree.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <tsl/robin_map.h>

#include "profile/names.h"

namespace spanprof::format {
namespace {

constexpr uint32_t kNoNode = ~uint32_t{0};
constexpr const char* kNoName = "(none)";
constexpr const char* kNoStack = "[no stack]";

// Which of the groups each context (or thread) belongs to.
struct Groups {
  std::vector<std::string> names;
  std::vector<uint8_t> group_of_id;
};

// Keeps the `limit` names of the highest score, the highest first.
Groups ChooseGroups(const std::vector<std::string_view>& name_of_id,
                    const std::vector<double>& score_of_id, size_t limit) {
  std::map<std::string_view, double> scores;
  for (size_t id = 0; id < name_of_id.size(); ++id) {
    if (score_of_id[id] > 0) scores[name_of_id[id]] += score_of_id[id];
  }
  std::vector<std::pair<double, std::string_view>> ranking;
  ranking.reserve(scores.size());
  for (const auto& [name, score] : scores) ranking.emplace_back(-score, name);
  std::sort(ranking.begin(), ranking.end());
  const bool has_other = ranking.size() > limit;
  ranking.resize(std::min(ranking.size(), limit));

  Groups groups;
  std::map<std::string_view, uint8_t> number_of_name;
  for (const auto& [score, name] : ranking) {
    number_of_name[name] = static_cast<uint8_t>(groups.names.size());
    groups.names.emplace_back(name);
  }
  const auto other = static_cast<uint8_t>(groups.names.size());
  if (has_other) groups.names.emplace_back(kOtherGroup);
  for (const std::string_view name : name_of_id) {
    const auto found = number_of_name.find(name);
    groups.group_of_id.push_back(found == number_of_name.end() ? other : found->second);
  }
  return groups;
}

struct MixedHash {
  size_t operator()(uint64_t key) const {
    key *= 0x9E37'79B9'7F4A'7C15u;
    return key ^ key >> 32;
  }
};

// All stacks as one tree of names. A node's number is higher than its parent's.
struct FullTree {
  std::vector<HtmlTreeNode> nodes;
  std::vector<uint32_t> node_of_stack;
};

class Builder {
 public:
  Builder(const profile::Profile& profile, const HtmlTreeLimits& limits)
      : profile_(profile), limits_(limits) {
    limits_.groups = std::min<size_t>(limits_.groups, 254);  // their numbers are bytes
  }

  HtmlTrees Build() {
    ChooseEndpointsAndThreads();
    BuildFullTree();
    size_t kinds = 0;
    std::array<bool, profile::kSampleKindCount> is_present{};
    for (const profile::Sample& sample : profile_.samples()) {
      bool& present = is_present[static_cast<size_t>(sample.kind)];
      kinds += present ? 0 : 1;
      present = true;
    }
    for (size_t kind = 0; kind < is_present.size(); ++kind) {
      if (is_present[kind]) BuildKind(kind, limits_.nodes / kinds, limits_.entries / kinds);
    }
    return std::move(trees_);
  }

 private:
  void ChooseEndpointsAndThreads() {
    std::array<profile::Sample, profile::kSampleKindCount> sums{};
    for (const profile::Sample& sample : profile_.samples()) {
      sums[static_cast<size_t>(sample.kind)].value += sample.value;
      sums[static_cast<size_t>(sample.kind)].count += sample.count;
    }
    std::vector<double> context_scores(profile_.contexts().size());
    std::vector<double> thread_scores(profile_.threads().size());
    for (const profile::Sample& sample : profile_.samples()) {
      // The share of its kind, so that bytes and nanoseconds can be compared.
      const profile::Sample& sum = sums[static_cast<size_t>(sample.kind)];
      const double score =
          static_cast<double>(sample.value) / std::max(1.0, static_cast<double>(sum.value)) +
          static_cast<double>(sample.count) / std::max(1.0, static_cast<double>(sum.count)) / 1e6;
      context_scores[sample.context] += score;
      thread_scores[sample.thread] += score;
    }
    std::vector<std::string_view> names;
    for (const profile::Context& context : profile_.contexts()) {
      const std::string_view name = profile_.Text(profile_.EndpointOf(context.root_span_id));
      names.push_back(name.empty() ? kNoName : name);
    }
    endpoints_ = ChooseGroups(names, context_scores, limits_.groups);
    names.clear();
    std::deque<std::string> numbers;
    for (const profile::Thread& thread : profile_.threads()) {
      if (thread.name != profile::kNone) {
        names.push_back(profile_.Text(thread.name));
      } else {
        numbers.push_back(thread.tid == 0 ? kNoName : std::to_string(thread.tid));
        names.push_back(numbers.back());
      }
    }
    threads_ = ChooseGroups(names, thread_scores, limits_.groups);
    trees_.endpoints = endpoints_.names;
    trees_.threads = threads_.names;
  }

  uint32_t AddName(const std::string& text, profile::FrameKind kind) {
    const auto [entry, is_new] = name_numbers_.emplace(text, trees_.names.size());
    if (is_new) trees_.names.push_back({text, kind});
    return entry->second;
  }

  void BuildFullTree() {
    const uint32_t root_name = AddName("all", profile::FrameKind::kMarker);
    const uint32_t no_stack_name = AddName(kNoStack, profile::FrameKind::kMarker);
    small_name_ = AddName(kSmallFrames, profile::FrameKind::kMarker);
    std::vector<uint32_t> name_of_frame(profile_.frames().size(), no_stack_name);
    for (profile::FrameId id = 1; id < name_of_frame.size(); ++id) {
      name_of_frame[id] = AddName(profile::FrameName(profile_, id), profile_.frames()[id].kind);
    }
    full_.nodes = {{.parent = 0, .name = root_name}, {.parent = 0, .name = no_stack_name}};
    full_.node_of_stack.resize(profile_.stacks().size());
    tsl::robin_map<uint64_t, uint32_t, MixedHash> children;
    for (profile::StackId id = 0; id < full_.node_of_stack.size(); ++id) {
      const profile::Stack& stack = profile_.stacks()[id];
      if (id == profile::kNone) {
        full_.node_of_stack[id] = 1;
        continue;
      }
      // A stack is made after the one below it.
      const uint32_t parent =
          stack.parent == profile::kNone ? 0 : full_.node_of_stack[stack.parent];
      const uint32_t name = name_of_frame[stack.frame];
      const auto [entry, is_new] = children.emplace(uint64_t{parent} << 32 | name,
                                                    static_cast<uint32_t>(full_.nodes.size()));
      if (is_new) full_.nodes.push_back({.parent = parent, .name = name});
      full_.node_of_stack[id] = entry->second;
    }
  }

  static void MergeEntries(std::vector<HtmlTreeEntry>& entries) {
    const auto key = [](const HtmlTreeEntry& entry) {
      return std::tuple(entry.node, entry.endpoint, entry.thread);
    };
    std::sort(entries.begin(), entries.end(),
              [&](const HtmlTreeEntry& a, const HtmlTreeEntry& b) { return key(a) < key(b); });
    size_t size = 0;
    for (const HtmlTreeEntry& entry : entries) {
      if (size != 0 && key(entries[size - 1]) == key(entry)) {
        entries[size - 1].value += entry.value;
        entries[size - 1].count += entry.count;
      } else {
        entries[size++] = entry;
      }
    }
    entries.resize(size);
  }

  void BuildKind(size_t kind, size_t max_nodes, size_t max_entries) {
    std::vector<HtmlTreeEntry> entries;
    uint64_t sum = 0;
    for (const profile::Sample& sample : profile_.samples()) {
      if (static_cast<size_t>(sample.kind) != kind) continue;
      entries.push_back({.node = full_.node_of_stack[sample.stack],
                         .endpoint = endpoints_.group_of_id[sample.context],
                         .thread = threads_.group_of_id[sample.thread],
                         .value = sample.value,
                         .count = sample.count});
      sum |= sample.value;
    }
    MergeEntries(entries);
    // What nodes weigh with all that is above them; used ones at least 1.
    std::vector<uint64_t> weights(full_.nodes.size());
    for (const HtmlTreeEntry& entry : entries) {
      weights[entry.node] += std::max<uint64_t>(1, sum != 0 ? entry.value : entry.count);
    }
    for (size_t node = weights.size() - 1; node > 0; --node) {
      weights[full_.nodes[node].parent] += weights[node];
    }
    std::vector<uint32_t> used;
    for (uint32_t node = 0; node < weights.size(); ++node) {
      if (weights[node] != 0) used.push_back(node);
    }
    // The heaviest first, as far as they can be kept. A parent stands before its children, so any
    // beginning of it is a tree.
    const auto is_heavier = [&](uint32_t a, uint32_t b) {
      return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
    };
    const size_t most = std::min(used.size(), std::max<size_t>(1, max_nodes));
    const auto end_of_most = used.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(used.begin(), end_of_most, used.end(), is_heavier);
    std::sort(used.begin(), end_of_most, is_heavier);
    HtmlTree& tree = trees_.kinds[kind];
    for (size_t keep = most;; keep /= 2) {
      tree = Trim(used, keep, entries);
      if (tree.entries.size() <= max_entries || keep <= 1) break;
    }
  }

  // The tree of the first `keep` of `used`, and what is above them folded into one node each.
  HtmlTree Trim(const std::vector<uint32_t>& used, size_t keep,
                const std::vector<HtmlTreeEntry>& entries) const {
    HtmlTree tree;
    tree.nodes_left_out = used.size() - keep;
    // Lists of children; since the heaviest come first, they are put in from the lightest.
    std::vector<uint32_t> first_child(full_.nodes.size(), kNoNode);
    std::vector<uint32_t> next_sibling(full_.nodes.size(), kNoNode);
    std::vector<bool> is_kept(full_.nodes.size());
    std::vector<bool> has_small(full_.nodes.size());
    for (size_t i = used.size(); i-- > 0;) {
      const uint32_t parent = full_.nodes[used[i]].parent;
      if (i >= keep) {
        has_small[parent] = true;
        continue;
      }
      is_kept[used[i]] = true;
      if (used[i] == 0) continue;
      next_sibling[used[i]] = first_child[parent];
      first_child[parent] = used[i];
    }
    std::vector<uint32_t> new_number(full_.nodes.size(), kNoNode);
    std::vector<uint32_t> small_number(full_.nodes.size(), kNoNode);
    std::vector<uint32_t> pending = {0};
    while (!pending.empty()) {
      const uint32_t node = pending.back();
      pending.pop_back();
      new_number[node] = static_cast<uint32_t>(tree.nodes.size());
      const uint32_t parent = node == 0 ? 0 : new_number[full_.nodes[node].parent];
      tree.nodes.push_back({.parent = parent, .name = full_.nodes[node].name});
      if (has_small[node]) {
        small_number[node] = static_cast<uint32_t>(tree.nodes.size());
        tree.nodes.push_back({.parent = new_number[node], .name = small_name_});
      }
      const size_t begin = pending.size();
      for (uint32_t child = first_child[node]; child != kNoNode; child = next_sibling[child]) {
        pending.push_back(child);
      }
      std::reverse(pending.begin() + static_cast<std::ptrdiff_t>(begin), pending.end());
    }
    for (HtmlTreeEntry entry : entries) {
      uint32_t node = entry.node;
      while (!is_kept[node]) node = full_.nodes[node].parent;
      entry.node = node == entry.node ? new_number[node] : small_number[node];
      tree.entries.push_back(entry);
    }
    MergeEntries(tree.entries);
    return tree;
  }

  const profile::Profile& profile_;
  HtmlTreeLimits limits_;
  HtmlTrees trees_;
  Groups endpoints_;
  Groups threads_;
  std::unordered_map<std::string, uint32_t> name_numbers_;
  uint32_t small_name_ = 0;
  FullTree full_;
};

}  // namespace

HtmlTrees BuildHtmlTrees(const profile::Profile& profile, const HtmlTreeLimits& limits) {
  return Builder(profile, limits).Build();
}

}  // namespace spanprof::format
