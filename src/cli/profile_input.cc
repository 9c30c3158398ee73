#include "cli/profile_input.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "base/printable_text.h"
#include "base/quantity.h"
#include "base/unique_fd.h"
#include "cli/progress.h"
#include "format/format.h"
#include "format/jfr_file.h"
#include "profile/profile_query.h"
#include "symbols/symbolise.h"

namespace spanprof::cli {
namespace {

tl::unexpected<Error> CannotRead(const std::string& file, int error_number, std::string hint = {}) {
  if (error_number == ENOENT) hint = "give the name of a profile; `spanprof record` makes one";
  return Fail(error_number,
              "cannot read " + Quoted(file) + ": " + std::generic_category().message(error_number),
              std::move(hint));
}

tl::unexpected<Error> TooLarge(const std::string& file, const InputOptions& options) {
  return Fail(
      EFBIG,
      Quoted(file) + " is larger than --max-memory allows (" + FormatSize(options.max_memory) + ")",
      "give a larger limit: --max-memory 4g");
}

Result<std::string> ReadAll(int fd, const std::string& file, const InputOptions& options) {
  std::string bytes;
  constexpr std::size_t kStep = std::size_t{1} << 20;
  for (;;) {
    const std::size_t before = bytes.size();
    if (before > options.max_memory) return TooLarge(file, options);
    bytes.resize(before + kStep);
    const ssize_t count = read(fd, bytes.data() + before, kStep);
    const int error_number = errno;
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error_number != EINTR) return CannotRead(file, error_number);
    if (count == 0) return bytes;
  }
}

// Links are followed for reading: whoever names one means what it leads to. The part file stands
// beside that, so the link has to be resolved before.
Result<std::string> RealPath(const std::string& file) {
  const std::unique_ptr<char, decltype(&std::free)> path(realpath(file.c_str(), nullptr),
                                                         &std::free);
  if (path == nullptr) return CannotRead(file, errno);
  return std::string(path.get());
}

Result<void> CheckSize(const std::string& path, const std::string& file,
                       const InputOptions& options) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return {};
  if (static_cast<std::uint64_t>(status.st_size) > options.max_memory) {
    return TooLarge(file, options);
  }
  return {};
}

class InputReader {
 public:
  InputReader(const InputOptions& options, std::vector<std::string>& notes)
      : options_(options), notes_(notes) {
    limits_.max_memory = options.max_memory;
    limits_.max_uncompressed = options.max_memory;
  }

  Result<profile::Profile> Read(const std::string& file) {
    if (file == "-") {
      const Result<std::string> bytes = ReadAll(STDIN_FILENO, file, options_);
      if (!bytes) return tl::make_unexpected(bytes.error());
      return Parse("the standard input", *bytes);
    }
    const Result<std::string> path = RealPath(file);
    if (!path) return tl::make_unexpected(path.error());
    return ReadPath(*path, file);
  }

 private:
  Result<profile::Profile> ReadPath(const std::string& path, const std::string& file) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd.valid()) {
      return CannotRead(
          file, errno,
          errno == EACCES ? "profiles are written for their owner only (mode 0600)" : "");
    }
    struct stat status = {};
    if (fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
      return CannotRead(file, EISDIR, "give the files in it");
    }
    char start[4] = {};
    const bool is_jfr = S_ISREG(status.st_mode) && pread(fd.get(), start, sizeof(start), 0) == 4 &&
                        std::equal(start, start + 4, "FLR\0");
    // A process that has not finished its first chunk has an empty file and a part file.
    const bool is_begun = S_ISREG(status.st_mode) && status.st_size == 0 &&
                          access(format::JfrPartPath(path).c_str(), F_OK) == 0;
    if (is_jfr || is_begun) return ReadJfr(path, file);
    const Result<std::string> bytes = ReadAll(fd.get(), file, options_);
    if (!bytes) return tl::make_unexpected(bytes.error());
    return Parse(Quoted(file), *bytes);
  }

  Result<profile::Profile> ReadJfr(const std::string& path, const std::string& file) {
    for (const std::string& each : {path, format::JfrPartPath(path)}) {
      if (Result<void> fits = CheckSize(each, file, options_); !fits) {
        return tl::make_unexpected(fits.error());
      }
    }
    Result<format::JfrFileContents> contents = format::ReadJfrFile(path, limits_);
    if (!contents) return Named(Quoted(file), contents.error());
    if (!contents->warning.empty()) notes_.push_back(Quoted(file) + ": " + contents->warning);
    return std::move(contents->profile);
  }

  Result<profile::Profile> Parse(const std::string& name, std::string_view bytes) {
    const Result<OutputFormat> format = format::FormatOfBytes(bytes);
    if (!format) return Named(name, format.error());
    Result<profile::Profile> profile = format::ReadProfile(bytes, *format, limits_);
    if (!profile) return Named(name, profile.error());
    return profile;
  }

  // Readers know bytes, not files.
  static tl::unexpected<Error> Named(const std::string& name, const Error& error) {
    std::string hint = error.hint;
    if (error.code == EFBIG) hint = "give a larger limit: --max-memory 4g";
    return Fail(error.code, name + ": " + error.message, std::move(hint));
  }

  const InputOptions& options_;
  std::vector<std::string>& notes_;
  format::ReadLimits limits_;
};

// Whether there is anything to look up. The profile is copied for it, which takes time.
bool LacksSymbols(const profile::Profile& profile) {
  const auto& frames = profile.frames();
  return std::any_of(frames.begin(), frames.end(), [](const profile::Frame& frame) {
    return frame.mapping != profile::kNone && frame.line == 0 && !frame.inlined;
  });
}

void AddSymbols(profile::Profile& profile, const InputOptions& options,
                std::vector<std::string>& notes) {
  symbols::SymboliserOptions settings;
  settings.debug_folders.insert(settings.debug_folders.begin(), options.debug_folders.begin(),
                                options.debug_folders.end());
  settings.root = options.root;
  settings.inlined = !options.no_inlined;
  // Twice: the symbolised profile is larger than the one it is made from.
  settings.max_memory = std::max<std::uint64_t>(2 * options.max_memory, options.max_memory);
  if (const Result<void> done = symbols::Symbolise(profile, settings); !done) {
    notes.push_back("without further symbols: " + done.error().message);
  }
}

}  // namespace

void AddInputOptions(CLI::App& command, InputOptions& options) {
  command
      .add_option("FILE", options.files,
                  "Profiles to read: pprof, OTLP, JFR or folded stacks, told by their content; "
                  "several are merged; - is the standard input")
      ->required()
      ->type_name("FILE");
  command.add_flag("--no-symbols", options.no_symbols,
                   "Leave names as they are: look for no binaries and debug files");
  command.add_flag("--no-inlined", options.no_inlined,
                   "Do not show functions that were inlined into others");
  command
      .add_option("--debug-folder", options.debug_folders,
                  "Look here for debug files, before /usr/lib/debug; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      .add_option(
          "--root", options.root,
          "Look for the profile's binaries below this folder: a container's root, or a copy")
      ->type_name("DIR");
  command
      .add_option_function<std::string>(
          "--max-memory",
          [&options](const std::string& text) {
            const auto size = ParseSize(text);
            if (!size || *size == 0) {
              throw CLI::ValidationError("--max-memory", "'" + text + "' is not a size such as 1g");
            }
            options.max_memory = *size;
          },
          "Refuse files that need more memory than this: 1g (default), 512m, ...")
      ->type_name("SIZE");
}

Result<InputProfile> ReadInput(const InputOptions& options) {
  Progress progress;
  std::vector<std::string> notes;
  InputReader reader(options, notes);
  std::optional<profile::Profile> all;
  for (const std::string& file : options.files) {
    progress.Show("reading " + file);
    Result<profile::Profile> profile = reader.Read(file);
    if (!profile) return tl::make_unexpected(profile.error());
    if (options.files.size() == 1) {
      all = std::move(*profile);
    } else {
      if (!all) all.emplace(options.max_memory);
      profile::Merge(*all, *profile);
    }
  }
  if (!all) return Fail(EINVAL, "no profile was given", "name a file");
  if (!options.no_symbols && LacksSymbols(*all)) {
    progress.Show("looking for symbols");
    AddSymbols(*all, options, notes);
  }
  return InputProfile{.profile = std::move(*all), .notes = std::move(notes)};
}

}  // namespace spanprof::cli
