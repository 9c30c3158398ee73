// That the guard sees what it is there to see: without this, a test that passes under it says
// nothing.

#include "sampling/handler_guard.h"

#include <cstdlib>
#include <pthread.h>

#include <gtest/gtest.h>

namespace spanprof::sampling {
namespace {

#if defined(SPANPROF_CHECK_HANDLERS)

TEST(HandlerGuardDeathTest, AbortsWhenAHandlerAllocatesOrLocks) {
  EXPECT_DEATH(
      {
        const HandlerGuard guard;
        void* volatile memory = malloc(10);
        free(memory);
      },
      "a signal handler called malloc");
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  EXPECT_DEATH(
      {
        const HandlerGuard guard;
        pthread_mutex_lock(&mutex);
      },
      "a signal handler called pthread_mutex_lock");
}

TEST(HandlerGuard, LeavesEverybodyElseAlone) {
  void* volatile memory = malloc(10);
  EXPECT_NE(memory, nullptr);
  free(memory);
}

#else

TEST(HandlerGuard, IsForDebugBuilds) {
  GTEST_SKIP() << "handlers are checked in debug builds without a sanitizer";
}

#endif

}  // namespace
}  // namespace spanprof::sampling
