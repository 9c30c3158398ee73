#include "floor.h"

namespace {

struct alignas(64) Record {
  uint64_t words[8];
};
__thread Record* record __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

extern "C" {

void floor_prepare_thread(void) {
  if (record == nullptr) record = new Record();
}

void floor_empty(uint64_t, uint64_t) { __asm__ volatile(""); }

void floor_four_stores(uint64_t a, uint64_t b) {
  volatile uint64_t* words = record->words;
  words[0] = a;
  words[1] = b;
  words[2] = a;
  words[3] = b;
}
}
