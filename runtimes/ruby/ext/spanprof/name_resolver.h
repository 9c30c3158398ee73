#pragma once

// Asks the VM for names, on a Ruby thread of ours: only a thread that holds the VM's lock may, and
// the sampler's thread is none of Ruby's. It waits without the lock until somebody asks.
//
//   ruby:    resolver.Start();                    // holds the VM's lock
//   sampler: resolver.Description(number);        // waits until it is named, within limits
//
// The VM's lock may be held for long by an extension, and the VM may end. So a wait is bounded, and
// after one that was in vain nobody waits until the thread has been seen again.

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "frame_table.h"
#include "ruby_api.h"
#include "ruby_threads.h"
#include "sampling/waitable_number.h"

namespace spanprof::ruby {

class NameResolver {
 public:
  NameResolver(FrameTable& frames, RubyThreads& threads) : frames_(frames), threads_(threads) {}

  // ---- For a thread that holds the VM's lock ----
  // Starts the Ruby thread, unless it runs. May raise.
  void Start();
  void Stop();
  // Names of threads, which are kept when a thread has ended: before another recording begins.
  void ForgetThreads();

  // ---- For the sampler's thread ----
  // Null: the VM could not be asked in time.
  const FrameDescription* Description(uint32_t number);
  // "" if Ruby has no name for it.
  std::string ThreadName(uint32_t tid, uint64_t monotonic_ns);

  // ---- Around a fork ----
  void PrepareFork() { names_lock_.lock(); }
  void FinishForkInParent() { names_lock_.unlock(); }
  void FinishForkInChild();

  // The VM is about to end: nobody waits for it any more. Any thread.
  void GiveUp();

  [[nodiscard]] uint64_t unnamed() const { return unnamed_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t rounds() const { return rounds_.Get(); }

 private:
  static VALUE ThreadMain(void* self);
  static VALUE Loop(VALUE self);
  static VALUE Ended(VALUE self);
  static void* WaitForWork(void* self);
  static void StopWaiting(void* self);
  void ResolveAll();
  void NameThreads();
  void Ask();

  FrameTable& frames_;
  RubyThreads& threads_;
  sampling::WaitableNumber asked_;
  sampling::WaitableNumber rounds_;
  std::atomic<uint32_t> answered_{0};  // the value of asked_ when the last round began
  std::atomic<bool> running_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> in_vain_{false};
  std::atomic<uint64_t> unnamed_{0};
  uint64_t last_names_ns_ = 0;  // the sampler's thread's
  std::mutex names_lock_;       // taken by a Ruby thread only while it holds the VM's lock
  std::map<uint32_t, std::string> thread_names_;
};

}  // namespace spanprof::ruby
