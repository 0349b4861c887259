// The chunks of a WebP file whose beginning, or all, is held. Private to webp_decoder.c.

#ifndef CCODECS_WEBP_CHUNKS_H
#define CCODECS_WEBP_CHUNKS_H

#include "../memory/bytes.h"

static const size_t riff_header_bytes = 12;
static const size_t chunk_header_bytes = 8;
/// Waited for of the picture: there a rewriter finds how it was quantised.
static const size_t picture_bytes = 40;

/// The first chunk at or behind `at` whose type is `type` and whose body is whole; NULL when there is none.
/// Source: WebP Container Specification, "RIFF file format".
static inline const uint8_t *find_chunk(
    const uint8_t *bytes, size_t count, size_t at, const char *type, uint32_t *body_bytes) {
  while (at <= count && count - at >= chunk_header_bytes) {
    const uint32_t size = ccodecs_le32(bytes + at + 4);
    if (size > count - at - chunk_header_bytes) {
      return NULL;
    }
    if (memcmp(bytes + at, type, 4) == 0) {
      *body_bytes = size;
      return bytes + at + chunk_header_bytes;
    }
    at += chunk_header_bytes + size + (size & 1);
  }
  return NULL;
}

/// Frames of an animation.
static inline uint32_t count_frames(const uint8_t *bytes, size_t count) {
  uint32_t frames = 0;
  uint32_t size;
  const uint8_t *frame = find_chunk(bytes, count, riff_header_bytes, "ANMF", &size);
  while (frame != NULL) {
    frames++;
    frame = find_chunk(bytes, count, (size_t)(frame - bytes) + size + (size & 1), "ANMF", &size);
  }
  return frames;
}

/// Whether the picture's first bytes are here. From a VP8X chunk alone libwebp tells a size, but not whether it is the
/// picture's, nor how that is compressed. `*at` is where to look on: at first behind the RIFF header, later at a chunk
/// that is not here, or at the picture's.
static inline bool find_picture(const uint8_t *bytes, size_t count, size_t *at) {
  while (*at <= count && count - *at >= chunk_header_bytes) {
    const uint8_t *chunk = bytes + *at;
    const uint32_t size = ccodecs_le32(chunk + 4);
    if (memcmp(chunk, "VP8 ", 4) == 0 || memcmp(chunk, "VP8L", 4) == 0) {
      return count - *at - chunk_header_bytes >= (size < picture_bytes ? size : picture_bytes);
    }
    *at += chunk_header_bytes + (size_t)size + (size & 1);
  }
  return false;
}

#endif
