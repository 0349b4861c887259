// The kernels of raw results over vectors, with AVX2 and F16C or with NEON. The conversion to binary16 rounds as
// half_of in raw_rows.c does. FMA is not enabled, so that products and sums stay apart.

#include "raw_rows.h"

#if defined(__x86_64__) || defined(__aarch64__)

#include <string.h>

#pragma STDC FP_CONTRACT OFF

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,f16c")))
#else
#define TARGET
#endif
#define INLINE TARGET static inline __attribute__((always_inline))

enum { LANES = 8 };

typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef _Float16 half_floats __attribute__((vector_size(2 * LANES)));

TARGET static void split(const uint8_t *pixels, size_t count, uint8_t *first, uint8_t *second, uint8_t *third) {
  raw_split(pixels, count, first, second, third);
}

INLINE void store(const floats *values, ccodecs_raw_element element, uint8_t *output) {
  if (element == CCODECS_RAW_F32) {
    memcpy(output, values, sizeof *values);
  } else if (element == CCODECS_RAW_F16) {
    const half_floats rounded = __builtin_convertvector(*values, half_floats);
    memcpy(output, &rounded, sizeof rounded);
  } else {
    const words bits = (words)*values;
    const halves upper = __builtin_convertvector((bits + 0x7FFF + (bits >> 16 & 1)) >> 16, halves);
    memcpy(output, &upper, sizeof upper);
  }
}

/// Converts RAW_PERIOD samples.
INLINE void convert_period(
    ccodecs_raw_element element, const uint8_t *samples, const raw_scaling *scaling, uint8_t *output) {
#pragma GCC unroll 3
  for (size_t i = 0; i < RAW_PERIOD; i += LANES) {
    bytes packed;
    floats scales, offsets;
    memcpy(&packed, samples + i, sizeof packed);
    memcpy(&scales, scaling->scales + i, sizeof scales);
    memcpy(&offsets, scaling->offsets + i, sizeof offsets);
    const floats values = __builtin_convertvector(packed, floats) * scales + offsets;
    store(&values, element, output + i * raw_element_bytes(element));
  }
}

/// Converts samples to one type; the compiler makes a loop for each.
INLINE void convert_to(
    ccodecs_raw_element element, const uint8_t *samples, size_t count, const raw_scaling *given, uint8_t *output) {
  const raw_scaling scaling = *given; // in registers, which output can't change
  const size_t size = raw_element_bytes(element);
  size_t i = 0;
  for (; i + RAW_PERIOD <= count; i += RAW_PERIOD) {
    convert_period(element, samples + i, &scaling, output + i * size);
  }
  if (i < count) {
    uint8_t rest[RAW_PERIOD] = {0}, converted[4 * RAW_PERIOD];
    memcpy(rest, samples + i, count - i);
    convert_period(element, rest, &scaling, converted);
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

const raw_kernels ccodecs_raw_lanes = {.split = split, .convert = convert};

#endif
