#include "profile/profile.h"

#include "profile/profile_tables.h"

namespace spanprof::profile {

template <class T>
uint32_t Profile::Tables::Add(InterningTable<T, HashOfItem>& table, const T& item) {
  if (const auto found = table.Find(item)) return *found;
  if (const size_t bytes = table.BytesToAdd(); bytes != 0 && !MayGrow(bytes)) {
    Count("profile.table_full", 1);
    return kNone;
  }
  return table.Add(item);
}

template <class T>
uint32_t Profile::Tables::Checked(const InterningTable<T, HashOfItem>& table, uint32_t id) {
  if (table.Contains(id)) return id;
  Count("profile.bad_reference", 1);
  return kNone;
}

Profile::Profile(size_t max_memory) : tables_(std::make_unique<Tables>(max_memory)) {}
Profile::~Profile() = default;
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;

StringId Profile::Intern(std::string_view text) { return tables_->Intern(text); }

MappingId Profile::AddMapping(const Mapping& mapping) {
  Mapping checked = mapping;
  checked.path = tables_->CheckedText(mapping.path);
  checked.build_id = tables_->CheckedText(mapping.build_id);
  return tables_->Add(tables_->mappings, checked);
}

FunctionId Profile::AddFunction(const Function& function) {
  Function checked = function;
  checked.name = tables_->CheckedText(function.name);
  checked.system_name = tables_->CheckedText(function.system_name);
  checked.file = tables_->CheckedText(function.file);
  return tables_->Add(tables_->functions, checked);
}

FrameId Profile::AddFrame(const Frame& frame) {
  Frame checked = frame;
  checked.mapping = tables_->Checked(tables_->mappings, frame.mapping);
  checked.function = tables_->Checked(tables_->functions, frame.function);
  return tables_->Add(tables_->frames, checked);
}

StackId Profile::AddStack(StackId parent, FrameId frame) {
  const StackId checked_parent = tables_->Checked(tables_->stacks, parent);
  const FrameId checked_frame = tables_->Checked(tables_->frames, frame);
  if (checked_frame == kNone) return checked_parent;
  return tables_->Add(tables_->stacks, Stack{.parent = checked_parent, .frame = checked_frame});
}

StackId Profile::AddStack(std::span<const FrameId> outermost_first) {
  StackId stack = kNone;
  for (const FrameId frame : outermost_first) {
    if (frame == kNone) continue;
    stack = AddStack(stack, frame);
    if (stack == kNone) return kNone;
  }
  return stack;
}

ContextId Profile::AddContext(const Context& context) {
  Context checked = context;
  for (StringId& tag : checked.tags) tag = tables_->CheckedText(tag);
  return tables_->Add(tables_->contexts, checked);
}

ThreadId Profile::AddThread(uint32_t tid, std::string_view name) {
  return tables_->Add(tables_->threads, Thread{.tid = tid, .name = Intern(name)});
}

void Profile::AddSample(const Sample& sample) {
  Sample checked = sample;
  checked.thread = tables_->Checked(tables_->threads, sample.thread);
  checked.context = tables_->Checked(tables_->contexts, sample.context);
  checked.stack = tables_->Checked(tables_->stacks, sample.stack);
  if (!tables_->MakeRoomForSample()) {
    // Only when thousands of samples have counts near 2^64, which cannot be added up.
    tables_->Count("profile.dropped_samples", 1);
    return;
  }
  tables_->samples.push_back(checked);
}

void Profile::SetEndpoint(uint64_t root_span_id, std::string_view endpoint) {
  if (root_span_id == 0) return;
  const StringId text = Intern(endpoint);
  const auto found = tables_->endpoints.find(root_span_id);
  if (found != tables_->endpoints.end()) {
    found->second = text;
    return;
  }
  constexpr size_t kNodeBytes = 4 * sizeof(void*) + sizeof(uint64_t) + sizeof(uint64_t);
  if (text == kNone) return;
  if (!tables_->MayGrow(kNodeBytes)) {
    tables_->Count("profile.table_full", 1);
    return;
  }
  tables_->endpoints.emplace(root_span_id, text);
  tables_->map_bytes += kNodeBytes;
}

void Profile::AddToCounter(std::string_view name, uint64_t amount) { tables_->Count(name, amount); }

std::string_view Profile::Text(StringId id) const { return tables_->strings.Text(id); }
const std::vector<Mapping>& Profile::mappings() const { return tables_->mappings.items(); }
const std::vector<Function>& Profile::functions() const { return tables_->functions.items(); }
const std::vector<Frame>& Profile::frames() const { return tables_->frames.items(); }
const std::vector<Stack>& Profile::stacks() const { return tables_->stacks.items(); }
const std::vector<Context>& Profile::contexts() const { return tables_->contexts.items(); }
const std::vector<Thread>& Profile::threads() const { return tables_->threads.items(); }
const std::vector<Sample>& Profile::samples() const { return tables_->samples; }
size_t Profile::string_count() const { return tables_->strings.size(); }

StringId Profile::EndpointOf(uint64_t root_span_id) const {
  const auto found = tables_->endpoints.find(root_span_id);
  return found == tables_->endpoints.end() ? kNone : found->second;
}

const std::map<uint64_t, StringId>& Profile::endpoints() const { return tables_->endpoints; }
const std::map<std::string, uint64_t, std::less<>>& Profile::counters() const {
  return tables_->counters;
}

std::vector<FrameId> Profile::FramesOf(StackId stack) const {
  std::vector<FrameId> frames;
  // A parent's number is always smaller, so this ends.
  while (stack != kNone && tables_->stacks.Contains(stack)) {
    frames.push_back(stacks()[stack].frame);
    stack = stacks()[stack].parent;
  }
  return frames;
}

size_t Profile::memory_used() const { return tables_->TotalMemory(); }
size_t Profile::max_memory() const { return tables_->max_memory; }

}  // namespace spanprof::profile
