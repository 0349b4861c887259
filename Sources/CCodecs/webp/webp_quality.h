// The quality that a WebP was compressed with (webp_quality.c). Private to CCodecs.

#ifndef CCODECS_WEBP_QUALITY_H
#define CCODECS_WEBP_QUALITY_H

#include <stddef.h>
#include <stdint.h>

/// The least quality of libwebp's at which its quantizer index is at most `index`, 0 to 127.
uint8_t ccodecs_webp_quality(uint32_t index);

/// How many first bytes of a VP8 frame tell its quantizers: 10, and 24 for at most 187 bits.
#define CCODECS_VP8_HEADER_BYTES 40

/// The mean quantizer index over the segments of a VP8 frame, from its first bytes (RFC 6386, section 9); -1 when they
/// are too few or are no key frame.
int32_t ccodecs_vp8_quantizer(const uint8_t *bytes, size_t count);

#endif
