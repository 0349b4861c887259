// Appends tokens to a scan of the native JPEG encoder. Private to the encoder.

#ifndef CCODECS_JPEG_ENCODE_TOKENS_H
#define CCODECS_JPEG_ENCODE_TOKENS_H

#include "jpeg_encode.h"

/// More tokens than the coding of an MCU of six blocks, of which each has at most 68, or of a block in one scan.
enum { JPEG_MAX_MCU_TOKENS = 512 };

/// At least what the budget charges for a block in addition to its size.
enum { JPEG_BLOCK_HEADER = 128 };

bool ccodecs_jpeg_scan_add_chunk(jpeg_scan_writer *writer);

/// Makes room for the tokens of an MCU. Returns false if memory is exhausted.
static inline bool ccodecs_jpeg_scan_reserve(jpeg_scan_writer *writer) {
  return (writer->last != NULL && writer->last->count + JPEG_MAX_MCU_TOKENS <= JPEG_TOKENS_PER_CHUNK) ||
         ccodecs_jpeg_scan_add_chunk(writer);
}

/// Returns how many bits follow the code of a token's symbol: the low four bits of the symbol of a run and size or of a
/// size, and the high four of the end of a band, which has no size.
static inline uint32_t ccodecs_jpeg_token_bits(uint32_t token) {
  const uint32_t size = token >> 16 & 15;
  const uint32_t run = token >> 20 & 15;
  return size > 0 || run == 15 ? size : run;
}

static inline void ccodecs_jpeg_put_token(jpeg_scan_writer *writer, uint32_t code, uint32_t symbol, uint32_t bits) {
  writer->last->tokens[writer->last->count++] = code << 24 | symbol << 16 | bits;
  writer->frequencies[code][symbol]++;
}

/// Appends bits without a symbol, or a restart marker.
static inline void ccodecs_jpeg_put_special(jpeg_scan_writer *writer, uint32_t kind, uint32_t symbol, uint32_t bits) {
  writer->last->tokens[writer->last->count++] = kind << 24 | symbol << 16 | bits;
}

/// Returns the number of bits of a magnitude, which is 0 for 0.
static inline uint32_t ccodecs_jpeg_size(uint32_t magnitude) {
  return magnitude == 0 ? 0 : 32 - (uint32_t)__builtin_clz(magnitude);
}

/// Returns the bits that follow the symbol of a value of `size` bits.
static inline uint32_t ccodecs_jpeg_value_bits(int32_t value, uint32_t size) {
  return (uint32_t)(value < 0 ? value - 1 : value) & ((1U << size) - 1);
}

static inline void ccodecs_jpeg_put_dc(jpeg_scan_writer *writer, uint32_t code, int32_t difference) {
  const uint32_t size = ccodecs_jpeg_size((uint32_t)(difference < 0 ? -difference : difference));
  ccodecs_jpeg_put_token(writer, code, size, ccodecs_jpeg_value_bits(difference, size));
}

#endif
