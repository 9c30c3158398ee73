#include "agent/hotspot_structs.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <optional>

namespace spanprof::jvm {
namespace {

// The table's own description is exported too, one number a symbol.
std::optional<uint64_t> ExportedNumber(const char* symbol) {
  const void* found = dlsym(RTLD_DEFAULT, symbol);
  if (found == nullptr) {
    void* library = dlopen("libjvm.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) {
      found = dlsym(library, symbol);
      dlclose(library);
    }
  }
  if (found == nullptr) return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, found, sizeof(value));
  return value;
}

// One exported array of records, and where in a record things are.
class ExportedArray {
 public:
  ExportedArray(const char* array, const std::string& entry) : entry_(entry) {
    at_ = Number(array);
    stride_ = Number((entry + "ArrayStride").c_str());
  }
  // The offset of a record's field.
  uint64_t Offset(const char* field) { return Number((entry_ + field + "Offset").c_str()); }
  [[nodiscard]] const std::string& missing() const { return missing_; }

  template <typename T>
  [[nodiscard]] T Load(uint64_t offset) const {
    T value;
    std::memcpy(static_cast<void*>(&value), reinterpret_cast<const void*>(at_ + offset),
                sizeof(value));
    return value;
  }
  [[nodiscard]] std::string Text(uint64_t offset) const {
    const auto* text = Load<const char*>(offset);
    return text == nullptr ? std::string() : std::string(text);
  }
  void Next() { at_ += stride_; }

 private:
  uint64_t Number(const char* symbol) {
    const auto value = ExportedNumber(symbol);
    if (!value && missing_.empty()) missing_ = symbol;
    return value.value_or(0);
  }

  const std::string entry_;
  uint64_t at_ = 0;
  uint64_t stride_ = 0;
  std::string missing_;
};

tl::unexpected<Error> NoTable(const std::string& symbol) {
  return Fail(ENOTSUP, "the JVM does not export " + symbol + ", by which its structures are known",
              "use the walker asgct, or a HotSpot JVM with its serviceability tables");
}

std::string Key(const char* type, const char* field) { return std::string(type) + "." + field; }

}  // namespace

Result<HotspotTables> HotspotTables::OfThisProcess() {
  HotspotTables tables;

  ExportedArray structs("gHotSpotVMStructs", "gHotSpotVMStructEntry");
  const uint64_t type = structs.Offset("TypeName");
  const uint64_t field = structs.Offset("FieldName");
  const uint64_t type_of_field = structs.Offset("TypeString");
  const uint64_t is_static = structs.Offset("IsStatic");
  const uint64_t offset = structs.Offset("Offset");
  const uint64_t address = structs.Offset("Address");
  if (!structs.missing().empty()) return NoTable(structs.missing());
  for (; structs.Load<const char*>(type) != nullptr; structs.Next()) {
    tables.fields_[structs.Text(type) + "." + structs.Text(field)] = {
        .type = structs.Text(type_of_field),
        .is_static = structs.Load<int32_t>(is_static) != 0,
        .offset = structs.Load<uint64_t>(offset),
        .address = structs.Load<uint64_t>(address)};
  }

  ExportedArray types("gHotSpotVMTypes", "gHotSpotVMTypeEntry");
  const uint64_t type_name = types.Offset("TypeName");
  const uint64_t size = types.Offset("Size");
  if (!types.missing().empty()) return NoTable(types.missing());
  for (; types.Load<const char*>(type_name) != nullptr; types.Next()) {
    tables.sizes_[types.Text(type_name)] = types.Load<uint64_t>(size);
  }

  ExportedArray ints("gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry");
  const uint64_t int_name = ints.Offset("Name");
  const uint64_t int_value = ints.Offset("Value");
  if (!ints.missing().empty()) return NoTable(ints.missing());
  for (; ints.Load<const char*>(int_name) != nullptr; ints.Next()) {
    tables.constants_[ints.Text(int_name)] = ints.Load<int32_t>(int_value);
  }
  return tables;
}

const HotspotTables::Entry* HotspotTables::Find(const char* type, const char* field) const {
  const auto found = fields_.find(Key(type, field));
  return found == fields_.end() ? nullptr : &found->second;
}

uint8_t HotspotTables::WidthOf(const std::string& type) const {
  if (type == "u2" || type == "int16_t" || type == "uint16_t") return 2;
  if (type == "int" || type == "u4" || type == "jint" || type == "uint32_t") return 4;
  if (type == "bool" || type == "u1" || type == "volatile signed char") return 1;
  if (type == "CodeBlobKind") return 1;  // an enum of bytes, whose size the tables do not have
  if (!type.empty() && type.back() == '*') return 8;
  if (const auto known = sizes_.find(type); known != sizes_.end() && known->second < 8) {
    return static_cast<uint8_t>(known->second);
  }
  return 8;  // an address, or a structure that stands in it
}

HotspotField HotspotTables::Field(const char* type, const char* field) const {
  const Entry* entry = Find(type, field);
  if (entry == nullptr || entry->is_static) return {};
  return {.offset = static_cast<uint32_t>(entry->offset), .bytes = WidthOf(entry->type)};
}

uint64_t HotspotTables::Static(const char* type, const char* field) const {
  const Entry* entry = Find(type, field);
  return entry == nullptr || !entry->is_static ? 0 : entry->address;
}

uint64_t HotspotTables::SizeOf(const char* type) const {
  const auto known = sizes_.find(type);
  return known == sizes_.end() ? 0 : known->second;
}

bool HotspotTables::Constant(const char* name, int64_t& value) const {
  const auto known = constants_.find(name);
  if (known == constants_.end()) return false;
  value = known->second;
  return true;
}

Result<HotspotLayout> HotspotLayout::From(const HotspotTables& tables) {
  HotspotLayout layout;
  std::string missing;
  const auto miss = [&](const std::string& what) {
    if (missing.empty()) missing = what;
  };
  const auto optional = [&](const char* type, const char* field) {
    return tables.Field(type, field);
  };
  const auto needed = [&](const char* type, const char* field) {
    const HotspotField found = tables.Field(type, field);
    if (!found.present()) miss(Key(type, field));
    return found;
  };
  // Some fields have moved up or down between a class and its parent.
  const auto either = [&](const char* type, const char* other_type, const char* field) {
    const HotspotField found = tables.Field(type, field);
    return found.present() ? found : needed(other_type, field);
  };
  const auto place = [&](const char* type, const char* field) {
    const uint64_t found = tables.Static(type, field);
    if (found == 0) miss(Key(type, field));
    return found;
  };
  const auto size = [&](const char* type) {
    const uint64_t found = tables.SizeOf(type);
    if (found == 0) miss(std::string("sizeof ") + type);
    return static_cast<uint32_t>(found);
  };

  if (const uint64_t version = place("Abstract_VM_Version", "_vm_major_version"); version != 0) {
    layout.vm_version = *reinterpret_cast<const int*>(version);
  }
  layout.stream_excluded_bytes = layout.vm_version >= 20 ? 1 : 0;

  layout.heaps = place("CodeCache", "_heaps");
  layout.low_bound = place("CodeCache", "_low_bound");
  layout.high_bound = place("CodeCache", "_high_bound");
  layout.array_length = needed("GrowableArrayBase", "_len");
  layout.array_data = needed("GrowableArray<int>", "_data");
  layout.heap_memory = needed("CodeHeap", "_memory");
  layout.heap_segment_map = needed("CodeHeap", "_segmap");
  layout.heap_log2_segment = needed("CodeHeap", "_log2_segment_size");
  layout.space_low = needed("VirtualSpace", "_low");
  layout.space_high = needed("VirtualSpace", "_high");
  layout.block_used = needed("HeapBlock::Header", "_used");
  layout.block_header_bytes = size("HeapBlock");

  layout.blob_name = needed("CodeBlob", "_name");
  layout.blob_size = needed("CodeBlob", "_size");
  layout.blob_frame_size = needed("CodeBlob", "_frame_size");
  layout.blob_frame_complete = needed("CodeBlob", "_frame_complete_offset");
  layout.blob_data_offset = needed("CodeBlob", "_data_offset");
  layout.blob_kind = optional("CodeBlob", "_kind");
  if (layout.blob_kind.present() &&
      !tables.Constant("CodeBlobKind::Nmethod", layout.kind_nmethod)) {
    miss("CodeBlobKind::Nmethod");
  }
  layout.blob_code_offset = optional("CodeBlob", "_code_offset");
  if (!layout.blob_code_offset.present()) {
    layout.blob_code_begin = needed("CodeBlob", "_code_begin");
  }
  layout.nmethod_metadata_offset = optional("nmethod", "_metadata_offset");
  if (!layout.nmethod_metadata_offset.present()) {
    layout.blob_mutable_data = needed("CodeBlob", "_mutable_data");
    layout.blob_mutable_size = needed("CodeBlob", "_mutable_data_size");
    layout.blob_relocation_size = needed("CodeBlob", "_relocation_size");
  }

  layout.nmethod_method = either("nmethod", "CompiledMethod", "_method");
  layout.nmethod_compile_id = needed("nmethod", "_compile_id");
  layout.nmethod_state = needed("nmethod", "_state");
  layout.nmethod_orig_pc_offset = needed("nmethod", "_orig_pc_offset");
  layout.nmethod_scopes_pcs_offset = needed("nmethod", "_scopes_pcs_offset");
  layout.nmethod_immutable_data = optional("nmethod", "_immutable_data");
  if (layout.nmethod_immutable_data.present()) {
    layout.nmethod_immutable_size = needed("nmethod", "_immutable_data_size");
    layout.nmethod_scopes_data_offset = needed("nmethod", "_scopes_data_offset");
    layout.nmethod_deopt_handler_offset = needed("nmethod", "_deopt_handler_offset");
    layout.nmethod_deopt_mh_handler_offset = optional("nmethod", "_deopt_mh_handler_offset");
  } else {
    layout.nmethod_scopes_data_begin = either("nmethod", "CompiledMethod", "_scopes_data_begin");
    layout.nmethod_dependencies_offset = needed("nmethod", "_dependencies_offset");
    layout.nmethod_deopt_handler_begin =
        either("nmethod", "CompiledMethod", "_deopt_handler_begin");
    layout.nmethod_deopt_mh_handler_begin =
        either("nmethod", "CompiledMethod", "_deopt_mh_handler_begin");
  }
  layout.pc_desc_pc_offset = needed("PcDesc", "_pc_offset");
  layout.pc_desc_scope_offset = needed("PcDesc", "_scope_decode_offset");
  layout.pc_desc_bytes = size("PcDesc");
  layout.nmethod_bytes = size("nmethod");

  layout.method_const_method = needed("Method", "_constMethod");
  layout.method_access_flags = needed("Method", "_access_flags");
  layout.const_method_constants = needed("ConstMethod", "_constants");
  layout.const_method_code_size = needed("ConstMethod", "_code_size");
  layout.const_method_id_number = needed("ConstMethod", "_method_idnum");
  layout.const_method_bytes = size("ConstMethod");
  layout.pool_holder = needed("ConstantPool", "_pool_holder");
  layout.klass_method_ids = needed("InstanceKlass", "_methods_jmethod_ids");

  layout.thread_anchor = needed("JavaThread", "_anchor");
  layout.thread_state = needed("JavaThread", "_thread_state");
  layout.thread_os_thread = either("Thread", "JavaThread", "_osthread");
  layout.thread_pending_monitor = needed("JavaThread", "_current_pending_monitor");
  layout.thread_continuation_entry = optional("JavaThread", "_cont_entry");
  layout.continuation_entry_bytes = static_cast<uint32_t>(tables.SizeOf("ContinuationEntry"));
  layout.anchor_stack_pointer = needed("JavaFrameAnchor", "_last_Java_sp");
  layout.anchor_pc = needed("JavaFrameAnchor", "_last_Java_pc");
  layout.anchor_frame_pointer = optional("JavaFrameAnchor", "_last_Java_fp");
  layout.os_thread_state = needed("OSThread", "_state");
  layout.wrapper_anchor = needed("JavaCallWrapper", "_anchor");

  const auto constant = [&](const char* name, int64_t& value) {
    if (!tables.Constant(name, value)) miss(name);
  };
  constant("_thread_in_Java", layout.state_in_java);
  constant("_thread_blocked", layout.state_blocked);
  constant("RUNNABLE", layout.os_state_runnable);
  constant("MONITOR_WAIT", layout.os_state_monitor_wait);
  constant("CONDVAR_WAIT", layout.os_state_condition_wait);
  constant("OBJECT_WAIT", layout.os_state_object_wait);
  constant("SLEEPING", layout.os_state_sleeping);

  layout.interpreter = place("AbstractInterpreter", "_code");
  layout.stub_queue_buffer = needed("StubQueue", "_stub_buffer");
  layout.stub_queue_limit = needed("StubQueue", "_buffer_limit");
  layout.call_stub_return = place("StubRoutines", "_call_stub_return_address");
  layout.continuation_return = tables.Static("ContinuationEntry", "_return_pc");
  constant("frame::entry_frame_call_wrapper_offset", layout.call_wrapper_words);

  if (!missing.empty()) {
    return Fail(ENOTSUP,
                "this JVM (version " + std::to_string(layout.vm_version) +
                    ") does not say where its " + missing + " is",
                "the walker asgct is used instead");
  }
  return layout;
}

}  // namespace spanprof::jvm
