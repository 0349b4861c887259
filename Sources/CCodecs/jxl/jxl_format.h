// The JPEG XL entry points for the table of formats. Private to CCodecs.

#ifndef CCODECS_JXL_FORMAT_H
#define CCODECS_JXL_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"
#include "../core/rewriter.h"

// Returns a decoder for one image; NULL when the budget has no room.
ccodecs_decoder *ccodecs_jxl_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

// The constructor returns NULL when the budget has no room.
ccodecs_encoder *ccodecs_jxl_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_jxl_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_jxl_encoder_max_bytes(const ccodecs_encode_options *options);

/// Creates the transform of a JPEG to a JPEG XL from which the JPEG can be reconstructed. `sample_count` is that of all
/// components, `effort` is 1 to 9; `interrupt` is borrowed. Returns CCODECS_OK or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_jxl_recompress_create(
    uint64_t pixel_count, uint64_t sample_count, uint8_t effort, ccodecs_interrupt *interrupt, ccodecs_budget *budget,
    ccodecs_turn **turn);
/// Returns an upper bound of the bytes that the transform charges.
uint64_t ccodecs_jxl_recompress_estimate(uint64_t pixel_count, uint64_t sample_count);

/// Returns the rewriter, which reconstructs JPEGs; NULL when the budget has no room.
ccodecs_rewriter *ccodecs_jxl_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);

/// Returns whether a JPEG XL whose header `decoder` has read consists of the coefficients of one usual JPEG, and their
/// numbers: `sample_count` is that of all components, in whole blocks.
bool ccodecs_jxl_decoder_has_coefficients(
    const ccodecs_decoder *decoder, uint64_t *pixel_count, uint64_t *sample_count);

#endif
