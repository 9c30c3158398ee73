#include "collect/process_directory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <utility>

namespace spanprof::collect {
namespace {

constexpr std::size_t kMaxStatusBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxCommBytes = 64;
constexpr std::size_t kMaxNamespaceDepth = 64;  // the kernel allows 32

// Returns what stands behind `name:` on its own line.
std::optional<std::string_view> StatusLine(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    const std::size_t end = std::min(status.find('\n'), status.size());
    const std::string_view line = status.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
    status.remove_prefix(std::min(end + 1, status.size()));
  }
  return std::nullopt;
}

std::optional<uint32_t> TakeNumber(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return number;
}

Result<FileText> ReadAt(int directory, const std::string& name, const std::string& shown_path,
                        std::size_t max_bytes) {
  const UniqueFd file(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  const auto fail = [&](int code) {
    return Fail(code, "cannot read " + shown_path + "/" + name + ": " + std::strerror(code));
  };
  if (!file.valid()) return fail(errno);
  FileText result;
  std::size_t size = 0;
  for (;;) {
    result.text.resize(std::min(max_bytes + 1, std::max<std::size_t>(size * 2, 4096)));
    const ssize_t got = read(file.get(), result.text.data() + size, result.text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > max_bytes) {
      size = max_bytes;
      result.truncated = true;
      break;
    }
  }
  result.text.resize(size);
  return result;
}

}  // namespace

std::vector<uint32_t> ParseNamespacePids(std::string_view status) {
  std::vector<uint32_t> numbers;
  auto line = StatusLine(status, "NSpid");
  if (!line) return numbers;
  while (numbers.size() < kMaxNamespaceDepth) {
    const auto number = TakeNumber(*line);
    if (!number) break;
    numbers.push_back(*number);
  }
  if (!line->empty()) numbers.clear();
  return numbers;
}

std::optional<uint32_t> ParseStatusNumber(std::string_view status, std::string_view name) {
  auto line = StatusLine(status, name);
  if (!line) return std::nullopt;
  return TakeNumber(*line);
}

Result<ProcessDirectory> ProcessDirectory::Open(pid_t pid) {
  auto directory = OpenPath("/proc/" + std::to_string(pid), pid);
  if (!directory) return directory;
  const auto status = directory->ReadFile("status", kMaxStatusBytes);
  if (!status) return tl::make_unexpected(status.error());
  const auto group = ParseStatusNumber(status->text, "Tgid");
  if (group && *group != static_cast<uint32_t>(pid) && *group <= INT32_MAX) {
    const auto leader = static_cast<pid_t>(*group);
    return OpenPath("/proc/" + std::to_string(leader), leader);
  }
  return directory;
}

Result<ProcessDirectory> ProcessDirectory::OpenPath(const std::string& path, pid_t pid) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    const int code = errno == ENOENT ? ESRCH : errno;
    return Fail(code, "cannot open " + path + ": " + std::strerror(code));
  }
  ProcessDirectory directory(std::move(fd), path, pid);
  const auto status = directory.ReadFile("status", kMaxStatusBytes);
  if (!status) return tl::make_unexpected(status.error());
  const auto numbers = ParseNamespacePids(status->text);
  directory.same_namespace_ = numbers.size() < 2;
  directory.namespace_pid_ = numbers.empty() ? static_cast<uint32_t>(pid) : numbers.back();
  return directory;
}

Result<FileText> ProcessDirectory::ReadFile(const std::string& name, std::size_t max_bytes) const {
  auto text = ReadAt(directory_.get(), name, path_, max_bytes);
  // Of a process that has ended the directory is still there, its files are not.
  if (!text && text.error().code == ENOENT) text.error().code = ESRCH;
  return text;
}

Result<std::vector<Task>> ProcessDirectory::ListTasks() const {
  UniqueFd fd(openat(directory_.get(), "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    const int code = errno == ENOENT ? ESRCH : errno;
    return Fail(code, "cannot open " + path_ + "/task: " + std::strerror(code));
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(fd.get()), &closedir);
  if (!stream) return Fail(errno, "cannot list " + path_ + "/task: " + std::strerror(errno));
  const int list_fd = fd.Release();  // closed by closedir now

  std::vector<Task> tasks;
  while (tasks.size() < kMaxTasks) {
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string number = entry->d_name;
    Task task;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), task.tid);
    if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || task.tid <= 0) {
      continue;
    }
    auto name = ReadAt(list_fd, number + "/comm", path_ + "/task", kMaxCommBytes);
    if (!name) continue;
    task.name = std::move(name->text);
    if (task.name.ends_with('\n')) task.name.pop_back();
    task.namespace_tid = static_cast<uint32_t>(task.tid);
    if (!same_namespace_) {
      const auto status = ReadAt(list_fd, number + "/status", path_ + "/task", kMaxStatusBytes);
      if (!status) continue;
      const auto numbers = ParseNamespacePids(status->text);
      if (numbers.empty()) continue;
      task.namespace_tid = numbers.back();
    }
    tasks.push_back(std::move(task));
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const Task& left, const Task& right) { return left.tid < right.tid; });
  return tasks;
}

}  // namespace spanprof::collect
