/* The header as a C program sees it: this file has to compile as C17 and link. */

#include <spanprof/context.h>

int spanprof_c_interface_works(void);

int spanprof_c_interface_works(void) {
  spanprof_context context = {.size = sizeof context};
  spanprof_context_set(1, 2);
  if (spanprof_context_get(&context) != 0) return 0;
  return context.span_id == 1 && context.root_span_id == 2 &&
         spanprof_abi_version() == SPANPROF_ABI_VERSION;
}
