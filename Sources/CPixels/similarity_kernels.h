// The kernels behind the similarity metric of cpixels.h, one set per instruction set. Private to CPixels.

#pragma once

#include "kernels.h"

/// The stabilizer of the structure term.
#define CPIXELS_SIMILARITY_C2 0.0009f

/// Rows have this many samples before the first and after the last pixel; those that a blur reads are 0.
#define CPIXELS_SIMILARITY_MARGIN 8

/// The distance that the blur reaches to each side, and its number of taps.
#define CPIXELS_BLUR_REACH 5
#define CPIXELS_BLUR_TAPS (2 * CPIXELS_BLUR_REACH + 1)

/// The blur's weights, from the middle tap outwards: a Gaussian with a standard deviation of 1.5.
#define CPIXELS_BLUR_0 0.266011724861794f
#define CPIXELS_BLUR_1 0.213005537711254f
#define CPIXELS_BLUR_2 0.109360689509700f
#define CPIXELS_BLUR_3 0.036000772128431f
#define CPIXELS_BLUR_4 0.007598758135239f
#define CPIXELS_BLUR_5 0.001028380084479f

/// Linear sRGB to the responses of the cones, as in JPEG XL.
#define CPIXELS_OPSIN_00 0.30f
#define CPIXELS_OPSIN_01 0.622f
#define CPIXELS_OPSIN_02 0.078f
#define CPIXELS_OPSIN_10 0.23f
#define CPIXELS_OPSIN_11 0.692f
#define CPIXELS_OPSIN_12 0.078f
#define CPIXELS_OPSIN_20 0.24342268924547819f
#define CPIXELS_OPSIN_21 0.20476744424496821f
#define CPIXELS_OPSIN_22 0.5518098665095536f
#define CPIXELS_OPSIN_BIAS 0.0037930732552754493f
#define CPIXELS_OPSIN_BIAS_ROOT 0.1559542025327239f

/// The planes of the metric's color space, scaled to 0 to 1.
enum { CPIXELS_PLANE_X, CPIXELS_PLANE_Y, CPIXELS_PLANE_B };

/// The errors of a plane, each as the sum of its values and the sum of their fourth powers.
typedef struct cpixels_error_sums {
  float structure[2];
  float ringing[2];  ///< Edges that only the result has.
  float blurring[2]; ///< Edges that only the reference has.
} cpixels_error_sums;

/// The weighted sums of the rows or columns under the blur: the means of the reference r, of the difference d between
/// result and reference, and of their products.
typedef struct cpixels_moment_rows {
  float *r;
  float *d;
  float *rr;
  float *dd;
  float *rd;
} cpixels_moment_rows;

typedef struct cpixels_similarity_kernels {
  /// Converts a row of 8-bit gray, RGB or RGBA to linear planes by `table`, which has 256 entries; alpha is ignored.
  void (*linearize)(
      const float *table, const uint8_t *row, uint32_t channels, size_t pixel_count, float *const *linear);
  /// Converts linear planes to those planes of the metric's color space that are not NULL.
  void (*perceive)(const float *const *linear, size_t pixel_count, float *const *planes);
  /// Subtracts `reference` from `row`.
  void (*subtract)(const float *reference, size_t count, float *row);
  /// Computes the means of 2x2 pixels. `pixel_count` is that of the destination.
  void (*halve)(const float *upper, const float *lower, size_t pixel_count, float *destination);
  /// Blurs the rows under a window vertically. All counts are rounded up to a multiple of 8.
  void (*blur_down)(
      const float *const reference[CPIXELS_BLUR_TAPS], const float *const difference[CPIXELS_BLUR_TAPS],
      size_t pixel_count, const cpixels_moment_rows *moments);
  /// Blurs a row of vertical moments horizontally and adds up the errors at its pixels.
  void (*compare)(
      const cpixels_moment_rows *moments, const float *reference, const float *difference, size_t pixel_count,
      cpixels_error_sums *sums);
} cpixels_similarity_kernels;

/// The kernels of a file that defines all of them.
#define CPIXELS_SIMILARITY_KERNELS                                                                                     \
  {                                                                                                                    \
    .linearize = linearize, .perceive = perceive, .subtract = subtract, .halve = halve, .blur_down = blur_down,        \
    .compare = compare                                                                                                 \
  }

extern const cpixels_similarity_kernels cpixels_similarity_scalar;
extern const cpixels_similarity_kernels cpixels_similarity_avx2;
extern const cpixels_similarity_kernels cpixels_similarity_avx512;
extern const cpixels_similarity_kernels cpixels_similarity_neon;
