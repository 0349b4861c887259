// The HEIC and AVIF entry points for the table of formats. Private to CCodecs.

#ifndef CCODECS_HEIF_FORMAT_H
#define CCODECS_HEIF_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"

// The constructors return NULL when the budget has no room.
ccodecs_decoder *ccodecs_heic_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_avif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_avif_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_avif_encoder_estimate(const ccodecs_encode_options *options);

#endif
