// Inverse transforms of the native JPEG decoder with NEON: 8 blocks at once, one in each 16-bit lane. The samples are
// identical to those of jpeg_idct.c, which explains the arithmetic.

#include "jpeg_cosines.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define INLINE static inline __attribute__((always_inline))

enum { PASS1_SHIFT = 11, PASS2_SHIFT = 18, HALF_LANES = 8 };

INLINE int16x8_t load(const int16_t *tile, const uint16_t *quant, uint32_t row) {
  return vmulq_n_s16(vld1q_s16(tile + (size_t)row * JPEG_LANES), (int16_t)quant[row]);
}

/// 32 bits for each of 8 lanes.
typedef struct jpeg_wide {
  int32x4_t low;
  int32x4_t high;
} jpeg_wide;

INLINE jpeg_wide dot(int16x8_t a, int16x8_t b, int16_t factor_a, int16_t factor_b) {
  const int32x4_t low = vmull_n_s16(vget_low_s16(a), factor_a);
  const int32x4_t high = vmull_n_s16(vget_high_s16(a), factor_a);
  return (jpeg_wide){
      .low = vmlal_n_s16(low, vget_low_s16(b), factor_b), .high = vmlal_n_s16(high, vget_high_s16(b), factor_b)};
}

INLINE jpeg_wide add(jpeg_wide a, jpeg_wide b) {
  return (jpeg_wide){.low = vaddq_s32(a.low, b.low), .high = vaddq_s32(a.high, b.high)};
}

INLINE jpeg_wide subtract(jpeg_wide a, jpeg_wide b) {
  return (jpeg_wide){.low = vsubq_s32(a.low, b.low), .high = vsubq_s32(a.high, b.high)};
}

/// Returns the values times 8192.
INLINE jpeg_wide widen(int16x8_t a) {
  return (jpeg_wide){.low = vshll_n_s16(vget_low_s16(a), 13), .high = vshll_n_s16(vget_high_s16(a), 13)};
}

INLINE int16x8_t descale(jpeg_wide a, const int32_t shift) {
  const int32x4_t half = vdupq_n_s32(1 << (shift - 1));
  const int32x4_t down = vdupq_n_s32(-shift);
  const int32x4_t low = vshlq_s32(vaddq_s32(a.low, half), down);
  const int32x4_t high = vshlq_s32(vaddq_s32(a.high, half), down);
  return vcombine_s16(vqmovn_s32(low), vqmovn_s32(high));
}

/// Stores `n` samples of each of 8 blocks as 8 * n consecutive bytes.
INLINE void store(uint8_t *row, const int16x8_t x[8], const uint32_t n) {
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
      uint8_t lanes[HALF_LANES];
      vst1_u8(lanes, samples[i]);
      for (uint32_t lane = 0; lane < HALF_LANES; lane++) {
        row[lane * n + i] = lanes[lane];
      }
    }
  }
}

// MARK: Full size

INLINE void transform_8(const int16x8_t in[8], int16x8_t out[8], const int32_t shift) {
  const int16x8_t z3 = vaddq_s16(in[7], in[3]);
  const int16x8_t z4 = vaddq_s16(in[5], in[1]);
  const jpeg_wide t3 = dot(in[2], in[6], 4433 + 6270, 4433);
  const jpeg_wide t2 = dot(in[2], in[6], 4433, 4433 - 15137);
  const jpeg_wide t0 = widen(vaddq_s16(in[0], in[4]));
  const jpeg_wide t1 = widen(vsubq_s16(in[0], in[4]));
  const jpeg_wide s3 = dot(z3, z4, 9633 - 16069, 9633);
  const jpeg_wide s4 = dot(z3, z4, 9633, 9633 - 3196);
  const jpeg_wide even[4] = {add(t0, t3), add(t1, t2), subtract(t1, t2), subtract(t0, t3)};
  const jpeg_wide odd[4] = {
      add(dot(in[7], in[1], -7373, 12299 - 7373), s4),
      add(dot(in[5], in[3], -20995, 25172 - 20995), s3),
      add(dot(in[5], in[3], 16819 - 20995, -20995), s4),
      add(dot(in[7], in[1], 2446 - 7373, -7373), s3),
  };
  for (uint32_t i = 0; i < 4; i++) {
    out[i] = descale(add(even[i], odd[i]), shift);
    out[7 - i] = descale(subtract(even[i], odd[i]), shift);
  }
}

/// Same as is_extreme in jpeg_idct_avx2.c.
INLINE bool is_extreme(const int16_t *tile, const uint16_t *quant) {
  int16x8_t any = vdupq_n_s16(0);
  for (uint32_t u = 0; u < 8; u++) {
    any = vorrq_s16(any, vabsq_s16(load(tile, quant, u)));
    any = vorrq_s16(any, vabsq_s16(load(tile + HALF_LANES, quant, u)));
  }
  return vmaxvq_u16(vreinterpretq_u16_s16(any)) >= 0x2000;
}

static void idct_8(const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {
  if (is_extreme(tile, quant)) {
    ccodecs_jpeg_transform_scalar(8)(tile, quant, rows, row_stride, extent);
    return;
  }
  for (uint32_t half = 0; half < 2; half++, tile += HALF_LANES, rows += HALF_LANES * 8) {
    int16x8_t work[8][8];
    for (uint32_t u = 0; u < 8; u++) {
      int16x8_t in[8];
      int16x8_t out[8];
      for (uint32_t v = 0; v < 8; v++) {
        in[v] = load(tile, quant, v * 8 + u);
      }
      transform_8(in, out, PASS1_SHIFT);
      for (uint32_t y = 0; y < 8; y++) {
        work[y][u] = out[y];
      }
    }
    for (uint32_t y = 0; y < 8; y++) {
      int16x8_t out[8];
      transform_8(work[y], out, PASS2_SHIFT);
      store(rows + y * row_stride, out, 8);
    }
  }
}

// MARK: Reduced

INLINE void transform_n(const int16x8_t in[8], int16x8_t out[8], const int32_t shift, const uint32_t n) {
  const int16x8_t zero = vdupq_n_s16(0);
  for (uint32_t x = 0; x < (n + 1) / 2; x++) {
    const int16_t *f = jpeg_cosines[n][x];
    jpeg_wide even = dot(in[0], n > 2 ? in[2] : zero, f[0], f[2]);
    jpeg_wide odd = dot(in[1], n > 3 ? in[3] : zero, f[1], f[3]);
    if (n > 4) {
      even = add(even, dot(in[4], n > 6 ? in[6] : zero, f[4], f[6]));
    }
    if (n > 5) {
      odd = add(odd, dot(in[5], zero, f[5], 0));
    }
    out[x] = descale(add(even, odd), shift);
    out[n - 1 - x] = descale(subtract(even, odd), shift);
  }
}

INLINE void transform_tile_n(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent, const uint32_t n) {
  (void)extent;
  for (uint32_t half = 0; half < 2; half++, tile += HALF_LANES, rows += HALF_LANES * n) {
    int16x8_t work[8][8];
    for (uint32_t u = 0; u < n; u++) {
      int16x8_t in[8];
      int16x8_t out[8];
      for (uint32_t v = 0; v < n; v++) {
        in[v] = load(tile, quant, v * n + u);
      }
      transform_n(in, out, PASS1_SHIFT, n);
      for (uint32_t y = 0; y < n; y++) {
        work[y][u] = out[y];
      }
    }
    for (uint32_t y = 0; y < n; y++) {
      int16x8_t out[8];
      transform_n(work[y], out, PASS2_SHIFT, n);
      store(rows + y * row_stride, out, n);
    }
  }
}

JPEG_IDCTS()

jpeg_transform ccodecs_jpeg_transform_neon(uint32_t n) {
  static const jpeg_transform transforms[9] = {NULL, NULL, idct_2, idct_3, idct_4, idct_5, idct_6, idct_7, idct_8};
  return n == 1 ? ccodecs_jpeg_transform_scalar(1) : transforms[n];
}

#endif
