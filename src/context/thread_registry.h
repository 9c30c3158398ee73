#pragma once

// Every thread's object, found by thread id: an array with one pointer a possible id, so nothing
// collides and a lookup is one load. Objects are taken from chunks that are never unmapped, because
// a reader may look at an object while its thread goes; a detached object is given to another
// thread only when its last thread is really gone.
//
// Find is signal-safe. Attach and Detach take the registry's lock: call them with signals blocked.

#include <atomic>
#include <cstdint>

#include <spanprof/context.h>
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::context {

class ThreadRegistry {
 public:
  // False: no memory. Once a process; EnsureProcessState before it.
  bool Create();

  // An object of that thread, its fields zero but for `tid`, not writable yet (checksum 0), not
  // found by Find yet. Null: no memory, or an id beyond the limit. If a thread of that id went
  // without detaching, its object is used again.
  internal::ThreadContext* Attach(uint32_t tid);
  // In a forked child: the thread goes on with its object.
  void AttachInForkedChild(internal::ThreadContext& context, uint32_t tid);
  // Lets Find have the object.
  void Publish(internal::ThreadContext& context);
  void Detach(internal::ThreadContext& context);

  internal::ThreadContext* Find(uint32_t tid) const;

  template <class Visitor>
  void ForEachAttached(Visitor visit) {
    for (Chunk* chunk = chunks_.load(std::memory_order_acquire); chunk != nullptr;
         chunk = chunk->next) {
      for (uint32_t i = 0; i < objects_per_chunk_; ++i) {
        internal::ThreadContext& context = ObjectsOf(chunk)[i];
        if (context.registered.load(std::memory_order_acquire) != 0) visit(context);
      }
    }
  }

  // For fork: where a thread's context waits while the memory of its object is wiped.
  struct Shelter {
    bool occupied;
    spanprof_context context;
  };
  Shelter& ShelterOf(internal::ThreadContext& context) const;
  // Where the system does not wipe memory in a child, this does.
  void WipeAllObjects();
  // New threads get objects that did not exist before now.
  void LeaveOldObjectsAlone();

 private:
  // A chunk is aligned to its size: first the objects, which a fork wipes, then this, which it does
  // not, followed by one shelter an object.
  struct Chunk {
    Chunk* next;
    uint32_t number;
  };

  internal::ThreadContext* ObjectsOf(Chunk* chunk) const;
  Chunk* ChunkOf(internal::ThreadContext& context) const;
  Chunk* AddChunk();
  internal::ThreadContext* TakeObject(uint32_t tid);
  internal::ThreadContext* TakeDetached(uint32_t tid);
  void AppendDetached(internal::ThreadContext& context);
  internal::ThreadContext* TakeUnused();

  size_t chunk_bytes_ = 0;
  size_t objects_bytes_ = 0;
  uint32_t objects_per_chunk_ = 0;
  uint32_t id_limit_ = 0;
  std::atomic<std::atomic<internal::ThreadContext*>*> by_tid_{nullptr};
  std::atomic<Chunk*> chunks_{nullptr};  // newest first
};

}  // namespace spanprof::context
