// What BMP, TGA, PNM and HDR share: a row is read as it is in the file, and given in a strip of rows. Private to
// CCodecs.

#ifndef CCODECS_ROW_DECODER_H
#define CCODECS_ROW_DECODER_H

#include "../core/decoder.h"
#include "../memory/bytes.h"

typedef struct row_decoder row_decoder;

/// What differs.
typedef struct row_format {
  ccodecs_decoder_methods methods; ///< All but read_header and least_bytes: ROW_DECODER_METHODS.
  const char *name;                ///< "TGA", of messages.
  /// Completes the next row in `stored`: CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
  ccodecs_status (*read_row)(row_decoder *decoder, ccodecs_input *input);
  /// Makes of `stored` the row that is given.
  void (*put_row)(row_decoder *decoder, uint8_t *given);
} row_format;

/// The first member of such a decoder.
struct row_decoder {
  ccodecs_decoder base;
  const row_format *format;
  uint32_t channels;   ///< That are given.
  uint8_t *stored;     ///< A row as it is in the file.
  size_t stored_bytes; ///< Fixed, as `channels`, by the header.
  size_t stored_count;
  uint8_t *strip;
  size_t row_bytes; ///< Of a row that is given.
  uint32_t strip_rows;
  uint32_t row; ///< Rows that are complete.
};

/// A decoder of `byte_count` bytes; NULL when there is no room.
void *ccodecs_row_decoder_create(
    size_t byte_count, const row_format *row_format, ccodecs_format format, const ccodecs_limits *limits,
    ccodecs_budget *budget);

/// Notes what is wrong with the file.
ccodecs_status ccodecs_row_decoder_corrupt(row_decoder *decoder, const char *reason);

/// Fixes how large rows are, once the header tells: the size, `channels`, header.is_16bit, and `stored_bytes` for one
/// row.
void ccodecs_row_decoder_measure(row_decoder *decoder, size_t stored_bytes);

/// What read_header answers when reading it came to `status`.
ccodecs_status ccodecs_row_decoder_end_header(row_decoder *decoder, const ccodecs_input *input, ccodecs_status status);

/// Reads a row that stands in the file as it is.
ccodecs_status ccodecs_row_decoder_read_plain(row_decoder *decoder, ccodecs_input *input);

ccodecs_status ccodecs_row_decoder_estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count);
ccodecs_status ccodecs_row_decoder_start(
    ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout);
ccodecs_status ccodecs_row_decoder_read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows);
void ccodecs_row_decoder_destroy(ccodecs_decoder *base);

#define ROW_DECODER_METHODS                                                                                            \
  .estimate = ccodecs_row_decoder_estimate, .start = ccodecs_row_decoder_start,                                        \
  .read_rows = ccodecs_row_decoder_read_rows, .destroy = ccodecs_row_decoder_destroy

#endif
