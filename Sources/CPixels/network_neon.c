// The arithmetic of a network for NEON.

#if defined(__aarch64__)

#include "network.h"

#include <arm_neon.h>

#define TARGET
#define INLINE static inline __attribute__((always_inline))
#define LANES 4

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t whole_lanes __attribute__((vector_size(4 * LANES)));

typedef struct pair {
  lanes even, odd;
} pair;

INLINE lanes load_lanes(const float *floats) {
  return (lanes)vld1q_f32(floats);
}

/// Separates 8 floats.
INLINE pair every_other(const float *floats) {
  const float32x4x2_t both = vld2q_f32(floats);
  return (pair){(lanes)both.val[0], (lanes)both.val[1]};
}

#include "network_lanes.h"

const cpixels_network_kernels cpixels_network_neon = {.tap = tap, .weigh = weigh};

#endif
