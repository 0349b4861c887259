// What the bitstreams inside an HEIC or AVIF file announce. Private to CCodecs.

#ifndef CCODECS_HEIF_CODED_H
#define CCODECS_HEIF_CODED_H

#include "ccodecs.h"

/// Width x height of the largest frame that a sequence header in the file allows; 0 when none was found.
/// False when an AV1 picture of the file has no data, or not all of it.
bool ccodecs_heif_coded_pixels(const uint8_t *bytes, size_t count, bool is_av1, uint64_t *pixels);

#endif
