#include "symbols/dwarf_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <dwarf.h>
#include <fcntl.h>
#include <map>
#include <optional>
#include <utility>

#include <elfutils/libdw.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "symbols/demangle.h"

namespace spanprof::symbols {
namespace {

constexpr unsigned kMaxDieDepth = 128;
constexpr std::size_t kMaxInlineDepth = 256;

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::size_t index = 0;
};

// The narrowest of the ranges (ascending by begin) that has the address.
std::optional<std::size_t> FindNarrowest(const std::vector<Range>& ranges, uint64_t address) {
  constexpr unsigned kMaxLookBack = 64;
  auto next = std::partition_point(ranges.begin(), ranges.end(), [address](const Range& range) {
    return range.begin <= address;
  });
  const Range* best = nullptr;
  for (unsigned i = 0; i < kMaxLookBack && next != ranges.begin(); ++i) {
    const Range& range = *--next;
    if (address >= range.end) continue;
    if (best == nullptr || range.end - range.begin < best->end - best->begin) best = &range;
  }
  return best == nullptr ? std::nullopt : std::optional(best->index);
}

void AddRanges(Dwarf_Die& die, std::size_t index, std::vector<Range>& ranges) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  ptrdiff_t offset = 0;
  while ((offset = dwarf_ranges(&die, offset, &base, &begin, &end)) > 0) {
    // Functions that the linker has dropped are left at address 0.
    if (begin != 0 && begin < end) ranges.push_back({begin, end, index});
  }
}

void SortRanges(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

std::string TextOf(const char* text) { return text == nullptr ? std::string() : text; }

uint32_t NumberOf(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, name, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0) {
    return 0;
  }
  return static_cast<uint32_t>(std::min<Dwarf_Word>(value, UINT32_MAX));
}

struct Position {
  std::string file;
  uint32_t line = 0;
  uint32_t column = 0;
};

}  // namespace

class DwarfLines::Reader {
 public:
  Reader(UniqueFd fd, Dwarf* dwarf) : fd_(std::move(fd)), dwarf_(dwarf) { ListUnits(); }
  ~Reader() { dwarf_end(dwarf_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::vector<SourceFrame> Resolve(uint64_t address) {
    const std::optional<std::size_t> unit_index = FindNarrowest(unit_ranges_, address);
    if (!unit_index) return {};
    Unit& unit = units_[*unit_index];
    if (!unit.listed) ListFunctions(unit);
    Position position = PositionOf(unit.die, address);
    const std::optional<std::size_t> function = FindNarrowest(unit.function_ranges, address);
    if (!function) return {};
    std::vector<Dwarf_Die> chain = {unit.functions[*function]};
    Descend(address, chain);
    std::vector<SourceFrame> frames;
    for (std::size_t i = chain.size(); i-- > 0;) {
      SourceFrame frame = Describe(chain[i]);
      frame.inlined = i != 0;
      frame.file = std::move(position.file);
      frame.line = position.line;
      frame.column = position.column;
      frames.push_back(std::move(frame));
      if (i != 0) position = CallOf(unit.die, chain[i]);
    }
    return frames;
  }

 private:
  struct Unit {
    Dwarf_Die die{};
    bool listed = false;
    std::vector<Dwarf_Die> functions;
    std::vector<Range> function_ranges;
  };

  void ListUnits() {
    Dwarf_CU* unit = nullptr;
    Dwarf_Half version = 0;
    uint8_t type = 0;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf_, unit, &unit, &version, &type, &die, nullptr) == 0) {
      if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
      AddRanges(die, units_.size(), unit_ranges_);
      units_.push_back({.die = die, .listed = false, .functions = {}, .function_ranges = {}});
    }
    SortRanges(unit_ranges_);
  }

  static void ListFunctions(Unit& unit) {
    unit.listed = true;
    // Depth first, without recursion.
    std::vector<Dwarf_Die> path(1);
    if (dwarf_child(&unit.die, &path.back()) != 0) return;
    while (!path.empty()) {
      Dwarf_Die& die = path.back();
      if (dwarf_tag(&die) == DW_TAG_subprogram) {
        AddRanges(die, unit.functions.size(), unit.function_ranges);
        unit.functions.push_back(die);
      }
      Dwarf_Die next;
      const bool enter = dwarf_tag(&die) != DW_TAG_inlined_subroutine && path.size() < kMaxDieDepth;
      if (enter && dwarf_child(&die, &next) == 0) {
        path.push_back(next);
        continue;
      }
      while (!path.empty()) {
        const bool more = dwarf_siblingof(&path.back(), &next) == 0;
        if (more) {
          path.back() = next;
          break;
        }
        path.pop_back();
      }
    }
    SortRanges(unit.function_ranges);
  }

  // Adds to `chain` the inlined calls that have the address, the outer before the inner.
  static void Descend(uint64_t address, std::vector<Dwarf_Die>& chain) {
    Dwarf_Die scope = chain.back();
    Dwarf_Die child;
    bool more = dwarf_child(&scope, &child) == 0;
    while (more && chain.size() < kMaxInlineDepth) {
      const int tag = dwarf_tag(&child);
      const bool is_scope = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
      if (is_scope && dwarf_haspc(&child, address) > 0) {
        if (tag == DW_TAG_inlined_subroutine) chain.push_back(child);
        scope = child;
        more = dwarf_child(&scope, &child) == 0;
        continue;
      }
      Dwarf_Die next;
      more = dwarf_siblingof(&child, &next) == 0;
      if (more) child = next;
    }
  }

  static Position PositionOf(Dwarf_Die& unit, uint64_t address) {
    Position position;
    Dwarf_Line* line = dwarf_getsrc_die(&unit, address);
    if (line == nullptr) return position;
    int number = 0;
    if (dwarf_lineno(line, &number) == 0 && number > 0) {
      position.line = static_cast<uint32_t>(number);
    }
    if (dwarf_linecol(line, &number) == 0 && number > 0) {
      position.column = static_cast<uint32_t>(number);
    }
    position.file = TextOf(dwarf_linesrc(line, nullptr, nullptr));
    return position;
  }

  static Position CallOf(Dwarf_Die& unit, Dwarf_Die& inlined) {
    Position position;
    position.line = NumberOf(inlined, DW_AT_call_line);
    position.column = NumberOf(inlined, DW_AT_call_column);
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    const uint32_t file = NumberOf(inlined, DW_AT_call_file);
    if (dwarf_getsrcfiles(&unit, &files, &count) == 0 && file < count) {
      position.file = TextOf(dwarf_filesrc(files, file, nullptr, nullptr));
    }
    return position;
  }

  // With the namespaces and classes around it. Only what has no linkage name needs that: functions
  // of C, and those of C++ that are inlined everywhere.
  static std::string QualifiedName(Dwarf_Die& die) {
    Dwarf_Die declared = die;
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, DW_AT_specification, &attribute) != nullptr) {
      Dwarf_Die found;
      if (dwarf_formref_die(&attribute, &found) != nullptr) declared = found;
    }
    std::string name = TextOf(dwarf_diename(&declared));
    Dwarf_Die* scopes = nullptr;
    const int count = dwarf_getscopes_die(&declared, &scopes);
    for (int i = 1; i < count; ++i) {
      const int tag = dwarf_tag(&scopes[i]);
      const bool is_named_scope = tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
                                  tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
      if (!is_named_scope) continue;
      const char* scope = dwarf_diename(&scopes[i]);
      name.insert(0, std::string(scope != nullptr ? scope : "(anonymous)") + "::");
    }
    std::free(scopes);
    return name;
  }

  SourceFrame Describe(Dwarf_Die& die) {
    // The same function is inlined in many places; its abstract origin is one.
    Dwarf_Attribute origin_attribute;
    Dwarf_Die origin = die;
    if (dwarf_attr(&die, DW_AT_abstract_origin, &origin_attribute) != nullptr) {
      Dwarf_Die found;
      if (dwarf_formref_die(&origin_attribute, &found) != nullptr) origin = found;
    }
    const auto [entry, is_new] = described_.try_emplace(origin.addr);
    if (!is_new) return entry->second;
    SourceFrame& frame = entry->second;
    Dwarf_Attribute attribute;
    const char* linkage = nullptr;
    for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
      if (linkage == nullptr && dwarf_attr_integrate(&origin, name, &attribute) != nullptr) {
        linkage = dwarf_formstring(&attribute);
      }
    }
    if (linkage != nullptr) {
      PlainName plain = Demangle(linkage);
      frame.is_rust = plain.language == NameLanguage::kRust;
      if (plain.text != linkage) frame.system_name = linkage;
      frame.name = std::move(plain.text);
    } else {
      frame.name = Demangle(QualifiedName(origin)).text;
    }
    int line = 0;
    if (dwarf_decl_line(&origin, &line) == 0 && line > 0) {
      frame.start_line = static_cast<uint32_t>(line);
    }
    return frame;
  }

  UniqueFd fd_;
  Dwarf* dwarf_;
  std::vector<Unit> units_;
  std::vector<Range> unit_ranges_;
  std::map<const void*, SourceFrame> described_;
};

Result<DwarfLines> DwarfLines::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    const int code = errno;
    return Fail(code, "cannot open " + Quoted(path));
  }
  Dwarf* dwarf = dwarf_begin(fd.get(), DWARF_C_READ);
  if (dwarf == nullptr) {
    return Fail(ENOEXEC, "cannot read the debug information of " + Quoted(path) + ": " +
                             TextOf(dwarf_errmsg(-1)));
  }
  return DwarfLines(std::make_unique<Reader>(std::move(fd), dwarf));
}

DwarfLines::DwarfLines(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
DwarfLines::DwarfLines(DwarfLines&&) noexcept = default;
DwarfLines& DwarfLines::operator=(DwarfLines&&) noexcept = default;
DwarfLines::~DwarfLines() = default;

std::vector<SourceFrame> DwarfLines::Resolve(uint64_t address) { return reader_->Resolve(address); }

}  // namespace spanprof::symbols
