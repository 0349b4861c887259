// The kernels behind cpixels.h, one set per instruction set. Private to CPixels.
//
// The resampler works on planes, and on pairs of rows:
//
//   packed source rows a, b -> split -> planes -> horizontal_u8 -> ring of pairs -> vertical_u8 -> planes -> join
//
// A pair contains two adjacent source rows after the horizontal pass, interleaved sample by sample (a0 b0 a1 b1 ...).
// This is the order that a multiply-add of adjacent 16-bit numbers needs in the vertical pass.

#pragma once

#include "cpixels.h"

#include <math.h>

/// Weights are Q14, and the weights of a destination sample sum to exactly 1. Intermediate samples are Q6. The absolute
/// values of a kernel's weights sum to less than 1.6, so an intermediate sample stays below 255 * 64 * 1.6 < 2^15.
#define CPIXELS_WEIGHT_BITS 14
#define CPIXELS_INTERMEDIATE_BITS 6

/// The number of samples in an intermediate row is rounded up to a multiple of this; kernels may read and write all of
/// them.
#define CPIXELS_COLUMN_MULTIPLE 32

/// The number of taps in a window of floating-point weights is a multiple of this.
#define CPIXELS_FLOAT_TAP_MULTIPLE 8

/// The number of equal steps in a table of signals or light, between which values are interpolated.
enum { CPIXELS_LIGHT_STEPS = 4096 };

/// The curve of sRGB in both directions. Light is 0 to 65535.
typedef struct cpixels_light {
  float levels[256];                      ///< The light of each 8-bit signal, as a whole number.
  float light[CPIXELS_LIGHT_STEPS + 2];   ///< The light at equal steps of the signal; the last one repeats.
  float signals[CPIXELS_LIGHT_STEPS + 2]; ///< The signal, 0 to 1, at equal steps of light; the last one repeats.
} cpixels_light;

/// The memory layout of an axis's weights.
typedef enum cpixels_layout {
  CPIXELS_LAYOUT_COPY,  ///< No weights: destination samples are source samples.
  CPIXELS_LAYOUT_PLAIN, ///< [destination][window].
  CPIXELS_LAYOUT_PAIRS, ///< [destination][window], where windows start and end between pairs.
  CPIXELS_LAYOUT_DOTS,  ///< [destination][window], where windows are inside the source.
  CPIXELS_LAYOUT_LANES, ///< [destination / group][window / step][group][step], windows also inside the source.
} cpixels_layout;

/// The parameters of CPIXELS_LAYOUT_LANES for a kernel. It computes `group` destinations side by side, `step` taps at a
/// time; `load_lanes` adjacent destinations take their taps from one load of `load_size` samples.
typedef struct cpixels_lane_shape {
  uint32_t group;
  uint32_t load_lanes;
  uint32_t load_size;
  uint32_t step;
  uint32_t max_depth; ///< The maximum number of steps that one load may serve.
  bool is_split; ///< The weights of a group's step are stored as all low bytes, signed, followed by all high bytes.
} cpixels_lane_shape;

typedef struct cpixels_resize_kernels cpixels_resize_kernels;

/// One axis: the source samples that contribute to each destination sample, and their weights.
typedef struct cpixels_axis {
  cpixels_layout layout;
  cpixels_lane_shape lanes;
  uint32_t source_count;
  uint32_t destination_count;
  uint32_t tap_count;     ///< The maximum number of taps of a destination sample.
  uint32_t window;        ///< The number of taps stored per destination sample; unused taps have weight 0.
  uint32_t depth;         ///< LANES: the number of steps that one load serves.
  uint32_t last_base;     ///< LANES: the last start sample for which all loads stay inside the source.
  uint32_t *first;        ///< [destination_count, rounded up to a group] The first source sample of the window.
  int16_t *fixed_weights; ///< Q14; may be NULL.
  float *float_weights;   ///< May be NULL.
  bool is_split;          ///< The two bytes of a fixed weight are stored separately.
  uint8_t *order;         ///< LANES: [destination / group][group][step] The index of a tap's sample in its load.
  cpixels_axis_options options;
  const cpixels_resize_kernels *kernels;
  uint8_t *memory; ///< All of these arrays.
  size_t byte_count;
} cpixels_axis;

/// The number of shapes that a kernel may support.
enum { CPIXELS_LANE_SHAPES = 2 };

/// The number of multiples that the windows of a kernel may have, and the one whose weights are stored like those of
/// split lanes: for each 64 taps all low bytes, signed, followed by all high bytes.
enum { CPIXELS_DOT_MULTIPLES = 2, CPIXELS_SPLIT_DOT_MULTIPLE = 64 };

struct cpixels_resize_kernels {
  /// The shapes that horizontal_u8 supports, the fastest first; those with a group of 0 are missing.
  cpixels_lane_shape lanes[CPIXELS_LANE_SHAPES];
  /// The tap counts of CPIXELS_LAYOUT_DOTS windows are multiples of one of these, the first that fits into the source;
  /// those that are 0 are missing.
  uint32_t dot_multiples[CPIXELS_DOT_MULTIPLES];

  /// Resamples one plane of two 8-bit rows into one row of intermediate pairs, Q6. Does not read beyond the rows.
  void (*horizontal_u8)(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs);
  /// Combines rows of intermediate pairs into one 8-bit row of `sample_count` samples, rounded to nearest. There are
  /// two weights per pair.
  void (*vertical_u8)(
      const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t sample_count,
      uint8_t *destination);

  /// Converts 16-bit samples to floats.
  void (*widen_u16)(const uint16_t *samples, size_t sample_count, float *floats);
  /// Resamples two rows of pixels of `lane_count` (1 or 4) floats. May read up to a window beyond the rows.
  void (*horizontal_float)(
      const cpixels_axis *axis, uint32_t lane_count, const float *a, const float *b, float *out_a, float *out_b);
  /// Combines intermediate rows into one 16-bit row of `sample_count` samples, rounded to nearest.
  void (*vertical_u16)(
      const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, uint16_t *destination);
  /// Combines intermediate rows into one row of floats. Writes up to a multiple of CPIXELS_COLUMN_MULTIPLE samples.
  void (*vertical_float)(
      const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, float *destination);
  /// Converts packed 8-bit signals of three channels to light, four floats per pixel, of which the last is not written
  /// or 0.
  void (*linearize_rgb8)(const float levels[256], const uint8_t *rgb, size_t pixel_count, float *lanes);

  /// Converts packed pixels of 3 or 4 channels to planes that are `plane_stride` samples apart, and back.
  void (*split)(const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride);
  void (*join)(const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed);
};

/// The resampling functions of a file that defines all of them.
#define CPIXELS_RESIZE_FUNCTIONS                                                                                       \
  .horizontal_u8 = horizontal_u8, .vertical_u8 = vertical_u8, .widen_u16 = widen_u16,                                  \
  .horizontal_float = horizontal_float, .vertical_u16 = vertical_u16, .vertical_float = vertical_float,                \
  .linearize_rgb8 = linearize_rgb8

/// The kernels of an instruction set. All sets are declared; only those of the target are defined.
extern const cpixels_resize_kernels cpixels_resize_scalar;
extern const cpixels_resize_kernels cpixels_resize_avx2;
extern const cpixels_resize_kernels cpixels_resize_avx512;
extern const cpixels_resize_kernels cpixels_resize_neon;

/// `split` and `join` of them; those of NEON are the scalar ones.
void cpixels_split_scalar(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride);
void cpixels_join_scalar(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed);
void cpixels_split_avx2(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride);
void cpixels_join_avx2(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed);

// MARK: Linear light (light.c)

/// Returns the light of a signal, both 0 to 1. Source: IEC 61966-2-1, the curve of sRGB.
static inline double cpixels_light_of(double signal) {
  return signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4);
}

/// Fills the tables; that of light at equal steps only for signals of 16 bits.
void cpixels_light_fill(bool is_16bit, cpixels_light *light);

/// The type of the pixels that are converted to light and back.
typedef struct cpixels_light_pixels {
  uint32_t channels; ///< 1, 3 or 4; three channels take four floats.
  bool is_16bit;
  bool has_alpha; ///< Whether the fourth channel is alpha, which is 0 to 1 and multiplies the light of the others.
} cpixels_light_pixels;

/// Converts packed pixels to light, in one or four floats each.
void cpixels_linearize(
    const cpixels_light *light, const cpixels_resize_kernels *kernels, cpixels_light_pixels pixels, const void *row,
    size_t pixel_count, float *lanes);

/// The inverse of cpixels_linearize: clamps, and rounds to nearest. Color is 0 where alpha rounds to 0.
void cpixels_delinearize(
    const cpixels_light *light, cpixels_light_pixels pixels, const float *lanes, size_t pixel_count, void *row);

// MARK: Axes (resize_axis.c)

/// Allocates parts of one block, each aligned to 64 bytes; without a block it only measures.
typedef struct cpixels_arena {
  uint8_t *base;
  size_t used;
  bool overflowed;
} cpixels_arena;

void *cpixels_arena_take(cpixels_arena *arena, size_t count, size_t size);

/// Allocates room for the weights of a sample on either axis, whose windows have these sizes.
double *cpixels_arena_take_weights(cpixels_arena *arena, uint32_t across, uint32_t down);

static inline uint32_t cpixels_round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Returns the value of a kernel at a distance in its own unit.
double cpixels_kernel_value(cpixels_kernel kernel, double x);

/// Returns the distance from which on a kernel is 0, in its own unit.
double cpixels_kernel_radius(cpixels_kernel kernel);

/// Returns the axis as it is displayed, which differs for a reversed one.
cpixels_axis_options cpixels_axis_displayed(const cpixels_axis_options *options);

bool cpixels_axis_is_valid(const cpixels_axis_options *options);

/// Returns the layout in which `kernels` resample this axis of 8-bit samples fastest.
cpixels_layout cpixels_axis_choose(const cpixels_axis_options *options, const cpixels_resize_kernels *kernels);

/// Computes the sizes of an axis and allocates its memory. `kernels` is used for CPIXELS_LAYOUT_DOTS and
/// CPIXELS_LAYOUT_LANES.
void cpixels_axis_place(
    cpixels_arena *arena, const cpixels_axis_options *options, cpixels_layout layout,
    const cpixels_resize_kernels *kernels, bool is_fixed, cpixels_axis *axis);

/// Computes the weights of a placed axis. `scratch` has room for one window.
void cpixels_axis_fill(const cpixels_axis_options *options, double *scratch, cpixels_axis *axis);

/// Copies the weights of a filled axis to a placed one. Returns false if the two differ.
bool cpixels_axis_copy(const cpixels_axis *from, cpixels_axis *to);

/// Returns the first sample of the first load that the destinations starting at `destination`, a multiple of
/// load_lanes, share. That load serves (steps - 1) modulo depth + 1 steps; each load after it serves `depth` steps.
static inline uint32_t cpixels_lane_base(const cpixels_axis *axis, uint32_t destination) {
  const uint32_t first = axis->first[destination];
  return first < axis->last_base ? first : axis->last_base;
}

/// Returns the instruction set that `isa` selects on this processor; CPIXELS_ISA_BEST if `isa` is not available.
cpixels_isa cpixels_isa_resolve(cpixels_isa isa);

/// Returns whether `isa` selects AVX2 or better on this processor.
bool cpixels_isa_has_avx2(cpixels_isa isa);

/// Returns a hash that distinguishes files: FNV-1a. Source: draft-eastlake-fnv.
static inline uint64_t cpixels_identity_of(const uint8_t *bytes, size_t byte_count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < byte_count; i++) {
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

/// Loops that the compiler vectorizes are written once: in an inline function for the base architecture, of which NEON
/// is a part, and one for AVX2 that calls it.
#define CPIXELS_INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define CPIXELS_AVX2 __attribute__((target("avx2"))) // without fused operations, so that all give the same floats
#else
#define CPIXELS_AVX2
#endif

/// Is a pointer to the variant of such a function that `isa` selects.
#define CPIXELS_VECTORIZED(name, isa) (cpixels_isa_has_avx2(isa) ? &name##_avx2 : &name)

/// Is a pointer to the AVX2, the NEON or the scalar variant of a function or a constant, as `isa` selects.
#if defined(__x86_64__)
#define CPIXELS_CHOOSE(name, isa) (cpixels_isa_has_avx2(isa) ? &name##_avx2 : &name##_scalar)
#elif defined(__aarch64__)
#define CPIXELS_CHOOSE(name, isa) (cpixels_isa_resolve(isa) == CPIXELS_ISA_NEON ? &name##_neon : &name##_scalar)
#else
#define CPIXELS_CHOOSE(name, isa) ((void)(isa), &name##_scalar)
#endif
