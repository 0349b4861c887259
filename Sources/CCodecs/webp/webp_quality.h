// Estimation of the quality that a WebP was compressed with (webp_quality.c). Private to CCodecs.

#pragma once

#include <stddef.h>
#include <stdint.h>

/// Returns the minimum libwebp quality at which its quantizer index is at most `index`, 0 to 127.
uint8_t ccodecs_webp_quality(uint32_t index);

/// Number of bytes at the start of a VP8 frame that contain its quantizers: 10, and 24 for at most 187 bits.
#define CCODECS_VP8_HEADER_BYTES 40

/// Returns the mean quantizer index over the segments of a VP8 frame, from its first bytes (RFC 6386, section 9).
///
/// Returns -1 when there are too few bytes, or when the frame is not a key frame.
int32_t ccodecs_vp8_quantizer(const uint8_t *bytes, size_t count);
