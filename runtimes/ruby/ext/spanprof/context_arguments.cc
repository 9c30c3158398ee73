// Every function here may raise, so none has an object with a destructor.

#include "context_arguments.h"

#include <cerrno>
#include <cstdint>

namespace spanprof::ruby {
namespace {

struct Id {
  uint64_t low;
  uint64_t high;
};

int DigitOf(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

Id ParseHex(const char* what, VALUE text, long max_digits) {
  Id id = {0, 0};
  const long length = RSTRING_LEN(text);
  bool valid = length > 0 && length <= max_digits;
  for (long i = 0; valid && i < length; ++i) {
    const int digit = DigitOf(RSTRING_PTR(text)[i]);
    valid = digit >= 0;
    id.high = id.high << 4 | id.low >> 60;
    id.low = id.low << 4 | static_cast<uint64_t>(digit);
  }
  if (!valid) {
    rb_raise(rb_eArgError, "%s %+" PRIsVALUE " is not of 1 to %ld hexadecimal digits", what, text,
             max_digits);
  }
  return id;
}

Id ParseId(const char* what, VALUE value, unsigned words) {
  if (NIL_P(value)) return {0, 0};
  if (RB_TYPE_P(value, T_STRING)) return ParseHex(what, value, words * 16);
  if (!RB_INTEGER_TYPE_P(value)) {
    rb_raise(rb_eTypeError, "%s is a %" PRIsVALUE ": give an Integer or hexadecimal digits", what,
             rb_obj_class(value));
  }
  uint64_t packed[2] = {0, 0};
  const int sign = rb_integer_pack(value, packed, words, sizeof packed[0], 0,
                                   INTEGER_PACK_LSWORD_FIRST | INTEGER_PACK_NATIVE_BYTE_ORDER);
  if (sign < 0 || sign > 1) {
    rb_raise(rb_eRangeError, "%s %" PRIsVALUE " is not from 0 to 2**%u-1", what, value, words * 64);
  }
  return {packed[0], packed[1]};
}

VALUE NameOf(VALUE key) { return RB_SYMBOL_P(key) ? rb_sym2str(key) : key; }

int ApplyTag(VALUE key, VALUE value, VALUE argument) {
  auto& context = *reinterpret_cast<spanprof_context*>(argument);
  VALUE name = NameOf(key);
  StringValue(name);
  const int slot = spanprof_attribute(RSTRING_PTR(name), static_cast<size_t>(RSTRING_LEN(name)));
  if (slot == -ENODEV) return ST_STOP;  // not initialised: nothing is kept
  if (slot < 0 || slot >= SPANPROF_TAG_COUNT) {
    rb_raise(rb_eArgError,
             "the tag %+" PRIsVALUE " cannot be added: a process has at most %d of 1 to 128 bytes",
             name, SPANPROF_TAG_COUNT);
  }
  if (NIL_P(value)) {
    context.tags[slot] = 0;
    return ST_CONTINUE;
  }
  VALUE text = RB_SYMBOL_P(value) ? rb_sym2str(value) : value;
  if (RB_INTEGER_TYPE_P(text)) text = rb_obj_as_string(text);
  StringValue(text);
  context.tags[slot] = spanprof_intern(RSTRING_PTR(text), static_cast<size_t>(RSTRING_LEN(text)));
  RB_GC_GUARD(text);
  RB_GC_GUARD(name);
  return ST_CONTINUE;
}

// The value of a keyword, or Qundef. Not by rb_get_kwargs, which wants a copy of the hash.
VALUE Take(VALUE keywords, VALUE symbol, size_t* found) {
  const VALUE value = rb_hash_lookup2(keywords, symbol, Qundef);
  if (value != Qundef) ++*found;
  return value;
}

VALUE SymbolOf(const char* name) { return rb_id2sym(rb_intern(name)); }

struct Keywords {
  VALUE span_id = SymbolOf("span_id");
  VALUE root_span_id = SymbolOf("root_span_id");
  VALUE trace_id = SymbolOf("trace_id");
  VALUE tags = SymbolOf("tags");
};

}  // namespace

void ApplyContextArguments(int count, const VALUE* arguments, spanprof_context* context) {
  static const Keywords kKeywords;
  if (count != 1 || rb_keyword_given_p() == 0) {
    rb_raise(rb_eArgError, "keywords are expected: span_id:, root_span_id:, trace_id:, tags:");
  }
  const VALUE keywords = arguments[0];
  size_t found = 0;
  const VALUE span_id = Take(keywords, kKeywords.span_id, &found);
  const VALUE root_span_id = Take(keywords, kKeywords.root_span_id, &found);
  const VALUE trace_id = Take(keywords, kKeywords.trace_id, &found);
  const VALUE tags = Take(keywords, kKeywords.tags, &found);
  if (span_id == Qundef) rb_raise(rb_eArgError, "missing keyword: :span_id");
  if (found != RHASH_SIZE(keywords)) {
    rb_raise(rb_eArgError,
             "unknown keyword in %+" PRIsVALUE
             ": known are span_id, root_span_id, "
             "trace_id, tags",
             keywords);
  }
  const Id span = ParseId("span_id", span_id, 1);
  Id root = {context->root_span_id, 0};
  if (root_span_id != Qundef) root = ParseId("root_span_id", root_span_id, 1);
  Id trace = {context->trace_id_low, context->trace_id_high};
  if (trace_id != Qundef) trace = ParseId("trace_id", trace_id, 2);
  context->span_id = span.low;
  context->root_span_id = root.low != 0 ? root.low : span.low;
  context->trace_id_low = trace.low;
  context->trace_id_high = trace.high;
  if (tags == Qundef || NIL_P(tags)) return;
  Check_Type(tags, T_HASH);
  rb_hash_foreach(tags, &ApplyTag, reinterpret_cast<VALUE>(context));
}

}  // namespace spanprof::ruby
