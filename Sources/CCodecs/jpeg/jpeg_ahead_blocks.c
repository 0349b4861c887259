// Decoding the units that were found ahead (jpeg_ahead.c), in the native JPEG decoder.
//
// It is known where each block begins, so nothing is read after the last coefficient that is needed, and blocks do not
// wait for each other. They have no errors. Where a machine decodes them in lockstep, only their DC coefficients are
// decoded here.

#include "jpeg_ahead.h"
#include "jpeg_blocks.h"

#include <string.h>

// Bit layout of an entry of the steps, which contains up to two coefficients of jpeg_table.pairs. Zero bits to consume:
// even one symbol does not fit, and the first coefficient describes it as in jpeg_table.pairs.
//
//   0 to 5    bits to consume; 63 when the block ends
//   8 to 15   how far the first coefficient is
//   16 to 23  how far the second one is
//   24 to 31  how far to advance; STEP_END more when the block ends
//   32 to 63  the two coefficients, 16 bits each
//
// The reader's bits are inverted, and shifting by 63 clears them. An index of zeros corresponds to a code of ones,
// which does not exist, so that its entry consumes nothing: hence steps after the end of a block do nothing.
enum {
  STEP_END = 128,
  STEP_NOWHERE = 64, ///< Added to any zigzag index, it gives one whose place is never read.
  STEP_CLEAR = 63,   ///< Shifts out all bits but the lowest, which is zero.
};

/// Returns the entry of the steps for one of jpeg_table.pairs. Written without branches, which would mispredict.
static inline uint64_t step_of(uint64_t pair) {
  const uint64_t first = pair >> 8 & 0xFF, both = pair >> 16 & 0xFF;
  const uint64_t ends = (pair & JPEG_PAIR_ENDS) != 0 ? STEP_CLEAR | (uint64_t)STEP_END << 24 : pair & JPEG_LENGTH;
  const uint64_t usual = ends + (both << 24) + (first << 8 | both << 16);
  const uint64_t nowhere = STEP_NOWHERE << 8 | STEP_NOWHERE << 16;
  const uint64_t end = STEP_CLEAR | nowhere | (uint64_t)STEP_END << 24;
  const uint64_t other = first == JPEG_ADVANCE_SLOW ? nowhere : end;
  return (first <= 16 ? usual : other) | (pair & 0xFFFFFFFF00000000);
}

void ccodecs_jpeg_ahead_list_steps(void *steps, const jpeg_table *table) {
  uint64_t *entries = steps;
  for (uint32_t i = 0; i < JPEG_STEPS; i++) {
    entries[~i & (JPEG_STEPS - 1)] = step_of(table->pairs[i]);
  }
}

/// Returns the inverted bits from a position on, at least 57.
INLINE uint64_t inverted_at(const uint8_t *bytes, uint64_t position) {
  uint64_t word;
  memcpy(&word, bytes + (position >> 3), 8);
  return ~(__builtin_bswap64(word) << (position & 7)) & ~(uint64_t)0 << 7;
}

/// Decodes the rest of a block: the coefficients before `limit`. `position` is where they begin, and `bits` are at
/// least 46 of the bits there, inverted. Returns one more than the last zigzag index that may be nonzero.
///
/// Four steps are taken without a branch, so that the processor goes on to the next block while it waits for the
/// lookups of this one. What it finds after the coefficients that are needed goes to a place that is never read.
INLINE uint32_t take_ac(
    const uint8_t *bytes, uint64_t position, uint64_t bits, const uint64_t *steps, const jpeg_table *table,
    int16_t *block, const uint16_t *places, const uint32_t limit) {
  uint32_t k = 1;
  for (;;) {
    uint64_t entry;
    uint32_t length = 0;
#define TAKE_STEP                                                                                                      \
  entry = steps[bits >> (64 - JPEG_PAIR_BITS)];                                                                        \
  bits <<= entry & JPEG_LENGTH;                                                                                        \
  length += (uint8_t)entry;                                                                                            \
  block[places[k + (uint8_t)(entry >> 8)]] = (int16_t)(entry >> 32);                                                   \
  block[places[k + (uint8_t)(entry >> 16)]] = (int16_t)(entry >> 48);                                                  \
  k += (uint8_t)(entry >> 24);
    TAKE_STEP
    TAKE_STEP
    TAKE_STEP
    TAKE_STEP
#undef TAKE_STEP
    if (k >= limit) {
      return k >= STEP_END ? k - STEP_END : k;
    }
    position += length;
    if ((uint8_t)entry == 0) {
      jpeg_reader r = reader_at(bytes, position);
      const uint32_t count = r.count;
      uint32_t advance = 0;
      int32_t value = 0;
      read_slow(&r, table, (uint32_t)(entry >> 32) << 16, &advance, &value);
      position += count - r.count;
      block[places[k + advance]] = (int16_t)value;
      k += advance;
      if (k >= limit) {
        return k >= JPEG_ADVANCE_END ? k - JPEG_ADVANCE_END : k;
      }
    }
    bits = inverted_at(bytes, position);
  }
}

/// Decodes units that were found ahead. If `in_tiles`, it only records where coefficients other than DC begin.
INLINE void take_units(jpeg_decoder *d, uint32_t mcu_count, const uint32_t limit, const bool in_tiles) {
  jpeg_scan *scan = &d->scan;
  jpeg_ahead *ahead = d->ahead;
  const uint8_t *bytes = d->in.bytes;
  const uint32_t *end = ahead->ends + ahead->next;
  const size_t tile_size = d->tile_size;
  const uint16_t *places = d->places;
  const jpeg_block_plan *plans_end = scan->blocks + scan->block_count;
  const uint32_t first = scan->mcu_x % JPEG_LANES;
  uint32_t predictions[3];
  memcpy(predictions, scan->predictions, sizeof predictions);
  uint64_t begin = ahead->begin;
  for (uint32_t done = 0; done < mcu_count; done++) {
    for (const jpeg_block_plan *plan = scan->blocks; plan < plans_end; plan++) {
      const uint32_t position = (first + done) * plan->across + plan->column;
      int16_t *block = plan->tiles + position / JPEG_LANES * tile_size + position % JPEG_LANES;
      const uint64_t bits = inverted_at(bytes, begin);
      const uint32_t entry = plan->dc->values[~bits >> (64 - JPEG_VALUE_BITS)];
      uint32_t length = entry & JPEG_LENGTH;
      int32_t difference = (int16_t)(entry >> 16);
      if ((entry >> 8 & 0xFF) == JPEG_ADVANCE_SLOW) {
        jpeg_reader r = reader_at(bytes, begin);
        const uint32_t count = r.count;
        take_long_dc(&r, plan->dc, entry, &difference);
        length = count - r.count;
      }
      const uint32_t dc = predictions[plan->component] + (uint32_t)difference;
      predictions[plan->component] = dc;
      block[0] = (int16_t)dc;
      if (in_tiles) {
        ahead->begins[&plan->extents[position / JPEG_LANES] - d->extents][position % JPEG_LANES] =
            (uint32_t)begin + length;
      } else if (limit > 1) {
        const uint64_t left = length <= JPEG_VALUE_BITS ? bits << length : inverted_at(bytes, begin + length);
        const uint32_t last =
            take_ac(bytes, begin + length, left, ahead->steps[plan->component], plan->ac, block, places, limit) - 1;
        uint16_t *extent = &plan->extents[position / JPEG_LANES];
        *extent = last > *extent ? (uint16_t)last : *extent;
      }
      begin = *end++;
    }
  }
  memcpy(scan->predictions, predictions, sizeof predictions);
  ahead->begin = begin;
  ahead->next += mcu_count * scan->block_count;
}

/// Decodes the coefficients of units whose DC coefficients are decoded, two tiles at a time.
static void take_tiles(jpeg_decoder *d, uint32_t mcu_count) {
  const jpeg_scan *scan = &d->scan;
  const jpeg_ahead *ahead = d->ahead;
  const uint32_t first = scan->mcu_x % JPEG_LANES;
  jpeg_ahead_tile tiles[2];
  uint32_t count = 0;
  for (uint32_t i = 0; i < scan->block_count; i++) {
    const jpeg_block_plan *plan = &scan->blocks[i];
    if (plan->column != 0) {
      continue; // the first block of each row of a unit represents the row
    }
    const uint32_t begin = first * plan->across;
    const uint32_t end = begin + mcu_count * plan->across;
    for (uint32_t tile = begin / JPEG_LANES; tile * JPEG_LANES < end; tile++) {
      const uint32_t from = begin > tile * JPEG_LANES ? begin - tile * JPEG_LANES : 0;
      const uint32_t to = end - tile * JPEG_LANES < JPEG_LANES ? end - tile * JPEG_LANES : JPEG_LANES;
      tiles[count++] = (jpeg_ahead_tile){
          .begins = ahead->begins[&plan->extents[tile] - d->extents],
          .mask = (1u << to) - (1u << from),
          .steps = ahead->steps[plan->component],
          .table = plan->ac,
          .coefficients = plan->tiles + (size_t)tile * d->tile_size,
          .extent = &plan->extents[tile],
          .places = d->places,
      };
      if (count == 2) {
        ahead->lockstep->take(d->in.bytes, tiles);
        count = 0;
      }
    }
  }
  if (count == 1) {
    tiles[1] = tiles[0];
    tiles[1].mask = 0;
    ahead->lockstep->take(d->in.bytes, tiles);
  }
}

typedef void (*jpeg_take)(jpeg_decoder *d, uint32_t mcu_count);

#define TAKE(name, limit, in_tiles)                                                                                    \
  static void name(jpeg_decoder *d, uint32_t mcu_count) {                                                              \
    take_units(d, mcu_count, limit, in_tiles);                                                                         \
  }

TAKE(take_reduced, d->limit, false)
TAKE(take_dc_only, 1, false)
TAKE(take_dc_first, 1, true)

static jpeg_take choose(uint32_t limit, bool in_tiles) {
  return in_tiles ? take_dc_first : limit == 1 ? take_dc_only : take_reduced;
}

void ccodecs_jpeg_ahead_take(jpeg_decoder *d, uint32_t mcu_count) {
  const bool in_tiles = d->ahead->lockstep != NULL;
  choose(d->limit, in_tiles)(d, mcu_count);
  if (in_tiles) {
    take_tiles(d, mcu_count);
  }
}
