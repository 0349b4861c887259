// Vectors of floats, of the size that an instruction set has. The including file defines LANES (the number of floats in
// a vector) and TARGET (a function attribute). Private to CPixels.

#pragma once

#include <stdint.h>
#include <string.h>

#define INLINE TARGET static inline __attribute__((always_inline))

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t whole_lanes __attribute__((vector_size(4 * LANES)));

INLINE lanes load_lanes(const float *floats) {
  lanes x;
  memcpy(&x, floats, sizeof x);
  return x;
}

INLINE void store_lanes(float *floats, lanes x) {
  memcpy(floats, &x, sizeof x);
}
