// cpixels: the pixel kernels of the image pipeline, in C11: resampling, alpha, overlays, color, filters and
// orientation.
//
// Every function works on rows or strips in buffers that the caller owns. Nothing here allocates memory or keeps state
// of its own, and nothing fails after its arguments have been checked once. Each kernel has a version for any
// processor, and versions for wider instruction sets with the same results, which CPIXELS_ISA_BEST selects at run time.
//
// # Streaming resampler
//
//   cpixels_resizer_options options = {...};
//   size_t byte_count;
//   if (!cpixels_resizer_measure(&options, &byte_count)) ...;      // options out of range
//   void *memory = 64-byte aligned block of byte_count bytes;
//   cpixels_resizer *resizer = cpixels_resizer_init(&options, NULL, memory);
//   loop:
//     pushed = cpixels_resizer_push(resizer, rows, row_stride, row_count);  // consumes rows while its ring has room
//     while ((n = cpixels_resizer_read(resizer, out, out_stride, capacity)) > 0) use(out, n);
//
// The resampler is separable. Rows are resampled horizontally as they are pushed, in pairs, into a ring of intermediate
// rows. An output row is resampled vertically as soon as the last pair of source rows under its kernel has arrived,
// which is at most one row after the last row that it needs. Pushing an even number of rows at a time avoids a copy.
// push consumes fewer rows than it is given if the ring is full: read output first, then push the remaining rows. After
// all source rows have been pushed, read returns the remaining output. There is nothing to free: the caller owns the
// block.
//
// Accuracy: 8-bit samples are computed in fixed point. The result is the same with every instruction set, and within
// half a level of the exact result before rounding. 16-bit samples are computed in single precision, with the same
// result with every instruction set.
//
// # Linear light
//
// Samples are signals, which grow more slowly than the light that they stand for. With `in_linear_light`, they are
// converted to light (IEC 61966-2-1, the curve of sRGB), resampled in single precision, and converted back. Colors are
// multiplied by alpha in linear light, and divided by it before they are converted back.
//
// # Geometry
//
// Destination sample d covers [d, d + 1) on its axis. Its center is at source position
//   (d + 0.5) * ratio + offset            (in source samples; the center of sample s is at s + 0.5)
// and the kernel is stretched by max(1, ratio). Taps outside the source are folded onto the edge sample. `ratio` and
// `offset` are separate from the sizes because the size of a chroma plane is rounded up while its scale is exact.

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
  CPIXELS_ISA_BEST = 0, ///< The widest set that this processor and operating system support.
  CPIXELS_ISA_SCALAR = 1,
  CPIXELS_ISA_AVX2 = 2,   ///< With FMA.
  CPIXELS_ISA_AVX512 = 3, ///< With VBMI and VNNI.
  CPIXELS_ISA_NEON = 4,
} cpixels_isa;

/// Returns whether this processor supports `isa` and this build includes it.
bool cpixels_isa_is_available(cpixels_isa isa);

// MARK: Resampling

typedef enum cpixels_kernel {
  CPIXELS_KERNEL_LANCZOS3 = 0, ///< sinc(x) sinc(x/3), |x| < 3.
  CPIXELS_KERNEL_TRIANGLE = 1, ///< 1 - |x|, |x| < 1: linear interpolation. Never rings.
  CPIXELS_KERNEL_BOX = 2,      ///< 1, |x| <= 1/2: the nearest sample, or the mean of two that are equally near.
  /// Linear interpolation to twice as many samples followed by the Lanczos kernel, in one step. This has the same
  /// result as a decoder that brings a subsampled chroma plane to the image's size, followed by a resize.
  CPIXELS_KERNEL_DOUBLED_LANCZOS3 = 3,
  CPIXELS_KERNEL_LANCZOS2 = 4, ///< sinc(x) sinc(x/2), |x| < 2.
  CPIXELS_KERNEL_MITCHELL = 5, ///< The cubic of Mitchell and Netravali, B = C = 1/3, |x| < 2.
  CPIXELS_KERNEL_CUBIC = 6,    ///< The cubic of Catmull and Rom, |x| < 2.
  CPIXELS_KERNEL_MEAN = 7,     ///< 1, -1/2 < x <= 1/2: the mean of the samples under a destination sample.
  CPIXELS_KERNEL_NEAREST = 8,  ///< The sample that the center lies in, whatever the ratio.
} cpixels_kernel;

typedef enum cpixels_sample {
  CPIXELS_SAMPLE_U8 = 0,  ///< 0 to 255.
  CPIXELS_SAMPLE_U16 = 1, ///< 0 to 65535, native byte order.
} cpixels_sample;

typedef struct cpixels_axis_options {
  uint32_t source_count;      ///< The number of source samples (or rows), 1 to 2^26.
  uint32_t destination_count; ///< The number of destination samples (or rows), 1 to 2^26.
  double ratio;               ///< The number of source samples per destination sample, > 0.
  double offset;              ///< In source samples, see "Geometry". 0 for aligned edges.
  cpixels_kernel kernel;
  /// Sharpens the source samples in the same step: each sample x[i] becomes (1 + 2e) x[i] - e (x[i-1] + x[i+1]), where
  /// e is the emphasis, 0 to 1/4. 1/24 compensates for samples that are means over their own width. 0: no change. Only
  /// with CPIXELS_KERNEL_LANCZOS3.
  double emphasis;
  /// Drop the taps outside the source, so that the others sum to 1, as Pillow does; otherwise they are folded onto the
  /// edge sample.
  bool drops_outside;
  /// The axis is displayed from its last sample to its first: ties are resolved as for the displayed image.
  bool is_reversed;
} cpixels_axis_options;

typedef struct cpixels_resizer_options {
  cpixels_axis_options horizontal;
  cpixels_axis_options vertical;
  uint8_t channels;      ///< The number of interleaved samples per pixel: 1, 3 or 4.
  cpixels_sample sample; ///< The sample type of both source and destination.
  bool in_linear_light;  ///< Convert samples to linear light and back; see "Linear light".
  bool has_alpha;        ///< In linear light, with four channels: the last one is straight alpha, not a color.
  bool columns_first; ///< Resample columns before rows, as for an image that is displayed rotated. Only cpixels_exact.
  cpixels_isa isa;
} cpixels_resizer_options;

typedef struct cpixels_resizer cpixels_resizer;

/// Computes the size of the block that cpixels_resizer_init needs, including coefficients and ring. Most of it is the
/// ring: the intermediate rows under the kernel and 8 to 10 more, at two bytes per sample for U8 and four for U16 and
/// in linear light, where three channels take the space of four. Returns false if an option is out of range or the size
/// overflows.
bool cpixels_resizer_measure(const cpixels_resizer_options *options, size_t *byte_count);

/// Initializes a resizer in `memory`, which must have the measured size, be aligned to 64 bytes and outlive the
/// resizer. `options` is copied. Returns NULL if the options are out of range or the instruction set is not available.
///
/// - `known`: A resizer, such as that of the image's plane before, or NULL. The weights of an axis that is the same are
///   copied from it: computing them costs as much as resampling many rows.
cpixels_resizer *cpixels_resizer_init(
    const cpixels_resizer_options *options, const cpixels_resizer *known, void *memory);

/// Consumes up to `row_count` source rows and returns their number. `rows` is borrowed for the call; `row_stride` is in
/// bytes. Rows beyond the source's row count are ignored and counted as consumed.
size_t cpixels_resizer_push(cpixels_resizer *resizer, const void *rows, size_t row_stride, size_t row_count);

/// Writes up to `capacity` finished destination rows and returns their number. `row_stride` is in bytes.
size_t cpixels_resizer_read(cpixels_resizer *resizer, void *rows, size_t row_stride, size_t capacity);

/// Prepares a resampler for the rows of another image of the same size.
void cpixels_resizer_reset(cpixels_resizer *resizer);

/// Leaves out destination rows of an image of which some source rows equal those of the image before: of the next rows,
/// cpixels_resizer_read returns those alone that depend on others. Legal before the first row.
///
/// - `above`, `below`: In, the numbers of equal source rows at the top and at the bottom; out, those of destination
/// rows
///   that are left out.
void cpixels_resizer_keep(cpixels_resizer *resizer, uint32_t *above, uint32_t *below);

/// Consumes up to `row_count` source rows on which no destination row depends that is still to be read, and returns
/// their number.
size_t cpixels_resizer_skip(cpixels_resizer *resizer, size_t row_count);

// MARK: Exact resampling

/// A resampler whose 8-bit results equal those of Pillow (10 and later), sample by sample: horizontally into rounded
/// and clamped samples, then vertically, with weights in Q22, and without the taps outside the source. Four channels
/// are RGBA with straight alpha, which is premultiplied in 8 bits meanwhile. It is slower than cpixels_resizer, and has
/// the same protocol.
///
/// Axes are as for cpixels_resizer, without emphasis and CPIXELS_KERNEL_DOUBLED_LANCZOS3; samples are
/// CPIXELS_SAMPLE_U8. CPIXELS_KERNEL_BOX is as CPIXELS_KERNEL_MEAN.
typedef struct cpixels_exact cpixels_exact;

/// Computes the size of the block that cpixels_exact_init needs. Returns false if an option is out of range or the size
/// overflows.
bool cpixels_exact_measure(const cpixels_resizer_options *options, size_t *byte_count);

/// Initializes a resampler in `memory`, as cpixels_resizer_init.
cpixels_exact *cpixels_exact_init(const cpixels_resizer_options *options, void *memory);

/// Consumes source rows, as cpixels_resizer_push.
size_t cpixels_exact_push(cpixels_exact *exact, const uint8_t *rows, size_t row_stride, size_t row_count);

/// Writes destination rows, as cpixels_resizer_read.
size_t cpixels_exact_read(cpixels_exact *exact, uint8_t *rows, size_t row_stride, size_t capacity);

/// Prepares a resampler for the rows of another image, as cpixels_resizer_reset.
void cpixels_exact_reset(cpixels_exact *exact);

// MARK: Doubling

/// A plane of chroma at half the size of its image, in one or both directions.
typedef struct cpixels_doubler_options {
  uint32_t source_width; ///< In samples, as source_height: half of the image's, rounded up, where it is doubled.
  uint32_t source_height;
  uint32_t width; ///< The size of the image.
  uint32_t height;
  bool doubles_columns;
  bool doubles_rows;
} cpixels_doubler_options;

/// Brings a plane to the size of its image, with the samples of libjpeg's triangle filter ("fancy upsampling"). It has
/// the protocol of cpixels_resizer.
typedef struct cpixels_doubler cpixels_doubler;

/// Computes the size of the block that cpixels_doubler_init needs. Returns false if an option is out of range.
bool cpixels_doubler_measure(const cpixels_doubler_options *options, size_t *byte_count);

/// Initializes a doubler in `memory`, as cpixels_resizer_init.
cpixels_doubler *cpixels_doubler_init(const cpixels_doubler_options *options, void *memory);

/// Consumes source rows, as cpixels_resizer_push.
size_t cpixels_doubler_push(cpixels_doubler *doubler, const uint8_t *rows, size_t row_stride, size_t row_count);

/// Writes destination rows, as cpixels_resizer_read.
size_t cpixels_doubler_read(cpixels_doubler *doubler, uint8_t *rows, size_t row_stride, size_t capacity);

/// Prepares a doubler for the rows of another image of the same size.
void cpixels_doubler_reset(cpixels_doubler *doubler);

// MARK: Alpha

/// RGBA, 8 bits, straight alpha -> RGBA, 16 bits, premultiplied: color * alpha and alpha * 255, exact, 0 to 65025.
void cpixels_premultiply(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count, cpixels_isa isa);

/// The inverse of cpixels_premultiply, rounded to nearest and clamped, because a resampled color can exceed its alpha.
/// Color is 0 where alpha rounds to 0.
void cpixels_unpremultiply(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count, cpixels_isa isa);

/// Premultiplied 16-bit RGBA over an opaque background -> RGB, 8 bits, rounded to nearest.
void cpixels_flatten(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count, cpixels_isa isa);

// MARK: Overlays

/// How the color of an overlay and that of the row below it make a color, where both are opaque.
typedef enum cpixels_blend {
  CPIXELS_BLEND_OVER = 0,     ///< The color of the overlay.
  CPIXELS_BLEND_MULTIPLY = 1, ///< The product of both.
  CPIXELS_BLEND_SCREEN = 2,   ///< The inverse of the product of their inverses.
} cpixels_blend;

/// Gray, RGB or RGBA with straight alpha, 8 bits -> RGBA with its alpha multiplied by `opacity`, 0 to 65025, where
/// 65025 represents 1.
void cpixels_overlay_pack(const uint8_t *row, uint32_t channels, uint32_t opacity, uint8_t *rgba, size_t pixel_count);

/// Draws RGBA pixels on a row of RGB (3 channels) or RGBA (4 channels), all with straight alpha and 8 bits. The result
/// is the exact value, rounded to nearest once. Color is 0 where the alpha of both is 0.
void cpixels_overlay(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count, cpixels_isa isa);

/// The place of an overlay on an image, and the plane of that image on which it is drawn.
typedef struct cpixels_overlay_place {
  uint32_t width; ///< Of the overlay, in pixels.
  uint32_t height;
  int64_t left; ///< In pixels of the image; may lie outside.
  int64_t top;
  uint32_t image_width; ///< In pixels.
  uint32_t image_height;
  uint8_t channel; ///< 0 for Y, 1 for Cb, 2 for Cr.
  uint8_t across;  ///< The number of pixels across that a sample of the plane stands for, 1 or 2.
  uint8_t down;    ///< The same for rows.
} cpixels_overlay_place;

/// Draws RGBA pixels, blended over, on a row of one plane of full-range BT.601 YCbCr. A sample is the mean of its
/// pixels, as if these were drawn first; the conversion is exact within the precision of its coefficients, and rounded
/// once.
void cpixels_overlay_plane(const uint8_t *rgba, const cpixels_overlay_place *place, uint32_t plane_row, uint8_t *row);

// MARK: Samples of 16 bits
//
// Gray, RGB and RGBA with straight alpha. Samples are 0 to 65535, where 65535 represents 1.

/// 16 bits -> 8, rounded to nearest.
void cpixels_convert_to_8bit(const uint16_t *source, uint8_t *destination, size_t sample_count);

/// Gray -> RGB: copies each sample to three channels.
void cpixels_gray_to_rgb_16bit(const uint16_t *gray, uint16_t *rgb, size_t pixel_count);

/// RGBA with straight alpha -> premultiplied as by cpixels_premultiply, 0 to 65025, rounded to nearest.
void cpixels_premultiply_16bit(const uint16_t *rgba, uint16_t *premultiplied, size_t pixel_count);

/// The inverse of cpixels_premultiply_16bit within 16-bit precision, rounded to nearest and clamped. Color is 0 where
/// alpha is 0.
void cpixels_unpremultiply_16bit(const uint16_t *premultiplied, uint16_t *rgba, size_t pixel_count);

// MARK: Color

/// Full-range BT.601 YCbCr (JFIF 1.02) -> RGB: three one-channel rows to one three-channel row. The result is within 1
/// level of the exact matrix, rounded to nearest.
void cpixels_ycc_to_rgb(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count, cpixels_isa isa);

/// Gray -> RGB: copies each sample to three channels.
void cpixels_gray_to_rgb(const uint8_t *gray, uint8_t *rgb, size_t pixel_count);

/// CMYK, 255 for no ink -> RGB, without a color profile: each color is ink * black / 255.
void cpixels_cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, size_t pixel_count);

// MARK: Color filters
//
// Filters that process each pixel independently, on rows of 8-bit RGB or RGBA, not premultiplied. Alpha does not
// change. Samples are treated as values from 0 to 1. All instruction sets produce the same samples.

/// The kind of a step in a color program. Its input is between 0 and 1, and its output is clamped to that range.
typedef enum cpixels_color_step_kind {
  /// Three rows of four numbers: weights of red, green and blue, and a constant.
  CPIXELS_COLOR_MATRIX = 0,
  /// Every channel: slope * x + intercept. Numbers: slope, intercept.
  CPIXELS_COLOR_LINEAR = 1,
  /// Every channel: x becomes x + share * (amplitude * x^exponent + offset - x). Numbers: exponent (0.01 to 100),
  /// amplitude, offset, share.
  CPIXELS_COLOR_POWER = 2,
  /// Every channel: x becomes x + share * (encoded(gain * decoded(x)) - x), where sRGB's transfer function (IEC
  /// 61966-2-1) decodes to linear light. Numbers: gain, share.
  CPIXELS_COLOR_EXPOSURE = 3,
  /// x becomes x + share * (white - x) where the weighted sum of the channels is at least level, and x - share * x
  /// elsewhere. A tolerance of 1e-6 allows for rounding of the sum. Numbers: weights of red, green and blue, level,
  /// share.
  CPIXELS_COLOR_THRESHOLD = 4,
  /// Every channel: x becomes x - share * s * x. s rises smoothly (3 t^2 - 2 t^3) from 0 at a distance of radius from
  /// the center to 1 at a distance of radius + softness. The distance is 0 at the image's center, 1 at its corners, and
  /// constant on ellipses with the image's proportions. Numbers: radius, softness (> 0), share.
  CPIXELS_COLOR_VIGNETTE = 5,
} cpixels_color_step_kind;

typedef struct cpixels_color_step {
  cpixels_color_step_kind kind;
  float numbers[12]; ///< The parameters, as listed for each kind; the others are ignored.
} cpixels_color_step;

/// A sequence of steps that are applied to each pixel, without rounding between them.
typedef struct cpixels_color_program {
  const float *table; ///< The initial value of each 8-bit level, 256 numbers from 0 to 1; NULL for level / 255.
  const cpixels_color_step *steps;
  uint32_t step_count;
  uint32_t width;  ///< The number of pixels in a row, at least 1.
  uint32_t height; ///< The number of rows in the image, at least 1.
} cpixels_color_program;

/// Runs the program on row `y` and rounds to nearest. `channels` is 3 or 4. `source` may equal `destination`.
void cpixels_color_row(
    const cpixels_color_program *program, uint32_t y, uint32_t channels, const uint8_t *source, uint8_t *destination,
    cpixels_isa isa);

/// Replaces each level, except alpha, by its entry in the table. `channels` is 1, 3 or 4. `source` may equal
/// `destination`.
void cpixels_map_levels(
    const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count,
    cpixels_isa isa);

// MARK: Area filters
//
// Filters that compute each pixel from the pixels around it, on rows of 8-bit RGB or RGBA, not premultiplied. They are
// used like the streaming resampler: measure, init, then push and read alternately. Only the rows under the window are
// buffered. The image is extended beyond its edges by repeating the edge pixels. Color is weighted by its alpha. All
// instruction sets produce the same samples; for opaque images they are within one level of the exact result.

typedef enum cpixels_area_kind {
  /// Gaussian blur of premultiplied color and of alpha, cut off at 3 standard deviations.
  CPIXELS_AREA_BLUR = 0,
  /// Unsharp mask: adds `amount` times the difference between the image and its blur to the color. Alpha does not
  /// change.
  CPIXELS_AREA_SHARPEN = 1,
  /// Blocks filled with their mean premultiplied color and alpha.
  CPIXELS_AREA_PIXELATE = 2,
} cpixels_area_kind;

typedef struct cpixels_area_options {
  cpixels_area_kind kind;
  uint32_t width;        ///< Pixels, 1 to 2^20.
  uint32_t height;       ///< Rows, 1 to 2^20.
  uint8_t channels;      ///< 3 or 4.
  double radius;         ///< BLUR, SHARPEN: standard deviation in pixels, 0.01 to 100.
  double amount;         ///< SHARPEN: the strength, 0 to 5. Others: the filtered image's share of the result, 0 to 1.
  double threshold;      ///< SHARPEN: differences up to this value are not sharpened, 0 to 1.
  uint32_t block;        ///< PIXELATE: the side of a block in pixels, 1 to 256.
  uint32_t first_width;  ///< PIXELATE: the width of the first block of a row, 1 to `block`.
  uint32_t first_height; ///< PIXELATE: the height of the first row of blocks, 1 to `block`.
  cpixels_isa isa;
} cpixels_area_options;

typedef struct cpixels_area_filter cpixels_area_filter;

/// Computes the size of the block that cpixels_area_init needs. Returns false if an option is out of range or the size
/// overflows.
bool cpixels_area_measure(const cpixels_area_options *options, size_t *byte_count);

/// Initializes a filter in `memory`, which must have the measured size, be aligned to 64 bytes and outlive the filter.
/// `options` is copied. Returns NULL if the options are out of range or the instruction set is not available.
cpixels_area_filter *cpixels_area_init(const cpixels_area_options *options, void *memory);

/// Consumes up to `row_count` rows and returns their number. `rows` is borrowed for the call; `row_stride` is in bytes.
/// Rows beyond the image's height are ignored and counted as consumed.
size_t cpixels_area_push(cpixels_area_filter *filter, const uint8_t *rows, size_t row_stride, size_t row_count);

/// Writes up to `capacity` finished rows and returns their number. `row_stride` is in bytes.
size_t cpixels_area_read(cpixels_area_filter *filter, uint8_t *rows, size_t row_stride, size_t capacity);

/// Prepares a filter for the rows of another image of the same size.
void cpixels_area_reset(cpixels_area_filter *filter);

// MARK: Similarity
//
// The perceptual similarity of a compressed image to its original: SSIMULACRA 2.1, a published metric. The score is 100
// for equal images; 90 is visually lossless, 80 very high, 70 high, 50 medium and 30 low quality; bad images have
// negative scores. Rows of both images are pushed side by side, and only those under a window are buffered: about 400
// bytes per pixel of width. Scores of different instruction sets differ by less than 0.01.

typedef struct cpixels_similarity_options {
  uint32_t width;    ///< Pixels, 8 to 2^20.
  uint32_t height;   ///< Rows, 8 to 2^20.
  uint8_t channels;  ///< 1, 3 or 4, of both images; sRGB, alpha not premultiplied.
  double background; ///< The gray behind transparent pixels, 0 to 1. Only with four channels.
  cpixels_isa isa;
} cpixels_similarity_options;

typedef struct cpixels_similarity cpixels_similarity;

/// Computes the size of the block that cpixels_similarity_init needs. Returns false if an option is out of range or the
/// size overflows.
bool cpixels_similarity_measure(const cpixels_similarity_options *options, size_t *byte_count);

/// Initializes a comparison in `memory`, which must have the measured size, be aligned to 64 bytes and outlive the
/// comparison. `options` is copied. Returns NULL if the options are out of range or the instruction set is not
/// available.
cpixels_similarity *cpixels_similarity_init(const cpixels_similarity_options *options, void *memory);

/// Consumes `row_count` rows of both images. The rows are borrowed for the call; strides are in bytes. Rows beyond the
/// images' height are ignored.
void cpixels_similarity_push(
    cpixels_similarity *similarity, const uint8_t *reference, size_t reference_stride, const uint8_t *result,
    size_t result_stride, size_t row_count);

/// Returns the score of the result; must be called after all rows were pushed.
double cpixels_similarity_score(const cpixels_similarity *similarity);

// MARK: Cells

/// Adds `row_count` rows of samples to the sums of their columns.
void cpixels_add_rows(
    const uint8_t *rows, size_t row_stride, size_t row_count, uint32_t *sums, size_t sample_count, cpixels_isa isa);

/// Writes the mean pixel of each cell of a row of cells, and clears the sums of the columns.
///
/// The sums are those of `row_count` rows of `pixel_count` pixels. The first cell is `first_width` pixels wide, all
/// others are `width`, except the last, which has what is left. `channel_count` is 1 to 4. Means are rounded as by
/// Image.reduce of Pillow.
void cpixels_take_cells(
    uint32_t *sums, size_t pixel_count, uint32_t channel_count, size_t first_width, size_t width, size_t row_count,
    uint8_t *cells);

/// RGBA with straight alpha -> RGBA with colors times alpha / 255, rounded to nearest.
void cpixels_premultiply_8bit(const uint8_t *rgba, uint8_t *premultiplied, size_t pixel_count);

/// The inverse of cpixels_premultiply_8bit, rounded down as by Pillow; transparent pixels are copied.
void cpixels_unpremultiply_8bit(const uint8_t *premultiplied, uint8_t *rgba, size_t pixel_count);

/// RGB -> opaque RGBA.
void cpixels_expand_rgb(const uint8_t *rgb, uint8_t *rgba, size_t pixel_count);

/// Samples of cpixels_premultiply -> those of cpixels_premultiply_8bit.
void cpixels_narrow_premultiplied(const uint16_t *samples, uint8_t *premultiplied, size_t sample_count);

/// RGB or RGBA -> luma, rounded as by Pillow; alpha is ignored.
void cpixels_luma(const uint8_t *pixels, uint32_t channel_count, uint8_t *luma, size_t pixel_count);

/// Whether the alpha of all pixels is 255.
bool cpixels_are_opaque(const uint8_t *rgba, size_t pixel_count);

/// Whether no two of red, green and blue differ by more than `tolerance` in any pixel that is not transparent.
bool cpixels_are_gray(const uint8_t *pixels, uint32_t channel_count, size_t pixel_count, int32_t tolerance);

/// Whether no chroma sample differs from 128 by more than `tolerance`.
bool cpixels_are_neutral(const uint8_t *chroma, size_t sample_count, int32_t tolerance);

/// The levels of luma in rows, and the steps from each pixel to the next.
typedef struct cpixels_luma_tally {
  uint32_t levels[256];
  uint32_t step_count;  ///< All steps.
  uint32_t flat_count;  ///< Steps of 0 levels.
  uint32_t small_count; ///< Steps of 1 to 8 levels.
} cpixels_luma_tally;

/// Counts the levels and steps of a row.
void cpixels_tally_luma(const uint8_t *luma, size_t pixel_count, cpixels_luma_tally *tally);

// MARK: Thumbnails

enum {
  CPIXELS_MAX_THUMBNAIL_SIDE = 100, ///< The maximum width and height of a thumbnail.
  CPIXELS_MAX_COSINES = 9,
  CPIXELS_PERCEPTUAL_SIDE = 32,
  CPIXELS_MAX_DOMINANT_COLORS = 6,
};

/// A channel that is computed of RGBA with straight alpha, 0 to 1. Colors are mixed with a background by alpha, except
/// light, which ignores alpha.
typedef enum cpixels_channel {
  CPIXELS_CHANNEL_LUMINANCE = 0,   ///< (red + green + blue) / 3
  CPIXELS_CHANNEL_YELLOW_BLUE = 1, ///< (red + green) / 2 - blue
  CPIXELS_CHANNEL_RED_GREEN = 2,   ///< red - green
  CPIXELS_CHANNEL_ALPHA = 3,
  CPIXELS_CHANNEL_LIGHT_OF_RED = 4,
  CPIXELS_CHANNEL_LIGHT_OF_GREEN = 5,
  CPIXELS_CHANNEL_LIGHT_OF_BLUE = 6,
} cpixels_channel;

/// Writes `count` waves of `length` values: cos(pi / length * k * x), or, centered, cos(pi / length * k * (x + 0.5)).
/// `length` is at most CPIXELS_MAX_THUMBNAIL_SIDE.
void cpixels_cosines(size_t length, size_t count, bool is_centered, double *cosines);

/// Writes the sums over all pixels of a channel times wave i across and wave j down, at [j * across_count + i].
///
/// The waves are those of cpixels_cosines; there are at most CPIXELS_MAX_COSINES each. `background` is red, green and
/// blue; `light` is the light of each level.
void cpixels_cosine_sums(
    const uint8_t *rgba, size_t width, size_t height, cpixels_channel channel, const double *background,
    const double *light, const double *across, size_t across_count, const double *down, size_t down_count, double *sums,
    cpixels_isa isa);

/// Writes the sums of red, green and blue times alpha, and of alpha, over at most 10,000 pixels.
void cpixels_alpha_sums(const uint8_t *rgba, size_t pixel_count, uint64_t sums[4]);

/// Returns the pHash of a gray thumbnail: bits of the lowest 8x8 waves of 32x32 pixels, the first one highest. Source:
/// the Python package imagehash, phash, with the resampling of Pillow.
uint64_t cpixels_perceptual_hash(const uint8_t *gray, size_t width, size_t height, cpixels_isa isa);

/// Returns the dHash of a gray thumbnail: whether each of 9x8 pixels is brighter than the one to its left. Source: the
/// Python package imagehash, dhash, with the resampling of Pillow.
uint64_t cpixels_difference_hash(const uint8_t *gray, size_t width, size_t height, cpixels_isa isa);

/// A color, and the number of pixels that are closest to it.
typedef struct cpixels_color_share {
  uint8_t color[3];
  uint32_t count;
} cpixels_color_share;

/// Writes up to CPIXELS_MAX_DOMINANT_COLORS colors that represent the pixels of at least half opacity, the most
/// frequent first: k-means of 5 rounds. Returns their number.
size_t cpixels_dominant_colors(
    const uint8_t *rgba, size_t pixel_count, cpixels_color_share colors[CPIXELS_MAX_DOMINANT_COLORS]);
// MARK: Regions
//
// Hiding parts of rows: sums of blocks of pixels, and rows that are painted with their means. Samples have 8 or 16 bits
// and are interleaved; a fourth channel may be alpha, which then weighs the others. Rows of 16 bits are aligned to 2
// bytes.

typedef struct cpixels_pixel_kind {
  uint8_t channels; ///< 1 to 4.
  bool is_16bit;    ///< Whether samples have 16 bits; otherwise, 8.
  bool has_alpha;   ///< Whether the last channel is alpha; `channels` is then 4.
} cpixels_pixel_kind;

/// The sums of a block's pixels: of their colors, weighted by alpha if there is any, of these weights, and their
/// number.
typedef struct cpixels_block_sums {
  uint64_t channels[4];
  uint64_t weight;
  uint64_t pixels;
} cpixels_block_sums;

/// Adds `count` pixels of a row, from pixel `first` on, to `sums`. Sums of 2^31 pixels do not overflow.
void cpixels_block_add(
    const uint8_t *row, cpixels_pixel_kind kind, size_t first, size_t count, cpixels_block_sums *sums);

/// Computes the mean of a block, rounded to nearest; 0 for a block without pixels.
void cpixels_block_mean(const cpixels_block_sums *sums, cpixels_pixel_kind kind, uint16_t mean[4]);

/// Fills `count` pixels of a row, from pixel `first` on, with one color.
void cpixels_row_fill(uint8_t *row, cpixels_pixel_kind kind, size_t first, size_t count, const uint16_t color[4]);

/// Fills `count` pixels of a row, from pixel `first` on, with a gradient between colors.
///
/// `colors` are those of `color_count` columns of blocks, four samples each. The first column begins at `start`, and
/// each is `width` pixels wide. A pixel in the center of a column has its color.
void cpixels_row_blend(
    uint8_t *row, cpixels_pixel_kind kind, size_t first, size_t count, const uint16_t *colors, size_t color_count,
    double start, double width);

// MARK: Border
//
// Finding the pixels that are not border: a pixel counts if the median of one of its channels, over the 3x3 pixels
// around it, differs too much from the border's color. Pixels beyond the edges are those at the edges.

/// Marks the samples of a row that differ: 1 if a sample is above `high`, 16 if it is below `low`, otherwise 0.
void cpixels_border_mark(
    const uint8_t *row, const uint8_t *low, const uint8_t *high, size_t sample_count, uint8_t *marks);

/// Finds the first and the last pixel of a row that count, by the marks of the row and its neighbors.
///
/// `scratch` has room for `(pixel_count + 2) * channels` samples. Returns whether there is one. `first` and `last` are
/// set only then.
bool cpixels_border_scan(
    const uint8_t *above, const uint8_t *marks, const uint8_t *below, size_t pixel_count, uint32_t channels,
    uint8_t *scratch, size_t *first, size_t *last);

// MARK: Saliency
//
// Where a small image attracts attention: integer arithmetic, with the same results everywhere.

/// Adds the pixels of a row to the sums of its cells, `side` pixels wide: three for each cell. `channels` is 1, 3 or 4;
/// RGBA is placed on white.
void cpixels_cells_add(const uint8_t *row, size_t pixel_count, uint32_t channels, uint32_t side, uint32_t *sums);

/// Computes the saliency of each pixel, from 0 to 2295, by contrast with the neighbors, contrast with the mean color,
/// saturation, and the tone of skin.
void cpixels_saliency(const uint8_t *rgb, uint32_t width, uint32_t height, uint16_t *saliency);

// MARK: Faces
//
// A cascade of features decides where in a small image there are faces. It is data: the text of an XML file that OpenCV
// has trained. A file that is no cascade, or a damaged one, is an error. Results are the same everywhere.

/// A cascade. Never changes, so that all threads can use it.
typedef struct cpixels_cascade cpixels_cascade;

/// Reads a cascade of Haar features. Returns NULL for a text that is none, with the reason in `error`.
cpixels_cascade *cpixels_cascade_create(const char *text, size_t byte_count, const char **error);

/// Frees a cascade; NULL is ignored.
void cpixels_cascade_destroy(cpixels_cascade *cascade);

/// Returns a hash of the text of a cascade.
uint64_t cpixels_cascade_identity(const cpixels_cascade *cascade);

/// The maximum width and height of an image that is searched for faces.
enum { CPIXELS_FACES_MAX_SIDE = 320 };

/// The rectangle of a face in pixels, as the cascade was trained: usually from the eyebrows to the chin.
typedef struct cpixels_face {
  float x, y, width, height;
} cpixels_face;

/// Converts pixels of 1, 3 or 4 channels to gray. RGBA is placed on white.
void cpixels_faces_gray(const uint8_t *row, size_t pixel_count, uint32_t channels, uint8_t *gray);

/// Returns the number of bytes that a search needs.
size_t cpixels_faces_workspace(uint32_t width, uint32_t height);

/// Finds the faces of an upright image, whose rows follow each other without a gap.
///
/// `workspace` is aligned to 8 bytes. At most `max_count` faces are stored, the largest first. Returns their number; 0
/// for an image that is larger than the maximum.
size_t cpixels_faces_find(
    const cpixels_cascade *cascade, const uint8_t *gray, uint32_t width, uint32_t height, void *workspace,
    cpixels_isa isa, cpixels_face *faces, size_t max_count);

// MARK: Faces by a network
//
// Instead of a cascade, a convolutional network can find faces: the file of TensorFlow Lite with which MediaPipe finds
// faces in the full range, sparse. The file can be damaged or hostile. Results differ between processors by rounding.

/// A network. Never changes, so that all threads can use it.
typedef struct cpixels_network cpixels_network;

/// Whether bytes begin like a file of TensorFlow Lite.
bool cpixels_network_is_file(const uint8_t *bytes, size_t byte_count);

/// Reads a network. Returns NULL for bytes that are none, or one of another kind, with the reason in `error`.
cpixels_network *cpixels_network_create(const uint8_t *bytes, size_t byte_count, const char **error);

/// Frees a network; NULL is ignored.
void cpixels_network_destroy(cpixels_network *network);

/// Returns a hash of the bytes of a network.
uint64_t cpixels_network_identity(const cpixels_network *network);

/// Converts pixels of 1, 3 or 4 channels to red, green and blue. RGBA is placed on white.
void cpixels_network_rgb(const uint8_t *row, size_t pixel_count, uint32_t channels, uint8_t *rgb);

/// The maximum width and height of an image that is searched by a network.
enum { CPIXELS_NETWORK_MAX_SIDE = 224 };

/// Returns the number of bytes that a search needs.
size_t cpixels_network_workspace(const cpixels_network *network, uint32_t width, uint32_t height);

/// Finds the faces of an upright image with the channels red, green and blue, whose rows follow each other without a
/// gap.
///
/// `workspace` is aligned to 8 bytes. At most `max_count` faces are stored, the largest first. Returns their number; 0
/// for an image that is larger than the maximum.
size_t cpixels_network_find(
    const cpixels_network *network, const uint8_t *rgb, uint32_t width, uint32_t height, void *workspace,
    cpixels_isa isa, cpixels_face *faces, size_t max_count);

// MARK: Orientation

/// Copies `row_count` stored rows, starting with stored row `first_row`, into a whole upright plane.
///
/// `orientation` is the EXIF orientation, which is the operation that displays the stored image upright: 1 none, 2
/// mirror left to right, 3 rotate by 180 degrees, 4 mirror top to bottom, 5 transpose, 6 rotate by 90 degrees
/// clockwise, 7 transverse, 8 rotate by 90 degrees counter-clockwise. Source: CIPA DC-008 (Exif 2.32), tag 0x0112.
///
/// `width` and `height` are the size of the stored plane in samples; upright planes of orientations 5 to 8 are `height`
/// wide and `width` high. `pixel_size` is the size of a pixel in bytes, 1 to 8. The cost is one read and one write per
/// pixel; transposition works in blocks.
void cpixels_orient_rows(
    const uint8_t *rows, size_t row_stride, uint32_t first_row, uint32_t row_count, uint32_t width, uint32_t height,
    uint8_t pixel_size, uint8_t orientation, uint8_t *upright, size_t upright_stride);

#ifdef __cplusplus
}
#endif

#endif
