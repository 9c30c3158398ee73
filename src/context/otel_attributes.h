#pragma once

// The attributes of a thread's OTEP record: the local root span id first, then one entry a tag.
// Signal-safe; only the thread's own, inside a write (BeginWrite ... FinishWrite).

#include "context/tag_dictionary.h"
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::context {

// For a new thread: no ids, no tags, and the entry of the local root in its place.
void InitialiseOtelRecord(internal::ThreadContext& context);

// Writes the entries of all tags that the record's first line holds. Values that do not fit are
// cut, or left out when there is no room at all; both are counted.
void WriteTagAttributes(internal::ThreadContext& context, const TagDictionary& dictionary);

}  // namespace spanprof::context
