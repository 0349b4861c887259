// Blocks of sequential scans in the native JPEG decoder, for the files that decode them: T.81 F.2.

#pragma once

#include "jpeg_bits.h"

/// Decodes a symbol that does not fit into its table entry: how far it advances, and its value. Call it after a refill.
/// Returns false for an invalid code.
INLINE bool read_slow(jpeg_reader *r, const jpeg_table *table, uint32_t entry, uint32_t *advance, int32_t *value) {
  jpeg_symbol symbol;
  if (!take_slow(r, table, entry, &symbol)) {
    return false;
  }
  if (symbol.size == 0) {
    *advance = symbol.run == 15 ? 16 : JPEG_ADVANCE_END;
    *value = 0;
    return true;
  }
  *advance = symbol.run + 1;
  *value = take_value(r, symbol.size);
  return true;
}

/// Skips the symbols of a block from zigzag index `k` on, which is below 64.
INLINE bool skip_ac(jpeg_reader *r, const jpeg_table *table, uint32_t k) {
  const uint16_t *skips = table->skips;
  const uint32_t shift = table->skip_shift;
  for (;;) {
    uint32_t entry;
    uint32_t next;
    refill(r);
#define SKIP_STEP                                                                                                      \
  entry = skips[r->bits >> shift];                                                                                     \
  next = k + (entry >> 6);                                                                                             \
  if (next >= 64) {                                                                                                    \
    goto at_end;                                                                                                       \
  }                                                                                                                    \
  consume(r, entry);                                                                                                   \
  k = next;
    SKIP_STEP
    SKIP_STEP
    SKIP_STEP
    SKIP_STEP
#undef SKIP_STEP
    continue;
  at_end:
    if (next == 64 || (next >= 128 && next < 192)) {
      consume(r, entry);
      return true;
    }
    // The block ends between the entry's symbols, or the symbol is too long: consume a single one.
    refill(r);
    const uint32_t single = table->values[r->bits >> (64 - JPEG_VALUE_BITS)];
    uint32_t advance = single >> 8 & 0xFF;
    if (advance == JPEG_ADVANCE_SLOW) {
      int32_t value;
      if (!read_slow(r, table, single, &advance, &value)) {
        return false;
      }
    } else {
      consume(r, single);
    }
    k += advance;
    if (k >= 64) {
      return true;
    }
  }
}

/// Decodes the AC coefficients of a block from zigzag index `k` up to `limit`. Then skips the others, if `skips_rest`.
/// *last is at least the zigzag index of the last coefficient that was decoded. Starts with the 45 bits that a DC
/// difference leaves of a refill.
INLINE bool read_ac(
    jpeg_reader *r, const jpeg_table *table, int16_t *block, const uint16_t *places, uint32_t k, uint32_t limit,
    const bool skips_rest, uint32_t *last) {
  const uint64_t *pairs = table->pairs;
  for (;;) {
    uint64_t entry;
    uint64_t before;
#define VALUE_STEP                                                                                                     \
  entry = pairs[r->bits >> (64 - JPEG_PAIR_BITS)];                                                                     \
  before = r->bits;                                                                                                    \
  consume(r, (uint32_t)entry);                                                                                         \
  block[places[k + (entry >> 8 & 0xFF)]] = (int16_t)(entry >> 32);                                                     \
  k += entry >> 16 & 0xFF;                                                                                             \
  block[places[k]] = (int16_t)(entry >> 48);                                                                           \
  if ((k | (entry & JPEG_PAIR_ENDS)) >= limit) {                                                                       \
    goto at_limit;                                                                                                     \
  }
    VALUE_STEP
    VALUE_STEP
    VALUE_STEP
    VALUE_STEP
#undef VALUE_STEP
    refill(r);
    continue;
  at_limit:
    if (k >= 64 && k < JPEG_ADVANCE_END) {
      // The block is full. What the entry contains after its last coefficient belongs to the next block.
      const uint32_t first = k - (entry >> 16 & 0xFF) + (entry >> 8 & 0xFF);
      const uint32_t ends = entry & JPEG_PAIR_ENDS ? table->end_length : 0;
      const uint32_t length = first >= 64 ? entry >> 24 & JPEG_LENGTH : (entry & JPEG_LENGTH) - ends;
      r->bits = before << length;
      r->count += (uint32_t)(entry & JPEG_LENGTH) - length;
      if (first >= 64) {
        block[places[first]] = (int16_t)(entry >> 32);
      }
      *last = 63;
      return true;
    }
    if (entry & JPEG_PAIR_ENDS) {
      *last = k >= JPEG_ADVANCE_END ? k - JPEG_ADVANCE_END - 1 : k - 1;
      return true;
    }
    if (k >= JPEG_ADVANCE_SLOW) {
      uint32_t advance;
      int32_t value;
      refill(r);
      if (!read_slow(r, table, (uint32_t)(entry >> 32) << 16, &advance, &value)) {
        return false;
      }
      k += advance - JPEG_ADVANCE_SLOW;
      block[places[k]] = (int16_t)value;
      if (k < limit) {
        refill(r);
        continue;
      }
    }
    *last = k >= JPEG_ADVANCE_END ? k - JPEG_ADVANCE_END - 1 : k - 1;
    return k >= 64 || !skips_rest || skip_ac(r, table, k);
  }
}
