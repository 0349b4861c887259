// Scalar inverse transforms of the native JPEG decoder, which are the oracle for the SIMD versions, and the selection
// of a transform.
//
// The full-size transform is libjpeg's jidctint.c (Loeffler, Ligtenberg and Moschytz, ICASSP 1989) with the
// intermediate widths of libjpeg-turbo's SIMD version, which determine the result of overflowing coefficients: products
// with the quantizer and sums of two inputs wrap at 16 bits, sums of products wrap at 32, and each pass saturates to
// 16.

#include "jpeg_cosines.h"

#include <cinstructions.h>

// MARK: Arithmetic

static int16_t wrap16(int32_t value) {
  return (int16_t)(uint16_t)value;
}

static int32_t wrap32(uint32_t value) {
  return (int32_t)value;
}

static int16_t saturate16(int32_t value) {
  return (int16_t)(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}

/// Converts a value to a sample: 8 bits around 128.
static uint8_t saturate8(int32_t value) {
  return (uint8_t)((value > 127 ? 127 : value < -128 ? -128 : value) + 128);
}

static uint32_t times(int32_t value, int32_t factor) {
  return (uint32_t)(value * factor); // 16 bits each
}

static int16_t descale(uint32_t value, uint32_t shift) {
  return saturate16(wrap32(value + (1u << (shift - 1))) >> shift);
}

// MARK: Full size

enum { PASS1_SHIFT = 11, PASS2_SHIFT = 18 };

/// Runs one pass over 8 values at a distance of `step`.
static void transform_8(int16_t *data, uint32_t step, uint32_t shift) {
  int16_t in[8];
  for (uint32_t i = 0; i < 8; i++) {
    in[i] = data[i * step];
  }
  const uint32_t t3 = times(in[2], 4433 + 6270) + times(in[6], 4433);
  const uint32_t t2 = times(in[2], 4433) + times(in[6], 4433 - 15137);
  const uint32_t t0 = (uint32_t)(wrap16(in[0] + in[4]) * 8192);
  const uint32_t t1 = (uint32_t)(wrap16(in[0] - in[4]) * 8192);
  const int16_t z3 = wrap16(in[7] + in[3]);
  const int16_t z4 = wrap16(in[5] + in[1]);
  const uint32_t s3 = times(z3, 9633 - 16069) + times(z4, 9633);
  const uint32_t s4 = times(z3, 9633) + times(z4, 9633 - 3196);
  const uint32_t even[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  const uint32_t odd[4] = {
      times(in[7], -7373) + times(in[1], 12299 - 7373) + s4,
      times(in[5], -20995) + times(in[3], 25172 - 20995) + s3,
      times(in[5], 16819 - 20995) + times(in[3], -20995) + s4,
      times(in[7], 2446 - 7373) + times(in[1], -7373) + s3,
  };
  for (uint32_t i = 0; i < 4; i++) {
    data[i * step] = descale(even[i] + odd[i], shift);
    data[(7 - i) * step] = descale(even[i] - odd[i], shift);
  }
}

/// Dequantizes a block. Returns true when all coefficients of vertical frequency 1 and above are zero.
static bool gather_8(const int16_t *tile, const uint16_t *quant, int16_t data[64]) {
  int32_t any = 0;
  for (uint32_t i = 0; i < 64; i++) {
    const int32_t coefficient = tile[i * JPEG_LANES];
    any |= i >= 8 ? coefficient : 0;
    data[i] = (int16_t)(uint16_t)((uint32_t)coefficient * quant[i]);
  }
  return any == 0;
}

static void idct_8(const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {
  (void)extent;
  for (uint32_t lane = 0; lane < JPEG_LANES; lane++) {
    int16_t data[64];
    const bool is_flat = gather_8(tile + lane, quant, data);
    for (uint32_t u = 0; u < 8; u++) {
      if (!is_flat) {
        transform_8(data + u, 8, PASS1_SHIFT);
        continue;
      }
      for (uint32_t y = 8; y-- > 0;) {
        data[y * 8 + u] = (int16_t)(uint16_t)((uint32_t)data[u] << 2); // this shortcut wraps where the pass saturates
      }
    }
    for (uint32_t y = 0; y < 8; y++) {
      transform_8(data + y * 8, 1, PASS2_SHIFT);
      for (uint32_t x = 0; x < 8; x++) {
        rows[y * row_stride + lane * 8 + x] = saturate8(data[y * 8 + x]);
      }
    }
  }
}

// MARK: Reduced

/// Runs one pass over `n` values at a distance of `step`, by the definition.
static void transform_n(int16_t *data, uint32_t n, uint32_t step, uint32_t shift) {
  int16_t in[8];
  for (uint32_t i = 0; i < n; i++) {
    in[i] = data[i * step];
  }
  for (uint32_t x = 0; x < (n + 1) / 2; x++) {
    const int16_t *cosines = jpeg_cosines[n][x];
    uint32_t even = 0;
    uint32_t odd = 0;
    for (uint32_t u = 0; u < n; u += 2) {
      even += times(in[u], cosines[u]);
    }
    for (uint32_t u = 1; u < n; u += 2) {
      odd += times(in[u], cosines[u]);
    }
    data[x * step] = descale(even + odd, shift);
    data[(n - 1 - x) * step] = descale(even - odd, shift);
  }
}

static inline void transform_tile_n(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent, const uint32_t n) {
  (void)extent;
  for (uint32_t lane = 0; lane < JPEG_LANES; lane++) {
    int16_t data[49];
    for (uint32_t i = 0; i < n * n; i++) {
      data[i] = (int16_t)(uint16_t)((uint32_t)tile[i * JPEG_LANES + lane] * quant[i]);
    }
    for (uint32_t u = 0; u < n; u++) {
      transform_n(data + u, n, n, PASS1_SHIFT);
    }
    for (uint32_t y = 0; y < n; y++) {
      transform_n(data + y * n, n, 1, PASS2_SHIFT);
      for (uint32_t x = 0; x < n; x++) {
        rows[y * row_stride + lane * n + x] = saturate8(data[y * n + x]);
      }
    }
  }
}

JPEG_IDCTS()

/// The sample is an eighth of the DC coefficient.
static void idct_1(const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {
  (void)row_stride;
  (void)extent;
  for (uint32_t lane = 0; lane < JPEG_LANES; lane++) {
    const int16_t dc = (int16_t)(uint16_t)((uint32_t)tile[lane] * quant[0]);
    rows[lane] = saturate8(saturate16(dc + 4) >> 3);
  }
}

// MARK: Choice

jpeg_transform ccodecs_jpeg_transform_scalar(uint32_t n) {
  static const jpeg_transform transforms[9] = {NULL, idct_1, idct_2, idct_3, idct_4, idct_5, idct_6, idct_7, idct_8};
  return transforms[n];
}

jpeg_transform ccodecs_jpeg_transform(uint32_t n) {
#if defined(__x86_64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2")) {
    return ccodecs_jpeg_transform_avx2(n);
  }
#elif defined(__aarch64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS)) {
    return ccodecs_jpeg_transform_neon(n);
  }
#endif
  return ccodecs_jpeg_transform_scalar(n);
}
