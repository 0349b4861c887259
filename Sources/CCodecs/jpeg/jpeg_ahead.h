// Finding the blocks of sequential scans ahead of decoding them, in the native JPEG decoder: when it is done, and what
// the files that do it share. Private to CCodecs.

#pragma once

#include "jpeg_decoder.h"

// MARK: Sizes

// When blocks of sequential scans are found ahead (jpeg_ahead.c). Tests do it at every reduced size. At full size every
// place of a tile is needed, and the steps have none to write to that is never read.
#if defined(CCODECS_JPEG_AHEAD_ALWAYS)
#define JPEG_AHEAD_SCALE_MAX 7
#define JPEG_AHEAD_PIXELS_MIN(n, lockstep) 1
#define JPEG_AHEAD_BYTES_MIN 1
#define JPEG_AHEAD_BLOCKS_MIN 8
#define JPEG_AHEAD_MEAN_MIN(n, in_lockstep) 1
#else
#define JPEG_AHEAD_SCALE_MAX 3 ///< The maximum N of N/8, unless blocks are decoded in lockstep.
#define JPEG_AHEAD_PIXELS_MIN(n, lockstep) ((lockstep) != NULL ? (lockstep)->pixels_min : (n) < 3 ? 250000u : 1000000u)
#define JPEG_AHEAD_BYTES_MIN 49152 ///< What must have arrived, unless it is the end.
#define JPEG_AHEAD_BLOCKS_MIN 64   ///< For each reader, because some blocks are read twice.
/// The minimum of the mean length of blocks, in bits. Needed coefficients are decoded after their block was found; that
/// is faster only if the other coefficients are many.
#define JPEG_AHEAD_MEAN_MIN(n, in_lockstep)                                                                            \
  ((n) == 1 ? 3u : (in_lockstep) ? ((n) == 2 ? 8u : (n) == 3 ? 16u : 28u) : ((n) == 2 ? 32u : 44u))
#endif

enum {
  JPEG_AHEAD_INPUT_BYTES = 65536, ///< Capacity of the input buffer when blocks are found ahead.
  JPEG_AHEAD_READERS = 6,         ///< Readers in lockstep.
  JPEG_AHEAD_BLOCKS = 4096,       ///< Maximum blocks that each of them records.
  JPEG_AHEAD_BITS = 12,           ///< Index bits of their tables.
};

// MARK: Lookups

// Bit layout of an entry of the lookup tables. Zero: not even one symbol fits.
//
//   0 to 5    bits to consume; 63 when the block ends, or when a DC difference does not fit
//   6 to 9    bits to consume when the block ends
//   10 to 15  how far to advance in zigzag order
//
// A round adds up its entries. The reader's bits are inverted, and shifting by 63 clears them; an index of zeros
// corresponds to a code of ones, which does not exist, so its entry is zero. Hence the rest of a round does nothing
// after the end of a block, without a branch.
enum {
  JPEG_AHEAD_LOOKUPS = 4,  ///< Lookups of a round.
  JPEG_AHEAD_LONGEST = 15, ///< Longest entry: (LOOKUPS - 1) * LONGEST + BITS bits are in the reader, 57.
  JPEG_AHEAD_END = 63,
  JPEG_AHEAD_LENGTH_SHIFT = 6,
  JPEG_AHEAD_ADVANCE_SHIFT = 10,
  JPEG_AHEAD_SUM_LENGTHS = 0x3FF, ///< The bits of the sum that contain lengths.
};

// What the sum of a round's entries means: the bits to consume, and one of these if the block ended in the round, or if
// it takes more than the lookups.
#define JPEG_AHEAD_OUTCOME_BLOCK (1ull << 32)
#define JPEG_AHEAD_OUTCOME_SLOW (1ull << 63)

// MARK: State

/// A state of a reader that finds blocks ahead: which of a unit's blocks it is in, and whether at its start.
typedef struct jpeg_ahead_state {
  const uint16_t *first;                  ///< The table of a round's first lookup,
  const uint16_t *rest;                   ///< and of the others.
  const struct jpeg_ahead_state *next[2]; ///< The state after a round, and after one in which the block ended.
  const jpeg_table *dc;                   ///< NULL after the DC difference.
  const jpeg_table *ac;
} jpeg_ahead_state;

/// Some of the blocks of a tile, whose coefficients are to be decoded, except DC.
typedef struct jpeg_ahead_tile {
  const uint32_t *begins; ///< Positions in bits, by block.
  uint32_t mask;          ///< Has a bit for each of the 16 blocks.
  const void *steps;
  const jpeg_table *table;
  int16_t *coefficients;
  uint16_t *extent;
  const uint16_t *places; ///< Those of jpeg_decoder.
} jpeg_ahead_tile;

/// How a machine decodes in lockstep the blocks that were found.
typedef struct jpeg_ahead_lockstep {
  /// Fills the table of what one step does, for a table of AC coefficients.
  void (*list_steps)(void *steps, const jpeg_table *table);
  /// Decodes the blocks of two tiles, and raises `extent` where a coefficient is not zero. `mask` may be 0.
  void (*take)(const uint8_t *bytes, const jpeg_ahead_tile tiles[2]);
  uint32_t pixels_min; ///< The size of images from which on that is faster.
} jpeg_ahead_lockstep;

/// Blocks of a sequential scan that were found ahead of decoding them (jpeg_ahead.c).
struct jpeg_ahead {
  uint64_t begin;       ///< Position in the input buffer of the next block, in bits.
  uint32_t next;        ///< Its index in `ends`,
  uint32_t count;       ///< and the number of blocks found. Both count whole units.
  uint32_t block_count; ///< Blocks in a unit.
  uint32_t period;      ///< After how many blocks of a unit the tables repeat.
  uint32_t mean_bits;   ///< Bits of a block, on average of those decoded last; 0 before the first.
  uint32_t mean_min;    ///< The average from which finding blocks ahead is faster; at least 1.
  uint32_t misses;
  const uint16_t *first_tables[3]; ///< By component of the scan.
  const uint16_t *rest_tables[3];
  const uint64_t *steps[3]; ///< What the steps of a block's decoding do, except at 1/8.
  jpeg_ahead_state states[2 * JPEG_MAX_MCU_BLOCKS];
  uint64_t outcomes[1024]; ///< By the lower bits of the sum of a round's entries.
  uint16_t tables[6 << JPEG_AHEAD_BITS];
  uint64_t step_tables[3][JPEG_STEPS];
  const jpeg_ahead_lockstep *lockstep;                         ///< NULL when blocks are decoded one by one.
  uint32_t begins[JPEG_MAX_MCU_BLOCKS][JPEG_LANES];            ///< By tile, where coefficients other than DC begin.
  uint32_t ends[JPEG_AHEAD_READERS * (JPEG_AHEAD_BLOCKS + 1)]; ///< Where each block ends.
};

// jpeg_ahead.c

/// Returns whether finding blocks ahead makes decoding at N/8 faster. Call it after the header is read.
bool ccodecs_jpeg_ahead_is_useful(const jpeg_decoder *d, uint32_t n);

/// Prepares the current scan for that. Without room in the budget, d->ahead stays NULL.
void ccodecs_jpeg_ahead_start(jpeg_decoder *d);

/// Takes note of the length of units that were decoded without being found ahead.
void ccodecs_jpeg_ahead_note(jpeg_ahead *ahead, uint64_t bit_count, uint32_t unit_count);

/// Fills the input, finds the units at the start of it, and moves it after them. Returns CCODECS_OK, also when there
/// are none because that is not possible or not worthwhile, or CCODECS_NEEDS_INPUT when more bytes should arrive first.
///
/// The input must not be filled until all units are decoded. They have no errors.
ccodecs_status ccodecs_jpeg_ahead_find(jpeg_ahead *ahead, jpeg_input *in, ccodecs_input *window);

// jpeg_ahead_tables.c

/// Fills the tables of the scan's components, and the outcomes. `has_steps`: blocks have coefficients other than DC.
void ccodecs_jpeg_ahead_fill_tables(jpeg_ahead *ahead, const jpeg_scan *scan, bool has_steps);

// jpeg_ahead_blocks.c

/// Fills the table of what one step of decoding a block does, for a table of AC coefficients.
void ccodecs_jpeg_ahead_list_steps(void *steps, const jpeg_table *table);

/// Decodes the next `mcu_count` of the units that were found ahead, which are in the same group.
void ccodecs_jpeg_ahead_take(jpeg_decoder *d, uint32_t mcu_count);

// jpeg_ahead_blocks_avx2.c

/// Returns how to decode blocks in lockstep at N/8; NULL if this machine does not.
const jpeg_ahead_lockstep *ccodecs_jpeg_ahead_lockstep(uint32_t n);
