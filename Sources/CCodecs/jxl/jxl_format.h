// What the table of formats has of JPEG XL. Private to CCodecs.

#ifndef CCODECS_JXL_FORMAT_H
#define CCODECS_JXL_FORMAT_H

#include "../core/decoder.h"

// Constructors leave NULL when there is no room.
ccodecs_decoder *ccodecs_jxl_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
