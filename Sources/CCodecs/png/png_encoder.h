// The parts of the PNG encoder. Private to it.

#ifndef CCODECS_ENCODE_PNG_H
#define CCODECS_ENCODE_PNG_H

#include "../core/encoder.h"

#include <isa-l.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

enum { PNG_FILTER_COUNT = 5 };

typedef struct png_encoder {
  ccodecs_encoder base;
  size_t row_bytes;   ///< Of this pass.
  size_t pixel_bytes; ///< From a byte to the one that it is told by; 1 for less than a byte.
  ccodecs_png_filter filter;
  uint8_t *rows;             ///< Two rows, each behind some zeros.
  uint8_t *above;            ///< The row before, zeros at first.
  uint8_t *current;          ///< The row to be written.
  uint8_t *candidates;       ///< It, filtered in every way.
  struct isal_zstream *fast; ///< Up to LARGEST_FAST_LEVEL.
  uint8_t *level_buffer;
  z_stream slow; ///< Above.
  bool has_slow;
  uint8_t *chunk; ///< Compressed bytes that are not in a chunk yet.
  size_t chunk_count;
  bool has_ended; ///< All of the data is in chunks.
  ccodecs_bytes exif;
  uint8_t *buffered; ///< The image, where it must be there before any of it is written; else NULL.
  uint32_t buffered_row_count;
  uint8_t *indices; ///< It in its palette's colours.
} png_encoder;

// png_encoder.c

ccodecs_status ccodecs_png_write_chunk(png_encoder *e, const char *type, const uint8_t *body, size_t count);

/// Signature, IHDR and eXIf.
ccodecs_status ccodecs_png_write_beginning(png_encoder *e, uint8_t depth, bool is_indexed);

/// Begins a pass of rows of `row_bytes`, at most those of the whole image.
void ccodecs_png_begin_pass(png_encoder *e, size_t row_bytes);

/// Filters and compresses `current`, which may then be filled with the next row.
ccodecs_status ccodecs_png_write_row(png_encoder *e);

// png_filter.c

/// The filter's type and `current`, filtered.
const uint8_t *ccodecs_png_filter_row(png_encoder *e);

// png_buffered.c: images that are interlaced or have a palette.

/// Makes room for the image; false without room.
bool ccodecs_png_hold(png_encoder *e);
void ccodecs_png_buffer_rows(png_encoder *e, const ccodecs_rows *rows);

/// Writes the held image, its beginning included.
ccodecs_status ccodecs_png_write_buffered(png_encoder *e);
void ccodecs_png_free_buffered(png_encoder *e);
uint64_t ccodecs_png_buffered_estimate(const ccodecs_encode_options *options);

// png_palette.c

/// Chooses a palette for the held image, fills `indices`, and writes PLTE and tRNS behind the beginning. `depth` is
/// set to the bits of an index: 1, 2, 4 or 8.
ccodecs_status ccodecs_png_write_palette(png_encoder *e, uint8_t *depth);
uint64_t ccodecs_png_palette_estimate(const ccodecs_encode_options *options);

#endif
