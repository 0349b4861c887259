// The arithmetic of a network for NEON.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET
#define LANES 4

#include "network_lanes.h"

INLINE pair every_other(const float *floats) {
  const float32x4x2_t both = vld2q_f32(floats);
  return (pair){(lanes)both.val[0], (lanes)both.val[1]};
}

const cpixels_network_kernels cpixels_network_neon = {.tap = tap, .weigh = weigh};

#endif
