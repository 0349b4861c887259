// Conversion of packed pixels to planes and back for NEON, whose loads and stores do it themselves.

#if defined(__aarch64__)

#include "kernels.h"

#include <arm_neon.h>

void cpixels_split_neon(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride) {
  size_t i = 0;
  for (; i + 16 <= pixel_count; i += 16) {
    if (channels == 3) {
      const uint8x16x3_t pixels = vld3q_u8(packed + 3 * i);
      vst1q_u8(planes + i, pixels.val[0]);
      vst1q_u8(planes + plane_stride + i, pixels.val[1]);
      vst1q_u8(planes + 2 * plane_stride + i, pixels.val[2]);
    } else {
      const uint8x16x4_t pixels = vld4q_u8(packed + 4 * i);
      vst1q_u8(planes + i, pixels.val[0]);
      vst1q_u8(planes + plane_stride + i, pixels.val[1]);
      vst1q_u8(planes + 2 * plane_stride + i, pixels.val[2]);
      vst1q_u8(planes + 3 * plane_stride + i, pixels.val[3]);
    }
  }
  cpixels_split_scalar(packed + channels * i, pixel_count - i, channels, planes + i, plane_stride);
}

void cpixels_join_neon(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed) {
  size_t i = 0;
  for (; i + 16 <= pixel_count; i += 16) {
    const uint8x16_t c0 = vld1q_u8(planes + i);
    const uint8x16_t c1 = vld1q_u8(planes + plane_stride + i);
    const uint8x16_t c2 = vld1q_u8(planes + 2 * plane_stride + i);
    if (channels == 3) {
      const uint8x16x3_t pixels = {{c0, c1, c2}};
      vst3q_u8(packed + 3 * i, pixels);
    } else {
      const uint8x16x4_t pixels = {{c0, c1, c2, vld1q_u8(planes + 3 * plane_stride + i)}};
      vst4q_u8(packed + 4 * i, pixels);
    }
  }
  cpixels_join_scalar(planes + i, plane_stride, pixel_count - i, channels, packed + channels * i);
}

#endif
