#include "outside_reader.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/uio.h>

namespace spanprof::stress {
namespace {

// The table: a header of 32 bytes, slots of 32 bytes, then one pointer a slot.
constexpr uint64_t kHeaderBytes = 32, kSlotBytes = 32;
constexpr size_t kRecordBytes = 640, kAttributesAt = 28;
struct Header {
  uint32_t magic, version, capacity, slot_size, features, publisher_pid, pointers_offset, seconds;
};
struct SlotImage {
  uint64_t trace_id_high, trace_id_low, span_id, word;
};

bool IsBusy(uint64_t word) { return (word & 0xFF) != 0; }
uint32_t OwnerOf(uint64_t word) { return (word >> 8) & 0xFFFFFF; }

// All ranges, in order, by one call.
template <size_t Count>
bool ReadRemote(pid_t pid, iovec (&local)[Count], const uint64_t (&addresses)[Count]) {
  iovec remote[Count];
  size_t wanted = 0;
  for (size_t i = 0; i < Count; ++i) {
    remote[i] = {reinterpret_cast<void*>(addresses[i]), local[i].iov_len};
    wanted += local[i].iov_len;
  }
#if defined(__x86_64__)
  return process_vm_readv(pid, local, Count, remote, Count, 0) == static_cast<ssize_t>(wanted);
#else
  // Nothing orders the copies of one call here.
  size_t got = 0;
  for (size_t i = 0; i < Count; ++i) {
    const ssize_t bytes = process_vm_readv(pid, &local[i], 1, &remote[i], 1, 0);
    if (bytes > 0) got += static_cast<size_t>(bytes);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }
  return got == wanted;
#endif
}

uint64_t BigEndian64(const unsigned char* bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return __builtin_bswap64(value);
}

bool ParseHex16(std::string_view text, uint64_t* value) {
  if (text.size() != 16) return false;
  *value = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
    if (!digit && !letter) return false;
    *value = *value << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return true;
}

// The parts of slot and record as one context. False: they contradict each other.
bool Assemble(const SlotImage& slot, const unsigned char* record, OutsideContext* out) {
  *out = {};
  Fields& fields = out->fields;
  fields.span_id = slot.span_id;
  out->valid = record[24] == 1;
  if (!out->valid) {
    // Without a span and tags there is nothing for the record to say.
    return slot.span_id == 0;
  }
  fields.trace_id_high = BigEndian64(record);
  fields.trace_id_low = BigEndian64(record + 8);
  fields.trace_flags = record[25];
  if (BigEndian64(record + 16) != slot.span_id) return false;

  uint16_t size;
  memcpy(&size, record + 26, sizeof size);
  if (size > kRecordBytes - kAttributesAt) return false;
  const uint32_t key = KeyOfSpan(slot.span_id);
  for (size_t at = 0; at < size;) {
    if (at + 2 > size || at + 2 + record[kAttributesAt + at + 1] > size) return false;
    const unsigned index = record[kAttributesAt + at];
    const size_t length = record[kAttributesAt + at + 1];
    const std::string_view value(reinterpret_cast<const char*>(record) + kAttributesAt + at + 2,
                                 length);
    if (index == 0 && !ParseHex16(value, &fields.root_span_id)) return false;
    if (index > kTags) return false;
    if (index > 0) fields.tag_classes[index - 1] = ClassOfText(key, value);
    at += 2 + length;
  }
  const bool has_trace = (fields.trace_id_high | fields.trace_id_low) != 0;
  return slot.trace_id_high == fields.trace_id_high &&
         slot.trace_id_low == (has_trace ? fields.trace_id_low : fields.root_span_id);
}

template <class Visitor>
void ForEachMapping(pid_t pid, const char* name, Visitor visit) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  FILE* maps = fopen(path.c_str(), "re");
  if (maps == nullptr) return;
  char line[1024];
  while (fgets(line, sizeof line, maps) != nullptr) {
    const char* found = strstr(line, name);
    if (found == nullptr || found == line) continue;
    const char before = found[-1], after = found[strlen(name)];
    if (before != ':' || (after != ' ' && after != '\n' && after != ']')) continue;
    visit(strtoull(line, nullptr, 16));
  }
  fclose(maps);
}

}  // namespace

const char* OutsideStatusName(OutsideStatus status) {
  constexpr const char* kNames[] = {"accepted", "busy",        "changed",    "not owner",
                                    "no table", "other table", "unreadable", "inconsistent"};
  return kNames[static_cast<unsigned>(status)];
}

OutsideStatus OutsideReader::CheckHeader() {
  Header header = {};
  iovec local[] = {{&header, sizeof header}};
  if (!ReadRemote(pid_, local, {table_})) return OutsideStatus::kUnreadable;
  if (header.magic != 0x4F54454C || header.version != 1 || header.slot_size != kSlotBytes ||
      header.capacity == 0 || (header.features & 3) != 3) {
    return OutsideStatus::kNoTable;
  }
  if (header.publisher_pid != static_cast<uint32_t>(pid_)) return OutsideStatus::kOtherTable;
  capacity_ = header.capacity;
  pointers_offset_ = header.pointers_offset;
  return OutsideStatus::kAccepted;
}

OutsideStatus OutsideReader::Find() {
  table_ = 0;
  OutsideStatus status = OutsideStatus::kNoTable;
  ForEachMapping(pid_, "DD_OTEL_CTX", [&](uint64_t address) {
    if (status == OutsideStatus::kAccepted) return;
    table_ = address;
    status = CheckHeader();
  });
  return status;
}

OutsideStatus OutsideReader::Read(int tid, OutsideContext* out) {
  if (table_ == 0) {
    if (const OutsideStatus found = Find(); found != OutsideStatus::kAccepted) return found;
  }
  if (const OutsideStatus valid = CheckHeader(); valid != OutsideStatus::kAccepted) return valid;
  const uint64_t index = static_cast<uint32_t>(tid) % capacity_;
  const uint64_t slot_address = table_ + kHeaderBytes + index * kSlotBytes;
  const uint64_t word_address = slot_address + 24;
  const uint64_t pointer_address = table_ + pointers_offset_ + index * 8;

  uint64_t before = 0, record_address = 0, after = 0;
  SlotImage slot = {};
  iovec first[] = {{&before, 8}, {&slot, sizeof slot}, {&record_address, 8}};
  if (!ReadRemote(pid_, first, {word_address, slot_address, pointer_address})) {
    return OutsideStatus::kUnreadable;
  }
  if (OwnerOf(before) != static_cast<uint32_t>(tid)) return OutsideStatus::kNotOwner;
  if (IsBusy(before)) return OutsideStatus::kBusy;
  unsigned char record[kRecordBytes];
  iovec second[] = {{record, sizeof record}, {&after, 8}};
  if (!ReadRemote(pid_, second, {record_address, word_address})) {
    return OutsideStatus::kUnreadable;
  }
  if (before != after) return OutsideStatus::kChanged;
  return Assemble(slot, record, out) ? OutsideStatus::kAccepted : OutsideStatus::kInconsistent;
}

OutsideStatus OutsideReader::ReadWithRetries(int tid, OutsideContext* out, int tries) {
  OutsideStatus status = OutsideStatus::kBusy;
  for (int i = 0; i < tries; ++i) {
    status = Read(tid, out);
    if (status != OutsideStatus::kBusy && status != OutsideStatus::kChanged) break;
  }
  return status;
}

unsigned CountMappings(pid_t pid, const char* name) {
  unsigned count = 0;
  ForEachMapping(pid, name, [&count](uint64_t) { ++count; });
  return count;
}

}  // namespace spanprof::stress
