// The PNG decoder's state, shared by the chunk parser (png_decoder.c, png_chunks.c), the image data reader (png_rows.c)
// and the row kernels (png_unfilter*.c, png_expand.c). Private to CCodecs.
//
//   window -> png_decoder.c: chunks -> png_rows.c: inflate -> png_unfilter_rows.c: stored rows -> png_expand.c:
//   returned rows
//
// Source: PNG specification (third edition).

#pragma once

#include "../core/decoder.h"
#include "../core/inflater.h"
#include "../memory/spill.h"
#include "png_chunk.h"

// MARK: Kernels

/// Reverses a row's filter in place. `filter` is 0 to 4. `above` is the unfiltered row above, or zeros for the first
/// row of an image or pass. `pixel_bytes` is the size of a pixel, rounded up: 1, 2, 3, 4, 6 or 8. Up to 8 bytes after
/// the first `count` of `row` and `above` may be read.
void ccodecs_png_unfilter(uint8_t filter, uint8_t *row, const uint8_t *above, size_t count, size_t pixel_bytes);

/// Reverses the filters of `row_count` rows that are `stride` bytes apart. Each row follows its filter byte, and the
/// row above precedes the first. Otherwise like ccodecs_png_unfilter, but up to 12 bytes after the last row may be
/// read. Fastest if `row_count` is a multiple of PNG_ROWS_AT_ONCE.
void ccodecs_png_unfilter_rows(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes);

/// The maximum number of rows that ccodecs_png_unfilter_rows processes together.
enum { PNG_ROWS_AT_ONCE = 8 };

/// The conversion of stored rows to returned rows with 8 bits per sample, or 16 if the file has 16.
typedef struct png_expansion {
  uint8_t color_type; ///< 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA.
  uint8_t bit_depth;  ///< 1, 2, 4, 8 or 16.
  uint8_t channels;   ///< Channels of the result: 1 gray, 3 RGB, 4 RGBA.
  bool has_key;       ///< One color of a gray or RGB image, `key`, is transparent.
  uint16_t key[3];
  uint8_t palette[256][4];
  uint32_t palette_count;
} png_expansion;

/// Returns whether stored rows need no expansion.
bool ccodecs_png_is_plain(const png_expansion *expansion);

/// Expands `width` pixels from `stored` to `given`, which must be aligned to two bytes for 16-bit samples. Returns
/// false if an index is outside the palette; such pixels are black.
bool ccodecs_png_expand(const png_expansion *expansion, const uint8_t *stored, uint8_t *given, uint32_t width);

// MARK: Decoder

/// The maximum size of a palette in bytes.
enum { PNG_PALETTE_BYTES = 256 * 3 };

/// The contents of an fcTL chunk.
typedef struct png_control {
  uint32_t width, height, left, top;
  uint16_t delay;
  uint16_t divisor; ///< Units of `delay` per second; 0 for 100.
  uint8_t disposal;
  uint8_t blending;
} png_control;

/// The number of bytes that unfiltering may read after a row.
enum { PNG_ROW_SLACK = 16 };

typedef struct png_decoder {
  ccodecs_decoder base;

  // Chunk parser.
  uint8_t chunk_header[PNG_CHUNK_HEADER_BYTES]; ///< Header of the current chunk.
  uint8_t trailer[4];                           ///< CRC of the current chunk, as far as read.
  size_t header_count;
  size_t trailer_count;
  uint32_t body_left;
  uint32_t crc; ///< CRC of the type and of the body read so far.
  bool has_signature;
  bool is_in_chunk;
  bool has_header; ///< IHDR was read.
  bool has_palette;
  bool has_transparency; ///< A valid tRNS was read.
  bool has_data;         ///< The first IDAT was reached.
  bool is_past_data;     ///< A chunk other than IDAT followed the first IDAT.
  bool has_end;          ///< IEND was read.
  bool has_exif;         ///< eXIf contains copyright metadata; text chunks are ignored.
  bool has_srgb;         ///< sRGB was read.
  bool has_profile;      ///< iCCP was read, whether usable or not.
  bool has_primaries;    ///< cHRM was read.
  bool has_codes;        ///< cICP was read.
  ccodecs_color_codes codes;
  uint32_t primaries[8];
  uint32_t gamma; ///< gAMA; 0 if missing or out of range.
  uint8_t *body;  ///< Body of a buffered chunk.
  uint32_t body_count;

  // Image.
  uint32_t image_width;  ///< Of the image whose rows are decoded: the canvas, or a frame of an animation.
  uint32_t image_height; ///< Like `image_width`.
  png_expansion expansion;
  uint32_t stored_bits; ///< Bits per stored pixel.
  size_t given_bytes;   ///< Size of a returned row.
  bool is_interlaced;

  // Image data.
  ccodecs_inflater *inflater;
  bool may_have_rows;   ///< Inflate may have more output without more input.
  bool is_lost;         ///< Damage follows the returned rows.
  bool is_inflated;     ///< The compressed stream has ended.
  uint8_t *rows;        ///< A batch of rows, each after its filter byte, preceded by the row above the batch.
  size_t rows_capacity; ///< Maximum number of rows in a batch.
  size_t row_stride;    ///< Size of a row with its filter byte.
  size_t filled;        ///< Inflated bytes of the batch.
  uint32_t ready;       ///< Unfiltered rows of the batch.
  uint8_t *expanded;    ///< The expanded batch, or one row if interlaced; NULL if rows need no expansion.
  uint32_t row;         ///< Rows of the image or pass in earlier batches.
  uint32_t given;       ///< Rows returned so far.

  // Interlacing.
  uint32_t pass; ///< Current pass, 0 to 6; 7 after the last.
  uint32_t pass_width;
  uint32_t pass_height;
  ccodecs_spill buffered; ///< The whole image.

  // Frames other than the default image: see png_frames.c.
  bool is_animation;      ///< Such frames are selected.
  bool has_control;       ///< `control` describes a frame that has not begun.
  bool is_in_frame;       ///< The rows of a frame are decoded.
  bool skips_data;        ///< The IDAT chunks belong to no frame.
  png_control control;    ///< The fcTL chunk that was read last.
  png_control frame;      ///< That of the frame whose rows are decoded.
  uint32_t sequence_left; ///< Bytes of an fdAT chunk's sequence number that were not read.
  uint8_t *canvas;        ///< As the next frame finds it.
  uint8_t *strip;         ///< Rows of the canvas with the frame.
  uint32_t strip_rows;
  uint32_t composed;  ///< Rows of the canvas in this strip and those before it.
  uint32_t returned;  ///< Rows of the canvas in earlier strips.
  ccodecs_rows held;  ///< Decoded rows of the frame.
  uint32_t held_used; ///< Rows of these that were composed.
} png_decoder;

// png_chunks.c

/// Returns whether the current chunk has a type.
static inline bool ccodecs_png_is_type(const png_decoder *d, const char *type) {
  return memcmp(d->chunk_header + 4, type, 4) == 0;
}

/// Reads a complete buffered chunk, whose CRC is correct or whose damage is tolerated. Returns CCODECS_OK or records
/// the failure.
ccodecs_status ccodecs_png_read_chunk(png_decoder *d);

/// Creates a profile from cICP, which takes precedence over all others, or from cHRM and gAMA if there is no iCCP or
/// sRGB. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_png_settle_color_space(png_decoder *d);

// png_rows.c

/// Returns an upper bound of the bytes that ccodecs_png_rows_start charges.
uint64_t ccodecs_png_rows_estimate(const png_decoder *d);

/// Allocates the buffers and prepares inflate. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_png_rows_start(png_decoder *d);

/// Consumes bytes of IDAT from `input` until rows are ready. Returns CCODECS_ROWS_READY, CCODECS_OK once all of `input`
/// is consumed, or the failure. After CCODECS_ROWS_READY there may be more rows even without more input, because
/// inflate buffers some.
ccodecs_status ccodecs_png_rows_read(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows);

/// Returns the complete rows of the last batch, if the input is truncated or damaged: CCODECS_ROWS_READY, or CCODECS_OK
/// if there are none. Interlaced images always return CCODECS_OK.
ccodecs_status ccodecs_png_rows_give_last(png_decoder *d, ccodecs_rows *rows);

/// Returns whether all rows of the image, or of all passes, are decoded.
bool ccodecs_png_rows_are_complete(const png_decoder *d);

/// Prepares for the rows of another image of image_width x image_height, at most those of the header.
void ccodecs_png_rows_restart(png_decoder *d);

/// Returns the next rows of a complete interlaced image: CCODECS_ROWS_READY, or CCODECS_DONE after the last.
ccodecs_status ccodecs_png_rows_emit_buffered(png_decoder *d, ccodecs_rows *rows);

/// Frees the buffers and refunds the budget.
void ccodecs_png_rows_destroy(png_decoder *d);

// png_decoder.c

/// Consumes some bytes of a window that is not empty. Returns CCODECS_ROWS_READY, CCODECS_OK, or the failure.
ccodecs_status ccodecs_png_feed(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows);

// png_frames.c

/// Reads the body of an fcTL chunk. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_png_read_control(png_decoder *d);

/// Resolves the selection of frames.
ccodecs_status ccodecs_png_select_frames(png_decoder *d, int64_t first);

/// Returns an upper bound of the bytes that ccodecs_png_frames_start charges.
uint64_t ccodecs_png_frames_estimate(const png_decoder *d);

/// Allocates the canvas, and begins the first frame if it is the default image.
ccodecs_status ccodecs_png_frames_start(png_decoder *d);

/// As ccodecs_decoder_read_rows.
ccodecs_status ccodecs_png_frames_read(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows);
