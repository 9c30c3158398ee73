// A program that is not spanprof and announces OTEP 4947 records. Prints a line when it is ready.

#include <stdio.h>
#include <unistd.h>

extern "C" {
[[gnu::visibility("default")]] thread_local void* otel_thread_ctx_v1 = nullptr;
}

int main() {
  puts(otel_thread_ctx_v1 == nullptr ? "ready" : "");
  fflush(stdout);
  for (;;) pause();
}
