#pragma once

// One row of the table of options, and what the functions that read values share: how a value is
// shown, refused and checked. Only src/base includes this; everyone else uses options.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "base/result.h"

namespace spanprof {

inline constexpr std::size_t kMaxTextBytes = 4096;

enum class OptionKind { kFlag, kChoice, kChoiceList, kInteger, kDuration, kSize, kText };

struct OptionSpec {
  std::string_view name;
  OptionKind kind;

  // Sets the option from its value, which is not empty (for a flag: it is) and still escaped.
  using Parse = Result<void> (*)(const OptionSpec& spec, std::string_view value, Options& options);
  Parse parse;

  // Appends the escaped value that parse() would read, or several where the option adds up.
  using Write = void (*)(const OptionSpec& spec, const Options& options,
                         std::vector<std::string>& values);
  Write write;

  std::string_view example{};                   // a value that is accepted
  std::span<const std::string_view> choices{};  // of a choice, in the order of its enum
  std::uint64_t min = 0;                        // of a number, in ns or bytes where it has units
  std::uint64_t max = 0;                        // the same; the most bytes of a text; or items
  std::string_view accepts{};                   // of kText: what it is, in words
  bool adds_up = false;                         // may be given several times
  bool is_secret = false;                       // the value is never shown
  std::string_view meaning{};
};

// Returns "name='value'" for a message, with a value that is safe to log: of a URL not what may
// hold a password or a key.
[[nodiscard]] std::string Seen(const OptionSpec& spec, std::string_view value);

// Returns what the option accepts: "profiler, otel", "1 to 4194304", "a path".
[[nodiscard]] std::string AcceptedValues(const OptionSpec& spec);

// Returns what to write instead, with an example.
[[nodiscard]] std::string HintFor(const OptionSpec& spec);

// Returns the error "name='value' problem", with HintFor().
[[nodiscard]] tl::unexpected<Error> Refuse(const OptionSpec& spec, std::string_view value,
                                           std::string_view problem);

[[nodiscard]] Result<std::string> UnescapeValue(const OptionSpec& spec, std::string_view value);

// Refuses more than `max_bytes`, control characters, and what is not UTF-8: formats and protocols
// downstream take text only. `part` says which part of the value `text` is; empty if all of it.
[[nodiscard]] Result<void> CheckText(const OptionSpec& spec, std::string_view value,
                                     std::string_view text, std::string_view part,
                                     std::size_t max_bytes);

// Returns the position of `name` among the choices. `value` is what `name` is, or is an item of.
[[nodiscard]] Result<std::size_t> FindChoice(const OptionSpec& spec, std::string_view value,
                                             std::string_view name);

// Refuses a number outside the option's limits.
[[nodiscard]] Result<void> CheckRange(const OptionSpec& spec, std::string_view value,
                                      std::uint64_t number);

}  // namespace spanprof
