// The constructors of BMP, TGA, PNM, HDR and ICO decoders for the format table. Private to CCodecs.

#ifndef CCODECS_SIMPLE_FORMAT_H
#define CCODECS_SIMPLE_FORMAT_H

#include "../core/decoder.h"

// Constructors return NULL if the budget is exhausted.
ccodecs_decoder *ccodecs_bmp_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_tga_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_pnm_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_hdr_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_ico_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
