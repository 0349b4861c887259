// The similarity kernels for NEON.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET
#define LANES 4
#define SUMS 4

#include "similarity_lanes.h"

static void linearize(
    const float *table, const uint8_t *row, uint32_t channels, size_t pixel_count, float *const *linear) {
  cpixels_similarity_scalar.linearize(table, row, channels, pixel_count, linear);
}

static void halve(const float *upper, const float *lower, size_t pixel_count, float *destination) {
  for (size_t x = 0; x < pixel_count; x += 4) {
    const float32x4_t first = vaddq_f32(vld1q_f32(upper + 2 * x), vld1q_f32(lower + 2 * x));
    const float32x4_t second = vaddq_f32(vld1q_f32(upper + 2 * x + 4), vld1q_f32(lower + 2 * x + 4));
    vst1q_f32(destination + x, vmulq_n_f32(vpaddq_f32(first, second), 0.25f));
  }
}

const cpixels_similarity_kernels cpixels_similarity_neon = CPIXELS_SIMILARITY_KERNELS;

#endif
