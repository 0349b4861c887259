// Windows of a cascade for NEON.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET

#include "faces_lanes.h"

INLINE uint32_t bits_of(whole_lanes mask) {
  const whole_lanes bits = mask & (whole_lanes){1, 2, 4, 8, 16, 32, 64, 128};
  int32x4_t halves[2];
  memcpy(halves, &bits, sizeof bits);
  return (uint32_t)vaddvq_s32(vorrq_s32(halves[0], halves[1]));
}

uint32_t cpixels_faces_judge_neon(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations) {
  return judge(cascade, sums, deviations);
}

#endif
