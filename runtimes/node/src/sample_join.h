#pragma once

// Joins V8's samples with what our handler noted of their signals. A sample of V8 has no identity,
// but a time stamp, taken within V8's handler; ours ran around that very handler and noted the time
// before and after it. So a sample belongs to the one record whose bracket holds its stamp. No
// record, or two, is no join: a context is never guessed.
//
// Pure: records are anything that can be counted and indexed, in the order of time.

#include <cstddef>
#include <cstdint>

namespace spanprof::node {

enum class JoinOutcome : uint8_t {
  kJoined,
  kNoRecord,    // a sample that no signal of ours brought, or whose record was dropped
  kTwoRecords,  // the brackets of two records hold the stamp
};

class SampleJoin {
 public:
  // Asks for one sample after the other, in the order of their stamps; one that goes back in time
  // has no record. `record` is the index of the record if there is one. V8's clock counts whole
  // microseconds.
  template <class Records>
  JoinOutcome Next(Records& records, size_t record_count, int64_t time_us, size_t* record) {
    while (next_ < record_count && records[next_].to_ns / 1000 < time_us) {
      ++without_sample_;
      ++next_;
    }
    if (next_ >= record_count || records[next_].from_ns / 1000 > time_us) {
      return JoinOutcome::kNoRecord;
    }
    if (next_ + 1 < record_count && records[next_ + 1].from_ns / 1000 <= time_us) {
      return JoinOutcome::kTwoRecords;
    }
    *record = next_;
    ++next_;
    return JoinOutcome::kJoined;
  }

  // Whether the bracket of any record holds the stamp. Changes nothing, so that a sample which V8
  // put before its time does not lead the join past the records of others.
  template <class Records>
  bool Has(Records& records, size_t record_count, int64_t time_us) const {
    size_t low = next_;
    size_t high = record_count;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (records[middle].to_ns / 1000 < time_us) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < record_count && records[low].from_ns / 1000 <= time_us;
  }

  // How many records are behind us: no sample that is asked for later has any of them.
  size_t records_passed() const { return next_; }
  // Of these, how many no sample had.
  uint64_t records_without_sample() const { return without_sample_; }

 private:
  size_t next_ = 0;
  uint64_t without_sample_ = 0;
};

}  // namespace spanprof::node
