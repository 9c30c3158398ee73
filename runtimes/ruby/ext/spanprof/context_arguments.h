#pragma once

// The keyword arguments of Spanprof.set and Spanprof.with_context:
//
//   span_id:       an Integer of 64 bits, or 16 hexadecimal digits
//   root_span_id:  the same; without it the present one's, or else span_id
//   trace_id:      an Integer of 128 bits, or 32 hexadecimal digits; without it the present one's
//   tags:          a Hash of names and values; other tags stay, nil takes one away

#include "ruby_api.h"
#include <spanprof/context.h>

namespace spanprof::ruby {

// Changes *context, which is the present one, as the arguments say. Raises TypeError, RangeError or
// ArgumentError.
void ApplyContextArguments(int count, const VALUE* arguments, spanprof_context* context);

}  // namespace spanprof::ruby
