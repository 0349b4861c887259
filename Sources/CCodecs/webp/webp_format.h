// The WebP entry points for the table of formats. Private to CCodecs.

#ifndef CCODECS_WEBP_FORMAT_H
#define CCODECS_WEBP_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"
#include "../core/rewriter.h"

// The constructors return NULL when the budget has no room.
ccodecs_decoder *ccodecs_webp_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_webp_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
/// Returns whether every option is in its range.
bool ccodecs_webp_options_are_valid(const ccodecs_webp_options *options);
uint64_t ccodecs_webp_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_webp_encoder_max_bytes(const ccodecs_encode_options *options);
ccodecs_rewriter *ccodecs_webp_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
