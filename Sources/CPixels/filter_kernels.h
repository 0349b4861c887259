// The kernels behind the filters of cpixels.h, one set per instruction set. Private to CPixels.

#pragma once

#include "kernels.h"

// MARK: Color

/// The number of pixels that a color program processes at a time; their planes fit in the L1 cache.
#define CPIXELS_COLOR_BLOCK 256

/// A block of pixels in a color program.
typedef struct cpixels_color_block {
  float planes[3][CPIXELS_COLOR_BLOCK]; ///< Red, green and blue, 0 to 1.
  uint8_t levels[4][CPIXELS_COLOR_BLOCK];
} cpixels_color_block;

/// The position of a block in its image, for steps that need it.
typedef struct cpixels_color_place {
  uint32_t x;
  uint32_t y;
  uint32_t width;
  uint32_t height;
} cpixels_color_place;

/// The transfer function of sRGB (IEC 61966-2-1).
#define CPIXELS_SRGB_DECODE_KNEE 0.04045f
#define CPIXELS_SRGB_ENCODE_KNEE 0.0031308f
#define CPIXELS_SRGB_SLOPE 12.92f
#define CPIXELS_SRGB_OFFSET 0.055f

/// The tolerance of a threshold for rounding of its weighted sum.
#define CPIXELS_THRESHOLD_SLACK 1e-6f

/// Powers treat a base below this as 0, because it is denormal or nearly so.
#define CPIXELS_SMALLEST_BASE 1e-30f

/// 2 / ln 2 over 1, 3, 5, 7 and 9: the coefficients of log2((1 + t) / (1 - t)) as a series in t.
#define CPIXELS_LOG_1 2.885390082f
#define CPIXELS_LOG_3 0.961796694f
#define CPIXELS_LOG_5 0.577078016f
#define CPIXELS_LOG_7 0.412198583f
#define CPIXELS_LOG_9 0.320598898f

/// (ln 2)^n / n!: the coefficients of 2^x as a series in x.
#define CPIXELS_EXP_1 0.693147181f
#define CPIXELS_EXP_2 0.240226507f
#define CPIXELS_EXP_3 0.0555041087f
#define CPIXELS_EXP_4 0.00961812911f
#define CPIXELS_EXP_5 0.00133335581f
#define CPIXELS_EXP_6 0.000154035304f

// MARK: Area

/// Samples of area filters are Q6: 255 is 16320, so the sum of two fits in 16 bits. Premultiplied color, 0 to 65025,
/// is divided by 4 instead, so its maximum is 16256.
#define CPIXELS_AREA_BITS 6
#define CPIXELS_AREA_WHITE (255 << CPIXELS_AREA_BITS)

/// The number of Q6 samples in a row is rounded up to a multiple of this; kernels may read and write all of them.
#define CPIXELS_AREA_MULTIPLE 32

/// Gains are Q14: the result of an area filter is source + gain * (source - filtered).
#define CPIXELS_GAIN_BITS 14

/// A symmetric kernel: the sum of weight * (before + after). The middle tap is on both sides.
typedef struct cpixels_taps {
  const int16_t **before; ///< [count]
  const int16_t **after;  ///< [count]
  const int16_t *weights; ///< [count]; twice their sum is 2^bits.
  uint32_t count;         ///< Even.
  uint32_t bits;          ///< At most 17, so that sums stay below 2^31.
} cpixels_taps;

typedef struct cpixels_filter_kernels {
  void (*map_levels)(
      const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count);

  /// Convert packed pixels to a block, and back. `table` as in cpixels_color_program.
  void (*load_block)(
      const float *table, uint32_t channels, const uint8_t *source, size_t pixel_count, cpixels_color_block *block);
  void (*store_block)(cpixels_color_block *block, uint32_t channels, size_t pixel_count, uint8_t *destination);
  /// Applies one step; may also modify the block beyond `pixel_count`.
  void (*step)(
      const cpixels_color_step *step, const cpixels_color_place *place, size_t pixel_count, cpixels_color_block *block);

  /// Convert 8-bit samples to Q6, and 8-bit RGBA to premultiplied samples.
  void (*widen)(const uint8_t *samples, size_t sample_count, int16_t *wide);
  void (*premultiply)(const uint8_t *rgba, size_t pixel_count, int16_t *wide);
  /// Adds samples to sums.
  void (*accumulate)(const int16_t *wide, size_t sample_count, uint32_t *sums);
  /// Computes one row of `sample_count` samples, rounded to nearest, from the rows of its taps.
  void (*convolve)(const cpixels_taps *taps, size_t sample_count, int16_t *wide);

  /// Computes source + gain * (source - filtered) where the two differ by more than `threshold` (Q6), else source.
  void (*blend)(
      const uint8_t *source, const int16_t *wide, size_t sample_count, int32_t gain, int32_t threshold,
      uint8_t *destination);
  /// The same for RGBA with premultiplied `wide`; alpha does not change.
  void (*blend_over_alpha)(
      const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, int32_t threshold,
      uint8_t *destination);
  /// The same for premultiplied samples, including alpha; the output has the format that cpixels_unpremultiply reads.
  void (*blend_premultiplied)(
      const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, uint16_t *premultiplied);
} cpixels_filter_kernels;

/// The kernels of a file that defines all of them.
#define CPIXELS_FILTER_KERNELS                                                                                         \
  {                                                                                                                    \
    .map_levels = map_levels, .load_block = load_block, .store_block = store_block, .step = step, .widen = widen,      \
    .premultiply = premultiply, .accumulate = accumulate, .convolve = convolve, .blend = blend,                        \
    .blend_over_alpha = blend_over_alpha, .blend_premultiplied = blend_premultiplied                                   \
  }

extern const cpixels_filter_kernels cpixels_filter_scalar;
extern const cpixels_filter_kernels cpixels_filter_avx2;
extern const cpixels_filter_kernels cpixels_filter_neon;

const cpixels_filter_kernels *cpixels_filter_kernels_of(cpixels_isa isa);
