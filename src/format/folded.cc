// Folded stacks: a line a stack, "outermost;...;innermost value", as flamegraph.pl, inferno and
// speedscope read them.
//
// They split a line at its last space and a stack at each semicolon, and know no escapes. So spaces
// stay as they are, and what would break a line or a stack is written as \x3b, \n and so on, which
// our reader undoes and the others show. A folded file holds names and one sum a stack: no
// contexts, no threads, no times, no counts where there are nanoseconds, no resource.

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable_text.h"
#include "format/format.h"
#include "format/format_budget.h"
#include "format/format_text.h"
#include "profile/names.h"

namespace spanprof::format {
namespace {

constexpr std::string_view kNoStack = "[no stack]";

void AppendEscaped(std::string& out, std::string_view name) {
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == ';' || byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    } else {
      out += c;
    }
  }
}

std::string Unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto code = text.size() >= 4 && text[1] == 'x' ? ParseHex(text.substr(2, 2))
                                                         : std::optional<uint64_t>();
    if (code) {
      out += static_cast<char>(*code);
      text.remove_prefix(4);
    } else if (text.size() >= 2 && (text[1] == '\\' || text[1] == 'n')) {
      out += text[1] == 'n' ? '\n' : '\\';
      text.remove_prefix(2);
    } else {
      out += '\\';  // someone else's name
      text.remove_prefix(1);
    }
  }
  return out;
}

profile::SampleKind ChooseKind(const profile::Profile& profile, const WriteOptions& options) {
  if (options.kind) return *options.kind;
  auto first = static_cast<profile::SampleKind>(profile::kSampleKindCount);
  for (const profile::Sample& sample : profile.samples()) first = std::min(first, sample.kind);
  return first;
}

std::string StackText(const profile::Profile& profile, profile::StackId stack) {
  std::vector<profile::FrameId> frames = profile.FramesOf(stack);
  std::reverse(frames.begin(), frames.end());
  std::string text;
  for (const profile::FrameId frame : frames) {
    if (!text.empty()) text += ';';
    AppendEscaped(text, ToUtf8(FrameName(profile, frame)));
  }
  return text.empty() ? std::string(kNoStack) : text;
}

class Reader {
 public:
  Reader(std::string_view bytes, const ReadLimits& limits)
      : bytes_(bytes), budget_(limits.max_memory), profile_(limits.max_memory) {}

  Result<profile::Profile> Read() {
    size_t offset = 0;
    while (offset < bytes_.size()) {
      const size_t end = std::min(bytes_.find('\n', offset), bytes_.size());
      std::string_view line = bytes_.substr(offset, end - offset);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty() && !ReadLine(line)) {
        return Fail(EINVAL, "not folded stacks: line " + std::to_string(number_) + " at byte " +
                                std::to_string(offset) + " is " + Quoted(line) +
                                ", not a stack, a space and a number");
      }
      if (number_ % kLinesPerCheck == 0 && IsOverfull(profile_)) break;
      ++number_;
      offset = end + 1;
    }
    if (IsOverfull(profile_)) return TooLarge("the file of folded stacks", budget_.limit());
    if (profile_.samples().empty()) return Fail(EINVAL, "not folded stacks: the file has no line");
    return std::move(profile_);
  }

 private:
  bool ReadLine(std::string_view line) {
    const size_t space = line.rfind(' ');
    if (space == std::string_view::npos || space == 0) return false;
    const auto value = ParseDecimal(line.substr(space + 1));
    if (!value) return false;
    std::string_view stack = line.substr(0, space);
    frames_.clear();
    while (stack != kNoStack) {
      const size_t end = std::min(stack.find(';'), stack.size());
      const std::string name = Unescape(stack.substr(0, end));
      if (!name.empty()) {
        frames_.push_back(
            profile_.AddFrame({.function = profile_.AddFunction({.name = profile_.Intern(name)})}));
      }
      if (end == stack.size()) break;
      stack.remove_prefix(end + 1);
    }
    profile_.AddSample({.stack = profile_.AddStack(frames_), .value = *value});
    return true;
  }

  static constexpr size_t kLinesPerCheck = 4096;

  std::string_view bytes_;
  ReadBudget budget_;
  profile::Profile profile_;
  std::vector<profile::FrameId> frames_;
  size_t number_ = 1;
};

}  // namespace

Result<std::string> WriteFolded(const profile::Profile& profile, const WriteOptions& options) {
  const profile::SampleKind kind = ChooseKind(profile, options);
  // Where there are no nanoseconds or bytes, the samples are counted.
  uint64_t total_value = 0;
  for (const profile::Sample& sample : profile.samples()) {
    if (sample.kind == kind) total_value |= sample.value;
  }
  std::vector<uint64_t> sums(profile.stacks().size());
  for (const profile::Sample& sample : profile.samples()) {
    if (sample.kind == kind) sums[sample.stack] += total_value != 0 ? sample.value : sample.count;
  }
  // Frames that differ in their lines only are one line here; sorted, so that files can be
  // compared.
  std::map<std::string, uint64_t> lines;
  for (profile::StackId stack = 0; stack < sums.size(); ++stack) {
    if (sums[stack] != 0) lines[StackText(profile, stack)] += sums[stack];
  }
  std::string out;
  for (const auto& [stack, sum] : lines) out += stack + " " + std::to_string(sum) + "\n";
  return out;
}

Result<profile::Profile> ReadFolded(std::string_view bytes, const ReadLimits& limits) {
  return Reader(bytes, limits).Read();
}

}  // namespace spanprof::format
