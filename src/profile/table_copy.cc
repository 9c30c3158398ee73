#include "profile/table_copy.h"

namespace spanprof::profile {
namespace {

template <class T>
std::vector<uint32_t> NumbersFor(const std::vector<T>& table, uint32_t not_yet) {
  std::vector<uint32_t> numbers(table.size(), not_yet);
  numbers[kNone] = kNone;
  return numbers;
}

}  // namespace

TableCopy::TableCopy(const Profile& from, Profile& into, const TagPositions& positions)
    : from_(from),
      into_(into),
      positions_(positions),
      texts_(from.string_count(), kNotYet),
      mappings_(NumbersFor(from.mappings(), kNotYet)),
      functions_(NumbersFor(from.functions(), kNotYet)),
      frames_(NumbersFor(from.frames(), kNotYet)),
      stacks_(NumbersFor(from.stacks(), kNotYet)),
      contexts_(NumbersFor(from.contexts(), kNotYet)),
      threads_(NumbersFor(from.threads(), kNotYet)) {}

StringId TableCopy::Text(StringId id) {
  if (texts_[id] == kNotYet) texts_[id] = into_.Intern(from_.Text(id));
  return texts_[id];
}

MappingId TableCopy::ToMapping(MappingId id) {
  if (mappings_[id] == kNotYet) {
    Mapping mapping = from_.mappings()[id];
    mapping.path = Text(mapping.path);
    mapping.build_id = Text(mapping.build_id);
    mappings_[id] = into_.AddMapping(mapping);
  }
  return mappings_[id];
}

FunctionId TableCopy::ToFunction(FunctionId id) {
  if (functions_[id] == kNotYet) {
    Function function = from_.functions()[id];
    function.name = Text(function.name);
    function.system_name = Text(function.system_name);
    function.file = Text(function.file);
    functions_[id] = into_.AddFunction(function);
  }
  return functions_[id];
}

FrameId TableCopy::ToFrame(FrameId id) {
  if (frames_[id] == kNotYet) {
    Frame frame = from_.frames()[id];
    frame.mapping = ToMapping(frame.mapping);
    frame.function = ToFunction(frame.function);
    frames_[id] = into_.AddFrame(frame);
  }
  return frames_[id];
}

StackId TableCopy::ToStack(StackId id) {
  // Not by recursion: a stack from a hostile file may be a million frames deep.
  std::vector<StackId> missing;
  StackId known = id;
  while (stacks_[known] == kNotYet) {
    missing.push_back(known);
    known = from_.stacks()[known].parent;
  }
  bool complete = known == kNone || stacks_[known] != kNone;
  StackId stack = stacks_[known];
  while (!missing.empty()) {
    const StackId next = missing.back();
    missing.pop_back();
    const FrameId frame = ToFrame(from_.stacks()[next].frame);
    if (frame == kNone) complete = false;
    if (complete) stack = into_.AddStack(stack, frame);
    if (stack == kNone) complete = false;
    stacks_[next] = complete ? stack : kNone;
  }
  return stacks_[id];
}

ContextId TableCopy::ToContext(ContextId id) {
  if (contexts_[id] == kNotYet) {
    Context context = from_.contexts()[id];
    const auto tags = context.tags;
    context.tags = {};
    for (unsigned i = 0; i < kTagCount; ++i) {
      if (positions_[i] != kNoPosition) context.tags[positions_[i]] = Text(tags[i]);
    }
    contexts_[id] = into_.AddContext(context);
  }
  return contexts_[id];
}

ThreadId TableCopy::ToThread(ThreadId id) {
  if (threads_[id] == kNotYet) {
    const Thread& thread = from_.threads()[id];
    threads_[id] = into_.AddThread(thread.tid, from_.Text(thread.name));
  }
  return threads_[id];
}

Sample TableCopy::ToSample(const Sample& sample) {
  Sample copy = sample;
  copy.thread = ToThread(sample.thread);
  copy.context = ToContext(sample.context);
  copy.stack = ToStack(sample.stack);
  return copy;
}

}  // namespace spanprof::profile
