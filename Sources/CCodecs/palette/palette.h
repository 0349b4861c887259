// Palettes: the colors of an image or of several frames reduced to at most 256, and pixels mapped to them. Private to
// CCodecs.
//
// Rows go through twice. The first time, their colors are counted; the second time, they are mapped:
//
//   ccodecs_palette_histogram *histogram;
//   ccodecs_palette_histogram_create(CCODECS_PALETTE_ALPHA, budget, &histogram);
//   for each row of each frame:
//     ccodecs_palette_histogram_add(histogram, pixels, channels, count);
//   ccodecs_palette palette;
//   ccodecs_palette_build(histogram, 256, &palette);
//   ccodecs_palette_histogram_destroy(histogram);
//
//   ccodecs_palette_mapper *mapper;
//   ccodecs_palette_mapper_create(&palette, width, budget, &mapper);
//   for each frame:
//     ccodecs_palette_mapper_begin(mapper);
//     for each row:
//       ccodecs_palette_mapper_map(mapper, pixels, channels, count, NULL, indices);
//   ccodecs_palette_mapper_destroy(mapper);
//
// Memory does not grow with the number of rows or frames. A histogram takes CCODECS_PALETTE_HISTOGRAM_BYTES, building
// takes another CCODECS_PALETTE_BUILD_BYTES for the duration of the call, and a mapper takes
// CCODECS_PALETTE_MAPPER_BYTES and CCODECS_PALETTE_MAPPER_PIXEL_BYTES per pixel of width. All of it is charged to the
// budget.
//
// Pixels have 8 bits per sample, are not premultiplied, and have 1 (gray), 3 (RGB) or 4 (RGBA) channels.
//
// **Animations.** One histogram can count the rows of several frames of any size, and pixels that a frame does not
// change can be left out. It can be built from more than once: a palette of the frames so far does not end the
// counting. ccodecs_palette_histogram_clear forgets them. Whether the palette of earlier frames serves the counted
// colors is measured by ccodecs_palette_mapper_error, which allocates nothing.
//
// A mapper keeps indices of pixels that did not change: see ccodecs_palette_previous. A palette for frames that store
// only what changed reserves its transparent entry: CCODECS_PALETTE_RESERVED.
//
// Results depend on the pixels alone, not on the processor: everything is computed with integers, or with double
// precision operations that IEEE 754 defines exactly.

#pragma once

#include "ccodecs.h"

enum {
  CCODECS_PALETTE_MAX_COLORS = 256,
  /// What each part takes at most, without what it takes per pixel of width.
  CCODECS_PALETTE_HISTOGRAM_BYTES = 2 << 20,
  CCODECS_PALETTE_BUILD_BYTES = 5 << 19,
  CCODECS_PALETTE_MAPPER_BYTES = 3 << 19,
  CCODECS_PALETTE_MAPPER_PIXEL_BYTES = 34,
};

/// How a palette represents alpha.
typedef enum ccodecs_palette_transparency {
  /// Each entry has an alpha of its own, as in PNG.
  CCODECS_PALETTE_ALPHA = 0,
  /// One entry is transparent if a pixel is; the others are opaque, as in GIF. A pixel is transparent if its alpha is
  /// below 128, otherwise its color is taken as opaque.
  CCODECS_PALETTE_BINARY = 1,
  /// As CCODECS_PALETTE_BINARY, but the transparent entry exists in any case. It is one of the maximum number of
  /// colors.
  CCODECS_PALETTE_RESERVED = 2,
} ccodecs_palette_transparency;

/// A palette. It has no pointers and can be copied.
typedef struct ccodecs_palette {
  uint32_t count;         ///< The number of entries, at least 1.
  int32_t transparent;    ///< The index of the entry with alpha 0, which is the first one; -1 if there is none.
  uint32_t opaque_first;  ///< Entries from here on have alpha 255, those before do not.
  bool is_exact;          ///< Every counted pixel has its exact color in the palette.
  bool is_binary;         ///< Not CCODECS_PALETTE_ALPHA.
  uint8_t colors[256][4]; ///< R, G, B and alpha, not premultiplied. The transparent entry is all zeros.
} ccodecs_palette;

// MARK: Colors of an image

typedef struct ccodecs_palette_histogram ccodecs_palette_histogram;

/// Creates an empty histogram. `budget` is borrowed until destroy. Returns CCODECS_OK or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_palette_histogram_create(
    ccodecs_palette_transparency transparency, ccodecs_budget *budget, ccodecs_palette_histogram **histogram);

/// Counts the colors of `count` pixels.
void ccodecs_palette_histogram_add(
    ccodecs_palette_histogram *histogram, const uint8_t *pixels, uint32_t channels, uint32_t count);

/// Counts the colors of pixels that differ from those of `before`, which has as many with as many channels; of all if
/// it is NULL.
void ccodecs_palette_histogram_add_changes(
    ccodecs_palette_histogram *histogram, const uint8_t *pixels, const uint8_t *before, uint32_t channels,
    uint32_t count);

/// Forgets all colors.
void ccodecs_palette_histogram_clear(ccodecs_palette_histogram *histogram);

/// Frees the histogram and refunds its budget; NULL is ignored.
void ccodecs_palette_histogram_destroy(ccodecs_palette_histogram *histogram);

// MARK: Palette

/// Chooses up to `max_colors` colors, 2 to 256, for the counted pixels. A histogram without pixels gives one entry.
///
/// The work does not grow with the number of pixels; it is some 20 ms. Entries that are not opaque come first, then the
/// others, each by lightness. Returns CCODECS_OK, CCODECS_NO_MEMORY, or CCODECS_MISUSE for `max_colors` out of range.
ccodecs_status ccodecs_palette_build(
    ccodecs_palette_histogram *histogram, uint32_t max_colors, ccodecs_palette *palette);

/// Appends colors to a palette, up to `max_colors` in total, for counted pixels that it does not have: all of their
/// colors if there is room, otherwise colors for those whose squared distance to the nearest one is more than
/// `max_error`, in the units of ccodecs_palette_mapper_error. Earlier indices stay what they are. Returns CCODECS_OK,
/// CCODECS_NO_MEMORY, or CCODECS_MISUSE for `max_colors` out of range.
ccodecs_status ccodecs_palette_extend(
    ccodecs_palette_histogram *histogram, uint32_t max_colors, uint32_t max_error, ccodecs_palette *palette);

/// Returns the number of distinct colors that were counted, as far as they are distinguished, and of their pixels.
uint32_t ccodecs_palette_color_count(const ccodecs_palette_histogram *histogram, uint64_t *pixel_count);

// MARK: Pixels to indices

typedef struct ccodecs_palette_mapper ccodecs_palette_mapper;

/// The row of the previous frame at the same place, for dithering that is stable in time.
///
/// A pixel whose samples differ by at most `tolerance` from those of the previous frame gets the index `indices` has
/// for it, whatever the dithering around it would give, and neither receives nor passes on an error. With the indices
/// of the previous frame, which must be of the same palette, an unchanged pixel keeps its color. A caller that stores
/// unchanged pixels as transparent ones fills `indices` with the index of that entry.
typedef struct ccodecs_palette_previous {
  const uint8_t *pixels;  ///< As many pixels, with as many channels, as the row to map.
  const uint8_t *indices; ///< One per pixel, each below the palette's count.
  uint8_t tolerance;      ///< 0 for exact equality.
} ccodecs_palette_previous;

/// Creates a mapper to `palette`, which is copied, for rows of up to `width` pixels. `budget` is borrowed until
/// destroy. Returns CCODECS_OK, CCODECS_NO_MEMORY, or CCODECS_MISUSE for a palette without colors.
ccodecs_status ccodecs_palette_mapper_create(
    const ccodecs_palette *palette, uint32_t width, ccodecs_budget *budget, ccodecs_palette_mapper **mapper);

/// Replaces the palette of a mapper, between frames, with one that has colors.
void ccodecs_palette_mapper_set(ccodecs_palette_mapper *mapper, const ccodecs_palette *palette);

/// Returns the mean squared distance of the counted pixels to their nearest colors in the palette, in units in which
/// black and white are 2048 apart; 0 without pixels. With the value of the palette for the frames it was built for, it
/// indicates whether other frames need another one. If it is more than `most`, the value may be any between both.
double ccodecs_palette_mapper_error(
    ccodecs_palette_mapper *mapper, ccodecs_palette_histogram *histogram, double maximum);

/// Begins a frame: no error is diffused into its first row.
void ccodecs_palette_mapper_begin(ccodecs_palette_mapper *mapper);

/// Maps the next row, from top to bottom, with error diffusion. `count` must be the same for all rows of a frame, at
/// most `width`. `previous` is NULL without a previous frame. `indices` receives one index per pixel, and may be the
/// same memory as previous->indices or as `pixels`.
void ccodecs_palette_mapper_map(
    ccodecs_palette_mapper *mapper, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous, uint8_t *indices);

/// As ccodecs_palette_mapper_map, for rows of a frame all of whose pixels have their colors in an exact palette with a
/// transparent entry: nothing is diffused, and rows do not depend on each other. Returns false if one has not, or if
/// there is a tolerance; the frame must then be mapped from its beginning.
bool ccodecs_palette_mapper_map_exact(
    const ccodecs_palette_mapper *mapper, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous, uint8_t *indices);

/// Frees the mapper and refunds its budget; NULL is ignored.
void ccodecs_palette_mapper_destroy(ccodecs_palette_mapper *mapper);
