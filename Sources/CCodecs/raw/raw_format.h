// The functions of raw results for the format table. Private to CCodecs.

#ifndef CCODECS_RAW_FORMAT_H
#define CCODECS_RAW_FORMAT_H

#include "../core/encoder.h"

/// Returns NULL if the budget is exhausted.
ccodecs_encoder *ccodecs_raw_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_raw_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_raw_encoder_max_bytes(const ccodecs_encode_options *options);

/// Returns whether every option is in its range.
bool ccodecs_raw_options_are_valid(const ccodecs_raw_options *options);

#endif
