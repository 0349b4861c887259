// The kernels behind cpixels.h, one set per instruction set. Private to CPixels.
//
// Inside the resampler everything is planar and rows go in pairs:
//
//   packed source rows a, b -> split -> planes -> horizontal_u8 -> ring of pairs -> vertical_u8 -> planes -> join
//
// A pair holds two neighbouring source rows after the horizontal pass, interleaved sample by sample (a0 b0 a1 b1 ...),
// which is how a multiply-add of 16-bit neighbours wants them in the vertical pass.

#ifndef CPIXELS_KERNELS_H
#define CPIXELS_KERNELS_H

#include "cpixels.h"

/// Weights are Q14 and a destination sample's sum to exactly 1. Intermediate samples are Q6. Neither kernel's weights
/// have absolute values that sum to 1.6, so an intermediate sample stays within 255 * 64 * 1.6 < 2^15.
#define CPIXELS_WEIGHT_BITS 14
#define CPIXELS_INTERMEDIATE_BITS 6

/// Intermediate rows have room for a multiple of this many samples; kernels may write, and read, all of it.
#define CPIXELS_COLUMN_MULTIPLE 32

/// Windows of floating-point weights are a multiple of this many taps.
#define CPIXELS_FLOAT_TAP_MULTIPLE 8

/// How the weights of an axis lie in memory.
typedef enum cpixels_layout {
  CPIXELS_LAYOUT_COPY,  ///< No weights: destination samples are source samples.
  CPIXELS_LAYOUT_PLAIN, ///< [destination][window].
  CPIXELS_LAYOUT_PAIRS, ///< [destination][window], where windows begin and end between pairs.
  CPIXELS_LAYOUT_DOTS,  ///< [destination][window], where windows lie inside the source.
  CPIXELS_LAYOUT_LANES, ///< [destination / group][window / step][group][step], likewise: destinations side by side.
} cpixels_layout;

/// How a kernel wants CPIXELS_LAYOUT_LANES: `group` destinations are computed side by side, `step` taps at a time;
/// `load_lanes` neighbours among them take their taps out of one load of `load_size` samples.
typedef struct cpixels_lane_shape {
  uint32_t group;
  uint32_t load_lanes;
  uint32_t load_size;
  uint32_t step;
  uint32_t max_depth; ///< Steps that one load may serve.
  bool is_split;      ///< A group's weights of a step are all their low bytes, signed, then all high bytes.
} cpixels_lane_shape;

/// One axis: which source samples make a destination sample, and with which weights.
typedef struct cpixels_axis {
  cpixels_layout layout;
  cpixels_lane_shape lanes;
  uint32_t source_count;
  uint32_t destination_count;
  uint32_t tap_count;     ///< Taps of the destination sample that has most.
  uint32_t window;        ///< Taps stored per destination sample; those that it does not have weigh 0.
  uint32_t depth;         ///< LANES: steps that one load serves.
  uint32_t last_base;     ///< LANES: the last sample to begin with so that all loads stay inside the source.
  uint32_t *first;        ///< [destination_count, rounded up to a group] first source sample of the window.
  int16_t *fixed_weights; ///< Q14; or NULL.
  float *float_weights;   ///< Or NULL.
  uint8_t *order;         ///< LANES: [destination / group][group][step], which sample of its load a tap is.
} cpixels_axis;

typedef struct cpixels_resize_kernels {
  cpixels_lane_shape lanes; ///< Of horizontal_u8; group is 0 when it does not read that layout.
  uint32_t dot_multiple;    ///< Of windows in CPIXELS_LAYOUT_DOTS; 0 likewise.

  /// One plane of two 8-bit rows to one pair of intermediate rows, Q6. Reads nothing beyond the rows.
  void (*horizontal_u8)(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs);
  /// Pairs of intermediate rows to one 8-bit row of `sample_count` samples, rounded to nearest. Two weights a pair.
  void (*vertical_u8)(
      const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t sample_count,
      uint8_t *destination);

  /// 16-bit samples to floats.
  void (*widen_u16)(const uint16_t *samples, size_t sample_count, float *floats);
  /// Two rows of pixels of `lane_count` (1 or 4) floats, resampled. Reads up to a window beyond the rows.
  void (*horizontal_u16)(
      const cpixels_axis *axis, uint32_t lane_count, const float *a, const float *b, float *out_a, float *out_b);
  /// Intermediate rows to one 16-bit row of `sample_count` samples, rounded to nearest.
  void (*vertical_u16)(
      const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, uint16_t *destination);

  /// Packed pixels of 3 or 4 channels to planes that are `plane_stride` samples apart, and back.
  void (*split)(const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride);
  void (*join)(const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed);
} cpixels_resize_kernels;

extern const cpixels_resize_kernels cpixels_resize_scalar;

void cpixels_split_scalar(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride);
void cpixels_join_scalar(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed);
void cpixels_premultiply_scalar(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count);
void cpixels_unpremultiply_scalar(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count);
void cpixels_flatten_scalar(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count);
void cpixels_ycc_to_rgb_scalar(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count);

/// Of YCbCr to RGB, in Q15: 1.402 - 1, -0.344136, 1 - 0.714136, 1.772 - 2.
enum {
  CPIXELS_RED_OF_CR = 13173,
  CPIXELS_GREEN_OF_CB = -11277,
  CPIXELS_GREEN_OF_CR = 9367,
  CPIXELS_BLUE_OF_CB = -7471,
};

#if defined(__x86_64__)
extern const cpixels_resize_kernels cpixels_resize_avx2;
extern const cpixels_resize_kernels cpixels_resize_avx512;

void cpixels_split_avx2(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride);
void cpixels_join_avx2(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed);
void cpixels_premultiply_avx2(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count);
void cpixels_unpremultiply_avx2(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count);
void cpixels_flatten_avx2(const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count);
void cpixels_ycc_to_rgb_avx2(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count);
#endif

#if defined(__aarch64__)
extern const cpixels_resize_kernels cpixels_resize_neon;
#endif

// MARK: Axes (resize_axis.c)

/// Hands out parts of one block, each aligned to 64 bytes; with no block it only measures.
typedef struct cpixels_arena {
  uint8_t *base;
  size_t used;
  bool overflowed;
} cpixels_arena;

void *cpixels_arena_take(cpixels_arena *arena, size_t count, size_t size);

bool cpixels_axis_is_valid(const cpixels_axis_options *options);

/// The layout that `kernels` resample this axis of 8-bit samples in fastest.
cpixels_layout cpixels_axis_choose(const cpixels_axis_options *options, const cpixels_resize_kernels *kernels);

/// Sizes an axis and takes its memory. `kernels` is for CPIXELS_LAYOUT_DOTS and CPIXELS_LAYOUT_LANES.
void cpixels_axis_place(
    cpixels_arena *arena, const cpixels_axis_options *options, cpixels_layout layout,
    const cpixels_resize_kernels *kernels, bool is_fixed, cpixels_axis *axis);

/// Computes the weights of a placed axis. `scratch` has room for its window.
void cpixels_axis_fill(const cpixels_axis_options *options, double *scratch, cpixels_axis *axis);

/// The first sample of the first load that the destinations from `destination` on share, a multiple of load_lanes.
/// That load serves (steps - 1) modulo depth + 1 steps, the loads after it `depth` each.
static inline uint32_t cpixels_lane_base(const cpixels_axis *axis, uint32_t destination) {
  const uint32_t first = axis->first[destination];
  return first < axis->last_base ? first : axis->last_base;
}

/// The concrete instruction set that `isa` stands for here; CPIXELS_ISA_BEST itself when it is not available.
cpixels_isa cpixels_isa_resolve(cpixels_isa isa);

/// Whether `isa` stands for AVX2 or more here.
bool cpixels_isa_has_avx2(cpixels_isa isa);

#endif
