// Finding the blocks of a sequential scan ahead of decoding them, in the native JPEG decoder.
//
// A reader of Huffman codes spends most of its time waiting for its own lookups, because each one starts where the one
// before it ends. Several readers in one thread do not wait for each other. So the buffered bytes are divided into as
// many parts as there are readers. The readers run in lockstep and record where each block ends. Decoding then starts
// every block from its recorded position, which takes another wait away, and never reads what it does not need.
//
// Only the first reader starts at a block. The others start at an arbitrary byte as if a unit began there. Huffman
// codes synchronize by themselves: after some tens of blocks such a reader has the right bits, and the right place in
// the unit. When the reader before it reaches the same end of a block at the same place in the unit, everything from
// there on is what that reader would have recorded itself. What a reader recorded before that is dropped. A reader that
// is never met costs time and nothing else: its part is read again.
//
// Only what is certainly sound is recorded: a block that has an invalid code, or that ends after the buffered bytes, is
// left to the plain reader, as is everything around it. So errors have a single source.

#include "jpeg_ahead.h"
#include "jpeg_bits.h"

#include <cinstructions.h>
#include <string.h>

enum {
  AHEAD_SLICE = 64,     ///< Blocks by which a reader goes on to meet the next one.
  AHEAD_MARGIN = 24,    ///< Bytes at the end of the buffer that are left alone, because rounds load 8 at a time.
  AHEAD_MISSES_MAX = 6, ///< When the scan is left to the plain reader: 2 for a failure to meet, -1 for a success.
  BLOCK_FULL = 64 << JPEG_AHEAD_ADVANCE_SHIFT,
};

// MARK: States

/// Lists the states of a reader: each block's first lookup, and its others.
static void list_states(jpeg_ahead *ahead, const jpeg_scan *scan) {
  for (uint32_t i = 0; i < scan->block_count; i++) {
    const jpeg_block_plan *plan = &scan->blocks[i];
    jpeg_ahead_state *state = &ahead->states[2 * i];
    const jpeg_ahead_state *next = &ahead->states[2 * ((i + 1) % scan->block_count)];
    state[0] = (jpeg_ahead_state){
        .first = ahead->first_tables[plan->component],
        .rest = ahead->rest_tables[plan->component],
        .next = {&state[1], next},
        .dc = plan->dc,
        .ac = plan->ac,
    };
    state[1] = state[0];
    state[1].first = state[1].rest;
    state[1].dc = NULL;
  }
}

/// Returns after how many blocks a unit's tables repeat, so that places that far apart are the same to a reader.
static uint32_t period_of(const jpeg_scan *scan) {
  for (uint32_t period = 1; period < scan->block_count; period++) {
    bool repeats = true;
    for (uint32_t i = 0; i < scan->block_count; i++) {
      const jpeg_block_plan *other = &scan->blocks[(i + period) % scan->block_count];
      repeats = repeats && scan->blocks[i].dc == other->dc && scan->blocks[i].ac == other->ac;
    }
    if (repeats) {
      return period;
    }
  }
  return scan->block_count;
}

// MARK: Life

bool ccodecs_jpeg_ahead_is_useful(const jpeg_decoder *d, uint32_t n) {
  const uint64_t pixels = (uint64_t)d->base.header.width * d->base.header.height;
  const jpeg_ahead_lockstep *lockstep = ccodecs_jpeg_ahead_lockstep(n);
  return !d->is_progressive && !d->is_multiscan && d->restart_interval == 0 && !d->is_short &&
         (n <= JPEG_AHEAD_SCALE_MAX || lockstep != NULL) && pixels >= JPEG_AHEAD_PIXELS_MIN(n, lockstep);
}

static const jpeg_ahead_lockstep *lockstep_of(uint32_t n) {
#if defined(CCODECS_JPEG_AHEAD_ALWAYS)
  // Tests decode every other image block by block, so that they compare both ways.
  static _Atomic uint32_t starts;
  if (starts++ % 2 == 1) {
    return NULL;
  }
#endif
  return ccodecs_jpeg_ahead_lockstep(n);
}

void ccodecs_jpeg_ahead_start(jpeg_decoder *d) {
  jpeg_ahead *ahead = ccodecs_allocate(d->base.budget, sizeof *ahead);
  d->ahead = ahead;
  if (ahead == NULL) {
    return;
  }
  ahead->lockstep = lockstep_of(d->n);
  const jpeg_scan *scan = &d->scan;
  ccodecs_jpeg_ahead_fill_tables(ahead, scan, d->n > 1);
  list_states(ahead, scan);
  ahead->period = period_of(scan);
  ahead->block_count = scan->block_count;
  ahead->mean_bits = 0;
  ahead->mean_min = JPEG_AHEAD_MEAN_MIN(d->n, ahead->lockstep != NULL);
  ahead->misses = 0;
  ahead->next = 0;
  ahead->count = 0;
}

// MARK: Readers

/// A reader's place.
typedef struct ahead_reader {
  uint64_t place;   ///< Position in bits, and above bit 32 the number of recorded blocks.
  uint64_t stop;    ///< A position that ends the rounds.
  uint32_t advance; ///< Zigzag index in the block, << JPEG_AHEAD_ADVANCE_SHIFT.
  bool is_lost;     ///< The code at its position is invalid.
  const jpeg_ahead_state *state;
  uint32_t *ends; ///< Where each block ends.
} ahead_reader;

static uint64_t position_of(const ahead_reader *r) {
  return (uint32_t)r->place;
}

static uint32_t count_of(const ahead_reader *r) {
  return (uint32_t)(r->place >> 32);
}

/// Consumes one symbol at the reader's position. Returns whether the reader is still in the block.
static bool read_symbol(ahead_reader *r, const uint8_t *bytes) {
  const bool is_dc = r->state->dc != NULL;
  const jpeg_table *table = is_dc ? r->state->dc : r->state->ac;
  jpeg_reader reader = reader_at(bytes, position_of(r));
  const uint32_t count = reader.count;
  const uint32_t entry = table->values[reader.bits >> (64 - JPEG_VALUE_BITS)];
  uint32_t advance = entry >> 8 & 0xFF;
  if (advance == JPEG_ADVANCE_SLOW) {
    jpeg_symbol symbol;
    if (!take_slow(&reader, table, entry, &symbol)) {
      r->is_lost = true;
      return false;
    }
    consume(&reader, symbol.size);
    const bool is_last = !is_dc && symbol.size == 0 && symbol.run < 15;
    advance = is_last ? JPEG_ADVANCE_END : symbol.run + 1;
  } else {
    consume(&reader, entry & JPEG_LENGTH);
  }
  r->place += count - reader.count;
  r->advance += advance << JPEG_AHEAD_ADVANCE_SHIFT;
  const bool is_end = !is_dc && r->advance >= BLOCK_FULL;
  if (is_end) {
    r->ends[count_of(r)] = (uint32_t)r->place;
    r->place += JPEG_AHEAD_OUTCOME_BLOCK;
    r->advance = 0;
  }
  r->state = r->state->next[is_end];
  return !is_end;
}

/// Does the work of a round that lookups alone cannot do: `sum` is that of the round's entries.
static __attribute__((noinline)) void read_slowly(ahead_reader *r, const uint8_t *bytes, uint32_t sum) {
  bool is_inside = read_symbol(r, bytes);
  while (is_inside && sum >= BLOCK_FULL) { // the block ends between an entry's symbols
    is_inside = read_symbol(r, bytes);
  }
}

/// Hides how a value was computed, so that the compiler keeps it in a register instead of computing it anew.
#define OPAQUE(value) __asm__("" : "+r"(value))

/// Reads up to `rounds` rounds with `count` readers in lockstep, until one of them passes its stop. Each records at
/// most one block in a round.
///
/// The loops over readers must be unrolled, so that the readers' states are in registers.
INLINE void read_rounds(
    const jpeg_ahead *ahead, const uint8_t *bytes, ahead_reader *readers, const uint32_t count, uint32_t rounds) {
  ahead_reader r[JPEG_AHEAD_READERS];
  uint64_t mask = ~(uint64_t)0 << 7; // the highest 57 bits are always there
  uint64_t shift = 64 - JPEG_AHEAD_BITS;
  OPAQUE(mask);
  OPAQUE(shift);
  memcpy(r, readers, count * sizeof *r);
  for (bool is_live = true; is_live && rounds > 0; rounds--) {
    uint64_t bits[JPEG_AHEAD_READERS];
    uint32_t sums[JPEG_AHEAD_READERS];
    const uint16_t *tables[JPEG_AHEAD_READERS];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < count; i++) {
      uint64_t word;
      memcpy(&word, bytes + ((uint32_t)r[i].place >> 3), 8);
      bits[i] = ~(__builtin_bswap64(word) << (r[i].place & 7)) & mask;
      OPAQUE(bits[i]);
      tables[i] = r[i].state->rest;
      const uint32_t entry = r[i].state->first[bits[i] >> shift];
      bits[i] <<= entry & 63;
      sums[i] = r[i].advance + entry;
    }
#pragma GCC unroll 8
    for (uint32_t step = 1; step < JPEG_AHEAD_LOOKUPS; step++) {
#pragma GCC unroll 8
      for (uint32_t i = 0; i < count; i++) {
        const uint32_t entry = tables[i][bits[i] >> shift];
        bits[i] <<= entry & 63;
        sums[i] += entry;
        OPAQUE(sums[i]);
      }
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < count; i++) {
      const uint64_t outcome = ahead->outcomes[sums[i] & JPEG_AHEAD_SUM_LENGTHS];
      if (__builtin_expect((int64_t)outcome < 0, 0) || __builtin_expect(sums[i] >= BLOCK_FULL, 0)) {
        read_slowly(&r[i], bytes, sums[i]);
        is_live = is_live && !r[i].is_lost;
      } else {
        const uint32_t is_end = (uint32_t)(outcome >> 32);
        uint32_t *end = &r[i].ends[r[i].place >> 32];
        r[i].place += outcome;
        *end = (uint32_t)r[i].place;
        r[i].advance = sums[i] & ~(uint32_t)JPEG_AHEAD_SUM_LENGTHS & (is_end - 1);
        r[i].state = r[i].state->next[is_end];
      }
      is_live = is_live && (uint32_t)r[i].place < r[i].stop;
    }
  }
  memcpy(readers, r, count * sizeof *r);
}

typedef void (*ahead_read)(const jpeg_ahead *ahead, const uint8_t *bytes, ahead_reader *readers, uint32_t rounds);

#define READ(name, count)                                                                                              \
  static void name(const jpeg_ahead *ahead, const uint8_t *bytes, ahead_reader *readers, uint32_t rounds) {            \
    read_rounds(ahead, bytes, readers, count, rounds);                                                                 \
  }

READ(read_all, JPEG_AHEAD_READERS)
READ(read_one, 1)

#if defined(__x86_64__)
// With BMI2 a shift takes its count from any register.
#define READ_BMI2(name, count) __attribute__((target("bmi,bmi2"))) READ(name, count)

READ_BMI2(read_all_bmi2, JPEG_AHEAD_READERS)
READ_BMI2(read_one_bmi2, 1)

static ahead_read choose(bool is_one) {
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("bmi2")) {
    return is_one ? read_one_bmi2 : read_all_bmi2;
  }
  return is_one ? read_one : read_all;
}
#else
static ahead_read choose(bool is_one) {
  return is_one ? read_one : read_all;
}
#endif

// MARK: Parts

/// Returns whether a reader can go on: its code is valid, and its record has room.
static bool can_go_on(const ahead_reader *r, uint64_t end) {
  return !r->is_lost && position_of(r) < end && count_of(r) < JPEG_AHEAD_BLOCKS;
}

void ccodecs_jpeg_ahead_note(jpeg_ahead *ahead, uint64_t bit_count, uint32_t unit_count) {
  if (unit_count > 0) {
    const uint32_t mean = (uint32_t)(bit_count / ((uint64_t)unit_count * ahead->block_count));
    ahead->mean_bits = ahead->mean_bits == 0 ? mean : (3 * ahead->mean_bits + mean) / 4;
  }
}

/// Puts a lost reader that began at an arbitrary place on the next bit, as if a unit began there.
static void restart(ahead_reader *r, const jpeg_ahead *ahead) {
  r->place = position_of(r) + 1;
  r->advance = 0;
  r->state = ahead->states;
  r->is_lost = false;
}

/// Reads all parts in lockstep until each reader but the last has passed its part, or one can't go on.
static void read_parts(const jpeg_ahead *ahead, const uint8_t *bytes, ahead_reader *readers, uint64_t end) {
  const ahead_read read = choose(false);
  uint32_t left = JPEG_AHEAD_READERS - 1;
  while (left > 0) {
    uint32_t rounds = JPEG_AHEAD_BLOCKS;
    for (uint32_t i = 0; i < JPEG_AHEAD_READERS; i++) {
      const uint32_t room = JPEG_AHEAD_BLOCKS - count_of(&readers[i]);
      rounds = room < rounds ? room : rounds;
    }
    read(ahead, bytes, readers, rounds);
    for (uint32_t i = 0; i < JPEG_AHEAD_READERS; i++) {
      if (readers[i].is_lost && i > 0) {
        restart(&readers[i], ahead);
      }
      if (!can_go_on(&readers[i], end)) {
        return;
      }
      if (position_of(&readers[i]) >= readers[i].stop) {
        readers[i].stop = end;
        left--;
      }
    }
  }
}

/// Returns the index of the first block that ends at `position` or later.
static uint32_t index_of(const ahead_reader *r, uint32_t position) {
  uint32_t low = 0;
  uint32_t high = count_of(r);
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (r->ends[middle] < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Finds the first end of a block that both readers recorded, at the same place in a unit, after the first *count_a
/// and *count_b blocks. Sets these to the number of blocks that each recorded up to there. Returns false when there is
/// none, and sets them to where to continue.
static bool find_common(
    const ahead_reader *a, const ahead_reader *b, uint32_t period, uint32_t *count_a, uint32_t *count_b) {
  uint32_t i = *count_a;
  uint32_t j = *count_b;
  const uint32_t max_i = count_of(a);
  const uint32_t max_j = count_of(b);
  while (i < max_i && j < max_j) {
    const uint32_t x = a->ends[i];
    const uint32_t y = b->ends[j];
    if (x == y && i % period == j % period) {
      *count_a = i + 1;
      *count_b = j + 1;
      return true;
    }
    i += x <= y;
    j += y <= x;
  }
  *count_a = i;
  *count_b = j;
  return false;
}

/// Lets reader `a` go on until it meets reader `b` after its first *count_a blocks. Returns false when it does not;
/// otherwise sets the number of blocks that each recorded up to there.
static bool meet(
    const jpeg_ahead *ahead, const uint8_t *bytes, ahead_reader *a, const ahead_reader *b, uint64_t end,
    uint32_t *count_a, uint32_t *count_b) {
  const ahead_read read = choose(true);
  *count_b = 0;
  if (count_of(b) == 0) {
    return false;
  }
  const uint64_t last = b->ends[count_of(b) - 1];
  const uint32_t first = index_of(a, b->ends[0]);
  *count_a = first > *count_a ? first : *count_a;
  while (!find_common(a, b, ahead->period, count_a, count_b)) {
    const uint32_t room = JPEG_AHEAD_BLOCKS - count_of(a);
    if (!can_go_on(a, end) || position_of(a) >= last) {
      return false;
    }
    a->stop = end;
    read(ahead, bytes, a, room < AHEAD_SLICE ? room : AHEAD_SLICE);
  }
  return true;
}

/// Joins the readers' records into one list of `ahead->count` blocks. Returns the number of readers in it.
static uint32_t join_parts(jpeg_ahead *ahead, const uint8_t *bytes, ahead_reader *readers, uint64_t end) {
  uint32_t first = 0; // the reader's first block that belongs to the list
  ahead->count = 0;
  for (uint32_t i = 0;; i++) {
    uint32_t count = first;
    uint32_t next = 0;
    const bool has_next =
        i + 1 < JPEG_AHEAD_READERS && meet(ahead, bytes, &readers[i], &readers[i + 1], end, &count, &next);
    count = has_next ? count : count_of(&readers[i]);
    memmove(ahead->ends + ahead->count, readers[i].ends + first, (count - first) * sizeof *ahead->ends);
    ahead->count += count - first;
    if (!has_next) {
      return i + 1;
    }
    first = next;
  }
}

/// Moves the input to a position in bits.
static void seek(jpeg_input *in, uint64_t position) {
  in->next = (position + 7) / 8;
  in->bit_count = (uint32_t)(in->next * 8 - position);
  in->bits = in->bit_count == 0 ? 0 : (uint64_t)in->bytes[in->next - 1] << (64 - in->bit_count);
}

/// Fills the buffer. Returns the position of the input in bits, or UINT64_MAX when bytes that it has loaded are not in
/// the buffer any more.
static uint64_t refill_buffer(jpeg_input *in, ccodecs_input *window) {
  if (in->next * 8 < in->bit_count) {
    return UINT64_MAX;
  }
  const uint64_t position = in->next * 8 - in->bit_count;
  in->next = position / 8;
  in->bit_count = 0;
  ccodecs_jpeg_input_fill(in, window);
  seek(in, in->next * 8 + position % 8);
  return in->next * 8 - in->bit_count;
}

/// Returns how many bits of a part each reader reads; 0 when parts would be too small.
static uint64_t part_of(const jpeg_ahead *ahead, uint64_t bit_count) {
  // The last reader's part is longer, because it waits for the others. Records have room for twice as many blocks as
  // expected.
  const uint64_t part = bit_count * 8 / (8 * JPEG_AHEAD_READERS + 1);
  const uint64_t maximum = (uint64_t)ahead->mean_bits * (JPEG_AHEAD_BLOCKS / 2);
  const uint64_t minimum = (uint64_t)ahead->mean_bits * JPEG_AHEAD_BLOCKS_MIN;
  return part < minimum ? 0 : part < maximum ? part : maximum;
}

/// Finds blocks from position `begin` up to `end`: `part` bits for each reader but the last.
static void find_blocks(jpeg_ahead *ahead, const uint8_t *bytes, uint64_t begin, uint64_t part, uint64_t end) {
  ahead_reader readers[JPEG_AHEAD_READERS];
  for (uint32_t i = 0; i < JPEG_AHEAD_READERS; i++) {
    readers[i] = (ahead_reader){
        .place = i == 0 ? begin : (begin + i * part) & ~(uint64_t)7,
        .stop = i + 1 < JPEG_AHEAD_READERS ? begin + (i + 1) * part : end,
        .state = ahead->states,
        .ends = ahead->ends + (size_t)i * (JPEG_AHEAD_BLOCKS + 1),
    };
  }
  read_parts(ahead, bytes, readers, end);
  const uint32_t used = join_parts(ahead, bytes, readers, end);
  ahead->misses = used == 1 ? ahead->misses + 2 : ahead->misses - (ahead->misses > 0);
  ahead->count -= ahead->count % ahead->block_count;
}

ccodecs_status ccodecs_jpeg_ahead_find(jpeg_ahead *ahead, jpeg_input *in, ccodecs_input *window) {
  ahead->next = 0;
  ahead->count = 0;
  if (ahead->misses >= AHEAD_MISSES_MAX || ahead->mean_bits < ahead->mean_min) {
    return CCODECS_OK;
  }
  const uint64_t begin = refill_buffer(in, window);
  const uint64_t end = in->count < AHEAD_MARGIN ? 0 : (in->count - AHEAD_MARGIN) * 8;
  if (begin == UINT64_MAX) {
    return CCODECS_OK;
  }
  if (in->count - in->next < JPEG_AHEAD_BYTES_MIN && !in->is_ended) {
    return CCODECS_NEEDS_INPUT;
  }
  const uint64_t part = begin < end ? part_of(ahead, end - begin) : 0;
  if (part != 0) {
    find_blocks(ahead, in->bytes, begin, part, end);
  }
  if (ahead->count > 0) {
    const uint64_t last = ahead->ends[ahead->count - 1];
    ahead->mean_bits = (uint32_t)((last - begin) / ahead->count);
    ahead->begin = begin;
    seek(in, last);
  }
  return CCODECS_OK;
}
