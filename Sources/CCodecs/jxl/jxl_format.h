// The JPEG XL entry point for the table of formats. Private to CCodecs.

#ifndef CCODECS_JXL_FORMAT_H
#define CCODECS_JXL_FORMAT_H

#include "../core/decoder.h"

// Returns a decoder for one image; NULL when the budget has no room.
ccodecs_decoder *ccodecs_jxl_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
