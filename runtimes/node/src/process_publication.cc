#include "process_publication.h"

#include <cerrno>
#include <fstream>
#include <utility>

#include "attribute_names.h"
#include "base/resource_attributes.h"
#include "v8_objects.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::node {
namespace {

// There is one a process. Some other library may be first.
bool SomebodyPublishes() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(internal::kProcessContextName) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

ProcessPublication& ProcessPublication::Instance() {
  static auto* const kPublication = new ProcessPublication();  // other threads may run during exit
  return *kPublication;
}

Result<void> ProcessPublication::Begin(int64_t record_offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (begun_) return {};
  if (SomebodyPublishes()) {
    return Fail(EEXIST, "another library publishes this process's context (OTEL_CTX) already",
                "let only one of them do so");
  }
  record_offset_ = record_offset;
  if (resource_.empty()) resource_ = ReadResource(Options()).attributes;
  begun_ = Publish();
  if (begun_) return {};
  return Fail(ENOTSUP,
              "the process context (OTEL_CTX) cannot be published: memory has no names here",
              "use a kernel that has memfd_create");
}

void ProcessPublication::SetResource(std::vector<ResourceAttribute> resource) {
  const std::lock_guard<std::mutex> lock(mutex_);
  resource_ = std::move(resource);
  if (begun_) (void)Publish();
}

void ProcessPublication::NamesChanged() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (begun_) (void)Publish();
}

bool ProcessPublication::Publish() {
  // A table's header is its class and its length.
  constexpr int64_t kTableHeaderSize = 2 * v8::internal::kApiTaggedSize;
  const context::ThreadSchema schema = {
      internal::kNodeSchemaVersion,
      {{internal::kNodeRecordOffsetKey, record_offset_},
       {internal::kNodeTaggedSizeKey, v8::internal::kApiTaggedSize},
       {internal::kNodeMapTableOffsetKey, static_cast<int64_t>(kMapTableOffset)},
       {internal::kNodeTableHeaderSizeKey, kTableHeaderSize}}};
  return publisher_.Publish(
      context::EncodeProcessContext(resource_, AttributeNames::Instance().names(), schema));
}

}  // namespace spanprof::node
