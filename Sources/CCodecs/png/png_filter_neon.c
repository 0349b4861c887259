// All PNG row filters at once, with NEON.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET

typedef uint64x2_t sum_lanes;

#include "png_filter_lanes.h"

INLINE bytes mean(bytes a, bytes b) {
  return (a & b) + ((a ^ b) >> 1);
}

INLINE sum_lanes add_bytes(sum_lanes sums, bytes magnitudes) {
  uint8x16_t halves[2];
  memcpy(halves, &magnitudes, sizeof halves);
  return vpadalq_u32(sums, vpaddlq_u16(vpadalq_u8(vpaddlq_u8(halves[0]), halves[1])));
}

void ccodecs_png_filter_neon(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]) {
  filter_all(row, sums);
}

#endif
