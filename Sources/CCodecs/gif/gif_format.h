// What the table of formats has of GIF. Private to CCodecs.

#ifndef CCODECS_GIF_FORMAT_H
#define CCODECS_GIF_FORMAT_H

#include "../core/decoder.h"

// Constructors leave NULL when there is no room.
ccodecs_decoder *ccodecs_gif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
