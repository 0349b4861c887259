// Inverse transforms of the native JPEG decoder with NEON: 8 blocks at once, one in each 16-bit lane. The samples are
// identical to those of jpeg_idct.c, which explains the arithmetic.

#if defined(__aarch64__)

#include <arm_neon.h>

#define INLINE static inline __attribute__((always_inline))
#define LANES 8

#include "jpeg_idct_lanes.h"

INLINE half_lanes dot_low(lanes a, lanes b, int16_t factor_a, int16_t factor_b) {
  return (half_lanes)vmlal_n_s16(vmull_n_s16(vget_low_s16(a), factor_a), vget_low_s16(b), factor_b);
}

INLINE half_lanes dot_high(lanes a, lanes b, int16_t factor_a, int16_t factor_b) {
  return (half_lanes)vmlal_n_s16(vmull_n_s16(vget_high_s16(a), factor_a), vget_high_s16(b), factor_b);
}

INLINE half_lanes low_times_8192(lanes a) {
  return (half_lanes)vshll_n_s16(vget_low_s16(a), 13);
}

INLINE half_lanes high_times_8192(lanes a) {
  return (half_lanes)vshll_n_s16(vget_high_s16(a), 13);
}

INLINE lanes descale(half_lanes low, half_lanes high, const int32_t shift) {
  const int32x4_t down = vdupq_n_s32(-shift);
  const uint32_t half = 1u << (shift - 1);
  return vcombine_s16(
      vqmovn_s32(vshlq_s32((int32x4_t)(low + half), down)), vqmovn_s32(vshlq_s32((int32x4_t)(high + half), down)));
}

INLINE void store(uint8_t *row, const lanes x[8], const uint32_t n) {
  uint8x8_t samples[8];
  for (uint32_t i = 0; i < n; i++) {
    samples[i] = veor_u8(vreinterpret_u8_s8(vqmovn_s16(x[i])), vdup_n_u8(0x80));
  }
  if (n == 2) {
    const uint8x8x2_t pairs = {{samples[0], samples[1]}};
    vst2_u8(row, pairs);
  } else if (n == 3) {
    const uint8x8x3_t threes = {{samples[0], samples[1], samples[2]}};
    vst3_u8(row, threes);
  } else if (n == 4) {
    const uint8x8x4_t fours = {{samples[0], samples[1], samples[2], samples[3]}};
    vst4_u8(row, fours);
  } else {
    for (uint32_t i = 0; i < n; i++) {
      uint8_t bytes[LANES];
      vst1_u8(bytes, samples[i]);
      for (uint32_t lane = 0; lane < LANES; lane++) {
        row[lane * n + i] = bytes[lane];
      }
    }
  }
}

// MARK: Full size

/// Same as is_extreme in jpeg_idct_avx2.c.
INLINE bool is_extreme(const int16_t *tile, const uint16_t *quant) {
  int16x8_t any = vdupq_n_s16(0);
  for (uint32_t u = 0; u < 8; u++) {
    any = vorrq_s16(any, vabsq_s16(load(tile, quant, u)));
    any = vorrq_s16(any, vabsq_s16(load(tile + LANES, quant, u)));
  }
  return vmaxvq_u16(vreinterpretq_u16_s16(any)) >= 0x2000;
}

static void idct_8(const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {
  if (is_extreme(tile, quant)) {
    ccodecs_jpeg_transform_scalar(8)(tile, quant, rows, row_stride, extent);
  } else if (extent <= 9) {
    transform_tile(tile, quant, rows, row_stride, 8, 4);
  } else {
    transform_tile(tile, quant, rows, row_stride, 8, 8);
  }
}

// MARK: Reduced

INLINE void transform_tile_n(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent, const uint32_t n) {
  (void)extent;
  transform_tile(tile, quant, rows, row_stride, n, n);
}

JPEG_IDCTS()

jpeg_transform ccodecs_jpeg_transform_neon(uint32_t n) {
  static const jpeg_transform transforms[9] = {NULL, NULL, idct_2, idct_3, idct_4, idct_5, idct_6, idct_7, idct_8};
  return n == 1 ? ccodecs_jpeg_transform_scalar(1) : transforms[n];
}

#endif
