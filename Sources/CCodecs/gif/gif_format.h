// The functions of GIF for the format table. Private to CCodecs.

#ifndef CCODECS_GIF_FORMAT_H
#define CCODECS_GIF_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"
#include "../core/rewriter.h"

// Constructors return NULL if the budget is exhausted.
ccodecs_decoder *ccodecs_gif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_gif_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_gif_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
uint64_t ccodecs_gif_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_gif_encoder_max_bytes(const ccodecs_encode_options *options);

/// Returns whether every option is in its range.
bool ccodecs_gif_options_are_valid(const ccodecs_gif_options *options);

#endif
