// Reversal of the filters of eight or sixteen rows at once, for AVX-512: png_unfilter_rows.c with more rows, for pixels
// of three and four bytes. A vector has eight rows; with two, there are two dependency chains, and neither waits for
// the other. Comparisons are arithmetic, because a mask register would lengthen the chains.

#include "png_decoder.h"

#if defined(__x86_64__)

#include <cinstructions.h>
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { ROWS = 8, STEPS = 4, LANES = 4 };
/// The number of pixels by which a row is behind the row above.
enum { SKEW = 2 };

/// The state of the dependency chain; see png_unfilter_rows.c.
typedef struct chain {
  __m512i takes_left, takes_up, takes_corner, averages;
  __m512i last, older, corner;
} chain;

/// Returns `a` where the mask is -1, `b` where it is 0.
INLINE __m512i choose(__m512i mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi64(mask, a, b, 0xCA);
}

/// Returns -1 where a < b, if their difference does not overflow.
INLINE __m512i is_less(__m512i a, __m512i b) {
  return _mm512_srai_epi16(_mm512_sub_epi16(a, b), 15);
}

INLINE __m512i paeth(__m512i left, __m512i up, __m512i corner) {
  const __m512i low = _mm512_min_epi16(left, up);
  const __m512i high = _mm512_max_epi16(left, up);
  const __m512i corners = _mm512_sub_epi16(_mm512_add_epi16(_mm512_add_epi16(corner, corner), corner), up);
  const __m512i threshold = _mm512_sub_epi16(corners, left);
  return choose(is_less(low, threshold), choose(is_less(threshold, high), corner, low), high);
}

/// Returns the pixels of the next step. `stored` contains the rows' filtered pixels; the last lanes of `above` contain
/// the pixel above the first row.
INLINE __m512i step(chain *c, __m512i stored, __m512i above, const bool has_averages) {
  const __m512i all_up = _mm512_alignr_epi64(c->older, above, 7);
  __m512i rest = stored;
  if (has_averages) {
    const __m512i sum = _mm512_add_epi16(c->last, all_up);
    rest = _mm512_add_epi8(rest, _mm512_and_si512(_mm512_srli_epi16(sum, 1), c->averages));
  }
  const __m512i up = _mm512_and_si512(all_up, c->takes_up);
  const __m512i left = _mm512_and_si512(c->last, c->takes_left);
  const __m512i next = _mm512_add_epi8(rest, paeth(left, up, c->corner)); // high bytes are 0
  c->corner = _mm512_and_si512(up, c->takes_corner);
  c->older = c->last;
  c->last = next;
  return next;
}

/// Returns the pixel above the first row, in the last lanes.
INLINE __m512i load_above(const uint8_t *p) {
  int32_t pixel;
  memcpy(&pixel, p, sizeof pixel);
  const __m128i wide = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(pixel));
  return _mm512_broadcastq_epi64(wide);
}

/// Returns four pixels of each of four rows, expanded to four bytes.
INLINE __m512i load_four(uint8_t *const at[4], const size_t pixel_bytes) {
  __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at[0]));
  v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at[1]), 1);
  v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at[2]), 2);
  v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at[3]), 3);
  const __m128i expand = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  return pixel_bytes == 3 ? _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(expand)) : v;
}

/// Stores four pixels, without the bytes after them, which are not read yet. A masked store would delay their load.
INLINE void store_pixels(uint8_t *at, __m128i pixels, const size_t pixel_bytes) {
  if (pixel_bytes == 4) {
    _mm_storeu_si128((__m128i *)(void *)at, pixels);
    return;
  }
  const int32_t last = _mm_extract_epi32(pixels, 2);
  _mm_storel_epi64((__m128i *)(void *)at, pixels);
  memcpy(at + 8, &last, sizeof last);
}

/// Stores four pixels to each of four rows; the reverse of load_four.
INLINE void store_four(uint8_t *const at[4], __m512i pixels, const size_t pixel_bytes) {
  const __m128i pack = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m512i v = pixel_bytes == 3 ? _mm512_shuffle_epi8(pixels, _mm512_broadcast_i32x4(pack)) : pixels;
  store_pixels(at[0], _mm512_castsi512_si128(v), pixel_bytes);
  store_pixels(at[1], _mm512_extracti32x4_epi32(v, 1), pixel_bytes);
  store_pixels(at[2], _mm512_extracti32x4_epi32(v, 2), pixel_bytes);
  store_pixels(at[3], _mm512_extracti32x4_epi32(v, 3), pixel_bytes);
}

/// Four pixels of each of eight rows, as vectors of one step each.
typedef struct block {
  __m512i steps[STEPS];
} block;

/// Loads the pixels of eight rows that are `stride` bytes apart.
INLINE block load_block(uint8_t *const at[ROWS], const size_t pixel_bytes) {
  // Pixels of rows 0 to 3 and 4 to 7, and of steps 0 and 1, 2 and 3.
  const __m512i early = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
  const __m512i late = _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
  const __m512i a = load_four(at, pixel_bytes);
  const __m512i b = load_four(at + 4, pixel_bytes);
  const __m512i first = _mm512_permutex2var_epi32(a, early, b);
  const __m512i second = _mm512_permutex2var_epi32(a, late, b);
  return (block){{
      _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(first, 0)),
      _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(first, 1)),
      _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(second, 0)),
      _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(second, 1)),
  }};
}

INLINE __m512i join_bytes(__m512i low, __m512i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(low)), _mm512_cvtepi16_epi8(high), 1);
}

/// Stores the pixels of eight rows; the reverse of load_block.
INLINE void store_block(uint8_t *const at[ROWS], block b, const size_t pixel_bytes) {
  const __m512i upper = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
  const __m512i lower = _mm512_setr_epi32(4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
  const __m512i x = join_bytes(b.steps[0], b.steps[1]);
  const __m512i y = join_bytes(b.steps[2], b.steps[3]);
  store_four(at, _mm512_permutex2var_epi32(x, upper, y), pixel_bytes);
  store_four(at + 4, _mm512_permutex2var_epi32(x, lower, y), pixel_bytes);
}

/// Runs four steps, starting at byte `i` of the first row.
INLINE void four_steps(
    chain *c, uint8_t *rows, size_t stride, size_t i, const size_t halves, const size_t pixel_bytes,
    const bool has_averages) {
  uint8_t *at[2 * ROWS];
#pragma clang loop unroll(full)
  for (size_t r = 0; r < halves * ROWS; r++) {
    at[r] = rows + i + r * (stride - SKEW * pixel_bytes);
  }
  const uint8_t *above = rows - stride + i;
  block upper = load_block(at, pixel_bytes);
  block lower = halves == 2 ? load_block(at + ROWS, pixel_bytes) : upper;
#pragma clang loop unroll(full)
  for (size_t s = 0; s < STEPS; s++) {
    const __m512i between = c[0].older; // contains the pixel above the lower half
    upper.steps[s] = step(c, upper.steps[s], load_above(above + s * pixel_bytes), has_averages);
    if (halves == 2) {
      lower.steps[s] = step(c + 1, lower.steps[s], between, has_averages);
    }
  }
  store_block(at, upper, pixel_bytes);
  if (halves == 2) {
    store_block(at + ROWS, lower, pixel_bytes);
  }
}

/// Runs a step at the start or end of the rows, where not all rows have a pixel.
INLINE void step_at_end(
    chain *c, uint8_t *rows, size_t stride, size_t count, size_t i, const size_t halves, const size_t pixel_bytes,
    const bool has_averages) {
  uint8_t pixels[2 * ROWS * LANES] = {0};
  uint8_t first[LANES] = {0};
  if (i < count) {
    memcpy(first, rows + i - stride, pixel_bytes);
  }
  for (size_t r = 0; r < halves * ROWS; r++) {
    const size_t at = i - r * SKEW * pixel_bytes; // wraps to a huge value before the row's first pixel
    if (at < count) {
      memcpy(pixels + r * LANES, rows + r * stride + at, pixel_bytes);
    }
  }
  __m512i above = load_above(first);
  for (size_t h = 0; h < halves; h++) {
    uint8_t *half = pixels + h * ROWS * LANES;
    const __m512i next_above = c[h].older;
    const __m512i stored = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)half));
    const __m512i next = step(c + h, stored, above, has_averages);
    _mm256_storeu_si256((__m256i *)(void *)half, _mm512_cvtepi16_epi8(next));
    above = next_above;
  }
  for (size_t r = 0; r < halves * ROWS; r++) {
    const size_t at = i - r * SKEW * pixel_bytes;
    if (at < count) {
      memcpy(rows + r * stride + at, pixels + r * LANES, pixel_bytes);
    }
  }
}

/// Returns the chain of eight rows before their first pixel.
INLINE chain start_chain(const uint8_t *rows, size_t stride) {
  int64_t masks[4][ROWS];
  for (size_t r = 0; r < ROWS; r++) {
    const uint8_t filter = rows[(ptrdiff_t)(r * stride) - 1];
    masks[0][r] = filter == 1 || filter == 4 ? -1 : 0;
    masks[1][r] = filter == 2 || filter == 4 ? -1 : 0;
    masks[2][r] = filter == 4 ? -1 : 0;
    masks[3][r] = filter == 3 ? -1 : 0;
  }
  const __m512i zero = _mm512_setzero_si512();
  return (chain){
      .takes_left = _mm512_loadu_si512(masks[0]),
      .takes_up = _mm512_loadu_si512(masks[1]),
      .takes_corner = _mm512_loadu_si512(masks[2]),
      .averages = _mm512_loadu_si512(masks[3]),
      .last = zero,
      .older = zero,
      .corner = zero,
  };
}

INLINE void undo(
    uint8_t *rows, size_t stride, size_t count, const size_t halves, const size_t pixel_bytes,
    const bool has_averages) {
  chain c[2] = {start_chain(rows, stride), start_chain(rows + (halves - 1) * ROWS * stride, stride)};
  const size_t behind = (halves * ROWS - 1) * SKEW * pixel_bytes; // distance of the last row
  size_t i = 0;
  for (; i < behind; i += pixel_bytes) {
    step_at_end(c, rows, stride, count, i, halves, pixel_bytes, has_averages);
  }
  for (; i + STEPS * pixel_bytes <= count; i += STEPS * pixel_bytes) {
    four_steps(c, rows, stride, i, halves, pixel_bytes, has_averages);
  }
  for (; i < count + behind; i += pixel_bytes) {
    step_at_end(c, rows, stride, count, i, halves, pixel_bytes, has_averages);
  }
}

#define UNDO(halves, bytes)                                                                                            \
  if (has_averages) {                                                                                                  \
    undo(rows, stride, count, halves, bytes, true);                                                                    \
  } else {                                                                                                             \
    undo(rows, stride, count, halves, bytes, false);                                                                   \
  }

TARGET static void undo_eight(uint8_t *rows, size_t stride, size_t count, size_t pixel_bytes, bool has_averages) {
  if (pixel_bytes == 3) {
    UNDO(1, 3)
  } else {
    UNDO(1, 4)
  }
}

TARGET static void undo_sixteen(uint8_t *rows, size_t stride, size_t count, size_t pixel_bytes, bool has_averages) {
  if (pixel_bytes == 3) {
    UNDO(2, 3)
  } else {
    UNDO(2, 4)
  }
}

/// Returns whether the rows take longer one by one, or four by four, than together, and whether one has filter 3.
static bool is_worthwhile(const uint8_t *rows, size_t stride, size_t row_count, bool *has_averages) {
  // Measured, in hundredths of a nanosecond for a pixel: each filter without this file; eight and sixteen rows with it.
  static const uint16_t costs[5] = {1, 45, 10, 100, 100};
  const size_t together = row_count == ROWS ? 60 : 42;
  size_t apart = 0;
  *has_averages = false;
  for (size_t r = 0; r < row_count; r++) {
    const uint8_t filter = rows[(ptrdiff_t)(r * stride) - 1];
    apart += costs[filter];
    *has_averages = *has_averages || filter == 3;
  }
  return apart > together * row_count;
}

size_t ccodecs_png_unfilter_many(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  const bool is_available = cinstructions_allow(CINSTRUCTIONS_AVX512) && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  bool has_averages;
  if (!is_available || (pixel_bytes != 3 && pixel_bytes != 4)) {
    return 0;
  }
  if (row_count >= 2 * ROWS && is_worthwhile(rows, stride, 2 * ROWS, &has_averages)) {
    undo_sixteen(rows, stride, count, pixel_bytes, has_averages);
    return 2 * ROWS;
  }
  if (row_count >= ROWS && is_worthwhile(rows, stride, ROWS, &has_averages)) {
    undo_eight(rows, stride, count, pixel_bytes, has_averages);
    return ROWS;
  }
  return 0;
}

#else

size_t ccodecs_png_unfilter_many(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  (void)rows, (void)stride, (void)row_count, (void)count, (void)pixel_bytes;
  return 0;
}

#endif
