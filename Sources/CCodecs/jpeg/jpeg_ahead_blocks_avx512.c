// Decoding blocks that were found ahead, with AVX-512: the 32 blocks of two tiles in lockstep, in the native JPEG
// decoder.
//
// A block's symbols depend on each other, those of different blocks do not. Every lane takes the same number of steps,
// and those of a finished block do nothing; what is left of a few long blocks is decoded one by one. So no branch
// depends on a single block, and what a step finds is put into the vectors of coefficients by comparison of zigzag
// indices, not by a store for each.

#if defined(__x86_64__)

#define TARGET "avx2,avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2"
#define AVX512 __attribute__((target(TARGET)))
#define AVX512_INLINE static inline __attribute__((always_inline, target(TARGET)))

#include "jpeg_ahead_lockstep.h"

#include <cinstructions.h>

enum {
  STEPS = 4,       ///< Steps of a round.
  FEW_BLOCKS = 5,  ///< Maximum number of blocks that are decoded one by one.
  ROUND_BITS = 57, ///< Bits that are always there at the start of a round.
  QUARTERS = 4,    ///< Vectors of 8 blocks.
  MAX_N = JPEG_LOCKSTEP_MAX_N,
};

// Bit layout of an entry of the steps, which contains up to two coefficients of jpeg_table.pairs. Zero bits to consume:
// even the code of one symbol does not fit.
//
//   0 to 5    bits to consume
//   8 to 15   how far the first coefficient is
//   16 to 23  how far the second one is; NOWHERE if there is none
//   24 to 30  how far to advance; BLOCK_END more when the block ends
//   31        the first coefficient is not in its field, but in the last bits that are consumed; the field masks them
//   32 to 63  the two coefficients, 16 bits each
//
// NOWHERE and BLOCK_END, added to any zigzag index, give one that is not needed.
enum { NOWHERE = 96, BLOCK_END = 64, IS_LONG = 128 };

#define NOTHING ((uint64_t)NOWHERE << 8 | (uint64_t)NOWHERE << 16)

/// The state of the blocks of two tiles, in quarters.
typedef struct lanes {
  __m512i positions[QUARTERS]; ///< In bits.
  __m512i bits[QUARTERS];      ///< The bits there, inverted.
  __m512i indices;             ///< The next zigzag index, 16 bits each.
} lanes;

/// Returns the inverted bits at the positions of `live` lanes, at least 57, and zeros in the others.
AVX512_INLINE __m512i load_bits(const uint8_t *bytes, __m512i positions, __mmask8 live) {
  const __m512i swap = _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
  const __m512i words =
      _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), live, _mm512_srli_epi64(positions, 3), bytes, 1);
  const __m512i shifted =
      _mm512_sllv_epi64(_mm512_shuffle_epi8(words, swap), _mm512_and_si512(positions, _mm512_set1_epi64(7)));
  return _mm512_maskz_andnot_epi64(live, shifted, _mm512_set1_epi64(-128));
}

/// Returns the entry for a symbol whose code does not fit into the lookup, and adds its length to *position. The entry
/// consumes all bits, of which too few may be left for another step.
static __attribute__((noinline)) uint64_t read_long(const uint8_t *bytes, uint64_t *position, const jpeg_table *table) {
  jpeg_reader r = reader_at(bytes, *position);
  const uint32_t count = r.count;
  uint32_t advance = 0;
  int32_t value = 0;
  const bool is_good = read_slow(&r, table, 0, &advance, &value);
  const bool is_end = !is_good || advance >= JPEG_ADVANCE_END; // blocks that were found have no invalid codes
  *position += (uint64_t)(count - r.count) - ROUND_BITS;
  return (is_end ? NOTHING : (uint64_t)advance << 8 | (uint64_t)NOWHERE << 16) | ROUND_BITS |
         (uint64_t)(is_end ? BLOCK_END : advance) << 24 | (uint64_t)(uint16_t)value << 32;
}

/// Completes the entries of `is_unknown` lanes of a quarter.
AVX512_INLINE void complete(
    __m512i *entries, __m512i *positions, uint32_t is_unknown, const uint8_t *bytes, const jpeg_table *table) {
  uint64_t lane_entries[8], lane_positions[8];
  _mm512_storeu_si512(lane_entries, *entries);
  _mm512_storeu_si512(lane_positions, *positions);
  for (uint32_t left = is_unknown; left != 0; left &= left - 1) {
    const uint32_t i = (uint32_t)__builtin_ctz(left);
    lane_entries[i] = read_long(bytes, &lane_positions[i], table);
  }
  *entries = _mm512_loadu_si512(lane_entries);
  *positions = _mm512_loadu_si512(lane_positions);
}

/// Returns a 16-bit word of each lane; `words` are its indices in a pair of quarters.
AVX512_INLINE __m512i words_of(const __m512i v[QUARTERS], __m512i words) {
  return _mm512_shuffle_i64x2(
      _mm512_permutex2var_epi16(v[0], words, v[1]), _mm512_permutex2var_epi16(v[2], words, v[3]), 0x44);
}

/// What a step finds in each block: at most two coefficients, with their zigzag indices plus 1.
typedef struct step_result {
  __m512i first;
  __m512i second;
  __m512i first_places;
  __m512i second_places;
} step_result;

/// Consumes the symbols of the entries. `used` are the bits of the round that were consumed. Unless `is_safe`, entries
/// that need more bits than are left do nothing.
AVX512_INLINE step_result take_step(lanes *s, __m512i entries[QUARTERS], __m512i used[QUARTERS], const bool is_safe) {
  static const uint16_t low_words[32] = {0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60,
                                         1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57, 61};
  const __m512i low = _mm512_loadu_si512(low_words);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(2));
#pragma GCC unroll 4
  for (uint32_t i = 0; i < QUARTERS; i++) {
    const __m512i length = _mm512_and_si512(entries[i], _mm512_set1_epi64(JPEG_LENGTH));
    const __m512i sum = _mm512_add_epi64(used[i], length);
    if (is_safe) {
      s->bits[i] = _mm512_rolv_epi64(s->bits[i], length);
      used[i] = sum;
    } else {
      const __mmask8 fits = _mm512_cmple_epu64_mask(sum, _mm512_set1_epi64(ROUND_BITS));
      entries[i] = _mm512_mask_mov_epi64(_mm512_set1_epi64((int64_t)NOTHING), fits, entries[i]);
      s->bits[i] = _mm512_mask_rolv_epi64(s->bits[i], fits, s->bits[i], length);
      used[i] = _mm512_mask_mov_epi64(used[i], fits, sum);
    }
  }
  const __m512i words_a = _mm512_permutex2var_epi16(entries[0], low, entries[1]);
  const __m512i words_b = _mm512_permutex2var_epi16(entries[2], low, entries[3]);
  const __m512i values_a = _mm512_permutex2var_epi16(entries[0], high, entries[1]);
  const __m512i values_b = _mm512_permutex2var_epi16(entries[2], high, entries[3]);
  const __m512i words_0 = _mm512_shuffle_i64x2(words_a, words_b, 0x44);
  const __m512i words_1 = _mm512_shuffle_i64x2(words_a, words_b, 0xEE);
  __m512i first = _mm512_shuffle_i64x2(values_a, values_b, 0x44);
  const __m512i second = _mm512_shuffle_i64x2(values_a, values_b, 0xEE);
  // A long value: the bits are inverted, so it is positive if the first one is zero.
  const __mmask32 is_long = _mm512_movepi16_mask(words_1);
  const __m512i inverted = _mm512_and_si512(words_of(s->bits, low), first);
  const __mmask32 is_positive = _mm512_mask_cmple_epu16_mask(is_long, inverted, _mm512_srli_epi16(first, 1));
  first = _mm512_mask_sub_epi16(first, is_long, _mm512_maskz_mov_epi16(is_positive, first), inverted);
  const step_result result = {
      .first = first,
      .second = second,
      .first_places = _mm512_add_epi16(s->indices, _mm512_srli_epi16(words_0, 8)),
      .second_places = _mm512_add_epi16(s->indices, _mm512_and_si512(words_1, _mm512_set1_epi16(0xFF))),
  };
  s->indices =
      _mm512_add_epi16(s->indices, _mm512_and_si512(_mm512_srli_epi16(words_1, 8), _mm512_set1_epi16(IS_LONG - 1)));
  return result;
}

/// Loads the bits of the `live` blocks, and looks up their first symbols.
AVX512_INLINE void begin_round(
    lanes *s, __m512i entries[QUARTERS], __m512i used[QUARTERS], const uint8_t *bytes, const jpeg_ahead_tile tiles[2],
    uint32_t live) {
  uint32_t is_unknown = 0;
#pragma GCC unroll 4
  for (uint32_t i = 0; i < QUARTERS; i++) {
    const __mmask8 is_live = (__mmask8)(live >> i * 8);
    s->bits[i] = load_bits(bytes, s->positions[i], is_live);
    used[i] = _mm512_setzero_si512();
    entries[i] = _mm512_i64gather_epi64(_mm512_srli_epi64(s->bits[i], 64 - JPEG_PAIR_BITS), tiles[i / 2].steps, 8);
    is_unknown |= (uint32_t)_mm512_mask_testn_epi64_mask(is_live, entries[i], _mm512_set1_epi64(JPEG_LENGTH)) << i * 8;
  }
  if (__builtin_expect(is_unknown != 0, 0)) {
    for (uint32_t i = 0; i < QUARTERS; i++) {
      complete(&entries[i], &s->positions[i], is_unknown >> i * 8 & 0xFF, bytes, tiles[i / 2].table);
    }
  }
}

/// Looks up the blocks' next symbols.
AVX512_INLINE void look_up(const lanes *s, __m512i entries[QUARTERS], const jpeg_ahead_tile tiles[2]) {
#pragma GCC unroll 4
  for (uint32_t i = 0; i < QUARTERS; i++) {
    entries[i] = _mm512_i64gather_epi64(_mm512_srli_epi64(s->bits[i], 64 - JPEG_PAIR_BITS), tiles[i / 2].steps, 8);
  }
}

AVX512_INLINE void begin_tiles(lanes *s, const jpeg_ahead_tile tiles[2]) {
#pragma GCC unroll 4
  for (uint32_t i = 0; i < QUARTERS; i++) {
    s->positions[i] = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(tiles[i / 2].begins + i % 2 * 8)));
  }
  s->indices = _mm512_set1_epi16(1);
}

/// Moves the positions, and returns which of the `live` blocks need more coefficients than those before `limit`.
AVX512_INLINE uint32_t end_round(lanes *s, const __m512i used[QUARTERS], uint32_t live, uint32_t limit) {
#pragma GCC unroll 4
  for (uint32_t i = 0; i < QUARTERS; i++) {
    s->positions[i] = _mm512_add_epi64(s->positions[i], used[i]);
  }
  return live & _mm512_cmplt_epu16_mask(s->indices, _mm512_set1_epi16((int16_t)limit));
}

// MARK: Reduced

/// Puts coefficients into `rows`, which are those of a tile; those that N/8 does not need match no row.
AVX512_INLINE void put_into_rows(__m512i rows[MAX_N * MAX_N], const step_result *found, const uint32_t n) {
#pragma GCC unroll 16
  for (uint32_t i = 1; i < n * n; i++) {
    const __m512i place = _mm512_set1_epi16((int16_t)(jpeg_lockstep_orders[i / n][i % n] + 1));
    rows[i] = _mm512_mask_mov_epi16(rows[i], _mm512_cmpeq_epi16_mask(found->first_places, place), found->first);
    rows[i] = _mm512_mask_mov_epi16(rows[i], _mm512_cmpeq_epi16_mask(found->second_places, place), found->second);
  }
}

/// A branch for each round, none for a step: the loops are unrolled, and the rows are in registers.
AVX512_INLINE void take_tiles(const uint8_t *bytes, const jpeg_ahead_tile tiles[2], const uint32_t n) {
  __m512i rows[MAX_N * MAX_N];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < n * n; i++) {
    rows[i] = _mm512_setzero_si512();
  }
  lanes s;
  begin_tiles(&s, tiles);
  uint32_t live = tiles[0].mask | tiles[1].mask << JPEG_LANES;
  while (__builtin_popcount(live) > FEW_BLOCKS) {
    __m512i entries[QUARTERS], used[QUARTERS];
    begin_round(&s, entries, used, bytes, tiles, live);
    step_result found = take_step(&s, entries, used, true);
    put_into_rows(rows, &found, n);
#pragma GCC unroll 8
    for (uint32_t step = 1; step < STEPS; step++) {
      look_up(&s, entries, tiles);
      found = take_step(&s, entries, used, false);
      put_into_rows(rows, &found, n);
    }
    live = end_round(&s, used, live, jpeg_lockstep_limits[n]);
  }
  __m256i halves[2][MAX_N * MAX_N];
#pragma GCC unroll 16
  for (uint32_t i = 1; i < n * n; i++) {
    halves[0][i] = _mm512_castsi512_si256(rows[i]);
    halves[1][i] = _mm512_extracti64x4_epi64(rows[i], 1);
  }
  store_tile(&tiles[0], halves[0], n);
  store_tile(&tiles[1], halves[1], n);
  uint32_t positions[8 * QUARTERS];
  uint16_t indices[8 * QUARTERS];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < QUARTERS; i++) {
    _mm256_storeu_si256((__m256i *)(positions + (size_t)8 * i), _mm512_cvtepi64_epi32(s.positions[i]));
  }
  _mm512_storeu_si512(indices, s.indices);
  finish(bytes, tiles, positions, indices, live, jpeg_lockstep_limits[n]);
}

// MARK: Choice

/// Returns the entry of the steps for one of jpeg_table.pairs. Written without branches, which would mispredict.
static inline uint64_t step_of(uint64_t pair) {
  const uint64_t first = pair >> 8 & 0xFF, both = pair >> 16 & 0xFF;
  const uint64_t code_length = pair >> 32 & 31, size = pair >> 37 & 15, advance = (pair >> 41 & 15) + 1;
  const uint64_t ends = (pair & JPEG_PAIR_ENDS) != 0 ? (uint64_t)BLOCK_END << 24 : 0;
  const uint64_t usual =
      (pair & JPEG_LENGTH) | first << 8 | both << 16 | (both << 24) + ends | (pair & 0xFFFFFFFF00000000);
  const uint64_t end = (pair & JPEG_LENGTH) | NOTHING | (uint64_t)BLOCK_END << 24;
  const uint64_t is_long = (code_length + size) | advance << 8 | (uint64_t)NOWHERE << 16 | (advance | IS_LONG) << 24 |
                           ((1ull << size) - 1) << 32;
  const uint64_t other = code_length != 0 ? is_long : NOTHING;
  return first <= 16 ? usual : first == JPEG_ADVANCE_SLOW ? other : end;
}

static void list_steps(void *steps, const jpeg_table *table) {
  uint64_t *entries = steps;
  for (uint32_t i = 0; i < JPEG_STEPS; i++) {
    entries[~i & (JPEG_STEPS - 1)] = step_of(table->pairs[i]);
  }
}

#define TAKE(n)                                                                                                        \
  AVX512 static void take_##n(const uint8_t *bytes, const jpeg_ahead_tile tiles[2]) {                                  \
    take_tiles(bytes, tiles, n);                                                                                       \
  }

TAKE(2)
TAKE(3)
TAKE(4)

/// Returns whether the processor has the instructions, and fast gathers. Those with BF16 and VBMI2 (from Sapphire
/// Rapids and Zen 4 on) need no mitigation of Gather Data Sampling, which makes gathers of earlier ones slow.
static bool is_supported(void) {
  return cinstructions_allow(CINSTRUCTIONS_AVX512) && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512bf16") &&
         __builtin_cpu_supports("avx512vbmi2");
}

const jpeg_ahead_lockstep *ccodecs_jpeg_ahead_lockstep_avx512(uint32_t n) {
  static const jpeg_ahead_lockstep versions[9] = {
      [2] = {list_steps, take_2, 250000}, [3] = {list_steps, take_3, 250000}, [4] = {list_steps, take_4, 250000}};
  return versions[n].take != NULL && is_supported() ? &versions[n] : NULL;
}

#endif
