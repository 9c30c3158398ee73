#include "base/nearest_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace spanprof {
namespace {

// No name is longer; a longer word is not a misspelling of one.
constexpr std::size_t kMaxBytes = 32;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the optimal string alignment distance. Both texts are at most kMaxBytes long.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kMaxBytes + 1>, kMaxBytes + 1> distance{};
  for (std::size_t i = 0; i <= a.size(); ++i) distance[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) distance[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = Lower(a[i - 1]);
      const char y = Lower(b[j - 1]);
      std::size_t best = std::min(distance[i - 1][j] + 1, distance[i][j - 1] + 1);
      best = std::min(best, distance[i - 1][j - 1] + (x == y ? 0 : 1));
      if (i > 1 && j > 1 && x == Lower(b[j - 2]) && Lower(a[i - 2]) == y) {
        best = std::min(best, distance[i - 2][j - 2] + 1);
      }
      distance[i][j] = best;
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

std::string_view NearestName(std::string_view word, std::span<const std::string_view> names) {
  std::string_view nearest;
  std::size_t nearest_distance = kMaxBytes;
  if (word.empty() || word.size() > kMaxBytes) return nearest;
  for (const std::string_view name : names) {
    if (name.size() > kMaxBytes) continue;
    const std::size_t allowed = std::max<std::size_t>(1, std::max(word.size(), name.size()) / 3);
    const std::size_t distance = EditDistance(word, name);
    if (distance <= allowed && distance < nearest_distance) {
      nearest = name;
      nearest_distance = distance;
    }
  }
  return nearest;
}

}  // namespace spanprof
