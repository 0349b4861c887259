// Forward transforms and activities of the native JPEG encoder: the scalar versions, which are the oracle of the
// others, and the choice between them.
//
// The transform is that of Arai, Agui and Nakajima in single precision: the factors that it leaves out are part of the
// quantization. All versions compute the same operations in the same order without fusing them, so that they agree in
// every bit.

#define TARGET

#include "jpeg_encode_rows.h"

#include <cinstructions.h>
#include <math.h>
#include <stdlib.h>

#pragma STDC FP_CONTRACT OFF

const float ccodecs_jpeg_forward_scale[8] = {1.0F, 1.387039845F, 1.306562965F, 1.175875602F,
                                             1.0F, 0.785694958F, 0.541196100F, 0.275899379F};

/// Transforms eight values that are `step` apart.
static void transform(float *d, size_t step) {
  const float t0 = d[0] + d[7 * step], t7 = d[0] - d[7 * step];
  const float t1 = d[step] + d[6 * step], t6 = d[step] - d[6 * step];
  const float t2 = d[2 * step] + d[5 * step], t5 = d[2 * step] - d[5 * step];
  const float t3 = d[3 * step] + d[4 * step], t4 = d[3 * step] - d[4 * step];
  const float e0 = t0 + t3, e3 = t0 - t3, e1 = t1 + t2, e2 = t1 - t2;
  const float z1 = (e2 + e3) * 0.707106781F;
  d[0] = e0 + e1;
  d[4 * step] = e0 - e1;
  d[2 * step] = e3 + z1;
  d[6 * step] = e3 - z1;
  const float o0 = t4 + t5, o1 = t5 + t6, o2 = t6 + t7;
  const float z5 = (o0 - o2) * 0.382683433F;
  const float z2 = 0.541196100F * o0 + z5;
  const float z4 = 1.306562965F * o2 + z5;
  const float z3 = o1 * 0.707106781F;
  const float z11 = t7 + z3, z13 = t7 - z3;
  d[5 * step] = z13 + z2;
  d[3 * step] = z13 - z2;
  d[step] = z11 + z4;
  d[7 * step] = z11 - z4;
}

/// Returns the nearest integer, and of two the even one.
static int32_t nearest(float value) {
  // Adding 1.5 * 2^23 leaves no bits below the point.
  return (int32_t)((value + 12582912.0F) - 12582912.0F);
}

static void quantize(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block) {
  float data[JPEG_BLOCK];
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    data[i] = (float)samples[i / 8 * stride + i % 8];
  }
  for (uint32_t x = 0; x < 8; x++) {
    transform(data + x, 8);
  }
  for (uint32_t v = 0; v < 8; v++) {
    transform(data + (size_t)v * 8, 1);
  }
  data[0] -= 64 * 128;
  uint64_t mask = 0;
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    values[i] = data[i % 8 * 8 + i / 8] * chooser->inverse[i];
    const bool is_large = fabsf(values[i]) >= lambda * chooser->dead_zone[i] + 0.5F;
    const int32_t level = is_large ? nearest(values[i]) : 0;
    block->levels[i] = (int16_t)(level < -JPEG_MAX_LEVEL ? -JPEG_MAX_LEVEL
                                 : level > JPEG_MAX_LEVEL ? JPEG_MAX_LEVEL
                                                          : level);
    mask |= (uint64_t)(level != 0) << i;
  }
  block->dc = (int16_t)nearest(values[0]);
  block->mask = ccodecs_jpeg_zigzag_mask(mask & ~(uint64_t)1);
}

static void activity(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums) {
  for (uint32_t block = 0; block < count; block++) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
      const uint8_t *p = samples + i / 8 * stride + block * 8 + i % 8;
      sum += (uint32_t)abs(p[1] - p[0]);
      sum += i < JPEG_BLOCK - 8 ? (uint32_t)abs(p[stride] - p[0]) : 0;
    }
    sums[block] = sum;
  }
}

const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_scalar = JPEG_ENCODE_KERNELS;

const jpeg_encode_kernels *ccodecs_jpeg_encode_kernels(void) {
#if defined(__x86_64__)
  if (cinstructions_allow(CINSTRUCTIONS_AVX512) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bitalg")) {
    return &ccodecs_jpeg_encode_kernels_avx512;
  }
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2")) {
    return &ccodecs_jpeg_encode_kernels_avx2;
  }
#elif defined(__aarch64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS)) {
    return &ccodecs_jpeg_encode_kernels_neon;
  }
#endif
  return &ccodecs_jpeg_encode_kernels_scalar;
}
