#include "heap_sampler.h"

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "v8_text.h"

namespace spanprof::node {
namespace {

constexpr int kMaxDepth = 128;

}  // namespace

bool HeapSampler::Begin() {
  // Also what has been collected meanwhile: what is asked for is who allocates.
  constexpr auto kAll = static_cast<v8::HeapProfiler::SamplingFlags>(
      v8::HeapProfiler::kSamplingIncludeObjectsCollectedByMajorGC |
      v8::HeapProfiler::kSamplingIncludeObjectsCollectedByMinorGC);
  return isolate_->GetHeapProfiler()->StartSamplingHeapProfiler(interval_bytes_, kMaxDepth, kAll);
}

Result<void> HeapSampler::Start(uint64_t interval_bytes) {
  interval_bytes_ = interval_bytes;
  if (Begin()) return {};
  interval_bytes_ = 0;
  return Fail(EBUSY, "V8's sampling heap profiler is in use by somebody else",
              "leave alloc= out, or stop the other");
}

void HeapSampler::Take(SourcePositions& positions, bool may_call, profile::ThreadId thread,
                       uint64_t time_ns, profile::Profile& profile) {
  using Node = v8::AllocationProfile::Node;
  const v8::HandleScope scope(isolate_);
  v8::HeapProfiler* const profiler = isolate_->GetHeapProfiler();
  const std::unique_ptr<v8::AllocationProfile> allocations(profiler->GetAllocationProfile());
  // Before names are asked for, which allocates as well.
  profiler->StopSamplingHeapProfiler();
  if (!Begin()) {
    interval_bytes_ = 0;
    profile.AddToCounter("node.heap_profiler_lost", 1);
  }
  if (allocations == nullptr) return;

  std::vector<std::pair<const Node*, profile::StackId>> left;
  for (const Node* child : allocations->GetRootNode()->children) {
    left.emplace_back(child, profile::kNone);
  }
  while (!left.empty()) {
    const auto [node, parent] = left.back();
    left.pop_back();
    const SourcePosition position = positions.Of(isolate_,
                                                 {.name = TextOfValue(isolate_, node->name),
                                                  .file = TextOfValue(isolate_, node->script_name),
                                                  .line = KnownNumber(node->line_number),
                                                  .column = KnownNumber(node->column_number)},
                                                 may_call);
    const profile::StackId stack =
        profile.AddStack(parent, AddFrame(profile, position, profile::FrameKind::kJavaScript));
    profile::Sample sample;
    sample.time_ns = time_ns;
    sample.thread = thread;
    sample.stack = stack;
    sample.kind = profile::SampleKind::kAllocation;
    sample.count = 0;
    for (const v8::AllocationProfile::Allocation& allocation : node->allocations) {
      sample.count += allocation.count;
      sample.value += uint64_t{allocation.count} * allocation.size;
    }
    if (sample.count > 0) profile.AddSample(sample);
    for (const Node* child : node->children) left.emplace_back(child, stack);
  }
}

void HeapSampler::Stop() {
  if (!running()) return;
  interval_bytes_ = 0;
  isolate_->GetHeapProfiler()->StopSamplingHeapProfiler();
}

}  // namespace spanprof::node
