// Forward transforms and activities of the native JPEG encoder: the versions for any processor, of which the activities
// are the oracle of the others, and the choice between all.
//
// The transform is that of Arai, Agui and Nakajima in single precision: the factors that it leaves out are part of the
// quantization. All versions compute the same operations in the same order without fusing them, so that they agree in
// every bit.

#define TARGET

#include "jpeg_encode_forward.h"
#include "jpeg_encode_rows.h"

#include <cinstructions.h>
#include <math.h>
#include <stdlib.h>

#pragma STDC FP_CONTRACT OFF

const float ccodecs_jpeg_forward_scale[8] = {1.0F, 1.387039845F, 1.306562965F, 1.175875602F,
                                             1.0F, 0.785694958F, 0.541196100F, 0.275899379F};

/// Returns the nearest integer, and of two the even one.
static int32_t nearest(float value) {
  // Adding 1.5 * 2^23 leaves no bits below the point.
  return (int32_t)((value + 12582912.0F) - 12582912.0F);
}

static void quantize(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block) {
  jpeg_row d[8];
  transform_samples(samples, stride, d);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    values[i] = d[i / 8][i % 8] * chooser->inverse[i];
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
