// The scalar kernels of raw results, the oracle of the others, and the choice among them.

#include "raw_rows.h"

#include <cinstructions.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are stored as this processor has them");

static void split(const uint8_t *pixels, size_t count, uint8_t *first, uint8_t *second, uint8_t *third) {
  raw_split(pixels, count, first, second, third);
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Rounds to binary16: to nearest, ties to even; what is too large becomes infinite.
static uint16_t half_of(float value) {
  const uint32_t bits = bits_of(value);
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x47800000) { // 65536 and above
    return sign | 0x7C00;
  }
  if (magnitude < 0x38800000) { // below the smallest normal number, 2^-14: the unit is that of floats from 0.5 to 1
    float small;
    memcpy(&small, &magnitude, sizeof small);
    return sign | (uint16_t)(bits_of(small + 0.5f) - bits_of(0.5f));
  }
  return sign | (uint16_t)((magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000) >> 13);
}

/// Rounds to the upper half of binary32: to nearest, ties to even.
static uint16_t upper_half_of(float value) {
  const uint32_t bits = bits_of(value);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static void convert(
    const uint8_t *samples, size_t count, const raw_scaling *scaling, ccodecs_raw_element element, uint8_t *output) {
  for (size_t i = 0; i < count; i++) {
    const float product = (float)samples[i] * scaling->scales[i % RAW_PERIOD];
    const float value = product + scaling->offsets[i % RAW_PERIOD];
    switch (element) {
    case CCODECS_RAW_F32:
      memcpy(output + 4 * i, &value, 4);
      break;
    case CCODECS_RAW_F16:
      memcpy(output + 2 * i, &(uint16_t){half_of(value)}, 2);
      break;
    case CCODECS_RAW_BF16:
      memcpy(output + 2 * i, &(uint16_t){upper_half_of(value)}, 2);
      break;
    case CCODECS_RAW_U8: // not converted
      output[i] = samples[i];
      break;
    }
  }
}

const raw_kernels ccodecs_raw_scalar = {.split = split, .convert = convert};

const raw_kernels *ccodecs_raw_kernels(void) {
#if defined(__x86_64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
    return &ccodecs_raw_lanes;
  }
#endif
#if defined(__aarch64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS)) {
    return &ccodecs_raw_lanes;
  }
#endif
  return &ccodecs_raw_scalar;
}
