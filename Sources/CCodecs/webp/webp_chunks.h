// The RIFF container of WebP: a header, and chunks of a type, a size and a body padded to an even size. Private to
// CCodecs.
//
// Source: WebP Container Specification, "RIFF file format" and "Extended file format".

#pragma once

#include "../memory/bytes.h"

enum {
  RIFF_HEADER_BYTES = 12,
  CHUNK_HEADER_BYTES = 8,
  EXTENSION_BYTES = 10, ///< The body of a VP8X chunk.
  /// Image bytes to wait for: a rewriter reads the quantizers from them.
  IMAGE_BYTES = 40,
};

/// Flags of a VP8X chunk.
enum { FLAG_ANIMATION = 0x02, FLAG_XMP = 0x04, FLAG_EXIF = 0x08, FLAG_ALPHA = 0x10, FLAG_PROFILE = 0x20 };

/// Returns whether a chunk, given by its header, is of a four-character type.
static inline bool ccodecs_riff_is_type(const uint8_t *chunk, const char *type) {
  return memcmp(chunk, type, 4) == 0;
}

/// Returns the size of a chunk in bytes, including its header and padding.
static inline uint64_t ccodecs_riff_chunk_bytes(uint64_t body_bytes) {
  return CHUNK_HEADER_BYTES + body_bytes + (body_bytes & 1);
}

/// Returns whether `count` bytes contain a whole chunk header at offset `at`.
static inline bool ccodecs_riff_has_chunk(size_t count, size_t at) {
  return at <= count && count - at >= CHUNK_HEADER_BYTES;
}

/// Returns the size in bytes of the body of a chunk. `chunk` points to the chunk's header.
static inline uint32_t ccodecs_riff_body_bytes(const uint8_t *chunk) {
  return ccodecs_le32(chunk + 4);
}

/// Writes a chunk header of 8 bytes; `body_bytes` excludes the padding.
static inline void ccodecs_riff_put_chunk(uint8_t *chunk, const char *type, uint32_t body_bytes) {
  memcpy(chunk, type, 4);
  ccodecs_put_le32(chunk + 4, body_bytes);
}

/// Writes a file's header. `byte_count` is the size of the whole file.
static inline void ccodecs_riff_put_header(uint8_t *file, uint32_t byte_count) {
  ccodecs_riff_put_chunk(file, "RIFF", byte_count - CHUNK_HEADER_BYTES);
  memcpy(file + CHUNK_HEADER_BYTES, "WEBP", 4);
}

/// Writes a VP8X chunk.
static inline void ccodecs_webp_put_extension(uint8_t *chunk, uint8_t flags, uint32_t width, uint32_t height) {
  ccodecs_riff_put_chunk(chunk, "VP8X", EXTENSION_BYTES);
  ccodecs_put_le32(chunk + 8, flags);
  ccodecs_put_le24(chunk + 12, width - 1);
  ccodecs_put_le24(chunk + 15, height - 1);
}

/// Appends a chunk with its padding, unless its body is empty. Returns false if the budget is exhausted.
bool ccodecs_riff_append_chunk(
    ccodecs_bytes *bytes, const char *type, const uint8_t *body, size_t count, ccodecs_budget *budget);

/// Returns the size of a chunk in bytes; 0 if its body is empty, so that it is left out.
static inline uint64_t ccodecs_riff_optional_bytes(size_t body_bytes) {
  return body_bytes == 0 ? 0 : ccodecs_riff_chunk_bytes(body_bytes);
}

/// Returns the flags of metadata.
static inline uint8_t ccodecs_webp_metadata_flags(const ccodecs_metadata *metadata) {
  return (
      uint8_t)((metadata->exif_count > 0 ? FLAG_EXIF : 0) | (metadata->icc_count > 0 ? FLAG_PROFILE : 0) | (metadata->xmp_count > 0 ? FLAG_XMP : 0));
}

/// Returns the body of the first chunk of type `type`, from the chunk at `at` on, and sets *body_bytes.
///
/// Returns NULL when there is none, or when its body is incomplete.
const uint8_t *ccodecs_riff_find(const uint8_t *bytes, size_t count, size_t at, const char *type, uint32_t *body_bytes);

/// Returns the number of animation frames.
uint32_t ccodecs_webp_count_frames(const uint8_t *bytes, size_t count);

/// Returns whether the image's first bytes are available.
///
/// From a VP8X chunk alone libwebp reports a size, but not whether the image has that size or how it is compressed.
/// `*at` is the offset at which to continue: initially after the RIFF header, later at a chunk that is not available
/// yet, or at the image's chunk.
bool ccodecs_webp_find_image(const uint8_t *bytes, size_t count, size_t *at);
