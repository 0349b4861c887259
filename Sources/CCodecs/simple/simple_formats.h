// What the table of formats has of BMP, TGA, PNM, HDR and ICO. Private to CCodecs.

#ifndef CCODECS_SIMPLE_FORMAT_H
#define CCODECS_SIMPLE_FORMAT_H

#include "../core/decoder.h"

// Constructors leave NULL when there is no room.
ccodecs_decoder *ccodecs_bmp_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_tga_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_pnm_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_hdr_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_ico_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

#endif
