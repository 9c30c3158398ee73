#include "symbols/symbolise.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/elf_file.h"
#include "profile/table_copy.h"
#include "symbols/debug_file.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_lines.h"
#include "symbols/symbol_table.h"

namespace spanprof::symbols {
namespace {

using profile::Frame;
using profile::FrameId;
using profile::FrameKind;
using profile::kNone;
using profile::Profile;
using profile::StackId;

// What is known of one mapping's file.
struct Binary {
  std::optional<DwarfLines> lines;
  std::optional<SymbolTable> symbols;
};

std::string_view WithoutDeleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

Binary OpenBinary(const std::string& path, const std::string& build_id,
                  const SymboliserOptions& options, Profile& counters) {
  Binary binary;
  std::optional<ElfFile> file;
  if (Result<ElfFile> opened = ElfFile::Open(path)) {
    const std::string found = opened->BuildId();
    if (!build_id.empty() && found != build_id) {
      counters.AddToCounter("symbolise.build_id_mismatch", 1);
    } else {
      file = std::move(*opened);
    }
  }
  const std::string id = build_id.empty() && file ? file->BuildId() : build_id;
  const auto debug_path = FindDebugFile(file ? &*file : nullptr, path, id, options.debug_folders);
  if (file) binary.symbols = SymbolTable::Read(*file);
  if (debug_path) {
    // The debug file's .symtab is the whole one, of which the binary may have been stripped.
    if (const Result<ElfFile> debug = ElfFile::Open(*debug_path); debug && *debug_path != path) {
      SymbolTable symbols = SymbolTable::Read(*debug);
      if (!binary.symbols || symbols.size() > binary.symbols->size()) {
        binary.symbols = std::move(symbols);
      }
    }
    if (Result<DwarfLines> lines = DwarfLines::Open(*debug_path)) {
      binary.lines = std::move(*lines);
    }
  }
  if (!binary.lines && !binary.symbols) {
    counters.AddToCounter("symbolise.no_file", 1);
  } else if (!binary.lines) {
    counters.AddToCounter("symbolise.no_debug_information", 1);
  }
  return binary;
}

class Rewriter {
 public:
  Rewriter(const Profile& from, Profile& into, const SymboliserOptions& options)
      : from_(from),
        into_(into),
        options_(options),
        copy_(from, into, SamePositions()),
        binaries_(from.mappings().size()),
        frames_(from.frames().size()),
        stacks_(from.stacks().size(), kNotYet) {
    stacks_[kNone] = kNone;
  }

  void Run() {
    into_.start_time_ns = from_.start_time_ns;
    into_.duration_ns = from_.duration_ns;
    into_.resource = from_.resource;
    into_.attribute_names = from_.attribute_names;
    into_.periods = from_.periods;
    for (const auto& [root, endpoint] : from_.endpoints()) {
      into_.SetEndpoint(root, from_.Text(endpoint));
    }
    for (const auto& [name, count] : from_.counters()) into_.AddToCounter(name, count);
    for (profile::Sample sample : from_.samples()) {
      sample.thread = copy_.ToThread(sample.thread);
      sample.context = copy_.ToContext(sample.context);
      sample.stack = ToStack(sample.stack);
      into_.AddSample(sample);
    }
  }

 private:
  static constexpr StackId kNotYet = ~StackId{0};

  static profile::TableCopy::TagPositions SamePositions() {
    profile::TableCopy::TagPositions positions{};
    for (unsigned i = 0; i < positions.size(); ++i) positions[i] = i;
    return positions;
  }

  StackId ToStack(StackId id) {
    // Not by recursion: a stack may be very deep.
    std::vector<StackId> missing;
    StackId known = id;
    while (stacks_[known] == kNotYet) {
      missing.push_back(known);
      known = from_.stacks()[known].parent;
    }
    StackId stack = stacks_[known];
    for (; !missing.empty(); missing.pop_back()) {
      for (const FrameId frame : ToFrames(from_.stacks()[missing.back()].frame)) {
        stack = into_.AddStack(stack, frame);
      }
      stacks_[missing.back()] = stack;
    }
    return stacks_[id];
  }

  // The frames that one becomes, outermost first.
  const std::vector<FrameId>& ToFrames(FrameId id) {
    std::vector<FrameId>& frames = frames_[id];
    if (!frames.empty()) return frames;
    const Frame& frame = from_.frames()[id];
    const bool is_native = frame.kind == FrameKind::kNative || frame.kind == FrameKind::kRust;
    const bool is_finished = frame.inlined || frame.line != 0 || frame.mapping == kNone;
    if (is_native && !is_finished) Resolve(id, frame, frames);
    if (frames.empty()) frames.push_back(copy_.ToFrame(id));
    return frames;
  }

  Binary& BinaryOf(profile::MappingId id) {
    std::optional<Binary>& binary = binaries_[id];
    if (!binary) {
      const profile::Mapping& mapping = from_.mappings()[id];
      const std::string path =
          options_.root + std::string(WithoutDeleted(from_.Text(mapping.path)));
      binary = OpenBinary(path, std::string(from_.Text(mapping.build_id)), options_, into_);
    }
    return *binary;
  }

  void Resolve(FrameId id, const Frame& frame, std::vector<FrameId>& frames) {
    Binary& binary = BinaryOf(frame.mapping);
    std::vector<SourceFrame> sources;
    if (binary.lines) sources = binary.lines->Resolve(frame.address);
    if (!options_.inlined && sources.size() > 1) {
      sources.erase(sources.begin(), sources.end() - 1);
    }
    std::reverse(sources.begin(), sources.end());
    for (const SourceFrame& source : sources) frames.push_back(AddFrame(frame, source));
    if (!frames.empty() || frame.function != kNone) return;
    const auto symbol = binary.symbols ? binary.symbols->Find(frame.address) : std::nullopt;
    if (!symbol) {
      into_.AddToCounter("symbolise.unresolved_frames", 1);
      frames.push_back(copy_.ToFrame(id));
      return;
    }
    const PlainName plain = Demangle(symbol->name);
    SourceFrame source;
    source.name = plain.text;
    source.is_rust = plain.language == NameLanguage::kRust;
    if (plain.text != symbol->name) source.system_name = symbol->name;
    frames.push_back(AddFrame(frame, source));
  }

  FrameId AddFrame(const Frame& frame, const SourceFrame& source) {
    const profile::FunctionId function =
        into_.AddFunction({.name = into_.Intern(source.name),
                           .system_name = into_.Intern(source.system_name),
                           .file = into_.Intern(source.file),
                           .start_line = source.start_line});
    return into_.AddFrame({.kind = source.is_rust ? FrameKind::kRust : frame.kind,
                           .inlined = source.inlined,
                           .mapping = copy_.ToMapping(frame.mapping),
                           .address = frame.address,
                           .function = function,
                           .line = source.line,
                           .column = source.column});
  }

  const Profile& from_;
  Profile& into_;
  const SymboliserOptions& options_;
  profile::TableCopy copy_;
  std::vector<std::optional<Binary>> binaries_;  // by mapping
  std::vector<std::vector<FrameId>> frames_;     // by frame of from_
  std::vector<StackId> stacks_;
};

}  // namespace

Result<void> Symbolise(Profile& profile, const SymboliserOptions& options) {
  Profile result(options.max_memory);
  Rewriter(profile, result, options).Run();
  if (result.samples().size() < profile.samples().size()) {
    // It would have folded samples that were whole.
    return Fail(
        ENOMEM,
        "the symbolised profile needs more than " + std::to_string(options.max_memory) + " bytes",
        "raise the limit, or leave out inlined functions");
  }
  profile = std::move(result);
  return {};
}

}  // namespace spanprof::symbols
