#pragma once

// What HotSpot says of its own structures: the tables that libjvm.so exports for the serviceability
// agent (gHotSpotVMStructs and so on), and the offsets that our walker takes from them. Read once
// at start, not in a signal handler.

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/result.h"

namespace spanprof::jvm {

// A field of a VM structure that a walker loads. Its width differs between versions.
struct HotspotField {
  uint32_t offset = 0;
  uint8_t bytes = 0;  // 0: this version has no such field
  [[nodiscard]] bool present() const { return bytes != 0; }
};

class HotspotTables {
 public:
  // Of the JVM of this process. Fails where it exports none.
  static Result<HotspotTables> OfThisProcess();

  [[nodiscard]] HotspotField Field(const char* type, const char* field) const;
  // Where a static field is; 0: there is none.
  [[nodiscard]] uint64_t Static(const char* type, const char* field) const;
  [[nodiscard]] uint64_t SizeOf(const char* type) const;  // 0: unknown
  [[nodiscard]] bool Constant(const char* name, int64_t& value) const;

 private:
  struct Entry {
    std::string type;  // the field's own
    bool is_static = false;
    uint64_t offset = 0;
    uint64_t address = 0;
  };
  [[nodiscard]] const Entry* Find(const char* type, const char* field) const;
  [[nodiscard]] uint8_t WidthOf(const std::string& type) const;

  std::unordered_map<std::string, Entry> fields_;  // "type.field"
  std::unordered_map<std::string, uint64_t> sizes_;
  std::unordered_map<std::string, int64_t> constants_;
};

// Everything that the walker needs, by what it is for. All is offsets in bytes, or addresses.
struct HotspotLayout {
  int vm_version = 0;  // 17, 25

  // Code heaps.
  uint64_t heaps = 0;       // static CodeCache::_heaps
  uint64_t low_bound = 0;   // static CodeCache::_low_bound
  uint64_t high_bound = 0;  // static CodeCache::_high_bound
  HotspotField array_length, array_data;
  HotspotField heap_memory, heap_segment_map, heap_log2_segment;
  HotspotField space_low, space_high;
  HotspotField block_used;
  uint32_t block_header_bytes = 0;

  // Blobs of code.
  HotspotField blob_name, blob_size, blob_frame_size, blob_frame_complete, blob_data_offset;
  HotspotField blob_kind;                                                   // from 23 on
  HotspotField blob_code_offset;                                            // from 23 on
  HotspotField blob_code_begin;                                             // before
  HotspotField blob_mutable_data, blob_mutable_size, blob_relocation_size;  // from 25 on
  int64_t kind_nmethod = -1;

  // Compiled methods.
  HotspotField nmethod_method, nmethod_compile_id, nmethod_state, nmethod_orig_pc_offset;
  HotspotField nmethod_scopes_pcs_offset, nmethod_scopes_data_offset, nmethod_dependencies_offset;
  HotspotField nmethod_scopes_data_begin;                                      // before 23
  HotspotField nmethod_immutable_data, nmethod_immutable_size;                 // from 23 on
  HotspotField nmethod_metadata_offset;                                        // before 25
  HotspotField nmethod_deopt_handler_begin, nmethod_deopt_mh_handler_begin;    // before 23
  HotspotField nmethod_deopt_handler_offset, nmethod_deopt_mh_handler_offset;  // from 23 on
  HotspotField pc_desc_pc_offset, pc_desc_scope_offset;
  uint32_t pc_desc_bytes = 0;
  uint32_t nmethod_bytes = 0;
  // Debug information is a stream of small integers, whose bytes changed their meaning in 20.
  uint32_t stream_excluded_bytes = 0;

  // Methods.
  HotspotField method_const_method, method_access_flags;
  HotspotField const_method_constants, const_method_code_size, const_method_id_number;
  uint32_t const_method_bytes = 0;
  HotspotField pool_holder, klass_method_ids;

  // Threads.
  HotspotField thread_anchor, thread_state, thread_os_thread, thread_pending_monitor;
  HotspotField thread_continuation_entry;  // from 21 on
  HotspotField anchor_stack_pointer, anchor_pc, anchor_frame_pointer;
  HotspotField os_thread_state;
  int64_t state_in_java = -1, state_blocked = -1;  // of a JavaThread
  int64_t os_state_runnable = -1, os_state_monitor_wait = -1, os_state_condition_wait = -1,
          os_state_object_wait = -1, os_state_sleeping = -1;  // of an OSThread
  uint32_t continuation_entry_bytes = 0;

  // Places in the code.
  uint64_t interpreter = 0;  // static AbstractInterpreter::_code
  HotspotField stub_queue_buffer, stub_queue_limit;
  uint64_t call_stub_return = 0;     // static StubRoutines::_call_stub_return_address
  uint64_t continuation_return = 0;  // static ContinuationEntry::_return_pc; 0: before 21
  int64_t call_wrapper_words = 0;    // from the entry frame's frame pointer to the JavaCallWrapper
  HotspotField wrapper_anchor;

  // Fails, naming what is missing, for a JVM that the walker does not know.
  static Result<HotspotLayout> From(const HotspotTables& tables);
};

}  // namespace spanprof::jvm
