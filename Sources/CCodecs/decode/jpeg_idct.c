// A block of 8 x 8 samples reduced to N x N is the N-point transform of its N x N lowest frequencies. Each loop runs
// over blocks, which lie side by side, and is compiled twice: plainly, and for AVX2, where the compiler makes vectors
// of it. Neither fuses multiplications with additions, so both give the same samples.
//
// Source: the N-point inverse DCT-II of orthonormal coefficients; scaled by N/8, as the means of the two must agree.

#include "jpeg_idct.h"

#include <math.h>
#include <string.h>

enum { LANES = JPEG_IDCT_LANES };

static const double pi = 3.14159265358979323846;

void jpeg_idct_factors(const uint16_t quantization[64], int scale, float factors[16]) {
  for (int row = 0; row < scale; row++) {
    for (int column = 0; column < scale; column++) {
      double factor = quantization[row * 8 + column] * (scale / 8.0);
      const int frequencies[2] = {row, column};
      for (int i = 0; i < 2; i++) {
        factor *= sqrt((frequencies[i] == 0 ? 1.0 : 2.0) / scale);
        // The middle frequency's cosines are all alike but for their sign.
        factor *= scale > 1 && frequencies[i] == scale / 2 ? cos(pi / 4) : 1;
      }
      factors[row * scale + column] = (float)factor;
    }
  }
}

static inline __attribute__((always_inline)) uint32_t to_sample(float value) {
  value += 128.5f;
  value = value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value;
  return (uint32_t)(int32_t)value;
}

// Neighbouring samples as one integer, so that vectors of them are stored at once.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline __attribute__((always_inline)) uint16_t pair(uint32_t a, uint32_t b) {
  return (uint16_t)(a | b << 8);
}

static inline __attribute__((always_inline)) uint32_t word(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a | b << 8 | c << 16 | d << 24;
}
#else
static inline __attribute__((always_inline)) uint16_t pair(uint32_t a, uint32_t b) {
  return (uint16_t)(a << 8 | b);
}

static inline __attribute__((always_inline)) uint32_t word(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}
#endif

static inline __attribute__((always_inline)) void row_of_1(
    const int16_t *coefficients, size_t stride, const float *factors, uint8_t *samples) {
  for (size_t b = 0; b < stride; b++) {
    samples[b] = (uint8_t)to_sample((float)coefficients[b] * factors[0]);
  }
}

static inline __attribute__((always_inline)) void row_of_2(
    const int16_t *coefficients, size_t stride, const float *factors, uint8_t *samples, size_t row_stride) {
  for (int row = 0; row < 2; row++) {
    const float sign = row == 0 ? 1.0f : -1.0f;
    uint8_t *out = samples + (size_t)row * row_stride;
    for (size_t first = 0; first < stride; first += LANES) {
      const int16_t *c = coefficients + first;
      uint16_t pairs[LANES];
      for (int b = 0; b < LANES; b++) {
        const float even = (float)c[b] * factors[0] + sign * ((float)c[2 * stride + (size_t)b] * factors[2]);
        const float odd = (float)c[stride + (size_t)b] * factors[1] + sign * ((float)c[3 * stride + (size_t)b] * factors[3]);
        pairs[b] = pair(to_sample(even + odd), to_sample(even - odd));
      }
      memcpy(out + 2 * first, pairs, sizeof pairs);
    }
  }
}

/// One pass of four points over `LANES` blocks.
static inline __attribute__((always_inline)) void pass_of_4(
    const float *in0, const float *in1, const float *in2, const float *in3, float *out0, float *out1, float *out2,
    float *out3) {
  const float c1 = 0.92387953f; // cos(pi / 8)
  const float c3 = 0.38268343f; // cos(3 pi / 8)
  for (int b = 0; b < LANES; b++) {
    const float even0 = in0[b] + in2[b];
    const float even1 = in0[b] - in2[b];
    const float odd0 = in1[b] * c1 + in3[b] * c3;
    const float odd1 = in1[b] * c3 - in3[b] * c1;
    out0[b] = even0 + odd0;
    out1[b] = even1 + odd1;
    out2[b] = even1 - odd1;
    out3[b] = even0 - odd0;
  }
}

static inline __attribute__((always_inline)) void row_of_4(
    const int16_t *coefficients, size_t stride, const float *factors, uint8_t *samples, size_t row_stride) {
  for (size_t first = 0; first < stride; first += LANES) {
    float in[16][LANES];
    float middle[16][LANES];
    for (int slot = 0; slot < 16; slot++) {
      for (int b = 0; b < LANES; b++) {
        in[slot][b] = (float)coefficients[(size_t)slot * stride + first + (size_t)b] * factors[slot];
      }
    }
    for (int column = 0; column < 4; column++) {
      pass_of_4(
          in[column], in[4 + column], in[8 + column], in[12 + column], middle[column], middle[4 + column],
          middle[8 + column], middle[12 + column]);
    }
    for (int row = 0; row < 4; row++) {
      float out[4][LANES];
      const float(*m)[LANES] = &middle[4 * row];
      pass_of_4(m[0], m[1], m[2], m[3], out[0], out[1], out[2], out[3]);
      uint8_t *to = samples + (size_t)row * row_stride + 4 * first;
      uint32_t words[LANES];
      for (int b = 0; b < LANES; b++) {
        words[b] = word(to_sample(out[0][b]), to_sample(out[1][b]), to_sample(out[2][b]), to_sample(out[3][b]));
      }
      memcpy(to, words, sizeof words);
    }
  }
}

static inline __attribute__((always_inline)) void transform(
    const int16_t *coefficients, size_t stride, int scale, const float *factors, uint8_t *samples, size_t row_stride) {
  switch (scale) {
  case 1:
    row_of_1(coefficients, stride, factors, samples);
    break;
  case 2:
    row_of_2(coefficients, stride, factors, samples, row_stride);
    break;
  default:
    row_of_4(coefficients, stride, factors, samples, row_stride);
    break;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void transform_avx2(
    const int16_t *coefficients, size_t stride, int scale, const float *factors, uint8_t *samples, size_t row_stride) {
  transform(coefficients, stride, scale, factors, samples, row_stride);
}
#endif

void jpeg_idct_row(
    const int16_t *coefficients, size_t stride, int scale, const float factors[16], uint8_t *samples,
    size_t row_stride) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    transform_avx2(coefficients, stride, scale, factors, samples, row_stride);
    return;
  }
#endif
  transform(coefficients, stride, scale, factors, samples, row_stride);
}
