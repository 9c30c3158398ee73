#pragma once

// The trees of a page: the samples of each kind added up by stack, small enough for a browser.
//
// A page filters by endpoint and by thread, so a tree does not hold one number a node but a list of
// (node, endpoint, thread, value, count); the page adds up those that are asked for. Everything is
// bounded: only the largest endpoints, threads and nodes are kept by name, the others are added up
// as "(other)", so that the totals are always those of the whole profile.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace spanprof::format {

struct HtmlTreeLimits {
  size_t groups = 20;        // endpoints, and threads, besides "(other)"; 254 at most
  size_t nodes = 60'000;     // of all kinds together
  size_t entries = 250'000;  // of all kinds together
};

// A node stands before its children, and after its parent's other children with what is below them:
// the nodes of a subtree are neighbours. Node 0 is the root.
struct HtmlTreeNode {
  uint32_t parent = 0;
  uint32_t name = 0;  // index into HtmlTrees::names
};

struct HtmlTreeEntry {
  uint32_t node = 0;  // in which the samples ended
  uint8_t endpoint = 0;
  uint8_t thread = 0;
  uint64_t value = 0;
  uint64_t count = 0;
};

struct HtmlTree {
  std::vector<HtmlTreeNode> nodes;     // empty: no sample of this kind
  std::vector<HtmlTreeEntry> entries;  // by node
  size_t nodes_left_out = 0;           // their samples are in nodes named kSmallFrames
};

struct HtmlTrees {
  struct Name {
    std::string text;
    profile::FrameKind kind = profile::FrameKind::kMarker;
  };
  std::vector<Name> names;
  std::vector<std::string> endpoints;  // as GroupSamples() names them
  std::vector<std::string> threads;
  std::array<HtmlTree, profile::kSampleKindCount> kinds;
};

inline constexpr const char* kSmallFrames = "(smaller frames)";
inline constexpr const char* kOtherGroup = "(other)";

HtmlTrees BuildHtmlTrees(const profile::Profile& profile, const HtmlTreeLimits& limits = {});

}  // namespace spanprof::format
