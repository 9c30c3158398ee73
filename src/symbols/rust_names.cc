#include "symbols/rust_names.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace spanprof::symbols {
namespace {

constexpr std::size_t kMaxOutput = 8192;
constexpr unsigned kMaxDepth = 200;
constexpr unsigned kMaxSteps = 20000;
constexpr std::size_t kHashLength = 16;

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

std::string_view BasicType(char letter) {
  static constexpr std::array<std::string_view, 26> kTypes = {
      "i8",    "bool", "char", "f64", "str",  "f32",  "",    "u8", "isize",
      "usize", "",     "i32",  "u32", "i128", "u128", "_",   "",   "",
      "i16",   "u16",  "()",   "...", "",     "i64",  "u64", "!"};
  return IsLower(letter) ? kTypes[static_cast<std::size_t>(letter - 'a')] : std::string_view();
}

// A recursive descent over the grammar of Rust's RFC 2603. Lifetimes are read and not shown.
class V0Parser {
 public:
  explicit V0Parser(std::string_view text) : text_(text) {}

  std::optional<std::string> Parse() {
    Path();
    // What follows is the crate that a generic was compiled for, which nobody wants to see.
    if (failed_ || output_.empty()) return std::nullopt;
    return std::move(output_);
  }

 private:
  // Each rule starts with this, so that neither depth nor time depends on what the name says.
  class Level {
   public:
    explicit Level(V0Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth || ++parser_.steps_ > kMaxSteps) parser_.failed_ = true;
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    V0Parser& parser_;
  };

  [[nodiscard]] char Peek() const {
    return failed_ || position_ >= text_.size() ? '\0' : text_[position_];
  }
  char Take() {
    const char c = Peek();
    if (c == '\0') {
      failed_ = true;
    } else {
      ++position_;
    }
    return c;
  }
  bool TakeIf(char wanted) {
    if (Peek() != wanted) return false;
    ++position_;
    return true;
  }
  void Print(std::string_view text) {
    if (silent_ || failed_) return;
    if (output_.size() + text.size() > kMaxOutput) {
      failed_ = true;
      return;
    }
    output_ += text;
  }

  uint64_t Base62() {
    if (TakeIf('_')) return 0;
    uint64_t value = 0;
    while (!failed_ && !TakeIf('_')) {
      const char c = Take();
      uint64_t digit = 0;
      if (IsDigit(c)) {
        digit = static_cast<uint64_t>(c - '0');
      } else if (IsLower(c)) {
        digit = static_cast<uint64_t>(c - 'a') + 10;
      } else if (IsUpper(c)) {
        digit = static_cast<uint64_t>(c - 'A') + 36;
      } else {
        failed_ = true;
      }
      value = value * 62 + digit;
    }
    return value + 1;
  }

  void Disambiguator() {
    if (TakeIf('s')) (void)Base62();
  }

  // Without its disambiguator.
  std::string_view PlainIdentifier() {
    (void)TakeIf('u');  // punycode: legible as it is
    std::size_t length = 0;
    if (!IsDigit(Peek())) failed_ = true;
    const bool is_empty = TakeIf('0');  // no number starts with 0 but 0 itself
    while (!is_empty && IsDigit(Peek())) {
      length = length * 10 + static_cast<std::size_t>(Take() - '0');
      if (length > text_.size()) failed_ = true;
    }
    (void)TakeIf('_');
    if (failed_ || length > text_.size() - position_) {
      failed_ = true;
      return {};
    }
    const std::string_view name = text_.substr(position_, length);
    position_ += length;
    return name;
  }

  template <class Rule>
  void BackReference(Rule&& rule) {
    const std::size_t here = position_ - 1;
    const uint64_t target = Base62();
    if (failed_ || target >= here) {
      failed_ = true;
      return;
    }
    const std::size_t after = std::exchange(position_, static_cast<std::size_t>(target));
    // Shown or not, it need not be read again if nobody sees it.
    if (!silent_) rule();
    position_ = after;
  }

  void ImplPath() {
    Disambiguator();
    const bool was_silent = std::exchange(silent_, true);
    Path();
    silent_ = was_silent;
  }

  void Path(bool in_type = false) {
    const Level level(*this);
    if (failed_) return;
    switch (Take()) {
      case 'C':
        Disambiguator();
        Print(PlainIdentifier());
        return;
      case 'M':
        ImplPath();
        Print("<");
        Type();
        Print(">");
        return;
      case 'X':
        ImplPath();
        [[fallthrough]];
      case 'Y':
        Print("<");
        Type();
        Print(" as ");
        Path(true);
        Print(">");
        return;
      case 'N':
        NestedPath(in_type);
        return;
      case 'I':
        Path(in_type);
        Print(in_type ? "<" : "::<");
        List([this] { GenericArgument(); });
        Print(">");
        return;
      case 'B':
        BackReference([this, in_type] { Path(in_type); });
        return;
      default:
        failed_ = true;
        return;
    }
  }

  void NestedPath(bool in_type) {
    const char name_space = Take();
    Path(in_type);
    const bool has_number = TakeIf('s');
    const uint64_t number = has_number ? Base62() + 1 : 0;
    const std::string_view name = PlainIdentifier();
    if (IsUpper(name_space)) {
      Print(name_space == 'C' ? "::{closure" : name_space == 'S' ? "::{shim" : "::{");
      if (!name.empty()) {
        Print(":");
        Print(name);
      }
      Print("#");
      Print(std::to_string(number));
      Print("}");
    } else if (!name.empty()) {
      Print("::");
      Print(name);
    }
  }

  template <class Rule>
  void List(Rule&& rule) {
    bool first = true;
    while (!failed_ && !TakeIf('E')) {
      if (!first) Print(", ");
      first = false;
      rule();
    }
  }

  void GenericArgument() {
    if (TakeIf('L')) {
      (void)Base62();
      Print("'_");
    } else if (TakeIf('K')) {
      Constant();
    } else {
      Type();
    }
  }

  void Type() {
    const Level level(*this);
    const char letter = Peek();
    if (const std::string_view basic = BasicType(letter); !basic.empty()) {
      ++position_;
      Print(basic);
      return;
    }
    switch (letter) {
      case 'A':
        ++position_;
        Print("[");
        Type();
        Print("; ");
        Constant();
        Print("]");
        return;
      case 'S':
        ++position_;
        Print("[");
        Type();
        Print("]");
        return;
      case 'T': {
        ++position_;
        Print("(");
        List([this] { Type(); });
        Print(")");
        return;
      }
      case 'R':
      case 'Q':
        ++position_;
        if (TakeIf('L')) (void)Base62();
        Print(letter == 'R' ? "&" : "&mut ");
        Type();
        return;
      case 'P':
      case 'O':
        ++position_;
        Print(letter == 'P' ? "*const " : "*mut ");
        Type();
        return;
      case 'F':
        ++position_;
        FunctionType();
        return;
      case 'D':
        ++position_;
        DynType();
        return;
      case 'B':
        ++position_;
        BackReference([this] { Type(); });
        return;
      default:
        Path(true);
        return;
    }
  }

  void FunctionType() {
    if (TakeIf('G')) (void)Base62();
    if (TakeIf('U')) Print("unsafe ");
    if (TakeIf('K')) {
      Print("extern \"");
      Print(TakeIf('C') ? "C" : PlainIdentifier());
      Print("\" ");
    }
    Print("fn(");
    List([this] { Type(); });
    Print(")");
    if (TakeIf('u')) return;
    Print(" -> ");
    Type();
  }

  void DynType() {
    if (TakeIf('G')) (void)Base62();
    Print("dyn ");
    bool first = true;
    while (!failed_ && !TakeIf('E')) {
      if (!first) Print(" + ");
      first = false;
      Path(true);
      while (TakeIf('p')) {
        Print("<");
        Print(PlainIdentifier());
        Print(" = ");
        Type();
        Print(">");
      }
    }
    if (TakeIf('L')) {
      (void)Base62();
    } else {
      failed_ = true;
    }
  }

  void Constant() {
    const Level level(*this);
    if (TakeIf('p')) {
      Print("_");
      return;
    }
    if (TakeIf('B')) {
      BackReference([this] { Constant(); });
      return;
    }
    const bool was_silent = std::exchange(silent_, true);
    const char type = Peek();
    Type();
    silent_ = was_silent;
    if (TakeIf('n')) Print("-");
    const std::size_t start = position_;
    while (IsHex(Peek())) ++position_;
    const std::string_view digits = text_.substr(start, position_ - start);
    if (!TakeIf('_')) failed_ = true;
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (type == 'b') {
      Print(value != 0 ? "true" : "false");
    } else if (error == std::errc() || digits.empty()) {
      Print(std::to_string(value));
    } else {
      Print("0x");
      Print(digits);
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
  unsigned depth_ = 0;
  unsigned steps_ = 0;
  bool silent_ = false;
  bool failed_ = false;
  std::string output_;
};

struct Escape {
  std::string_view code;
  std::string_view text;
};
constexpr std::array<Escape, 9> kEscapes = {{{"SP", "@"},
                                             {"BP", "*"},
                                             {"RF", "&"},
                                             {"LT", "<"},
                                             {"GT", ">"},
                                             {"LP", "("},
                                             {"RP", ")"},
                                             {"C", ","},
                                             {"u20", " "}}};

// The text of `$code$`, empty if there is no such code.
std::string Unescaped(std::string_view code) {
  for (const Escape& escape : kEscapes) {
    if (escape.code == code) return std::string(escape.text);
  }
  if (code.size() < 2 || code.size() > 3 || code[0] != 'u') return {};
  unsigned value = 0;
  const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), value, 16);
  if (error != std::errc() || end != code.data() + code.size() || value < 0x20 || value > 0x7E) {
    return {};
  }
  return {static_cast<char>(value)};
}

}  // namespace

std::optional<std::string> DemangleRustV0(std::string_view mangled) {
  if (!mangled.starts_with("_R")) return std::nullopt;
  std::string_view rest = mangled.substr(2);
  // A digit would be a version later than ours. A suffix is the compiler's, such as `.llvm.1234`.
  if (rest.empty() || !IsUpper(rest[0])) return std::nullopt;
  rest = rest.substr(0, rest.find('.'));
  return V0Parser(rest).Parse();
}

std::optional<std::string> CleanRustLegacy(std::string_view demangled) {
  constexpr std::string_view kHashStart = "::h";
  if (demangled.size() <= kHashStart.size() + kHashLength) return std::nullopt;
  const std::size_t end = demangled.size() - kHashLength - kHashStart.size();
  if (!demangled.substr(end).starts_with(kHashStart)) return std::nullopt;
  for (const char c : demangled.substr(end + kHashStart.size())) {
    if (!IsHex(c)) return std::nullopt;
  }
  std::string text;
  const std::string_view name = demangled.substr(0, end);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool starts_part = i == 0 || name[i - 1] == ':';
    if (name[i] == '_' && starts_part && i + 1 < name.size() && name[i + 1] == '$') continue;
    if (name[i] == '.' && i + 1 < name.size() && name[i + 1] == '.') {
      text += "::";
      ++i;
      continue;
    }
    if (name[i] == '$') {
      const std::size_t close = name.find('$', i + 1);
      const std::string plain =
          close == std::string_view::npos ? "" : Unescaped(name.substr(i + 1, close - i - 1));
      if (!plain.empty()) {
        text += plain;
        i = close;
        continue;
      }
    }
    text += name[i];
  }
  return text;
}

}  // namespace spanprof::symbols
