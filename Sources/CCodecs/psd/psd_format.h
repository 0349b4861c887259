// What the table of formats has of PSD. Private to CCodecs.

#ifndef CCODECS_PSD_FORMAT_H
#define CCODECS_PSD_FORMAT_H

#include "../core/decoder.h"

// Constructors leave NULL when there is no room.
ccodecs_decoder *ccodecs_psd_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
