// SIGNAL-SAFE: see hotspot_methods.h.

#include "agent/hotspot_methods.h"

namespace spanprof::jvm {
namespace {

constexpr uint32_t kNativeBit = 1u << 31;

}  // namespace

bool HotspotMethods::Find(HotspotMemory& memory, uint64_t method, HotspotMethod& found) noexcept {
  if (method == 0 || method % sizeof(uint64_t) != 0) return false;
  Place& place = PlaceOf(method);
  const uint32_t version = place.version.load(std::memory_order_acquire);
  if (version % 2 == 0 && place.method.load(std::memory_order_relaxed) == method) {
    const uint32_t bytes = place.bytecode_bytes.load(std::memory_order_relaxed);
    found = {.id = place.id.load(std::memory_order_relaxed),
             .bytecodes = place.bytecodes.load(std::memory_order_relaxed),
             .bytecode_bytes = bytes & ~kNativeBit,
             .native = (bytes & kNativeBit) != 0};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (place.version.load(std::memory_order_relaxed) == version &&
        LoadPlain<uint64_t>(found.id) == method) {
      return true;
    }
  }
  if (!FindInMemory(memory, method, found)) return false;
  if (found.id != 0) Keep(method, found);
  return true;
}

bool HotspotMethods::FindInMemory(HotspotMemory& memory, uint64_t method,
                                  HotspotMethod& found) const noexcept {
  uint64_t const_method = 0;
  uint64_t flags = 0;
  uint64_t pool = 0;
  uint64_t number = 0;
  uint64_t bytes = 0;
  uint64_t klass = 0;
  uint64_t ids = 0;
  if (!memory.LoadField(method, layout_.method_const_method, const_method) ||
      !memory.LoadField(method, layout_.method_access_flags, flags) ||
      const_method % sizeof(uint64_t) != 0 ||
      !memory.LoadField(const_method, layout_.const_method_constants, pool) ||
      !memory.LoadField(const_method, layout_.const_method_id_number, number) ||
      !memory.LoadField(const_method, layout_.const_method_code_size, bytes) ||
      pool % sizeof(uint64_t) != 0 || !memory.LoadField(pool, layout_.pool_holder, klass) ||
      klass % sizeof(uint64_t) != 0 || !memory.LoadField(klass, layout_.klass_method_ids, ids)) {
    return false;
  }
  found = {.id = 0,
           .bytecodes = const_method + layout_.const_method_bytes,
           .bytecode_bytes = static_cast<uint32_t>(bytes),
           .native = (flags & kNativeAccess) != 0};
  if (ids == 0) return true;
  // The first word is how many there are room for.
  uint64_t count = 0;
  uint64_t id = 0;
  uint64_t back = 0;
  if (ids % sizeof(uint64_t) != 0 || !memory.Load(ids, count)) return false;
  if (number >= count) return true;
  if (!memory.Load(ids + (number + 1) * sizeof(uint64_t), id)) return false;
  if (id == 0 || id % sizeof(uint64_t) != 0 || id >> 47 != 0) return true;
  if (!memory.Load(id, back)) return false;
  // Of a redefined class it leads to the new version: then this frame's own has no id.
  if (back == method) found.id = id;
  return true;
}

void HotspotMethods::Keep(uint64_t method, const HotspotMethod& found) noexcept {
  Place& place = PlaceOf(method);
  uint32_t version = place.version.load(std::memory_order_relaxed);
  if (version % 2 != 0 ||
      !place.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire)) {
    return;
  }
  // Pairs with the fence of Find: who sees one of the stores below sees the odd version.
  std::atomic_thread_fence(std::memory_order_release);
  place.method.store(method, std::memory_order_relaxed);
  place.id.store(found.id, std::memory_order_relaxed);
  place.bytecodes.store(found.bytecodes, std::memory_order_relaxed);
  place.bytecode_bytes.store(found.bytecode_bytes | (found.native ? kNativeBit : 0),
                             std::memory_order_relaxed);
  place.version.store(version + 2, std::memory_order_release);
}

}  // namespace spanprof::jvm
