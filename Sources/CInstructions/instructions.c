#include "include/cinstructions.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const cinstructions_variable = "IMAGE_WORKER_INSTRUCTION_SET";

bool cinstructions_parse(const char *text, cinstructions_set *set) {
  static const struct {
    const char *name;
    cinstructions_set set;
  } names[] = {
      {"scalar", CINSTRUCTIONS_SCALAR},
      {"avx2", CINSTRUCTIONS_VECTORS},
      {"neon", CINSTRUCTIONS_VECTORS},
      {"avx512", CINSTRUCTIONS_AVX512},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(text, names[i].name) == 0) {
      *set = names[i].set;
      return true;
    }
  }
  return false;
}

/// Returns the limit that the environment sets.
static cinstructions_set limit(void) {
  static atomic_int known = -1;
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (found < 0) {
    const char *text = getenv(cinstructions_variable);
    cinstructions_set set = CINSTRUCTIONS_AVX512;
    found = text != NULL && cinstructions_parse(text, &set) ? set : CINSTRUCTIONS_AVX512;
    atomic_store_explicit(&known, found, memory_order_relaxed);
  }
  return (cinstructions_set)found;
}

bool cinstructions_allow(cinstructions_set set) {
  return set <= limit();
}
