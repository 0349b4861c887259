// The allocator of zlib, which charges the budget that is the `opaque` of its stream. Private to CCodecs.

#pragma once

#include "ccodecs.h"

#include <zlib.h>

static inline void *ccodecs_zlib_allocate(void *budget, uInt count, uInt bytes) {
  return ccodecs_allocate(budget, (size_t)count * bytes);
}

static inline void ccodecs_zlib_free(void *budget, void *block) {
  ccodecs_free(budget, block);
}
