// Reversal of the filters of several rows at once, for AVX2 and NEON.
//
// With most filters a pixel depends on the pixel to its left, so the speed of a row is limited by the latency of a
// dependency chain. Here, a vector contains one pixel of each of several rows. Each row is SKEW pixels behind the row
// above, so that the pixels it needs from there are available, and one step of the chain processes all rows. A skew of
// two instead of one keeps the lane shuffles out of the chain.
//
// All filters share one calculation, in which each row masks out those of left, up and corner that its filter does not
// use: with left only, the Paeth predictor is left, and with up only, it is up.

#include "png_decoder.h"

#include <cinstructions.h>
#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2")))
#else
#define TARGET
#endif
#define INLINE TARGET static inline __attribute__((always_inline))

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint8_t bytes32 __attribute__((vector_size(32)));
typedef int16_t words16 __attribute__((vector_size(32)));
typedef uint32_t doubles8 __attribute__((vector_size(32)));

/// The number of pixels by which a row is behind the row above.
enum { SKEW = 2 };

/// Returns the filter of a row, which is the byte before it.
static uint8_t filter_of(const uint8_t *row) {
  return row[-1];
}

/// Returns the number of rows in a vector: pixels of up to 4 bytes use 4 lanes, larger pixels 8.
INLINE size_t rows_of(const size_t pixel_bytes) {
  return pixel_bytes <= 4 ? 4 : 2;
}

/// The state of the dependency chain.
typedef struct chain {
  words16 takes_left, takes_up, takes_corner; ///< Masks of the rows whose Paeth predictor uses the neighbor.
  words16 averages;                           ///< Mask of the rows with filter 3.
  words16 last, older;                        ///< The pixels of the last step and of the step before.
  words16 corner;                             ///< The masked `up` of the last step.
} chain;

INLINE words16 select(words16 mask, words16 a, words16 b) {
  return (a & mask) | (b & ~mask);
}

INLINE words16 smaller(words16 a, words16 b) {
  return __builtin_elementwise_min(a, b);
}

INLINE words16 larger(words16 a, words16 b) {
  return __builtin_elementwise_max(a, b);
}

/// Returns the Paeth predictor, the neighbor nearest to left + up - corner, without computing distances. It compares
/// 3 * corner - left - up with the smaller and the larger of left and up: the predictor is corner if the value is
/// between them, the larger if it is below, the smaller if it is above.
INLINE words16 paeth(words16 left, words16 up, words16 corner) {
  const words16 low = smaller(left, up);
  const words16 high = larger(left, up);
  const words16 threshold = (corner + corner + corner - up) - left;
  return select(threshold > low, select(high > threshold, corner, low), high);
}

/// Returns the pixels of the next step. `stored` contains the rows' filtered pixels; the first lanes of `above` contain
/// the pixel above the first row.
INLINE words16 step(chain *c, words16 stored, words16 above, const size_t pixel_bytes, const bool has_averages) {
  const words16 all_up =
      rows_of(pixel_bytes) == 4
          ? __builtin_shufflevector(above, c->older, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)
          : __builtin_shufflevector(above, c->older, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  bytes32 rest = (bytes32)stored;
  if (has_averages) {
    rest += (bytes32)(((c->last & c->averages) + (all_up & c->averages)) >> 1);
  }
  const words16 up = all_up & c->takes_up;
  const words16 next = (words16)(rest + (bytes32)paeth(c->last & c->takes_left, up, c->corner)); // high bytes are 0
  c->corner = up & c->takes_corner;
  c->older = c->last;
  c->last = next;
  return next;
}

INLINE words16 widen(bytes16 v) {
  return __builtin_convertvector(v, words16);
}

/// Loads the pixel above the first row; the other lanes are unused.
INLINE words16 load_above(const uint8_t *p) {
  bytes16 v = {0};
  memcpy(&v, p, 8);
  return widen(v);
}

/// Runs a step at the start or end of the rows, where not all rows have a pixel.
INLINE void step_at_end(
    chain *c, uint8_t *rows, size_t stride, size_t count, size_t i, const size_t pixel_bytes, const bool has_averages) {
  const size_t row_count = rows_of(pixel_bytes);
  const size_t lanes = 16 / row_count;
  uint8_t stored[16] = {0};
  uint8_t above[8] = {0};
  bytes16 v;
  if (i < count) {
    memcpy(above, rows + i - stride, pixel_bytes);
  }
  for (size_t r = 0; r < row_count; r++) {
    const size_t at = i - r * SKEW * pixel_bytes; // wraps to a huge value before the row's first pixel
    if (at < count) {
      memcpy(stored + r * lanes, rows + r * stride + at, pixel_bytes);
    }
  }
  memcpy(&v, stored, sizeof v);
  const words16 next = step(c, widen(v), load_above(above), pixel_bytes, has_averages);
  v = __builtin_convertvector(next, bytes16);
  memcpy(stored, &v, sizeof v);
  for (size_t r = 0; r < row_count; r++) {
    const size_t at = i - r * SKEW * pixel_bytes;
    if (at < count) {
      memcpy(rows + r * stride + at, stored + r * lanes, pixel_bytes);
    }
  }
}

/// Loads four pixels from each of two rows, expanded to 4 bytes per pixel.
INLINE doubles8 load_two(const uint8_t *first, const uint8_t *second, const size_t pixel_bytes) {
  bytes16 a, b;
  memcpy(&a, first, sizeof a);
  memcpy(&b, second, sizeof b);
  const bytes32 v = __builtin_shufflevector(
      a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
      29, 30, 31);
  switch (pixel_bytes) { // the bytes after a pixel are unused
  case 1:
    return (doubles8)__builtin_shufflevector(
        v, v, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1, 16, -1, -1, -1, 17, -1, -1, -1, 18, -1, -1,
        -1, 19, -1, -1, -1);
  case 2:
    return (doubles8)__builtin_shufflevector(
        v, v, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7, -1, -1, 16, 17, -1, -1, 18, 19, -1, -1, 20, 21, -1, -1,
        22, 23, -1, -1);
  case 3:
    return (doubles8)__builtin_shufflevector(
        v, v, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, 16, 17, 18, -1, 19, 20, 21, -1, 22, 23, 24, -1, 25,
        26, 27, -1);
  default:
    return (doubles8)v;
  }
}

/// Stores four pixels to each of two rows; the reverse of load_two.
INLINE void store_two(uint8_t *first, uint8_t *second, doubles8 pixels, const size_t pixel_bytes) {
  bytes32 v = (bytes32)pixels;
  switch (pixel_bytes) {
  case 1:
    v = __builtin_shufflevector(
        v, v, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 16, 20, 24, 28, -1, -1, -1, -1, -1, -1, -1,
        -1, -1, -1, -1, -1);
    break;
  case 2:
    v = __builtin_shufflevector(
        v, v, 0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 16, 17, 20, 21, 24, 25, 28, 29, -1, -1, -1, -1,
        -1, -1, -1, -1);
    break;
  case 3:
    v = __builtin_shufflevector(
        v, v, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30,
        -1, -1, -1, -1);
    break;
  default:
    break;
  }
  const bytes16 a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const bytes16 b = __builtin_shufflevector(v, v, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  memcpy(first, &a, 4 * pixel_bytes);
  memcpy(second, &b, 4 * pixel_bytes);
}

/// Runs four steps on four rows, starting at pixel `i / pixel_bytes` of the first row.
INLINE void four_steps(
    chain *c, uint8_t *rows, size_t stride, size_t i, const size_t pixel_bytes, const bool has_averages) {
  const size_t behind = SKEW * pixel_bytes;
  uint8_t *const at[4] = {
      rows + i, rows + stride + i - behind, rows + 2 * stride + i - 2 * behind, rows + 3 * stride + i - 3 * behind};
  const uint8_t *above = rows - stride + i;
  const bytes32 zero = {0};
  // Interleave the pixels of each step: rows 0 and 1 in the low half, rows 2 and 3 in the high half.
  const doubles8 even = load_two(at[0], at[2], pixel_bytes);
  const doubles8 odd = load_two(at[1], at[3], pixel_bytes);
  const bytes32 early = (bytes32)__builtin_shufflevector(even, odd, 0, 8, 1, 9, 4, 12, 5, 13);
  const bytes32 late = (bytes32)__builtin_shufflevector(even, odd, 2, 10, 3, 11, 6, 14, 7, 15);
#define WIDEN_LOW(v)                                                                                                   \
  (words16) __builtin_shufflevector(                                                                                   \
      v, zero, 0, 32, 1, 32, 2, 32, 3, 32, 4, 32, 5, 32, 6, 32, 7, 32, 16, 32, 17, 32, 18, 32, 19, 32, 20, 32, 21, 32, \
      22, 32, 23, 32)
#define WIDEN_HIGH(v)                                                                                                  \
  (words16) __builtin_shufflevector(                                                                                   \
      v, zero, 8, 32, 9, 32, 10, 32, 11, 32, 12, 32, 13, 32, 14, 32, 15, 32, 24, 32, 25, 32, 26, 32, 27, 32, 28, 32,   \
      29, 32, 30, 32, 31, 32)
#define NARROW(low, high)                                                                                              \
  (doubles8) __builtin_shufflevector(                                                                                  \
      (bytes32)low, (bytes32)high, 0, 2, 4, 6, 8, 10, 12, 14, 32, 34, 36, 38, 40, 42, 44, 46, 16, 18, 20, 22, 24, 26,  \
      28, 30, 48, 50, 52, 54, 56, 58, 60, 62)
  const words16 a = step(c, WIDEN_LOW(early), load_above(above), pixel_bytes, has_averages);
  const words16 b = step(c, WIDEN_HIGH(early), load_above(above + pixel_bytes), pixel_bytes, has_averages);
  const words16 d = step(c, WIDEN_LOW(late), load_above(above + 2 * pixel_bytes), pixel_bytes, has_averages);
  const words16 e = step(c, WIDEN_HIGH(late), load_above(above + 3 * pixel_bytes), pixel_bytes, has_averages);
  const doubles8 first = NARROW(a, b);
  const doubles8 second = NARROW(d, e);
  store_two(at[0], at[2], __builtin_shufflevector(first, second, 0, 2, 8, 10, 4, 6, 12, 14), pixel_bytes);
  store_two(at[1], at[3], __builtin_shufflevector(first, second, 1, 3, 9, 11, 5, 7, 13, 15), pixel_bytes);
}

/// Runs a step on two rows with pixels of more than 4 bytes.
INLINE void wide_step(
    chain *c, uint8_t *rows, size_t stride, size_t i, const size_t pixel_bytes, const bool has_averages) {
  uint8_t *const first = rows + i;
  uint8_t *const second = rows + stride + i - SKEW * pixel_bytes;
  uint8_t both[16];
  bytes16 v;
  memcpy(both, first, 8);
  memcpy(both + 8, second, 8);
  memcpy(&v, both, sizeof v);
  const words16 next = step(c, widen(v), load_above(first - stride), pixel_bytes, has_averages);
  v = __builtin_convertvector(next, bytes16);
  memcpy(both, &v, sizeof v);
  memcpy(first, both, pixel_bytes);
  memcpy(second, both + 8, pixel_bytes);
}

INLINE void undo(uint8_t *rows, size_t stride, size_t count, const size_t pixel_bytes, const bool has_averages) {
  const size_t row_count = rows_of(pixel_bytes);
  const size_t lanes = 16 / row_count;
  chain c = {0};
  for (size_t lane = 0; lane < 16; lane++) {
    const uint8_t filter = filter_of(rows + lane / lanes * stride);
    c.takes_left[lane] = filter == 1 || filter == 4 ? -1 : 0;
    c.takes_up[lane] = filter == 2 || filter == 4 ? -1 : 0;
    c.takes_corner[lane] = filter == 4 ? -1 : 0;
    c.averages[lane] = filter == 3 ? -1 : 0;
  }
  const size_t behind = (row_count - 1) * SKEW * pixel_bytes; // distance of the last row
  size_t i = 0;
  for (; i < behind; i += pixel_bytes) {
    step_at_end(&c, rows, stride, count, i, pixel_bytes, has_averages);
  }
  if (row_count == 4) {
    for (; i + 4 * pixel_bytes <= count; i += 4 * pixel_bytes) {
      four_steps(&c, rows, stride, i, pixel_bytes, has_averages);
    }
  } else {
    for (; i < count; i += pixel_bytes) {
      wide_step(&c, rows, stride, i, pixel_bytes, has_averages);
    }
  }
  for (; i < count + behind; i += pixel_bytes) {
    step_at_end(&c, rows, stride, count, i, pixel_bytes, has_averages);
  }
}

#define FOR_PIXELS(bytes)                                                                                              \
  case bytes:                                                                                                          \
    if (has_averages) {                                                                                                \
      undo(rows, stride, count, bytes, true);                                                                          \
    } else {                                                                                                           \
      undo(rows, stride, count, bytes, false);                                                                         \
    }                                                                                                                  \
    break;

TARGET static void undo_rows(uint8_t *rows, size_t stride, size_t count, size_t pixel_bytes, bool has_averages) {
  switch (pixel_bytes) {
    FOR_PIXELS(1)
    FOR_PIXELS(2)
    FOR_PIXELS(3)
    FOR_PIXELS(4)
    FOR_PIXELS(6)
    FOR_PIXELS(8)
  }
}

static bool is_available(void) {
#if defined(__x86_64__)
  return cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2");
#else
  return cinstructions_allow(CINSTRUCTIONS_VECTORS); // part of the base architecture
#endif
}

/// Unfilters several rows at once if that is faster. Returns their number, or 0 if it did nothing.
static size_t undo_several(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  const size_t several = pixel_bytes <= 4 ? 4 : 2;
  size_t paeths = 0;
  size_t averages = 0;
  for (size_t r = 0; r < several && several <= row_count; r++) {
    paeths += filter_of(rows + r * stride) == 4;
    averages += filter_of(rows + r * stride) == 3;
  }
  // Measured: the chain of a single Paeth row takes longer than the joint calculation, as do those of three average
  // rows.
  if (!is_available() || (paeths == 0 && averages < 3)) {
    return 0;
  }
  undo_rows(rows, stride, count, pixel_bytes, averages > 0);
  return several;
}

#else

static size_t undo_several(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  (void)rows, (void)stride, (void)row_count, (void)count, (void)pixel_bytes;
  return 0;
}

#endif

void ccodecs_png_unfilter_rows(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  while (row_count > 0) {
    size_t done = ccodecs_png_unfilter_many(rows, stride, row_count, count, pixel_bytes);
    if (done == 0) {
      done = undo_several(rows, stride, row_count, count, pixel_bytes);
    }
    if (done == 0) {
      ccodecs_png_unfilter(rows[-1], rows, rows - stride, count, pixel_bytes);
      done = 1;
    }
    rows += done * stride;
    row_count -= done;
  }
}
