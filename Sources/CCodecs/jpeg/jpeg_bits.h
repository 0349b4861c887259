// The bit reader of the native JPEG decoder, for the files that decode entropy-coded data.

#pragma once

#include "jpeg_decoder.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/// Position of the bit reader. `bits` is left-aligned; the next load overwrites the bits below the first `count`. Only
/// the low 6 bits of `count` are significant, and shifts use no others, so a whole table entry can be subtracted and
/// shifted by.
typedef struct jpeg_reader {
  uint64_t bits;
  uint32_t count;
  const uint8_t *next;
} jpeg_reader;

INLINE jpeg_reader reader_open(const jpeg_input *in) {
  return (jpeg_reader){.bits = in->bits, .count = in->bit_count, .next = in->bytes + in->next};
}

INLINE void reader_close(const jpeg_reader *r, jpeg_input *in) {
  in->bits = r->bits;
  in->bit_count = r->count & 63;
  in->next = (size_t)(r->next - in->bytes);
}

/// Refills `bits` to at least 56 bits.
INLINE void refill(jpeg_reader *r) {
  uint64_t word;
  memcpy(&word, r->next, 8);
  r->bits |= __builtin_bswap64(word) >> (r->count & 63);
  r->next += (~r->count & 63) >> 3;
  r->count |= 56;
}

/// Consumes `count` modulo 64 bits.
INLINE void consume(jpeg_reader *r, uint32_t count) {
  r->bits <<= count & 63;
  r->count -= count;
}

/// Returns the next `count` bits, 1 to 32. Call it after a refill.
INLINE uint32_t take(jpeg_reader *r, uint32_t count) {
  const uint32_t bits = (uint32_t)(r->bits >> (64 - count));
  consume(r, count);
  return bits;
}

/// Returns the signed value of the next `size` bits, 1 to 15 (T.81 F.12).
INLINE int32_t take_value(jpeg_reader *r, uint32_t size) {
  const int32_t bits = (int32_t)take(r, size);
  return bits >> (size - 1) != 0 ? bits : bits - (1 << size) + 1;
}

/// The parts of a decoded symbol.
typedef struct jpeg_symbol {
  uint32_t run;
  uint32_t size;
} jpeg_symbol;

/// Decodes a symbol that does not fit into its table entry. Call it after a refill. Returns false for an invalid code.
INLINE bool take_slow(jpeg_reader *r, const jpeg_table *table, uint32_t entry, jpeg_symbol *symbol) {
  uint32_t length = entry >> 16 & 31;
  *symbol = (jpeg_symbol){.run = entry >> 25 & 15, .size = entry >> 21 & 15};
  if (length == 0) {
    const uint32_t found = ccodecs_jpeg_table_search(table, (uint32_t)(r->bits >> 48));
    if (found == 0) {
      return false;
    }
    length = found >> 8;
    *symbol = (jpeg_symbol){.run = found >> 4 & 15, .size = found & 15};
  }
  consume(r, length);
  return true;
}

/// Returns a reader at a position in bits, with at least 49 bits.
INLINE jpeg_reader reader_at(const uint8_t *bytes, uint64_t position) {
  uint64_t word;
  memcpy(&word, bytes + (position >> 3), 8);
  const uint32_t used = position & 7;
  return (jpeg_reader){
      .bits = __builtin_bswap64(word) << used, .count = 56 - used, .next = bytes + (position >> 3) + 7};
}

/// Decodes a DC difference that does not fit into its table entry. Returns false for an invalid code.
INLINE bool take_long_dc(jpeg_reader *r, const jpeg_table *table, uint32_t entry, int32_t *value) {
  jpeg_symbol symbol;
  *value = 0;
  if (!take_slow(r, table, entry, &symbol)) {
    return false;
  }
  *value = symbol.size == 0 ? 0 : take_value(r, symbol.size);
  return true;
}

/// Decodes the DC difference of a block. Refills first, and leaves at least 45 bits.
INLINE bool take_dc(jpeg_reader *r, const jpeg_table *table, int32_t *value) {
  refill(r);
  const uint32_t entry = table->values[r->bits >> (64 - JPEG_VALUE_BITS)];
  if ((entry >> 8 & 0xFF) != JPEG_ADVANCE_SLOW) {
    consume(r, entry);
    *value = (int16_t)(entry >> 16);
    return true;
  }
  const bool is_good = take_long_dc(r, table, entry, value);
  refill(r);
  return is_good;
}
