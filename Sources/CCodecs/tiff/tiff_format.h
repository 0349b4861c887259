// What the table of formats has of TIFF. Private to CCodecs.

#ifndef CCODECS_TIFF_FORMAT_H
#define CCODECS_TIFF_FORMAT_H

#include "../core/decoder.h"

// Constructors leave NULL when there is no room.
ccodecs_decoder *ccodecs_tiff_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
