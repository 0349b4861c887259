// The functions of PNG for the format table. Private to CCodecs.

#ifndef CCODECS_PNG_FORMAT_H
#define CCODECS_PNG_FORMAT_H

#include "../core/decoder.h"
#include "../core/encoder.h"
#include "../core/rewriter.h"

// Constructors return NULL if the budget is exhausted.
ccodecs_decoder *ccodecs_png_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_png_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_png_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_png_encoder_max_bytes(const ccodecs_encode_options *options);
/// Returns whether every option is in its range.
bool ccodecs_png_options_are_valid(const ccodecs_png_options *options);
/// Returns whether the options can be combined: animations are not interlaced, and have a palette only with alpha.
bool ccodecs_png_encoder_takes(const ccodecs_encode_options *options);
ccodecs_rewriter *ccodecs_png_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
