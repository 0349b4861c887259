// The kernels behind cpixels.h, one set per instruction set. Private to CPixels.

#ifndef CPIXELS_KERNELS_H
#define CPIXELS_KERNELS_H

#include "cpixels.h"

/// Horizontal weights of one destination sample are stored for a number of taps that is a multiple of this, the
/// missing ones zero, so that vector kernels need no tail.
#define CPIXELS_TAP_MULTIPLE 16

/// Samples that may be read past the end of a copied source row.
#define CPIXELS_ROW_PADDING 64

#define CPIXELS_WEIGHT_BITS 14
#define CPIXELS_INTERMEDIATE_BITS 6

/// One axis: which source samples make a destination sample, and with which weights.
typedef struct cpixels_axis {
  uint32_t source_count;
  uint32_t destination_count;
  uint32_t tap_count;       ///< Taps of the destination sample that has most.
  uint32_t tap_stride;      ///< From one destination sample's weights to the next's.
  uint32_t *first;          ///< [destination_count] first source sample.
  int16_t *fixed_weights;   ///< [destination_count][tap_stride], Q14, each row's sum exactly 1; or NULL.
  float *float_weights;     ///< [destination_count][tap_stride]; or NULL.
} cpixels_axis;

typedef struct cpixels_resize_kernels {
  /// One padded 8-bit row to one intermediate row: Q6, saturated to 16 bits.
  void (*horizontal_u8)(const cpixels_axis *axis, uint8_t channels, const uint8_t *source, int16_t *destination);
  /// Intermediate rows to one 8-bit row of `sample_count` samples, rounded to nearest.
  void (*vertical_u8)(
      const int16_t *const *rows, const int16_t *weights, uint32_t tap_count, size_t sample_count,
      uint8_t *destination);
  /// One padded 16-bit row to one intermediate row.
  void (*horizontal_u16)(const cpixels_axis *axis, uint8_t channels, const uint16_t *source, float *destination);
  /// Intermediate rows to one 16-bit row of `sample_count` samples, rounded to nearest.
  void (*vertical_u16)(
      const float *const *rows, const float *weights, uint32_t tap_count, size_t sample_count,
      uint16_t *destination);
} cpixels_resize_kernels;

extern const cpixels_resize_kernels cpixels_resize_scalar;
#if defined(__x86_64__)
extern const cpixels_resize_kernels cpixels_resize_avx2;
#endif

/// The concrete instruction set that `isa` stands for here; CPIXELS_ISA_BEST itself when it is not available.
cpixels_isa cpixels_isa_resolve(cpixels_isa isa);

#endif
