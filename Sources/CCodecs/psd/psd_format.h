// The constructor of the PSD decoder for the format table. Private to CCodecs.

#ifndef CCODECS_PSD_FORMAT_H
#define CCODECS_PSD_FORMAT_H

#include "../core/decoder.h"

// Constructors return NULL if the budget is exhausted.
ccodecs_decoder *ccodecs_psd_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
