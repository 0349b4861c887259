// The JPEG entry points for the table of formats. Private to CCodecs.

#ifndef CCODECS_JPEG_FORMAT_H
#define CCODECS_JPEG_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"
#include "../core/rewriter.h"

// The constructors return NULL when the budget has no room.
ccodecs_decoder *ccodecs_jpeg_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_jpeg_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_jpeg_encoder_estimate(const ccodecs_encode_options *options);
ccodecs_rewriter *ccodecs_jpeg_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
