// The common part of the BMP, TGA, PNM and HDR decoders, which read stored rows and return strips of converted rows.
// Private to CCodecs.

#pragma once

#include "../core/decoder.h"
#include "../memory/bytes.h"

/// The base of a decoder for a format of plain rows.
typedef struct row_decoder row_decoder;

/// The functions of one format.
typedef struct row_format {
  ccodecs_decoder_methods methods; ///< Usually ROW_DECODER_METHODS.
  const char *name;                ///< The name for error messages, such as "TGA".
  /// Completes the next row in `stored`. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
  ccodecs_status (*read_row)(row_decoder *decoder, ccodecs_input *input);
  /// Converts the row in `stored` to the returned row `given`.
  void (*put_row)(row_decoder *decoder, uint8_t *given);
} row_format;

/// The first member of every row decoder.
struct row_decoder {
  ccodecs_decoder base;
  uint32_t channels;   ///< Channels of the returned rows.
  uint8_t *stored;     ///< One row as in the file.
  size_t stored_bytes; ///< Size of `stored`; like `channels`, set by the header.
  size_t stored_count;
  uint8_t *strip;
  size_t row_bytes; ///< Size of a returned row.
  uint32_t strip_rows;
  uint32_t row;             ///< Number of complete rows.
  ccodecs_status postponed; ///< A failure after rows that are returned first; its reason is recorded.
  ccodecs_bytes ahead;      ///< Bytes from the first row on that were buffered with the header.
};

/// Records CCODECS_CORRUPT with a reason that follows the format's name.
ccodecs_status ccodecs_row_decoder_corrupt(row_decoder *decoder, const char *reason);

/// Sets the row sizes. Requires the image's size, `channels` and header.is_16bit; `stored_bytes` is the size of one row
/// in the file.
void ccodecs_row_decoder_measure(row_decoder *decoder, size_t stored_bytes);

/// Returns `status` from read_header, or records CCODECS_TRUNCATED if the last input ended within the header.
ccodecs_status ccodecs_row_decoder_end_header(row_decoder *decoder, const ccodecs_input *input, ccodecs_status status);

/// Consumes the window and buffers its bytes, for a header that depends on what follows the rows. Returns CCODECS_OK or
/// records the failure.
ccodecs_status ccodecs_row_decoder_look_ahead(row_decoder *decoder, ccodecs_input *input);

/// Reads an uncompressed row into `stored`.
ccodecs_status ccodecs_row_decoder_read_plain(row_decoder *decoder, ccodecs_input *input);

ccodecs_status ccodecs_row_decoder_estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count);
ccodecs_status ccodecs_row_decoder_start(
    ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout);
ccodecs_status ccodecs_row_decoder_read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows);
void ccodecs_row_decoder_destroy(ccodecs_decoder *base);

/// The methods of a file whose decoder has the type `type`, and functions `read_header` and `min_bytes`.
#define ROW_DECODER_METHODS(type)                                                                                      \
  .byte_count = sizeof(type), .read_header = read_header, .min_bytes = min_bytes,                                      \
  .estimate = ccodecs_row_decoder_estimate, .start = ccodecs_row_decoder_start,                                        \
  .read_rows = ccodecs_row_decoder_read_rows, .destroy = ccodecs_row_decoder_destroy

extern const row_format ccodecs_bmp_decoder;
extern const row_format ccodecs_hdr_decoder;
extern const row_format ccodecs_pnm_decoder;
extern const row_format ccodecs_tga_decoder;
