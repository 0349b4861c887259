// The kernels of raw results: arranging 8-bit samples, and converting them to elements. Private to CCodecs.
//
// All versions give the same bytes: products and sums are rounded separately, in single precision.

#pragma once

#include "ccodecs.h"

/// The number of scales and offsets of a row, which repeat after it: a multiple of the channels and of a vector.
enum { RAW_PERIOD = 24 };

/// The scale and the offset of each sample of a row, in the order in which the samples repeat.
typedef struct raw_scaling {
  float scales[RAW_PERIOD];
  float offsets[RAW_PERIOD];
} raw_scaling;

typedef struct raw_kernels {
  /// Splits interleaved pixels of three samples into three rows.
  void (*split)(const uint8_t *pixels, size_t count, uint8_t *first, uint8_t *second, uint8_t *third);
  /// Converts samples to elements of F16, BF16 or F32.
  void (*convert)(
      const uint8_t *samples, size_t count, const raw_scaling *scaling, ccodecs_raw_element element, uint8_t *output);
} raw_kernels;

/// The loop of `split`, of which the compiler makes vectors for each instruction set.
static inline __attribute__((always_inline)) void raw_split(
    const uint8_t *pixels, size_t count, uint8_t *first, uint8_t *second, uint8_t *third) {
  for (size_t i = 0; i < count; i++, pixels += 3) {
    first[i] = pixels[0];
    second[i] = pixels[1];
    third[i] = pixels[2];
  }
}

extern const raw_kernels ccodecs_raw_scalar;
extern const raw_kernels ccodecs_raw_lanes;

/// Returns the kernels for this processor.
const raw_kernels *ccodecs_raw_kernels(void);

/// Returns the size of an element in bytes.
static inline size_t raw_element_bytes(ccodecs_raw_element element) {
  return element == CCODECS_RAW_U8 ? 1 : element == CCODECS_RAW_F32 ? 4 : 2;
}
