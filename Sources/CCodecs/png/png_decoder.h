// The PNG decoder's state, shared by the reading of chunks (png_decoder.c), of the image's data (png_rows.c), and by
// the kernels on rows (png_unfilter.c, png_expand.c). Private to CCodecs.
//
//   window -> png_decoder.c: chunks -> png_rows.c: inflate -> png_unfilter_rows.c: rows as stored -> png_expand.c: rows
//   as given
//
// Sources: PNG specification (third edition); inflate is ISA-L's, whose state is of fixed size and which takes and
// gives bytes in any portions.

#ifndef CCODECS_PNG_H
#define CCODECS_PNG_H

#include "../core/decoder.h"
#include "../memory/spill.h"
#include "png_chunk.h"

// MARK: Kernels

/// Undoes a row's filter in place. `filter` is 0 to 4; `above` the row above as stored, zeros for the first row of a
/// image or pass; `pixel_bytes` 1, 2, 3, 4, 6 or 8, those of a whole pixel, at least 1. `row` and `above` may be read
/// up to 8 bytes behind `count`.
void ccodecs_png_unfilter(uint8_t filter, uint8_t *row, const uint8_t *above, size_t count, size_t pixel_bytes);

/// Undoes the filters of `row_count` rows that lie `stride` bytes apart, each behind its filter byte, with the row
/// above in front of them. As ccodecs_png_unfilter in all else, but up to 12 bytes are read behind the last row.
/// Fastest with PNG_ROWS_AT_ONCE rows or a multiple.
void ccodecs_png_unfilter_rows(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes);

enum { PNG_ROWS_AT_ONCE = 4 };

/// What a row is made into: 8 bits a sample, or 16 where it has them.
typedef struct png_expansion {
  uint8_t color_type; ///< 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA.
  uint8_t bit_depth;  ///< 1, 2, 4, 8 or 16.
  uint8_t channels;   ///< Of the result: 1 gray, 3 RGB, 4 RGBA.
  bool has_key;       ///< One colour of a gray or RGB image is transparent.
  uint16_t key[3];
  uint8_t palette[256][4];
  uint32_t palette_count;
} png_expansion;

/// Whether rows as stored are rows as given.
bool ccodecs_png_is_plain(const png_expansion *expansion);

/// Expands `width` pixels; `given` is aligned to two bytes where samples have 16 bits. False when one had no place in
/// the palette; it is black then.
bool ccodecs_png_expand(const png_expansion *expansion, const uint8_t *stored, uint8_t *given, uint32_t width);

// MARK: Decoder

/// What a filter may read behind a row.
enum { PNG_ROW_SLACK = 16 };

typedef struct png_decoder {
  ccodecs_decoder base;

  // Chunks.
  uint8_t chunk_header[PNG_CHUNK_HEADER_BYTES]; ///< Of the chunk that is being read.
  uint8_t trailer[4];                           ///< Its CRC, as far as it has come.
  size_t header_count;
  size_t trailer_count;
  uint32_t body_left;
  uint32_t crc; ///< Of its type and of the body so far.
  bool has_signature;
  bool is_in_chunk;
  bool has_header; ///< IHDR.
  bool has_palette;
  bool has_transparency; ///< tRNS.
  bool has_data;         ///< The first IDAT was met.
  bool is_past_data;     ///< A chunk other than IDAT came after it.
  bool has_end;          ///< IEND.
  bool has_exif;         ///< eXIf that names an artist or a copyright; texts are then not heeded.
  bool has_srgb;         ///< sRGB.
  bool has_profile;      ///< iCCP, of use or not.
  bool has_primaries;    ///< cHRM.
  uint32_t primaries[8];
  uint32_t gamma; ///< gAMA; 0 without.
  uint8_t *body;  ///< Of a chunk that is read whole.
  uint32_t body_count;

  // Image.
  png_expansion expansion;
  uint32_t stored_bits; ///< Of a pixel.
  size_t given_bytes;   ///< Of a row.
  bool is_interlaced;

  // Data.
  struct inflate_state *inflate;
  bool may_have_rows;   ///< Inflate may hold rows back.
  bool is_lost;         ///< Damage was met behind the rows that were given.
  bool is_inflated;     ///< The compressed stream is at its end.
  uint8_t *rows;        ///< A batch, each row behind its filter byte; the row above the batch comes first.
  size_t rows_capacity; ///< Rows of the batch.
  size_t row_stride;    ///< Bytes of a row and its filter byte.
  size_t filled;        ///< Bytes of the batch that were inflated.
  uint32_t ready;       ///< Rows of the batch that are unfiltered.
  uint8_t *expanded;    ///< The batch as given, when it is not given as stored; one row of an interlaced image.
  uint32_t row;         ///< Rows of the image, or of the pass, that were inflated.
  uint32_t given;       ///< Rows that were given.

  // Interlacing.
  uint32_t pass; ///< 0 to 6; 7 when all are done.
  uint32_t pass_width;
  uint32_t pass_height;
  ccodecs_spill buffered; ///< The image.
} png_decoder;

// png_rows.c

/// The bytes that ccodecs_png_rows_start will charge.
uint64_t ccodecs_png_rows_estimate(const png_decoder *d);

/// CCODECS_OK, or the failure.
ccodecs_status ccodecs_png_rows_start(png_decoder *d);

/// Takes bytes of IDAT, moving `input` forward, until there are rows to be given. CCODECS_ROWS_READY, CCODECS_OK when
/// all of `input` is used, or the failure. After CCODECS_ROWS_READY there may be more rows even without more bytes, as
/// inflate holds some back.
ccodecs_status ccodecs_png_rows_read(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows);

/// When no byte will come, or be of use: gives the rows of the batch that are complete. CCODECS_ROWS_READY, or
/// CCODECS_OK when there are none. Not for interlaced images.
ccodecs_status ccodecs_png_rows_give_last(png_decoder *d, ccodecs_rows *rows);

/// Whether every row of the image, or of every pass, is there.
bool ccodecs_png_rows_are_complete(const png_decoder *d);

/// Gives rows of an interlaced image that is complete. CCODECS_ROWS_READY, or CCODECS_DONE.
ccodecs_status ccodecs_png_rows_emit_buffered(png_decoder *d, ccodecs_rows *rows);

void ccodecs_png_rows_destroy(png_decoder *d);

#endif
