// The kernels of raw results with AVX2 and F16C, which rounds as half_of in raw_rows.c does. FMA is not enabled, so
// that products and sums stay apart.

#include "raw_rows.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,f16c")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { LANES = 8 };

TARGET static void split(const uint8_t *pixels, size_t count, uint8_t *first, uint8_t *second, uint8_t *third) {
  raw_split(pixels, count, first, second, third);
}

INLINE __m256 scaled(const uint8_t *samples, __m256 scale, __m256 offset) {
  const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)samples);
  const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  return _mm256_add_ps(_mm256_mul_ps(values, scale), offset);
}

INLINE __m128i upper_halves(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i upper = _mm256_srli_epi32(rounded, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
}

INLINE void store(__m256 values, ccodecs_raw_element element, uint8_t *output) {
  if (element == CCODECS_RAW_F32) {
    _mm256_storeu_ps((float *)(void *)output, values);
  } else {
    const __m128i halves =
        element == CCODECS_RAW_F16 ? _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT) : upper_halves(values);
    _mm_storeu_si128((__m128i *)(void *)output, halves);
  }
}

/// Converts RAW_PERIOD samples.
INLINE void convert_period(
    ccodecs_raw_element element, const uint8_t *samples, const __m256 *scales, const __m256 *offsets, uint8_t *output) {
#pragma GCC unroll 3
  for (size_t v = 0; v < RAW_PERIOD / LANES; v++) {
    const __m256 values = scaled(samples + v * LANES, scales[v], offsets[v]);
    store(values, element, output + v * LANES * raw_element_bytes(element));
  }
}

/// Converts samples to one type; the compiler makes a loop for each.
INLINE void convert_to(
    ccodecs_raw_element element, const uint8_t *samples, size_t count, const raw_scaling *scaling, uint8_t *output) {
  const size_t size = raw_element_bytes(element);
  __m256 scales[RAW_PERIOD / LANES], offsets[RAW_PERIOD / LANES];
#pragma GCC unroll 3
  for (size_t v = 0; v < RAW_PERIOD / LANES; v++) {
    scales[v] = _mm256_loadu_ps(scaling->scales + v * LANES);
    offsets[v] = _mm256_loadu_ps(scaling->offsets + v * LANES);
  }
  size_t i = 0;
  for (; i + RAW_PERIOD <= count; i += RAW_PERIOD) {
    convert_period(element, samples + i, scales, offsets, output + i * size);
  }
  if (i < count) {
    uint8_t rest[RAW_PERIOD] = {0}, converted[4 * RAW_PERIOD];
    memcpy(rest, samples + i, count - i);
    convert_period(element, rest, scales, offsets, converted);
    memcpy(output + i * size, converted, (count - i) * size);
  }
}

TARGET static void convert(
    const uint8_t *samples, size_t count, const raw_scaling *scaling, ccodecs_raw_element element, uint8_t *output) {
  switch (element) {
  case CCODECS_RAW_F32:
    return convert_to(CCODECS_RAW_F32, samples, count, scaling, output);
  case CCODECS_RAW_F16:
    return convert_to(CCODECS_RAW_F16, samples, count, scaling, output);
  case CCODECS_RAW_BF16:
    return convert_to(CCODECS_RAW_BF16, samples, count, scaling, output);
  case CCODECS_RAW_U8: // not converted
    memcpy(output, samples, count);
  }
}

const raw_kernels ccodecs_raw_avx2 = {.split = split, .convert = convert};

#endif
