// All PNG row filters at once, with what every processor of an architecture has.

#if defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <stdint.h>

#define LANES 16
#define TARGET

typedef uint64_t sum_lanes __attribute__((vector_size(16)));

#include "png_filter_lanes.h"

INLINE bytes mean(bytes a, bytes b) {
  return (a & b) + ((a ^ b) >> 1);
}

INLINE sum_lanes add_bytes(sum_lanes sums, bytes magnitudes) {
#if defined(__aarch64__)
  return vpadalq_u32(sums, vpaddlq_u16(vpaddlq_u8(magnitudes)));
#else
  for (uint32_t i = 0; i < LANES; i++) { // the compiler makes vectors of this
    sums[0] += magnitudes[i];
  }
  return sums;
#endif
}

void ccodecs_png_filter_base(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]) {
  filter_all(row, sums);
}
