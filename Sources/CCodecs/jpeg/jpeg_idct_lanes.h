// The inverse transforms of the native JPEG decoder over vectors, written once for all instruction sets. The including
// file defines LANES (the number of 16-bit lanes of a vector), INLINE (the attributes of a function), and after this
// file dot, times_8192, descale and store.

#include "jpeg_cosines.h"

enum { PASS1_SHIFT = 11, PASS2_SHIFT = 18 };

typedef int16_t lanes __attribute__((vector_size(2 * LANES), aligned(2)));
typedef uint32_t half_lanes __attribute__((vector_size(2 * LANES)));

/// Return the sum of the products of two vectors with two factors, for half of the lanes.
INLINE half_lanes dot_low(lanes a, lanes b, int16_t factor_a, int16_t factor_b);
INLINE half_lanes dot_high(lanes a, lanes b, int16_t factor_a, int16_t factor_b);
INLINE half_lanes low_times_8192(lanes a);
INLINE half_lanes high_times_8192(lanes a);
INLINE lanes descale(half_lanes low, half_lanes high, const int32_t shift);
/// Stores `n` samples of each block as consecutive bytes.
INLINE void store(uint8_t *row, const lanes x[8], const uint32_t n);

INLINE lanes load(const int16_t *tile, const uint16_t *quant, uint32_t row) {
  return *(const lanes *)(tile + (size_t)row * JPEG_LANES) * (int16_t)quant[row];
}

/// Runs one pass over 8 vectors. If `is_corner`, the upper four of them are zero.
INLINE void transform_8(const lanes in[8], lanes out[8], const int32_t shift, const bool is_corner) {
  const lanes zero = {0};
  const lanes in4 = is_corner ? zero : in[4];
  const lanes in5 = is_corner ? zero : in[5];
  const lanes in6 = is_corner ? zero : in[6];
  const lanes in7 = is_corner ? zero : in[7];
  const lanes sum = in[0] + in4;
  const lanes difference = in[0] - in4;
  const lanes z3 = in7 + in[3];
  const lanes z4 = in5 + in[1];
  half_lanes even[4][2];
  half_lanes odd[4][2];
  // One half of the lanes after the other, so that registers suffice.
#define HALF(h, dot, times_8192)                                                                                       \
  do {                                                                                                                 \
    const half_lanes t3 = dot(in[2], in6, 4433 + 6270, 4433);                                                          \
    const half_lanes t2 = dot(in[2], in6, 4433, 4433 - 15137);                                                         \
    const half_lanes t0 = times_8192(sum);                                                                             \
    const half_lanes t1 = times_8192(difference);                                                                      \
    const half_lanes s3 = dot(z3, z4, 9633 - 16069, 9633);                                                             \
    const half_lanes s4 = dot(z3, z4, 9633, 9633 - 3196);                                                              \
    even[0][h] = t0 + t3;                                                                                              \
    even[1][h] = t1 + t2;                                                                                              \
    even[2][h] = t1 - t2;                                                                                              \
    even[3][h] = t0 - t3;                                                                                              \
    odd[0][h] = dot(in7, in[1], -7373, 12299 - 7373) + s4;                                                             \
    odd[1][h] = dot(in5, in[3], -20995, 25172 - 20995) + s3;                                                           \
    odd[2][h] = dot(in5, in[3], 16819 - 20995, -20995) + s4;                                                           \
    odd[3][h] = dot(in7, in[1], 2446 - 7373, -7373) + s3;                                                              \
  } while (0)
  HALF(0, dot_low, low_times_8192);
  HALF(1, dot_high, high_times_8192);
#undef HALF
  for (uint32_t i = 0; i < 4; i++) {
    out[i] = descale(even[i][0] + odd[i][0], even[i][1] + odd[i][1], shift);
    out[7 - i] = descale(even[i][0] - odd[i][0], even[i][1] - odd[i][1], shift);
  }
}

/// Runs one pass over `n` vectors, by the definition.
INLINE void transform_n(const lanes in[8], lanes out[8], const int32_t shift, const uint32_t n) {
  const lanes zero = {0};
  for (uint32_t x = 0; x < (n + 1) / 2; x++) {
    const int16_t *f = jpeg_cosines[n][x];
    half_lanes even[2] = {
        dot_low(in[0], n > 2 ? in[2] : zero, f[0], f[2]), dot_high(in[0], n > 2 ? in[2] : zero, f[0], f[2])};
    half_lanes odd[2] = {
        dot_low(in[1], n > 3 ? in[3] : zero, f[1], f[3]), dot_high(in[1], n > 3 ? in[3] : zero, f[1], f[3])};
    if (n > 4) {
      even[0] += dot_low(in[4], n > 6 ? in[6] : zero, f[4], f[6]);
      even[1] += dot_high(in[4], n > 6 ? in[6] : zero, f[4], f[6]);
    }
    if (n > 5) {
      odd[0] += dot_low(in[5], zero, f[5], 0);
      odd[1] += dot_high(in[5], zero, f[5], 0);
    }
    out[n - 1 - x] = descale(even[0] - odd[0], even[1] - odd[1], shift);
    out[x] = descale(even[0] + odd[0], even[1] + odd[1], shift);
  }
}

/// Transforms the blocks of a tile, of whose coefficients the first `count` in each direction can be other than zero.
INLINE void transform_tile(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, const uint32_t n,
    const uint32_t count) {
  for (uint32_t lane = 0; lane < JPEG_LANES; lane += LANES, tile += LANES, rows += LANES * n) {
    lanes work[8][8];
    for (uint32_t u = 0; u < count; u++) {
      lanes in[8];
      lanes out[8];
      for (uint32_t v = 0; v < count; v++) {
        in[v] = load(tile, quant, v * n + u);
      }
      if (n == 8) {
        transform_8(in, out, PASS1_SHIFT, count < 8);
      } else {
        transform_n(in, out, PASS1_SHIFT, n);
      }
      for (uint32_t y = 0; y < n; y++) {
        work[y][u] = out[y];
      }
    }
    for (uint32_t y = 0; y < n; y++) {
      lanes out[8] = {{0}};
      if (n == 8) {
        transform_8(work[y], out, PASS2_SHIFT, count < 8);
      } else {
        transform_n(work[y], out, PASS2_SHIFT, n);
      }
      store(rows + y * row_stride, out, n);
    }
  }
}
