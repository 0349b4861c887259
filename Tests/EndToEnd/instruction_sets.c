// Preloaded into the worker by test_instruction_sets.py: limits the instructions of libraries that no variable of the
// environment limits, if the worker is linked with them.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

static int has_nothing(int feature) {
  (void)feature;
  return 0;
}

__attribute__((constructor)) static void limit(void) {
  const char *flags = getenv("LIMIT_DAV1D");
  void (*set_flags)(unsigned) = (void (*)(unsigned))dlsym(RTLD_DEFAULT, "dav1d_set_cpu_flags_mask");
  if (flags != NULL && set_flags != NULL) {
    set_flags((unsigned)strtoul(flags, NULL, 0));
  }
  int (**webp)(int) = (int (**)(int))dlsym(RTLD_DEFAULT, "VP8GetCPUInfo");
  if (getenv("LIMIT_WEBP") != NULL && webp != NULL) {
    *webp = has_nothing;
  }
}
