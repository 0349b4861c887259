// PNG chunks: a length, a type, a body, and a CRC of type and body. Private to CCodecs.
// Source: PNG specification, section 5.3.

#pragma once

#include "../memory/bytes.h"

enum {
  PNG_SIGNATURE_BYTES = 8,
  PNG_CHUNK_HEADER_BYTES = 8,
  PNG_CRC_BYTES = 4,
  PNG_IHDR_BYTES = 13,
  PNG_CONTROL_BYTES = 26,
  PNG_SEQUENCE_BYTES = 4
};

static const uint8_t ccodecs_png_signature[PNG_SIGNATURE_BYTES] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

/// The origin and the pixel distances of a pass of Adam7 (PNG specification, section 8.1).
typedef struct png_pass {
  uint8_t x, y, across, down;
} png_pass;

static const png_pass ccodecs_png_passes[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                               {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

/// Returns `crc` extended by `count` bytes of the body.
uint32_t ccodecs_png_crc_update(uint32_t crc, const uint8_t *body, size_t count);

/// Returns the CRC of a chunk's type, which ccodecs_png_crc_update extends by the body.
static inline uint32_t ccodecs_png_crc_begin(const uint8_t header[PNG_CHUNK_HEADER_BYTES]) {
  return ccodecs_png_crc_update(0, header + 4, 4);
}

/// Appends a chunk. Returns false if the budget is exhausted.
bool ccodecs_png_append_chunk(
    ccodecs_bytes *bytes, const char *type, const uint8_t *body, size_t count, ccodecs_budget *budget);

/// Appends the chunks of metadata, which precede PLTE. Returns false if the budget is exhausted.
bool ccodecs_png_append_metadata(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget);

/// Returns an upper bound of the bytes that ccodecs_png_append_metadata charges in addition to the metadata's.
size_t ccodecs_png_metadata_estimate(const ccodecs_metadata *metadata);
