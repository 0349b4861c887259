// Appends tokens to a scan of the native JPEG encoder. Private to the encoder.

#pragma once

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

static inline void ccodecs_jpeg_put_token(jpeg_scan_writer *writer, uint32_t code, uint32_t symbol, uint32_t bits) {
  writer->last->tokens[writer->last->count++] = code << 24 | symbol << 16 | bits;
}

/// Appends bits without a symbol.
static inline void ccodecs_jpeg_put_raw(jpeg_scan_writer *writer, uint32_t count, uint32_t bits) {
  ccodecs_jpeg_put_token(writer, JPEG_TOKEN_RAW, count, bits);
}

static inline void ccodecs_jpeg_put_restart(jpeg_scan_writer *writer, uint32_t number) {
  writer->last->has_restarts = true;
  ccodecs_jpeg_put_token(writer, JPEG_TOKEN_RESTART, number, 0);
}

/// Returns the number of bits of a magnitude, which is 0 for 0.
static inline uint32_t ccodecs_jpeg_size(uint32_t magnitude) {
  return magnitude == 0 ? 0 : 32 - (uint32_t)__builtin_clz(magnitude);
}

/// Returns the bits that follow the symbol of a value of `size` bits.
static inline uint32_t ccodecs_jpeg_value_bits(int32_t value, uint32_t size) {
  return (uint32_t)(value < 0 ? value - 1 : value) & ((1U << size) - 1);
}

/// The size and the bits of each value from -1024 to 1023, as in a token.
extern const uint32_t ccodecs_jpeg_value_tokens[2048];

static inline void ccodecs_jpeg_put_dc(jpeg_scan_writer *writer, uint32_t code, int32_t difference) {
  const uint32_t size = ccodecs_jpeg_size((uint32_t)(difference < 0 ? -difference : difference));
  ccodecs_jpeg_put_token(writer, code, size, ccodecs_jpeg_value_bits(difference, size));
}

/// Appends the tokens of a block's AC coefficients.
static inline void ccodecs_jpeg_put_ac(jpeg_scan_writer *writer, uint32_t code, const jpeg_block *block) {
  uint32_t *end = writer->last->tokens + writer->last->count;
  uint32_t next = 1;
  for (uint64_t mask = block->mask; mask != 0; mask &= mask - 1) {
    const uint32_t k = (uint32_t)__builtin_ctzll(mask);
    uint32_t run = k - next;
    next = k + 1;
    for (; run > 15; run -= 16) {
      *end++ = code << 24 | 0xF0 << 16;
    }
    const int32_t level = block->levels[ccodecs_jpeg_transposed_zigzag[k]];
    *end++ = ccodecs_jpeg_value_tokens[level + 1024] + (run << 20 | code << 24);
  }
  if (next < JPEG_BLOCK) {
    *end++ = code << 24;
  }
  writer->last->count = (uint32_t)(end - writer->last->tokens);
}
