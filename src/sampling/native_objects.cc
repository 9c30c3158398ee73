#include "sampling/native_objects.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <fcntl.h>
#include <iterator>
#include <link.h>
#include <mutex>
#include <string_view>
#include <system_error>
#include <ucontext.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/unique_fd.h"

namespace spanprof::sampling {
namespace {

constexpr std::size_t kMaxSegmentsOfObject = 64;
constexpr std::size_t kMaxMappings = 65536;
constexpr std::size_t kMaxMapsBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxLineBytes = 8192;

// Held while the loader's own lock is; see HoldLoaderLists().
std::mutex& LoaderLists() {
  static auto* const kMutex = new std::mutex();  // never destroyed: a fork may come at any time
  return *kMutex;
}

// A plain copy of what the loader shows, into memory that was made before.
struct CopiedSegment {
  std::size_t object;
  uint64_t bias;
  Elf64_Phdr header;
};

struct Copy {
  std::vector<CopiedSegment> segments;  // never grows beyond its capacity
  std::size_t wanted = 0;
  std::size_t objects = 0;
  uint64_t loads = 0;
  uint64_t unloads = 0;
};

int CopyObject(dl_phdr_info* info, std::size_t size, void* data) {
  Copy& copy = *static_cast<Copy*>(data);
  if (size >= offsetof(dl_phdr_info, dlpi_tls_modid)) {
    copy.loads = info->dlpi_adds;
    copy.unloads = info->dlpi_subs;
  }
  const std::size_t count = std::min<std::size_t>(info->dlpi_phnum, kMaxSegmentsOfObject);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD && header.p_type != PT_NOTE && header.p_type != PT_GNU_EH_FRAME) {
      continue;
    }
    ++copy.wanted;
    if (copy.segments.size() == copy.segments.capacity()) continue;
    copy.segments.push_back({.object = copy.objects, .bias = info->dlpi_addr, .header = header});
  }
  ++copy.objects;
  return 0;
}

int CopyChanges(dl_phdr_info* info, std::size_t size, void* data) {
  if (size >= offsetof(dl_phdr_info, dlpi_tls_modid)) {
    *static_cast<uint64_t*>(data) = info->dlpi_adds + info->dlpi_subs;
  }
  return 1;
}

void AddSegment(const Elf64_Phdr& header, LoadedObject& object) {
  if (header.p_type == PT_NOTE) object.notes.push_back(header);
  if (header.p_type == PT_GNU_EH_FRAME) {
    object.header_address = header.p_vaddr;
    object.header_size = header.p_memsz;
  }
  if (header.p_type != PT_LOAD) return;
  object.loads.push_back(header);
  if ((header.p_flags & PF_X) == 0) return;
  const uint64_t end = header.p_vaddr + header.p_memsz;
  object.code_begin =
      object.code_end == 0 ? header.p_vaddr : std::min(object.code_begin, header.p_vaddr);
  object.code_end = std::max(object.code_end, end);
}

template <class T>
bool TakeNumber(std::string_view& text, T& value, int base, char separator) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != separator) return false;
  text.remove_prefix(used + 1);
  return true;
}

// 7f00-7f01 r-xp 00001000 08:01 1234    /path
void ParseLine(std::string_view line, std::vector<ElfMapping>& mappings) {
  ElfMapping mapping;
  if (!TakeNumber(line, mapping.start, 16, '-') || !TakeNumber(line, mapping.end, 16, ' ')) return;
  if (line.size() < 5 || line[2] != 'x') return;
  line.remove_prefix(5);
  unsigned major_number = 0;
  unsigned minor_number = 0;
  if (!TakeNumber(line, mapping.file_offset, 16, ' ') || !TakeNumber(line, major_number, 16, ':') ||
      !TakeNumber(line, minor_number, 16, ' ')) {
    return;
  }
  // The last number has no space behind it where there is no name.
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), mapping.inode);
  if (error != std::errc()) return;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line == "[vsyscall]" || mapping.start >= mapping.end) return;
  mapping.device = makedev(major_number, minor_number);
  mapping.path = line.empty() ? "//anon" : std::string(line);
  if (!mappings.empty() && mapping.start < mappings.back().end) return;
  mappings.push_back(std::move(mapping));
}

}  // namespace

LoadedObjects ListLoadedObjects() {
  Copy copy;
  for (std::size_t room = 1024;; room = copy.wanted + 256) {
    copy = Copy();
    copy.segments.reserve(room);
    {
      const std::lock_guard lock(LoaderLists());
      dl_iterate_phdr(CopyObject, &copy);
    }
    if (copy.wanted == copy.segments.size()) break;
  }
  LoadedObjects result;
  result.loads = copy.loads;
  result.unloads = copy.unloads;
  result.objects.resize(copy.objects);
  for (const CopiedSegment& segment : copy.segments) {
    LoadedObject& object = result.objects[segment.object];
    object.bias = segment.bias;
    AddSegment(segment.header, object);
  }
  return result;
}

void HoldLoaderLists() { LoaderLists().lock(); }
void ReleaseLoaderLists() { LoaderLists().unlock(); }

uint64_t CountLoaderChanges() {
  uint64_t changes = 0;
  const std::lock_guard lock(LoaderLists());
  dl_iterate_phdr(CopyChanges, &changes);
  return changes;
}

std::vector<uint64_t> ListSignalReturns() {
  std::vector<uint64_t> addresses;
#if defined(__x86_64__)
  struct KernelSigaction {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
  };
  constexpr uint64_t kHasRestorer = 0x04000000;
  for (long signal = 1; signal <= 64; ++signal) {
    KernelSigaction action{};
    if (syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof(action.mask)) != 0) continue;
    if ((action.flags & kHasRestorer) == 0 || action.restorer == 0) continue;
    if (std::find(addresses.begin(), addresses.end(), action.restorer) == addresses.end()) {
      addresses.push_back(action.restorer);
    }
  }
#endif
  return addresses;
}

uint64_t FindFiberStart() {
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
  ucontext_t context{};
  if (getcontext(&context) != 0) return 0;
  alignas(16) uint64_t stack[256] = {};
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = sizeof(stack);
  context.uc_link = nullptr;
  makecontext(&context, [] {}, 0);  // never run
#if defined(__x86_64__)
  const auto place = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  const uint64_t index = (place - reinterpret_cast<uint64_t>(stack)) / sizeof(uint64_t);
  return index < std::size(stack) ? stack[index] : 0;
#else
  return context.uc_mcontext.regs[30];
#endif
#else
  return 0;
#endif
}

Result<std::vector<ElfMapping>> ListExecutableMappings(const char* maps_path) {
  const UniqueFd file(open(maps_path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    const int code = errno;
    return Fail(code, std::string("cannot open ") + maps_path + ": " +
                          std::generic_category().message(code));
  }
  std::vector<ElfMapping> mappings;
  std::string text;
  std::size_t total = 0;
  while (total < kMaxMapsBytes && mappings.size() < kMaxMappings) {
    const std::size_t kept = text.size();
    text.resize(kept + 65536);
    const ssize_t count = read(file.get(), text.data() + kept, 65536);
    if (count < 0 && errno == EINTR) {
      text.resize(kept);
      continue;
    }
    if (count < 0) {
      const int code = errno;
      return Fail(code, std::string("cannot read ") + maps_path + ": " +
                            std::generic_category().message(code));
    }
    text.resize(kept + static_cast<std::size_t>(count));
    if (count == 0) break;
    total += static_cast<std::size_t>(count);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
      ParseLine(std::string_view(text).substr(begin, end - begin), mappings);
      begin = end + 1;
    }
    text.erase(0, begin);
    if (text.size() > kMaxLineBytes) return Fail(EINVAL, "the maps file has a line without end");
  }
  return mappings;
}

}  // namespace spanprof::sampling
