// The JPEG XL entry points for the table of formats. Private to CCodecs.

#ifndef CCODECS_JXL_FORMAT_H
#define CCODECS_JXL_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"

// Returns a decoder for one image; NULL when the budget has no room.
ccodecs_decoder *ccodecs_jxl_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

// The constructor returns NULL when the budget has no room.
ccodecs_encoder *ccodecs_jxl_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_jxl_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_jxl_encoder_max_bytes(const ccodecs_encode_options *options);

#endif
