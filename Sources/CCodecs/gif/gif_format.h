// The constructor of the GIF decoder for the format table. Private to CCodecs.

#ifndef CCODECS_GIF_FORMAT_H
#define CCODECS_GIF_FORMAT_H

#include "../core/decoder.h"

// Constructors return NULL if the budget is exhausted.
ccodecs_decoder *ccodecs_gif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
