#include "sampling/unwind_table_builder.h"

#include <algorithm>

namespace spanprof::sampling {
namespace {

constexpr std::size_t kMaxRules = 65535;
constexpr uint16_t kNoInformationRule = 0;
constexpr uint16_t kUnsupportedRule = 1;
constexpr std::size_t kBytesOfRow = sizeof(uint8_t) + sizeof(uint16_t);

constexpr uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value;
  hash *= 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

constexpr uint64_t Packed(const SavedRegister& saved) {
  return (uint64_t{static_cast<uint8_t>(saved.kind)} << 32) | static_cast<uint32_t>(saved.offset);
}

}  // namespace

std::size_t UnwindTableBuilder::HashOfRule::operator()(const UnwindRule& rule) const {
  uint64_t hash = (uint64_t{static_cast<uint8_t>(rule.cfa)} << 8) | rule.cfa_register;
  hash = Mix(hash, static_cast<uint32_t>(rule.cfa_offset));
  hash = Mix(hash, static_cast<uint32_t>(rule.cfa_addend));
  hash = Mix(hash, Packed(rule.return_address));
  hash = Mix(hash, Packed(rule.frame_pointer));
  hash = Mix(hash, Packed(rule.stack_pointer));
  hash = Mix(hash, Packed(rule.base_register));
  return hash;
}

UnwindTableBuilder::UnwindTableBuilder(uint64_t begin, uint64_t end, std::size_t max_bytes)
    : begin_(begin),
      end_(std::max(begin, std::min(end, begin + UINT32_MAX))),
      max_bytes_(max_bytes),
      table_(new UnwindTable()) {
  table_->begin_ = begin_;
  UnwindRule unsupported;
  unsupported.cfa = CfaKind::kUnsupported;
  table_->rules_ = {UnwindRule(), unsupported};
  numbers_ = {{UnwindRule(), kNoInformationRule}, {unsupported, kUnsupportedRule}};
  const uint64_t blocks = ((end_ - begin_) >> UnwindTable::kBlockBits) + 2;
  if (blocks * sizeof(uint32_t) >= max_bytes) {
    full_ = true;
    end_ = begin_;
    return;
  }
  table_->block_first_.reserve(blocks);
  table_->block_first_.push_back(0);
  table_->row_start_.push_back(0);
  table_->row_rule_.push_back(kNoInformationRule);
}

uint16_t UnwindTableBuilder::NumberOf(const UnwindRule& rule) {
  const auto found = numbers_.find(rule);
  if (found != numbers_.end()) return found->second;
  if (table_->rules_.size() >= kMaxRules) {
    ++excess_rules_;
    return kUnsupportedRule;
  }
  const auto number = static_cast<uint16_t>(table_->rules_.size());
  table_->rules_.push_back(rule);
  numbers_.emplace(rule, number);
  return number;
}

// Blocks up to and with `block` have their first row at the next row to come.
void UnwindTableBuilder::CloseBlocksBefore(uint64_t block) {
  const auto next_row = static_cast<uint32_t>(table_->row_start_.size());
  while (table_->block_first_.size() <= block) table_->block_first_.push_back(next_row);
}

bool UnwindTableBuilder::Add(uint64_t address, const UnwindRule& rule) {
  if (full_) return false;
  const uint64_t offset = address - begin_;
  if (address < begin_ || address >= end_ || offset < last_offset_) return true;
  const uint16_t number = NumberOf(rule);
  if (offset == last_offset_) {
    table_->row_rule_.back() = number;
    return true;
  }
  if (number == table_->row_rule_.back()) return true;
  const std::size_t bytes = (table_->row_start_.size() + 1) * kBytesOfRow +
                            table_->block_first_.capacity() * sizeof(uint32_t) +
                            table_->rules_.size() * sizeof(UnwindRule);
  if (bytes > max_bytes_) {
    full_ = true;
    end_ = address;
    return false;
  }
  CloseBlocksBefore(offset >> UnwindTable::kBlockBits);
  table_->row_start_.push_back(static_cast<uint8_t>(offset));
  table_->row_rule_.push_back(number);
  last_offset_ = offset;
  return true;
}

std::shared_ptr<const UnwindTable> UnwindTableBuilder::Finish() {
  table_->size_ = end_ - begin_;
  if (table_->size_ != 0) {
    CloseBlocksBefore(((table_->size_ - 1) >> UnwindTable::kBlockBits) + 1);
  }
  table_->row_start_.shrink_to_fit();
  table_->row_rule_.shrink_to_fit();
  table_->rules_.shrink_to_fit();
  table_->block_first_.shrink_to_fit();
  return std::move(table_);
}

}  // namespace spanprof::sampling
