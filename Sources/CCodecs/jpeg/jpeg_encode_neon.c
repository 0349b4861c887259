// Forward transforms and activities of the native JPEG encoder with NEON: a block at a time, one row in two registers.
// The results are identical to those of jpeg_encode_kernels.c.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET

#include "jpeg_encode_rows.h"

#pragma STDC FP_CONTRACT OFF

#define INLINE static inline __attribute__((always_inline))

/// Eight values of a row.
typedef struct jpeg_row {
  float32x4_t low;
  float32x4_t high;
} jpeg_row;

INLINE jpeg_row add(jpeg_row a, jpeg_row b) {
  return (jpeg_row){.low = vaddq_f32(a.low, b.low), .high = vaddq_f32(a.high, b.high)};
}

INLINE jpeg_row subtract(jpeg_row a, jpeg_row b) {
  return (jpeg_row){.low = vsubq_f32(a.low, b.low), .high = vsubq_f32(a.high, b.high)};
}

INLINE jpeg_row scale(jpeg_row a, float factor) {
  return (jpeg_row){.low = vmulq_n_f32(a.low, factor), .high = vmulq_n_f32(a.high, factor)};
}

INLINE void transform(jpeg_row d[8]) {
  const jpeg_row t0 = add(d[0], d[7]), t7 = subtract(d[0], d[7]);
  const jpeg_row t1 = add(d[1], d[6]), t6 = subtract(d[1], d[6]);
  const jpeg_row t2 = add(d[2], d[5]), t5 = subtract(d[2], d[5]);
  const jpeg_row t3 = add(d[3], d[4]), t4 = subtract(d[3], d[4]);
  const jpeg_row e0 = add(t0, t3), e3 = subtract(t0, t3);
  const jpeg_row e1 = add(t1, t2), e2 = subtract(t1, t2);
  const jpeg_row z1 = scale(add(e2, e3), 0.707106781F);
  d[0] = add(e0, e1);
  d[4] = subtract(e0, e1);
  d[2] = add(e3, z1);
  d[6] = subtract(e3, z1);
  const jpeg_row o0 = add(t4, t5), o1 = add(t5, t6), o2 = add(t6, t7);
  const jpeg_row z5 = scale(subtract(o0, o2), 0.382683433F);
  const jpeg_row z2 = add(scale(o0, 0.541196100F), z5);
  const jpeg_row z4 = add(scale(o2, 1.306562965F), z5);
  const jpeg_row z3 = scale(o1, 0.707106781F);
  const jpeg_row z11 = add(t7, z3), z13 = subtract(t7, z3);
  d[5] = add(z13, z2);
  d[3] = subtract(z13, z2);
  d[1] = add(z11, z4);
  d[7] = subtract(z11, z4);
}

/// Transposes four rows of four values.
INLINE void transpose_quarter(float32x4_t d[4]) {
  const float32x4x2_t a = vtrnq_f32(d[0], d[1]), b = vtrnq_f32(d[2], d[3]);
  d[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  d[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  d[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  d[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

INLINE void transpose(jpeg_row d[8]) {
  float32x4_t quarters[4][4];
  for (uint32_t i = 0; i < 4; i++) {
    quarters[0][i] = d[i].low;
    quarters[1][i] = d[i].high;
    quarters[2][i] = d[i + 4].low;
    quarters[3][i] = d[i + 4].high;
  }
  for (uint32_t i = 0; i < 4; i++) {
    transpose_quarter(quarters[i]);
  }
  for (uint32_t i = 0; i < 4; i++) {
    d[i] = (jpeg_row){.low = quarters[0][i], .high = quarters[2][i]};
    d[i + 4] = (jpeg_row){.low = quarters[1][i], .high = quarters[3][i]};
  }
}

/// Returns the levels of four values in units of their steps.
INLINE int16x4_t levels_of(float32x4_t x, float lambda, const float *dead_zone) {
  const float32x4_t least = vaddq_f32(vmulq_n_f32(vld1q_f32(dead_zone), lambda), vdupq_n_f32(0.5F));
  const uint32x4_t is_large = vcgeq_f32(vabsq_f32(x), least);
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
  for (uint32_t y = 0; y < 8; y++) {
    const uint16x8_t row = vmovl_u8(vld1_u8(samples + y * stride));
    d[y].low = vcvtq_f32_u32(vmovl_u16(vget_low_u16(row)));
    d[y].high = vcvtq_f32_u32(vmovl_u16(vget_high_u16(row)));
  }
  transform(d);
  transpose(d);
  transform(d);
  d[0].low = vsubq_f32(d[0].low, vsetq_lane_f32(64 * 128, vdupq_n_f32(0), 0));
  uint64_t mask = 0;
  for (uint32_t u = 0; u < 8; u++) {
    const float *factors = chooser->inverse + (size_t)u * 8, *dead_zone = chooser->dead_zone + (size_t)u * 8;
    const jpeg_row x = {
        .low = vmulq_f32(d[u].low, vld1q_f32(factors)), .high = vmulq_f32(d[u].high, vld1q_f32(factors + 4))};
    vst1q_f32(values + (size_t)u * 8, x.low);
    vst1q_f32(values + (size_t)u * 8 + 4, x.high);
    const int16x8_t nearest =
        vcombine_s16(levels_of(x.low, lambda, dead_zone), levels_of(x.high, lambda, dead_zone + 4));
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
