#include "sample_converter.h"

#include <algorithm>
#include <vector>

namespace spanprof::node {
namespace {

uint64_t Elapsed(int64_t from, int64_t to) {
  return to > from ? static_cast<uint64_t>(to - from) : 0;
}

bool IsWaitingForWork(v8::StateTag state) {
#if V8_MAJOR_VERSION >= 14
  if (state == v8::StateTag::IDLE_EXTERNAL) return true;
#endif
  return state == v8::StateTag::IDLE;
}

profile::ThreadState StateOf(v8::StateTag state) {
  if (IsWaitingForWork(state)) return profile::ThreadState::kSleeping;
  if (state == v8::StateTag::ATOMICS_WAIT) return profile::ThreadState::kWaiting;
  return profile::ThreadState::kRunning;
}

}  // namespace

profile::FrameId SampleConverter::FrameOf(const v8::CpuProfileNode& node) {
  const SourcePosition position = positions_.Of(isolate_,
                                                {.name = node.GetFunctionNameStr(),
                                                 .file = node.GetScriptResourceNameStr(),
                                                 .line = KnownNumber(node.GetLineNumber()),
                                                 .column = KnownNumber(node.GetColumnNumber())},
                                                may_call_);
  // V8 has nodes for what is no code: (program), (idle), (garbage collector).
  const bool is_code = node.GetSourceType() != v8::CpuProfileNode::kInternal;
  return AddFrame(profile_, position,
                  is_code ? profile::FrameKind::kJavaScript : profile::FrameKind::kMarker);
}

profile::StackId SampleConverter::StackOf(const v8::CpuProfileNode* node) {
  // The root of V8's tree stands for nothing.
  if (node == nullptr || node->GetParent() == nullptr) return profile::kNone;
  std::vector<const v8::CpuProfileNode*> unknown;
  profile::StackId stack = profile::kNone;
  for (; node->GetParent() != nullptr; node = node->GetParent()) {
    const auto known = stacks_.find(node);
    if (known != stacks_.end()) {
      stack = known->second;
      break;
    }
    unknown.push_back(node);
  }
  for (; !unknown.empty(); unknown.pop_back()) {
    stack = profile_.AddStack(stack, FrameOf(*unknown.back()));
    stacks_[unknown.back()] = stack;
  }
  return stack;
}

void SampleConverter::Convert(const JoinedSample& joined, profile::ThreadId thread,
                              int64_t unix_offset_ns, ThreadClocks* last) {
  profile::Sample sample;
  sample.time_ns = static_cast<uint64_t>(joined.time_ns + unix_offset_ns);
  sample.thread = thread;
  sample.state = StateOf(joined.state);
  sample.stack = StackOf(joined.node);
  // Whatever the continuation's data is while the thread waits for work, it is nobody's.
  const SampleRecord* const record = joined.record;
  if (record != nullptr && record->state == StoreState::kHandle &&
      !IsWaitingForWork(joined.state)) {
    sample.context = contexts_.ContextOf(handles_, record->store);
  }
  const uint64_t wall = Elapsed(last->wall_ns, joined.time_ns);
  last->wall_ns = std::max(last->wall_ns, joined.time_ns);
  if (wanted_.wall) {
    sample.kind = profile::SampleKind::kWall;
    sample.value = wall;
    profile_.AddSample(sample);
  }
  if (record == nullptr) return;
  const uint64_t cpu = Elapsed(last->cpu_ns, record->cpu_ns);
  last->cpu_ns = std::max(last->cpu_ns, record->cpu_ns);
  if (wanted_.cpu && cpu > 0) {
    sample.kind = profile::SampleKind::kCpu;
    sample.value = cpu;
    profile_.AddSample(sample);
  }
}

}  // namespace spanprof::node
