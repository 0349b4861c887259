#include "webp_chunks.h"

bool ccodecs_riff_append_chunk(
    ccodecs_bytes *bytes, const char *type, const uint8_t *body, size_t count, ccodecs_budget *budget) {
  static const uint8_t pad = 0;
  uint8_t header[CHUNK_HEADER_BYTES];
  ccodecs_riff_put_chunk(header, type, (uint32_t)count);
  return count == 0 ||
         (ccodecs_bytes_reserve(bytes, (size_t)ccodecs_riff_chunk_bytes(count), budget) &&
          ccodecs_bytes_append(bytes, header, sizeof header, budget) &&
          ccodecs_bytes_append(bytes, body, count, budget) && ccodecs_bytes_append(bytes, &pad, count & 1, budget));
}

const uint8_t *ccodecs_riff_find(
    const uint8_t *bytes, size_t count, size_t at, const char *type, uint32_t *body_bytes) {
  while (ccodecs_riff_has_chunk(count, at)) {
    const uint32_t size = ccodecs_riff_body_bytes(bytes + at);
    if (size > count - at - CHUNK_HEADER_BYTES) {
      return NULL;
    }
    if (ccodecs_riff_is_type(bytes + at, type)) {
      *body_bytes = size;
      return bytes + at + CHUNK_HEADER_BYTES;
    }
    at += (size_t)ccodecs_riff_chunk_bytes(size);
  }
  return NULL;
}

uint32_t ccodecs_webp_count_frames(const uint8_t *bytes, size_t count) {
  uint32_t frames = 0;
  uint32_t size;
  const uint8_t *frame = ccodecs_riff_find(bytes, count, RIFF_HEADER_BYTES, "ANMF", &size);
  while (frame != NULL) {
    frames++;
    frame = ccodecs_riff_find(bytes, count, (size_t)(frame - bytes) + size + (size & 1), "ANMF", &size);
  }
  return frames;
}

bool ccodecs_webp_find_image(const uint8_t *bytes, size_t count, size_t *at) {
  while (ccodecs_riff_has_chunk(count, *at)) {
    const uint8_t *chunk = bytes + *at;
    const uint32_t size = ccodecs_riff_body_bytes(chunk);
    if (ccodecs_riff_is_type(chunk, "VP8 ") || ccodecs_riff_is_type(chunk, "VP8L")) {
      return count - *at - CHUNK_HEADER_BYTES >= (size < IMAGE_BYTES ? size : IMAGE_BYTES);
    }
    *at += (size_t)ccodecs_riff_chunk_bytes(size);
  }
  return false;
}
