#include "format/jfr_constant_pools.h"

#include <algorithm>
#include <functional>

#include "format/jfr_chunk.h"
#include "profile/names.h"

namespace spanprof::format::jfr {
namespace {

// By ThreadState. The JDK's names; what is not known has async-profiler's.
constexpr std::array<std::string_view, 5> kThreadStates = {"STATE_DEFAULT", "STATE_RUNNABLE",
                                                           "STATE_SLEEPING", "STATE_IN_OBJECT_WAIT",
                                                           "STATE_BLOCKED_ON_MONITOR_ENTER"};

bool HasValueInPool(const profile::Sample& sample) {
  return sample.kind == profile::SampleKind::kCpu || sample.kind == profile::SampleKind::kWall;
}

}  // namespace

ConstantPoolWriter::ConstantPoolWriter(const profile::Profile& profile, JfrContext context)
    : profile_(profile), attribute_count_(AttributeCount(profile)), frames_(profile) {
  using profile::Sample;
  threads_ = KeysByUse(profile.threads().size(), [](const Sample& s) { return s.thread; });
  stacks_ = KeysByUse(profile.stacks().size(), [](const Sample& s) { return s.stack; });
  contexts_ = KeysByUse(profile.contexts().size(), [](const Sample& s) { return s.context; });
  for (const std::string_view name : kThreadStates) {
    state_pool_.Begin();
    state_pool_.entries.Utf8(name);
  }
  AddThreads();
  for (const profile::StackId id : stacks_.in_use) frames_.AddStackTrace(id);
  for (const profile::ContextId id : contexts_.in_use) {
    roots_.push_back(profile.contexts()[id].root_span_id);
    if (context == JfrContext::kFlat) continue;
    context_pool_.Begin();
    WriteContext(profile.contexts()[id], context_pool_.entries);
  }
  std::sort(roots_.begin(), roots_.end());
  if (context == JfrContext::kPool) AddValues();
}

// Counts the uses of each number that samples have; the most used gets key 1. 0 stays 0.
template <class NumberOf>
ConstantPoolWriter::Keys ConstantPoolWriter::KeysByUse(size_t table_size,
                                                       NumberOf number_of) const {
  std::vector<uint64_t> uses(table_size, 0);
  for (const profile::Sample& sample : profile_.samples()) ++uses[number_of(sample)];
  Keys result;
  for (uint32_t number = 1; number < table_size; ++number) {
    if (uses[number] != 0) result.in_use.push_back(number);
  }
  std::sort(result.in_use.begin(), result.in_use.end(), [&uses](uint32_t a, uint32_t b) {
    return std::pair(uses[b], a) < std::pair(uses[a], b);
  });
  result.keys.assign(table_size, 0);
  uint64_t key = 0;
  for (const uint32_t number : result.in_use) result.keys[number] = ++key;
  return result;
}

void ConstantPoolWriter::AddThreads() {
  for (const profile::ThreadId id : threads_.in_use) {
    const profile::Thread& thread = profile_.threads()[id];
    thread_pool_.Begin();
    thread_pool_.entries.Utf8(profile_.Text(thread.name));
    thread_pool_.entries.Varint(thread.tid);
    thread_pool_.entries.NullString();  // Java's name: the model has one name, and tools show it
    thread_pool_.entries.Varint(0);     // Java's id
    thread_pool_.entries.Varint(0);     // group
  }
}

void ConstantPoolWriter::AddValues() {
  std::vector<ValueKey> values;
  for (const profile::Sample& sample : profile_.samples()) {
    if (HasValueInPool(sample)) values.emplace_back(sample.value, sample.folded);
  }
  std::sort(values.begin(), values.end());
  std::vector<std::pair<uint64_t, ValueKey>> uses;
  for (size_t i = 0; i < values.size();) {
    const size_t begin = i;
    while (i < values.size() && values[i] == values[begin]) ++i;
    uses.emplace_back(i - begin, values[begin]);
  }
  std::sort(uses.begin(), uses.end(), std::greater<>());
  for (const auto& [count, value] : uses) {
    value_keys_.emplace_back(value, value_pool_.Begin());
    value_pool_.entries.Varint(value.first);
    value_pool_.entries.Byte(value.second ? 1 : 0);
  }
  std::sort(value_keys_.begin(), value_keys_.end());
}

uint64_t ConstantPoolWriter::Value(const profile::Sample& sample) const {
  const auto found =
      std::lower_bound(value_keys_.begin(), value_keys_.end(),
                       std::pair{ValueKey{sample.value, sample.folded}, uint64_t{0}});
  return found == value_keys_.end() ? 0 : found->second;
}

bool ConstantPoolWriter::HasRoot(uint64_t root_span_id) const {
  return std::binary_search(roots_.begin(), roots_.end(), root_span_id);
}

void ConstantPoolWriter::WriteText(profile::StringId text, Output& out) {
  if (text == profile::kNone) {
    out.NullString();
  } else {
    out.PooledString(strings_.Add(profile_.Text(text)));
  }
}

void ConstantPoolWriter::WriteContext(const profile::Context& context, Output& out) {
  out.Varint(context.span_id);
  out.Varint(context.root_span_id);
  if (context.trace_id_high == 0 && context.trace_id_low == 0) {
    out.NullString();
  } else {
    out.PooledString(
        strings_.Add(profile::TraceIdText(context.trace_id_high, context.trace_id_low)));
  }
  WriteText(profile_.EndpointOf(context.root_span_id), out);
  for (unsigned i = 0; i < attribute_count_; ++i) WriteText(context.tags[i], out);
}

std::array<const PoolBytes*, kPoolCount> ConstantPoolWriter::pools() const {
  // By Pool.
  return {
      &strings_.pool(),    &frames_.symbols(),     &frames_.classes(),     &thread_pool_,
      &state_pool_,        &frames_.frame_types(), &frames_.methods(),     &frames_.stack_traces(),
      &context_pool_,      &value_pool_,           &frames_.frame_kinds(), &frames_.functions(),
      &frames_.mappings(), &frames_.frames()};
}

void ConstantPoolWriter::WriteCheckpoint(uint64_t start_ticks, Output& out) const {
  const auto all = pools();
  Output body;
  body.Varint(kCheckpointEventId);
  body.Varint(start_ticks);
  body.Varint(0);  // duration
  body.Varint(0);  // offset of the next checkpoint: there is one
  body.Byte(0);    // does not end a flush
  body.Varint(static_cast<uint64_t>(
      std::count_if(all.begin(), all.end(), [](const PoolBytes* p) { return p->count != 0; })));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i]->count == 0) continue;
    body.Varint(IdOf(static_cast<Pool>(i)));
    body.Varint(all[i]->count);
    body.Append(all[i]->entries.bytes());
  }
  out.Event(body.bytes());
}

}  // namespace spanprof::format::jfr
