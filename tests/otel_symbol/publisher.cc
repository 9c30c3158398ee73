// Publishes one known context, says that it is there, and waits to be killed. With an argument it
// loads that library at run time instead of being linked to one.

#include <cstdio>
#include <dlfcn.h>
#include <unistd.h>

#include <spanprof/context.h>

namespace {

template <class Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
  if (library == nullptr && argc > 1) {
    std::fprintf(stderr, "publisher: %s\n", dlerror());
    return 1;
  }
  auto* init = Find<decltype(spanprof_init)>(library, "spanprof_init");
  auto* set_trace =
      Find<decltype(spanprof_context_set_trace)>(library, "spanprof_context_set_trace");
  auto* set_tag = Find<decltype(spanprof_context_set_tag)>(library, "spanprof_context_set_tag");
  if (init == nullptr || set_trace == nullptr || set_tag == nullptr) return 1;
  if (init("ctxstorage=otel,attributes=route") != 0) return 1;
  set_trace(0x0102030405060708, 0x1112131415161718, 0x2122232425262728, 0x3132333435363738);
  set_tag(0, "/cart", 5);
  std::printf("published\n");
  std::fflush(stdout);
  pause();
  return 0;
}
