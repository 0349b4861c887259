// The similarity kernels for NEON.

#if defined(__aarch64__)

#define TARGET
#define LANES 4
#define SUMS 4

#include "similarity_lanes.h"

static void linearize(
    const float *table, const uint8_t *row, uint32_t channels, size_t pixel_count, float *const *linear) {
  cpixels_similarity_scalar.linearize(table, row, channels, pixel_count, linear);
}

const cpixels_similarity_kernels cpixels_similarity_neon = CPIXELS_SIMILARITY_KERNELS;

#endif
