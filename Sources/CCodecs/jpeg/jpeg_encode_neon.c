// Forward transforms and activities of the native JPEG encoder with NEON: a block at a time, one row in two registers.
// The results are identical to those of jpeg_encode_kernels.c.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET

#include "jpeg_encode_forward.h"
#include "jpeg_encode_rows.h"

#pragma STDC FP_CONTRACT OFF

/// Returns the levels of four values in units of their steps.
INLINE int16x4_t levels_of(float32x4_t x, float lambda, const float *dead_zone) {
  const float32x4_t minimum = vaddq_f32(vmulq_n_f32(vld1q_f32(dead_zone), lambda), vdupq_n_f32(0.5F));
  const uint32x4_t is_large = vcgeq_f32(vabsq_f32(x), minimum);
  return vqmovn_s32(vandq_s32(vcvtnq_s32_f32(x), vreinterpretq_s32_u32(is_large)));
}

/// Returns the bits of the levels that are not zero.
INLINE uint32_t level_bits(int16x8_t levels) {
  static const uint8_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
  return vaddv_u8(vand_u8(vmovn_u16(vtstq_s16(levels, levels)), vld1_u8(bits)));
}

static void quantize(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block) {
  jpeg_row d[8];
  transform_samples(samples, stride, d);
  uint64_t mask = 0;
  for (uint32_t u = 0; u < 8; u++) {
    const float *factors = chooser->inverse + (size_t)u * 8, *dead_zone = chooser->dead_zone + (size_t)u * 8;
    const float32x4_t low = __builtin_shufflevector(d[u], d[u], 0, 1, 2, 3) * vld1q_f32(factors);
    const float32x4_t high = __builtin_shufflevector(d[u], d[u], 4, 5, 6, 7) * vld1q_f32(factors + 4);
    vst1q_f32(values + (size_t)u * 8, low);
    vst1q_f32(values + (size_t)u * 8 + 4, high);
    const int16x8_t nearest = vcombine_s16(levels_of(low, lambda, dead_zone), levels_of(high, lambda, dead_zone + 4));
    const int16x8_t levels = vmaxq_s16(vminq_s16(nearest, vdupq_n_s16(JPEG_MAX_LEVEL)), vdupq_n_s16(-JPEG_MAX_LEVEL));
    vst1q_s16(block->levels + (size_t)u * 8, levels);
    mask |= (uint64_t)level_bits(levels) << 8 * u;
  }
  block->dc = (int16_t)vcvtns_s32_f32(values[0]);
  block->mask = ccodecs_jpeg_zigzag_mask(mask & ~(uint64_t)1);
}

static void activity(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums) {
  for (uint32_t block = 0; block < count; block++) {
    const uint8_t *p = samples + (size_t)block * 8;
    uint16x8_t sum = vdupq_n_u16(0);
    for (uint32_t y = 0; y < 8; y++, p += stride) {
      const uint8x8_t row = vld1_u8(p);
      sum = vabal_u8(sum, row, vld1_u8(p + 1));
      if (y < 7) {
        sum = vabal_u8(sum, row, vld1_u8(p + stride));
      }
    }
    sums[block] = vaddlvq_u16(sum);
  }
}

const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_neon = JPEG_ENCODE_KERNELS;

#endif
