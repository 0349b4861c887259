// The PNG encoder's state, shared by its source files. Private to them.

#pragma once

#include "../core/animation.h"
#include "../palette/palette.h"
#include "png_compressor.h"

#include <string.h>

enum { PNG_FILTER_COUNT = 5 };

typedef struct png_encoder {
  ccodecs_encoder base;
  size_t row_bytes;   ///< Size of a row of this pass.
  size_t pixel_bytes; ///< Filter distance: the size of a pixel, at least 1.
  ccodecs_png_filter filter;
  uint8_t *rows;       ///< Two rows, each preceded by zeros.
  uint8_t *above;      ///< The previous row, initially zeros.
  uint8_t *current;    ///< The row to write.
  uint8_t *candidates; ///< The row with each filter applied.
  png_compressor *compressor;
  uint8_t *chunk; ///< Compressed bytes that are not yet in a chunk.
  size_t chunk_count;
  bool has_ended;         ///< All image data is in chunks.
  ccodecs_bytes metadata; ///< Its chunks.
  uint8_t *buffered; ///< The whole image if it is interlaced or has a palette, otherwise NULL. Finally its indices.
  uint32_t buffered_row_count;

  // Animations: see png_animation.c. The output is the pending frame.
  ccodecs_canvases canvases;
  bool is_first;                  ///< Its data goes to IDAT chunks.
  ccodecs_rectangle pending_part; ///< The part of the canvas that it replaces.
  uint32_t pending_sequence;      ///< The sequence number of its fcTL chunk.
  uint32_t sequence;              ///< The next sequence number of fcTL and fdAT chunks.
  uint8_t first_control[26];      ///< The fcTL chunk of the first frame.

  // Animations with a palette: see png_indexed_animation.c.
  ccodecs_palette_histogram *histogram; ///< Colors of the frames, until they have a palette; otherwise NULL.
  ccodecs_palette palette;
  ccodecs_palette_mapper *mapper; ///< NULL without a palette.
  uint8_t *indices;               ///< Those of the canvas.
} png_encoder;

// png_encoder.c

/// Appends a chunk to the output. Returns CCODECS_OK or records CCODECS_NO_MEMORY.
ccodecs_status ccodecs_png_write_chunk(png_encoder *e, const char *type, const uint8_t *body, size_t count);

/// Writes the signature, IHDR and metadata.
ccodecs_status ccodecs_png_write_beginning(png_encoder *e, uint8_t depth, bool is_indexed);

/// Returns the bits per sample of a file without a palette.
static inline uint8_t ccodecs_png_depth(const png_encoder *e) {
  return ccodecs_encoder_is_deep(&e->base.options) ? 16 : 8;
}

/// Copies a full row as files store it: samples of 16 bits with the high byte first.
void ccodecs_png_copy_row(const png_encoder *e, const uint8_t *row, uint8_t *copy);

/// Begins a pass with rows of `row_bytes` bytes, at most the size of a full row.
void ccodecs_png_begin_pass(png_encoder *e, size_t row_bytes);

/// Filters and compresses `current`, which may then be filled with the next row.
ccodecs_status ccodecs_png_write_row(png_encoder *e);

/// Restarts the compressor for the data of another frame.
ccodecs_status ccodecs_png_restart(png_encoder *e);

/// Ends the compressed data, and writes its last chunk.
ccodecs_status ccodecs_png_end_pass(png_encoder *e);

// png_filter.c

/// A row to apply each filter to.
typedef struct png_filter_row {
  const uint8_t *current; ///< The row; it and the one above must be preceded by zeros.
  const uint8_t *above;
  size_t step;     ///< Filter distance.
  size_t count;    ///< Size of the row.
  uint8_t *output; ///< Where the result of the first filter begins.
  size_t stride;   ///< From one filter's result to the next one's.
} png_filter_row;

/// Returns the filtered `current` row, preceded by its filter type.
const uint8_t *ccodecs_png_filter_row(png_encoder *e);

/// Applies each filter to a row. Sets `sums` to the sums of the absolute values of the results' bytes, interpreted as
/// signed.
void ccodecs_png_filter_avx2(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]);
void ccodecs_png_filter_base(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]);

// png_buffered.c: interlaced images and images with a palette

/// Allocates the buffer for the image. Returns false if the budget is exhausted.
bool ccodecs_png_hold(png_encoder *e);
/// Copies rows into the buffered image.
void ccodecs_png_buffer_rows(png_encoder *e, const ccodecs_rows *rows);

/// Writes the buffered image, from the signature to the image data.
ccodecs_status ccodecs_png_write_buffered(png_encoder *e);
/// Frees the buffered image.
void ccodecs_png_free_buffered(png_encoder *e);
/// Returns an upper bound of the bytes charged for buffering; 0 for images that are not buffered.
uint64_t ccodecs_png_buffered_estimate(const ccodecs_encode_options *options);

// png_palette.c

/// Chooses a palette for the buffered image and replaces it by its indices. Writes the signature, IHDR, metadata, PLTE
/// and tRNS. Sets *depth to the bits per index: 1, 2, 4 or 8.
ccodecs_status ccodecs_png_write_palette(png_encoder *e, uint8_t *depth);
/// Writes PLTE and tRNS.
ccodecs_status ccodecs_png_write_colors(png_encoder *e, const ccodecs_palette *palette);
/// Returns an upper bound of the bytes charged for choosing a palette.
uint64_t ccodecs_png_palette_estimate(const ccodecs_encode_options *options);

/// Returns an upper bound of the bytes of a result with `pixel_bytes` for each pixel.
uint64_t ccodecs_png_max_bytes(const ccodecs_encode_options *options, uint32_t pixel_bytes);

/// The methods that ccodecs_encoder_methods describes.
uint64_t ccodecs_png_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_png_encoder_max_bytes(const ccodecs_encode_options *options);
