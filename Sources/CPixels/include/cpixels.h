// cpixels: the pixel kernels of the pipeline, in C11: resampling, colour, alpha, filters and orientation.
//
// Every function works on rows or strips in buffers of the caller; nothing here allocates, keeps state outside what
// the caller owns, or fails after its arguments were checked once. Each kernel has a scalar version, which is the
// oracle of the others, and versions for wider instruction sets chosen at run time by CPIXELS_ISA_BEST.
//
// # Streaming resampler
//
//   cpixels_resizer_options options = {...};
//   size_t byte_count;
//   if (!cpixels_resizer_measure(&options, &byte_count)) ...;      // options out of range
//   void *memory = 64-byte aligned block of byte_count bytes;
//   cpixels_resizer *resizer = cpixels_resizer_init(&options, memory);
//   loop:
//     pushed = cpixels_resizer_push(resizer, rows, row_stride, row_count);  // takes rows while its ring has room
//     while ((n = cpixels_resizer_read(resizer, out, out_stride, capacity)) > 0) use(out, n);
//
// It is separable: rows are resampled horizontally as they are pushed, two by two, into a ring of intermediate rows,
// and an output row is resampled vertically as soon as the last pair of source rows under its kernel is in, which is
// at most one row after the last one it needs. Pushing an even number of rows at a time spares copying one. push
// returns fewer rows than it was given when the ring is full: read first, then push the rest. When all source rows
// were pushed, read gives the rest of the output. There is nothing to free: the block is the caller's.
//
// Accuracy: 8-bit samples are computed in fixed point, the same with every instruction set, and are within half a
// level of the exact result before it is rounded. 16-bit samples are computed in single precision and may differ by
// one level between instruction sets.
//
// # Geometry
//
// Destination sample d covers [d, d + 1) on its axis. Its centre lies in the source at
//   (d + 0.5) * ratio + offset            (in source samples; sample s has its centre at s + 0.5)
// and the kernel is stretched by max(1, ratio). Taps outside the source are folded onto the edge sample. `ratio` and
// `offset` are given apart from the sizes because a chroma plane's size is rounded up while its scale is exact.

#ifndef CPIXELS_H
#define CPIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// MARK: Instruction sets

typedef enum cpixels_isa {
  CPIXELS_ISA_BEST = 0, ///< The widest that this processor and operating system support.
  CPIXELS_ISA_SCALAR = 1,
  CPIXELS_ISA_AVX2 = 2,   ///< With FMA.
  CPIXELS_ISA_AVX512 = 3, ///< With VBMI and VNNI.
  CPIXELS_ISA_NEON = 4,
} cpixels_isa;

/// Whether this processor runs `isa`, and this build has it.
bool cpixels_isa_is_available(cpixels_isa isa);

// MARK: Resampling

typedef enum cpixels_kernel {
  CPIXELS_KERNEL_LANCZOS3 = 0, ///< sinc(x) sinc(x/3), |x| < 3.
  CPIXELS_KERNEL_TRIANGLE = 1, ///< 1 - |x|, |x| < 1: linear interpolation. Never rings.
  CPIXELS_KERNEL_BOX = 2,      ///< 1, |x| <= 1/2: the nearest sample, or the mean of two that are equally near.
  /// Linear interpolation to twice as many samples, and Lanczos' kernel over those, in one step: what becomes of a
  /// subsampled chroma plane in decoders that bring it to the image's size first, and of that when it shrinks.
  CPIXELS_KERNEL_DOUBLED_LANCZOS3 = 3,
} cpixels_kernel;

typedef enum cpixels_sample {
  CPIXELS_SAMPLE_U8 = 0,  ///< 0 to 255.
  CPIXELS_SAMPLE_U16 = 1, ///< 0 to 65535, native byte order.
} cpixels_sample;

typedef struct cpixels_axis_options {
  uint32_t source_count;      ///< Samples (or rows) of the source, 1 to 2^26.
  uint32_t destination_count; ///< Samples (or rows) of the destination, 1 to 2^26.
  double ratio;               ///< Source samples per destination sample, > 0.
  double offset;              ///< Source samples, see "Geometry". 0 for aligned edges.
  cpixels_kernel kernel;
  /// How much of the difference from its neighbours is added to each source sample, on either side, in the same step:
  /// e in (1 + 2e) x[i] - e (x[i-1] + x[i+1]), 0 to 1/4. 1/24 makes up for samples that are means over their own width.
  /// 0: as they are. With CPIXELS_KERNEL_LANCZOS3 only.
  double emphasis;
} cpixels_axis_options;

typedef struct cpixels_resizer_options {
  cpixels_axis_options horizontal;
  cpixels_axis_options vertical;
  uint8_t channels;      ///< Interleaved samples at one place: 1, 3 or 4.
  cpixels_sample sample; ///< Of source and destination alike.
  cpixels_isa isa;
} cpixels_resizer_options;

typedef struct cpixels_resizer cpixels_resizer;

/// The size of the block that cpixels_resizer_init needs, coefficients and ring included. Most of it is the ring: the
/// intermediate rows under the kernel and 8 to 10 more, two bytes a sample, or four for U16, where three channels take
/// the place of four. False when an option is out of range or the size overflows.
bool cpixels_resizer_measure(const cpixels_resizer_options *options, size_t *byte_count);

/// A resizer in `memory`, which has the measured size, is aligned to 64 bytes, and outlives it. `options` is copied.
/// NULL when the options are out of range or the isa is not available.
cpixels_resizer *cpixels_resizer_init(const cpixels_resizer_options *options, void *memory);

/// Takes up to `row_count` source rows; returns how many. `rows` is borrowed for the call; `row_stride` in bytes.
/// Rows beyond the source's count are ignored and counted as taken.
size_t cpixels_resizer_push(cpixels_resizer *resizer, const void *rows, size_t row_stride, size_t row_count);

/// Writes up to `capacity` finished destination rows; returns how many. `row_stride` in bytes.
size_t cpixels_resizer_read(cpixels_resizer *resizer, void *rows, size_t row_stride, size_t capacity);

// MARK: Alpha

/// RGBA, 8 bits, straight -> RGBA, 16 bits, premultiplied: colour * alpha and alpha * 255, exact, 0 to 65025.
void cpixels_premultiply(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count, cpixels_isa isa);

/// The inverse of cpixels_premultiply, rounded to nearest and clamped (a resampled colour can exceed its alpha).
/// Colour is 0 where alpha rounds to 0.
void cpixels_unpremultiply(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count, cpixels_isa isa);

/// Premultiplied 16-bit RGBA over an opaque background -> RGB, 8 bits, rounded to nearest.
void cpixels_flatten(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count, cpixels_isa isa);

// MARK: Samples of 16 bits
//
// Gray, RGB and straight RGBA, 0 to 65535, which is 1.

/// 16 bits -> 8, rounded to nearest.
void cpixels_convert_to_8bit(const uint16_t *source, uint8_t *destination, size_t sample_count);

/// Gray -> RGB: every sample three times.
void cpixels_gray_to_rgb_16bit(const uint16_t *gray, uint16_t *rgb, size_t pixel_count);

/// RGBA, straight -> premultiplied as by cpixels_premultiply, 0 to 65025, rounded to nearest.
void cpixels_premultiply_16bit(const uint16_t *rgba, uint16_t *premultiplied, size_t pixel_count);

/// The inverse of cpixels_premultiply_16bit, as far as 16 bits tell, rounded to nearest and clamped. Colour is 0 where
/// alpha is 0.
void cpixels_unpremultiply_16bit(const uint16_t *premultiplied, uint16_t *rgba, size_t pixel_count);

// MARK: Colour

/// Full-range BT.601 YCbCr (JFIF 1.02) -> RGB: three rows of one channel to one row of three. Within 1 level of the
/// exact matrix, rounded to nearest.
void cpixels_ycc_to_rgb(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count, cpixels_isa isa);

/// Gray -> RGB: every sample three times.
void cpixels_gray_to_rgb(const uint8_t *gray, uint8_t *rgb, size_t pixel_count);

/// CMYK, 255 for no ink -> RGB, by the simple rule for inks without a profile: ink * black / 255.
void cpixels_inks_to_rgb(const uint8_t *cmyk, uint8_t *rgb, size_t pixel_count);

// MARK: Colour filters
//
// Filters of one pixel at a time, on rows of RGB or RGBA, 8 bits, not premultiplied. Alpha passes as it is. Samples
// are taken as 0 to 1. Every instruction set gives the same samples.

/// One step of a colour program. Colours enter it between 0 and 1 and are clamped to that after it.
typedef enum cpixels_color_step_kind {
  /// Three rows of four numbers: weights of red, green and blue, and a constant.
  CPIXELS_COLOR_MATRIX = 0,
  /// Every channel: slope, intercept.
  CPIXELS_COLOR_LINEAR = 1,
  /// Every channel: x becomes x + share * (amplitude * x^exponent + offset - x). Numbers: exponent (0.01 to 100),
  /// amplitude, offset, share.
  CPIXELS_COLOR_POWER = 2,
  /// Every channel: x becomes x + share * (encoded(gain * decoded(x)) - x), where sRGB's transfer function (IEC
  /// 61966-2-1) decodes to linear light. Numbers: gain, share.
  CPIXELS_COLOR_EXPOSURE = 3,
  /// x becomes x + share * (white - x) where the weighted sum of the channels is at least level, less a millionth for
  /// the sum's rounding, and x - share * x elsewhere. Numbers: weights of red, green and blue, level, share.
  CPIXELS_COLOR_THRESHOLD = 4,
  /// Every channel: x becomes x - share * s * x, where s rises smoothly (3 t^2 - 2 t^3) from 0 where the distance from
  /// the centre is radius to 1 where it is radius + softness. The distance is 0 at the image's centre, 1 at its
  /// corners, and the same on ellipses that have the image's proportions. Numbers: radius, softness (> 0), share.
  CPIXELS_COLOR_VIGNETTE = 5,
} cpixels_color_step_kind;

typedef struct cpixels_color_step {
  cpixels_color_step_kind kind;
  float numbers[12]; ///< As the kind says; those that it does not name are not looked at.
} cpixels_color_step;

/// Steps that are done to every pixel, without rounding in between.
typedef struct cpixels_color_program {
  const float *table; ///< What each 8-bit level is to begin with, 256 numbers between 0 and 1; or NULL: level / 255.
  const cpixels_color_step *steps;
  uint32_t step_count;
  uint32_t width;  ///< Pixels of a row, at least 1.
  uint32_t height; ///< Rows of the image, at least 1.
} cpixels_color_program;

/// Runs the program over row `y`, rounding to nearest. `channels` is 3 or 4. `source` may be `destination`.
void cpixels_color_row(
    const cpixels_color_program *program, uint32_t y, uint32_t channels, const uint8_t *source, uint8_t *destination,
    cpixels_isa isa);

/// Replaces every level but alpha's by its entry of the table. `channels` is 3 or 4. `source` may be `destination`.
void cpixels_map_levels(
    const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count,
    cpixels_isa isa);

// MARK: Area filters
//
// Filters whose pixels depend on others around them, over rows of RGB or RGBA, 8 bits, not premultiplied. Used as the
// streaming resampler is: measure, init, then push and read by turns. Only the rows under a pixel's window are held.
// Beyond its edges the image is taken to go on as at the edge. Colour is weighted by its alpha. Every instruction set
// gives the same samples, which for opaque images are within one level of the exact result.

typedef enum cpixels_area_kind {
  /// Gaussian blur of premultiplied colour and of alpha, cut off at 3 standard deviations.
  CPIXELS_AREA_BLUR = 0,
  /// Unsharp mask: colour gains `amount` times what a blur takes from it. Alpha stays.
  CPIXELS_AREA_SHARPEN = 1,
  /// Blocks of their mean premultiplied colour and alpha.
  CPIXELS_AREA_PIXELATE = 2,
} cpixels_area_kind;

typedef struct cpixels_area_options {
  cpixels_area_kind kind;
  uint32_t width;        ///< Pixels, 1 to 2^20.
  uint32_t height;       ///< Rows, 1 to 2^20.
  uint8_t channels;      ///< 3 or 4.
  double radius;         ///< BLUR, SHARPEN: standard deviation in pixels, 0.01 to 100.
  double amount;         ///< SHARPEN: 0 to 5. Others: the filtered image's share of the result, 0 to 1.
  double threshold;      ///< SHARPEN: differences of at most this stay as they are, 0 to 1.
  uint32_t block;        ///< PIXELATE: pixels on a block's side, 1 to 256.
  uint32_t first_width;  ///< PIXELATE: pixels of the first block of a row, 1 to `block`.
  uint32_t first_height; ///< PIXELATE: rows of the first blocks, 1 to `block`.
  cpixels_isa isa;
} cpixels_area_options;

typedef struct cpixels_area_filter cpixels_area_filter;

/// The size of the block that cpixels_area_init needs. False when an option is out of range or the size overflows.
bool cpixels_area_measure(const cpixels_area_options *options, size_t *byte_count);

/// A filter in `memory`, which has the measured size, is aligned to 64 bytes, and outlives it. `options` is copied.
/// NULL when the options are out of range or the isa is not available.
cpixels_area_filter *cpixels_area_init(const cpixels_area_options *options, void *memory);

/// Takes up to `row_count` rows; returns how many. `rows` is borrowed for the call; `row_stride` in bytes. Rows beyond
/// the image's height are ignored and counted as taken.
size_t cpixels_area_push(cpixels_area_filter *filter, const uint8_t *rows, size_t row_stride, size_t row_count);

/// Writes up to `capacity` finished rows; returns how many. `row_stride` in bytes.
size_t cpixels_area_read(cpixels_area_filter *filter, uint8_t *rows, size_t row_stride, size_t capacity);

// MARK: Orientation

/// The EXIF orientations as what must be done to the stored image to show it upright: 1 nothing, 2 mirror left to
/// right, 3 turn by 180 degrees, 4 mirror top to bottom, 5 transpose, 6 turn by 90 degrees clockwise, 7 transverse,
/// 8 turn by 90 degrees counter-clockwise. Source: CIPA DC-008 (Exif 2.32), tag 0x0112.
///
/// Places `row_count` stored rows, the first of which is stored row `first_row`, into a whole upright plane.
/// `width` and `height` are the stored plane's size in samples; upright planes of orientations 5 to 8 are `height`
/// wide and `width` high. `pixel_size` is the bytes of one pixel, 1 to 8. Cost: one read and one write a pixel,
/// transposing in blocks.
void cpixels_orient_rows(
    const uint8_t *rows, size_t row_stride, uint32_t first_row, uint32_t row_count, uint32_t width, uint32_t height,
    uint8_t pixel_size, uint8_t orientation, uint8_t *upright, size_t upright_stride);

#ifdef __cplusplus
}
#endif

#endif
