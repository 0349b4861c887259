// Decoding blocks that were found ahead, with AVX2: the 32 blocks of two tiles in lockstep, in the native JPEG decoder.
//
// A block's lookups wait for each other, because each one starts where the one before it ends; those of different
// blocks do not. Gathers are slow on many processors, also with AVX-512. So in each round plain loads look up a few
// entries of every block, without a branch, and do nothing but write them down. What the entries mean is then worked
// out in vectors, for all blocks of a tile at once: which of them count, and where their coefficients belong, by
// comparison of zigzag indices. A later round only looks at the blocks that need it, and what is left of a few long
// ones is decoded one by one.
//
// Two tiles, so that the lookups of one fill the time in which the other's are on their way to memory: a vector can't
// be loaded from several stores that have just been made.

#include "jpeg_ahead.h"

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define AVX2_INLINE AVX2 static inline __attribute__((always_inline))

#include "jpeg_blocks.h"

#include <cinstructions.h>
#include <immintrin.h>

enum {
  MAX_N = 4,      ///< The maximum N of N/8.
  STEPS = 3,      ///< Steps of a round.
  FEW_BLOCKS = 5, ///< Maximum number of blocks that are decoded one by one.
  BLOCKS = 2 * JPEG_LANES,
  ROUND_BITS = 57,                ///< Bits that are always there at the start of a round.
  LONGEST = JPEG_VALUE_BITS + 15, ///< The most bits that a step consumes.
  BLOCK_END = 64,                 ///< A zigzag index that is not needed.
  MAX_ROWS = MAX_N * MAX_N,
};

_Static_assert((STEPS - 1) * LONGEST <= ROUND_BITS, "only the last step of a round may lack bits");

// Bit layout of an entry of the steps, which contains up to two coefficients of jpeg_table.pairs. Half the size of
// those that are gathered, so that the tables of two components leave room in the first-level cache. Zero bits to
// consume: even the code of one symbol does not fit.
//
//   0 to 4    bits to consume
//   5         the block ends, and what is looked up after it does not count
//   6 to 10   how far the first coefficient is
//   11 to 15  how far the second one is behind it, 0 if there is none; or IS_LONG
//   16 to 31  the two coefficients, 8 bits each; or a mask of the bits of a long one, which are the last that are
//             consumed
enum { LENGTH = 31, ENDS = 32, FIRST_SHIFT = 6, SECOND_SHIFT = 11, IS_LONG = 31, VALUES_SHIFT = 16 };

/// jpeg_decoder.limit by N.
static const uint8_t limits[MAX_N + 1] = {0, 1, 5, 13, 25};

/// Zigzag indices of the coefficients of a tile, by row and column.
static const uint8_t orders[MAX_N][MAX_N] = {{0, 1, 5, 6}, {2, 4, 7, 13}, {3, 8, 12, 17}, {9, 11, 18, 24}};

/// Where the bits of each block are, so that shuffling puts them in order.
static const uint8_t bit_slots[BLOCKS] = {0,  1,  4,  5,  8,  9,  12, 13, 2,  3,  6,  7,  10, 11, 14, 15,
                                          16, 17, 20, 21, 24, 25, 28, 29, 18, 19, 22, 23, 26, 27, 30, 31};

/// Where its entries are, so that packing does.
static const uint8_t entry_slots[BLOCKS] = {0,  1,  2,  3,  8,  9,  10, 11, 4,  5,  6,  7,  12, 13, 14, 15,
                                            16, 17, 18, 19, 24, 25, 26, 27, 20, 21, 22, 23, 28, 29, 30, 31};

/// The state of the blocks of a tile, 16 bits each.
typedef struct lanes {
  __m256i indices; ///< The next zigzag index.
  __m256i used;    ///< Bits of the round that were consumed.
} lanes;

/// The state of two tiles.
typedef struct tiles_state {
  uint32_t entries[STEPS][BLOCKS]; ///< What a round looked up, in the order of `entry_slots`.
  uint64_t bits[BLOCKS];           ///< The bits at its start, inverted, in the order of `bit_slots`.
  uint32_t positions[BLOCKS];      ///< In bits.
  lanes lanes[2];
  __m256i rows[2][MAX_ROWS];
} tiles_state;

// MARK: Lookups

/// Hides that a value is constant, so that the compiler keeps it in a register.
#define OPAQUE(value) __asm__("" : "+r"(value))

/// What look_up uses for every block.
typedef struct look_up_constants {
  const uint8_t *bytes;
  uint64_t mask;  ///< Of the bits of a round.
  uint64_t shift; ///< From bits to the index.
} look_up_constants;

/// Returns how many bits a value has.
AVX2_INLINE uint32_t size_of(int32_t value) {
  return value == 0 ? 0 : 32 - (uint32_t)__builtin_clz((uint32_t)(value < 0 ? -value : value));
}

/// Returns the entry for a symbol whose code does not fit into the lookup. Replaces the bits by those of its value, and
/// moves the position to where they would begin.
AVX2 static __attribute__((noinline)) uint32_t read_long(
    const uint8_t *bytes, uint32_t *position, uint64_t *bits, const jpeg_table *table) {
  jpeg_reader r = reader_at(bytes, *position);
  const uint32_t count = r.count;
  uint32_t advance = 0;
  int32_t value = 0;
  *bits = 0;
  // Blocks that were found have no invalid codes.
  if (!read_slow(&r, table, 0, &advance, &value) || advance >= JPEG_ADVANCE_END) {
    return ENDS;
  }
  const uint32_t size = size_of(value);
  *position += count - r.count - size;
  if (size == 0) {
    return advance << FIRST_SHIFT;
  }
  const uint32_t mask = (1u << size) - 1;
  const uint32_t inverted = value < 0 ? (uint32_t)-value : mask - (uint32_t)value;
  *bits = (uint64_t)inverted << (64 - size);
  return size | advance << FIRST_SHIFT | IS_LONG << SECOND_SHIFT | mask << VALUES_SHIFT;
}

/// Looks up the entries of a round of block `i`.
AVX2_INLINE void look_up(
    tiles_state *s, const look_up_constants *c, const uint32_t i, const uint32_t *steps, const jpeg_table *table) {
  uint32_t *entries = &s->entries[0][entry_slots[i]];
  const uint32_t position = s->positions[i];
  uint64_t word;
  memcpy(&word, c->bytes + (position >> 3), 8);
  uint64_t bits = ~(__builtin_bswap64(word) << (position & 7)) & c->mask;
  uint32_t entry = steps[bits >> c->shift];
  if (__builtin_expect((entry & (LENGTH | ENDS)) == 0, 0)) {
    entry = read_long(c->bytes, &s->positions[i], &bits, table);
  }
  s->bits[bit_slots[i]] = bits;
  entries[0] = entry;
#pragma GCC unroll 8
  for (uint32_t step = 1; step < STEPS; step++) {
    bits <<= entry & 63;
    entry = steps[bits >> c->shift];
    entries[(size_t)step * BLOCKS] = entry;
  }
}

// MARK: Steps

/// What a step finds in each block: at most two coefficients, with their zigzag indices plus 1.
typedef struct step_result {
  __m256i first;
  __m256i second;
  __m256i first_places;
  __m256i second_places;
} step_result;

/// Returns the first 32 bits of 8 blocks after those that were used.
AVX2_INLINE __m256i bits_of(const uint64_t bits[8], __m256i used) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i a = _mm256_loadu_si256((const __m256i *)bits);
  const __m256i b = _mm256_loadu_si256((const __m256i *)(bits + 4));
  const __m256i left_a = _mm256_sllv_epi64(a, _mm256_unpacklo_epi32(used, zero));
  const __m256i left_b = _mm256_sllv_epi64(b, _mm256_unpackhi_epi32(used, zero));
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(left_a), _mm256_castsi256_ps(left_b), 0xDD));
}

/// Returns the inverted bits of long values in 8 lanes: the last of the entries' bits, as many as `masks` has.
AVX2_INLINE __m256i long_bits(__m256i bits, __m256i entries, __m256i masks) {
  const __m256i length = _mm256_and_si256(entries, _mm256_set1_epi32(LENGTH));
  return _mm256_and_si256(_mm256_srlv_epi32(bits, _mm256_sub_epi32(_mm256_set1_epi32(32), length)), masks);
}

/// Takes the entries of step `step` of a round in tile `tile`. Those of the last step do nothing if they need more bits
/// than are left.
AVX2_INLINE step_result take_step(lanes *state, const tiles_state *s, const uint32_t tile, const uint32_t step) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i *entries = (const __m256i *)(s->entries[step] + (size_t)tile * JPEG_LANES);
  const uint64_t *bits = s->bits + (size_t)tile * JPEG_LANES;
  const __m256i entries_a = _mm256_loadu_si256(entries);
  const __m256i entries_b = _mm256_loadu_si256(entries + 1);
  const __m256i values_a = _mm256_srli_epi32(entries_a, VALUES_SHIFT);
  const __m256i values_b = _mm256_srli_epi32(entries_b, VALUES_SHIFT);
  const __m256i words =
      _mm256_packus_epi32(_mm256_blend_epi16(entries_a, zero, 0xAA), _mm256_blend_epi16(entries_b, zero, 0xAA));
  const __m256i values = _mm256_packus_epi32(values_a, values_b);
  __m256i behind = _mm256_srli_epi16(words, SECOND_SHIFT);
  const __m256i is_long = _mm256_cmpeq_epi16(behind, _mm256_set1_epi16(IS_LONG));
  // A long value: the bits are inverted, so it is positive if the first one is zero.
  const __m256i inverted = _mm256_packus_epi32(
      long_bits(bits_of(bits, _mm256_unpacklo_epi16(state->used, zero)), entries_a, values_a),
      long_bits(bits_of(bits + 8, _mm256_unpackhi_epi16(state->used, zero)), entries_b, values_b));
  const __m256i is_negative = _mm256_cmpgt_epi16(inverted, _mm256_srli_epi16(values, 1));
  const __m256i long_value = _mm256_sub_epi16(_mm256_andnot_si256(is_negative, values), inverted);
  __m256i first = _mm256_srai_epi16(_mm256_slli_epi16(values, 8), 8);
  first = _mm256_blendv_epi8(first, long_value, is_long);
  __m256i second = _mm256_andnot_si256(is_long, _mm256_srai_epi16(values, 8));
  behind = _mm256_andnot_si256(is_long, behind);
  __m256i length = _mm256_and_si256(words, _mm256_set1_epi16(LENGTH));
  const __m256i ends = _mm256_slli_epi16(_mm256_and_si256(words, _mm256_set1_epi16(ENDS)), 1); // past every index
  const __m256i before = _mm256_and_si256(
      _mm256_srli_epi16(words, FIRST_SHIFT), _mm256_set1_epi16((1 << (SECOND_SHIFT - FIRST_SHIFT)) - 1));
  const __m256i first_places = _mm256_add_epi16(state->indices, before);
  const __m256i second_places = _mm256_add_epi16(first_places, behind);
  __m256i next = _mm256_add_epi16(second_places, ends);
  if (step == STEPS - 1) {
    const __m256i sum = _mm256_add_epi16(state->used, length);
    const __m256i is_past = _mm256_cmpgt_epi16(sum, _mm256_set1_epi16(ROUND_BITS));
    first = _mm256_andnot_si256(is_past, first);
    second = _mm256_andnot_si256(is_past, second);
    length = _mm256_andnot_si256(is_past, length);
    next = _mm256_blendv_epi8(next, state->indices, is_past);
  }
  state->used = _mm256_add_epi16(state->used, length);
  state->indices = next;
  return (step_result){first, second, first_places, second_places};
}

/// Puts the coefficients of a round into the rows of a tile; those that N/8 does not need match no row.
AVX2_INLINE void put_into_rows(__m256i rows[MAX_ROWS], const step_result found[STEPS], const uint32_t n) {
#pragma GCC unroll 16
  for (uint32_t i = 1; i < n * n; i++) {
    const uint32_t order = orders[i / n][i % n];
    const __m256i place = _mm256_set1_epi16((int16_t)(order + 1));
    // Each step goes on by one coefficient or more, so a step finds none of the first ones.
#pragma GCC unroll 8
    for (uint32_t step = 0; step < STEPS && step < order; step++) {
      const __m256i first = _mm256_and_si256(_mm256_cmpeq_epi16(found[step].first_places, place), found[step].first);
      const __m256i second = _mm256_and_si256(_mm256_cmpeq_epi16(found[step].second_places, place), found[step].second);
      rows[i] = _mm256_or_si256(rows[i], _mm256_or_si256(first, second));
    }
  }
}

/// Returns which blocks need more coefficients than those before `limit`.
AVX2_INLINE uint32_t live_of(const lanes *s, uint32_t limit) {
  const __m256i is_live = _mm256_cmpgt_epi16(_mm256_set1_epi16((int16_t)limit), s->indices);
  return (uint32_t)_mm_movemask_epi8(
      _mm_packs_epi16(_mm256_castsi256_si128(is_live), _mm256_extracti128_si256(is_live, 1)));
}

/// Returns a vector with ones in the lanes of `mask`.
AVX2_INLINE __m256i lanes_of(uint32_t mask) {
  const __m256i bits =
      _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, (int16_t)0x8000);
  return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16((int16_t)mask), bits), bits);
}

AVX2_INLINE void begin_tile(tiles_state *s, uint32_t tile, const jpeg_ahead_tile *t, const uint32_t n) {
  for (uint32_t i = 0; i < n * n; i++) {
    s->rows[tile][i] = _mm256_setzero_si256();
  }
  memcpy(s->positions + (size_t)tile * JPEG_LANES, t->begins, JPEG_LANES * sizeof *t->begins);
  s->lanes[tile].indices = _mm256_blendv_epi8(_mm256_set1_epi16(BLOCK_END), _mm256_set1_epi16(1), lanes_of(t->mask));
}

/// Takes what was looked up for the blocks of a tile. Returns which of them need more.
AVX2_INLINE uint32_t end_round(tiles_state *s, const uint32_t tile, const uint32_t n) {
  step_result results[STEPS];
  lanes state = {.indices = s->lanes[tile].indices, .used = _mm256_setzero_si256()};
#pragma GCC unroll 8
  for (uint32_t step = 0; step < STEPS; step++) {
    results[step] = take_step(&state, s, tile, step);
  }
  s->lanes[tile] = state;
  put_into_rows(s->rows[tile], results, n);
  __m256i *positions = (__m256i *)(s->positions + (size_t)tile * JPEG_LANES);
  const __m256i used_a = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(state.used));
  const __m256i used_b = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(state.used, 1));
  _mm256_storeu_si256(positions, _mm256_add_epi32(_mm256_loadu_si256(positions), used_a));
  _mm256_storeu_si256(positions + 1, _mm256_add_epi32(_mm256_loadu_si256(positions + 1), used_b));
  return live_of(&state, limits[n]);
}

/// Looks up the entries of a round of every block.
AVX2_INLINE void look_up_all(tiles_state *s, const look_up_constants *c, const jpeg_ahead_tile tiles[2]) {
#pragma GCC unroll 32
  for (uint32_t i = 0; i < BLOCKS; i++) {
    look_up(s, c, i, tiles[i / JPEG_LANES].steps, tiles[i / JPEG_LANES].table);
  }
}

/// Looks up the entries of a round of the `live` blocks.
AVX2_INLINE void look_up_live(
    tiles_state *s, const look_up_constants *c, const jpeg_ahead_tile tiles[2], uint32_t live) {
  for (; live != 0; live &= live - 1) {
    const uint32_t i = (uint32_t)__builtin_ctz(live);
    look_up(s, c, i, tiles[i / JPEG_LANES].steps, tiles[i / JPEG_LANES].table);
  }
}

/// Stores the rows of a tile except the first, which is DC. Keeps the blocks that are not in the mask.
AVX2_INLINE void store_tile(const jpeg_ahead_tile *t, const __m256i *rows, const uint32_t n) {
  const __m256i mask = lanes_of(t->mask);
  __m256i any = _mm256_setzero_si256();
#pragma GCC unroll 16
  for (uint32_t i = 1; i < n * n; i++) {
    __m256i *place = (__m256i *)(t->coefficients + (size_t)i * JPEG_LANES);
    _mm256_storeu_si256(place, _mm256_blendv_epi8(_mm256_loadu_si256(place), rows[i], mask));
    any = _mm256_or_si256(any, rows[i]);
  }
  *t->extent |= _mm256_testz_si256(any, any) ? 0 : 63;
}

/// Decodes what is left of the `live` blocks of two tiles one by one, which is faster if they are few.
AVX2_INLINE void finish(
    const uint8_t *bytes, const jpeg_ahead_tile tiles[2], const uint32_t positions[2 * JPEG_LANES],
    const uint16_t indices[2 * JPEG_LANES], uint32_t live, const uint32_t limit) {
  for (; live != 0; live &= live - 1) {
    const uint32_t i = (uint32_t)__builtin_ctz(live);
    const jpeg_ahead_tile *t = &tiles[i / JPEG_LANES];
    jpeg_reader r = reader_at(bytes, positions[i]);
    uint32_t last = 0;
    read_ac(&r, t->table, t->coefficients + i % JPEG_LANES, t->places, indices[i], limit, false, &last);
    *t->extent = last > *t->extent ? (uint16_t)last : *t->extent;
  }
}

AVX2_INLINE void take_tiles(const uint8_t *bytes, const jpeg_ahead_tile tiles[2], const uint32_t n) {
  tiles_state s;
  look_up_constants c = {.bytes = bytes, .mask = ~(uint64_t)0 << (64 - ROUND_BITS), .shift = 64 - JPEG_PAIR_BITS};
  OPAQUE(c.mask);
  OPAQUE(c.shift);
  begin_tile(&s, 0, &tiles[0], n);
  begin_tile(&s, 1, &tiles[1], n);
  uint32_t live = tiles[0].mask | tiles[1].mask << JPEG_LANES;
  if (live != ~(uint32_t)0) {
    // Blocks outside of the masks keep entries that do nothing.
    memset(s.entries, 0, sizeof s.entries);
    memset(s.bits, 0, sizeof s.bits);
  }
  for (bool is_whole = live == ~(uint32_t)0; __builtin_popcount(live) > FEW_BLOCKS; is_whole = false) {
    if (is_whole) {
      look_up_all(&s, &c, tiles);
    } else {
      look_up_live(&s, &c, tiles, live);
    }
    live = end_round(&s, 0, n);
    live |= end_round(&s, 1, n) << JPEG_LANES;
  }
  uint16_t indices[BLOCKS];
  for (uint32_t i = 0; i < 2; i++) {
    store_tile(&tiles[i], s.rows[i], n);
    _mm256_storeu_si256((__m256i *)(indices + (size_t)i * JPEG_LANES), s.lanes[i].indices);
  }
  finish(bytes, tiles, s.positions, indices, live, limits[n]);
}

// MARK: Choice

/// Returns the entry of the steps for one of jpeg_table.pairs. Written without branches, which would mispredict.
AVX2_INLINE uint32_t step_of(uint64_t pair) {
  const uint32_t first = pair >> 8 & 0xFF, both = pair >> 16 & 0xFF, first_length = pair >> 24 & JPEG_LENGTH;
  const int32_t first_value = (int16_t)(pair >> 32), second_value = (int16_t)(pair >> 48);
  const uint32_t ends = (pair & JPEG_PAIR_ENDS) != 0 ? ENDS : 0;
  const uint32_t start = first << FIRST_SHIFT;
  const bool has_second = both != first;
  const bool fits = first_value == (int8_t)first_value;
  const bool both_fit = !has_second || second_value == (int8_t)second_value;
  const uint32_t low = (uint32_t)(uint8_t)first_value << VALUES_SHIFT;
  const uint32_t high = has_second ? (uint32_t)(uint8_t)second_value << (VALUES_SHIFT + 8) : 0;
  const uint32_t whole = (pair & JPEG_LENGTH) | ends | start | (both - first) << SECOND_SHIFT | low | high;
  const uint32_t usual = both_fit ? whole : first_length | start | low;
  // A value that does not fit: here into 8 bits, or into the lookup at all, whose entry describes it.
  const bool is_described = first == JPEG_ADVANCE_SLOW;
  const uint32_t size = is_described ? pair >> 37 & 15 : size_of(first_value);
  const uint32_t code_length = is_described ? pair >> 32 & 31 : first_length - size;
  const uint32_t advance = is_described ? (pair >> 41 & 15) + 1 : first;
  const uint32_t is_long =
      (code_length + size) | advance << FIRST_SHIFT | IS_LONG << SECOND_SHIFT | ((1u << size) - 1) << VALUES_SHIFT;
  const uint32_t end = (pair & JPEG_LENGTH) | ENDS;
  const uint32_t other = !is_described ? end : code_length != 0 ? is_long : 0;
  return first > 16 ? other : fits ? usual : is_long;
}

AVX2 static void list_steps(void *steps, const jpeg_table *table) {
  uint32_t *entries = steps;
  for (uint32_t i = 0; i < JPEG_STEPS; i++) {
    entries[~i & (JPEG_STEPS - 1)] = step_of(table->pairs[i]);
  }
}

#define TAKE(n)                                                                                                        \
  AVX2 static void take_##n(const uint8_t *bytes, const jpeg_ahead_tile tiles[2]) {                                    \
    take_tiles(bytes, tiles, n);                                                                                       \
  }

TAKE(2)
TAKE(3)
TAKE(4)

const jpeg_ahead_lockstep *ccodecs_jpeg_ahead_lockstep(uint32_t n) {
  static const jpeg_ahead_lockstep versions[9] = {
      [2] = {list_steps, take_2, 250000}, [3] = {list_steps, take_3, 500000}, [4] = {list_steps, take_4, 500000}};
  const bool is_supported =
      cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return versions[n].take != NULL && is_supported ? &versions[n] : NULL;
}

#else

const jpeg_ahead_lockstep *ccodecs_jpeg_ahead_lockstep(uint32_t n) {
  (void)n;
  return NULL;
}

#endif
