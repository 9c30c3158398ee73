#include "context/process_context.h"

#include <cstring>

#include <protozero/pbf_writer.hpp>

#include "context/platform.h"

namespace spanprof::context {
namespace {

// Field numbers of opentelemetry's ProcessContext, Resource, KeyValue, AnyValue and ArrayValue.
constexpr protozero::pbf_tag_type kResource = 1, kProcessAttributes = 2, kResourceAttributes = 1,
                                  kKey = 1, kValue = 2, kStringValue = 1, kIntValue = 3,
                                  kArrayValue = 5, kArrayValues = 1;

void AddStringAttribute(protozero::pbf_writer& parent, protozero::pbf_tag_type field,
                        const std::string& key, const std::string& value) {
  protozero::pbf_writer attribute(parent, field);
  attribute.add_string(kKey, key);
  protozero::pbf_writer any(attribute, kValue);
  any.add_string(kStringValue, value);
}

}  // namespace

std::string EncodeProcessContext(const std::vector<ResourceAttribute>& resource,
                                 const std::vector<std::string>& attribute_names,
                                 const ThreadSchema& schema) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  {
    protozero::pbf_writer resource_message(message, kResource);
    for (const auto& [key, value] : resource) {
      AddStringAttribute(resource_message, kResourceAttributes, key, value);
    }
  }
  AddStringAttribute(message, kProcessAttributes, internal::kSchemaVersionKey, schema.version);
  for (const auto& [key, number] : schema.numbers) {
    protozero::pbf_writer attribute(message, kProcessAttributes);
    attribute.add_string(kKey, key);
    protozero::pbf_writer any(attribute, kValue);
    any.add_int64(kIntValue, number);
  }
  protozero::pbf_writer key_map(message, kProcessAttributes);
  key_map.add_string(kKey, internal::kKeyMapKey);
  protozero::pbf_writer any(key_map, kValue);
  protozero::pbf_writer array(any, kArrayValue);
  const auto add_name = [&array](const std::string& name) {
    protozero::pbf_writer element(array, kArrayValues);
    element.add_string(kStringValue, name);
  };
  add_name(internal::kLocalRootKey);
  for (const std::string& name : attribute_names) add_name(name);
  return bytes;
}

bool ProcessContextPublisher::MapHeader() {
  const NamedMapping mapping =
      MapNamed(internal::kProcessContextName, sizeof(internal::ProcessContextHeader));
  if (mapping.address == nullptr) return false;
  if (mapping.naming == Naming::kUnnamed) {
    Unmap(mapping.address, sizeof(internal::ProcessContextHeader));
    return false;
  }
  DoNotInherit(mapping.address, sizeof(internal::ProcessContextHeader));
  header_ = static_cast<internal::ProcessContextHeader*>(mapping.address);
  return true;
}

void ProcessContextPublisher::WriteHeader() {
  memcpy(header_->signature, internal::kProcessContextSignature, sizeof header_->signature);
  header_->version = internal::kProcessContextVersion;
  header_->published_at_ns.store(0, std::memory_order_relaxed);
  // Pairs with the reader's fence before it looks at the stamp again: who sees the new payload's
  // address sees the stamp gone.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  header_->payload.store(reinterpret_cast<uint64_t>(current_->data()), std::memory_order_relaxed);
  header_->payload_size.store(static_cast<uint32_t>(current_->size()), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Never the stamp from before, or a reader could not tell that the payload changed.
  const uint64_t now = BootTimeNanoseconds();
  last_stamp_ = now > last_stamp_ ? now : last_stamp_ + 1;
  header_->published_at_ns.store(last_stamp_, std::memory_order_release);
  AnnounceName(header_, sizeof(internal::ProcessContextHeader), internal::kProcessContextName);
}

bool ProcessContextPublisher::Publish(std::string payload) {
  if (header_ == nullptr && !MapHeader()) return false;
  delete previous_;
  previous_ = current_;
  current_ = new std::string(std::move(payload));
  WriteHeader();
  return true;
}

void ProcessContextPublisher::Withdraw() {
  if (header_ == nullptr) return;
  header_->published_at_ns.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Unmap(header_, sizeof(internal::ProcessContextHeader));
  header_ = nullptr;
}

void ProcessContextPublisher::RepublishInForkedChild() {
  if (header_ == nullptr) return;
  header_ = nullptr;  // MADV_DONTFORK: this memory is not ours any more
  if (current_ != nullptr && MapHeader()) WriteHeader();
}

}  // namespace spanprof::context
