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
#include <immintrin.h>
#define TARGET __attribute__((target("avx2")))
/// Prevents the compiler from merging what computes `v` with what uses it, into instructions that take longer.
#define KEEP(v) __asm__("" : "+x"(v))
#else
#define TARGET
#define KEEP(v) ((void)(v))
#endif
#define INLINE TARGET static inline __attribute__((always_inline))

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint8_t bytes32 __attribute__((vector_size(32)));
typedef uint32_t doubles8 __attribute__((vector_size(32)));
typedef uint64_t quads4 __attribute__((vector_size(32)));

/// The number of pixels by which a row is behind the row above.
enum { SKEW = 2 };
/// The number of steps that are taken between two loads.
enum { STEPS = 4 };

/// The rows that are processed together. Everything is known when a kernel is compiled.
typedef struct shape {
  size_t pixel_bytes;
  size_t row_count;  ///< 8 if a pixel has up to four bytes, or 4 if it has up to eight.
  bool has_averages; ///< A row has filter 3.
} shape;

/// The state of the dependency chain.
typedef struct chain {
  bytes32 takes_left, takes_up, takes_corner; ///< Masks of the rows whose Paeth predictor uses the neighbor.
  bytes32 averages;                           ///< Mask of the rows with filter 3.
  bytes32 last, older;                        ///< The pixels of the last step and of the step before.
  bytes32 corner;                             ///< The masked `up` of the last step.
} chain;

/// Returns the filter of a row, which is the byte before it.
static uint8_t filter_of(const uint8_t *row) {
  return row[-1];
}

/// Returns the bytes of a row's pixel in a vector.
INLINE size_t lane_bytes(const shape s) {
  return sizeof(bytes32) / s.row_count;
}

INLINE bytes32 smaller(bytes32 a, bytes32 b) {
  return __builtin_elementwise_min(a, b);
}

INLINE bytes32 larger(bytes32 a, bytes32 b) {
  return __builtin_elementwise_max(a, b);
}

/// Returns a - b, or 0 if that is negative.
INLINE bytes32 excess(bytes32 a, bytes32 b) {
  return __builtin_elementwise_sub_sat(a, b);
}

/// Returns -1 where twice `a` is at most `b`.
INLINE bytes32 is_half(bytes32 a, bytes32 b) {
  return (bytes32)(excess(__builtin_elementwise_add_sat(a, a), b) == (bytes32){0});
}

/// Returns the Paeth predictor, the neighbor nearest to left + up - corner, without computing that. If corner is not
/// between the two others, the nearest is the one of them that is on the other side. If it is between them, the nearest
/// is the one from which corner is at least twice as far away as from the other; if there is none, it is corner.
INLINE bytes32 paeth(bytes32 left, bytes32 up, bytes32 corner) {
  const bytes32 low = smaller(left, up);
  const bytes32 high = larger(left, up);
  const bytes32 to_low = excess(corner, low);
  const bytes32 to_high = excess(high, corner);
  bytes32 is_high = is_half(to_low, to_high);
  bytes32 is_low = is_half(to_high, to_low);
  KEEP(is_high);
  KEEP(is_low);
  return larger(low, smaller(high, (corner | is_high) & ~is_low));
}

/// Returns the mean, rounded down, in the lanes of the mask, and 0 in the others.
INLINE bytes32 mean(bytes32 a, bytes32 b, bytes32 mask) {
#if defined(__x86_64__)
  const bytes32 rounded_up = (bytes32)_mm256_avg_epu8((__m256i)a, (__m256i)b);
  return (rounded_up & mask) - ((a ^ b) & mask & 1);
#else
  return ((a & b) + ((a ^ b) >> 1)) & mask;
#endif
}

/// Returns the pixels of the next step. `stored` contains the rows' filtered pixels; the first bytes of `above` are the
/// pixel above the first row.
INLINE bytes32 step(chain *c, bytes32 stored, bytes32 above, const shape s) {
  const bytes32 all_up =
      s.row_count == 8
          ? (bytes32)__builtin_shufflevector((doubles8)above, (doubles8)c->older, 0, 8, 9, 10, 11, 12, 13, 14)
          : (bytes32)__builtin_shufflevector((quads4)above, (quads4)c->older, 0, 4, 5, 6);
  bytes32 rest = stored;
  if (s.has_averages) {
    rest += mean(c->last, all_up, c->averages);
  }
  const bytes32 up = all_up & c->takes_up;
  const bytes32 next = rest + paeth(c->last & c->takes_left, up, c->corner);
  c->corner = up & c->takes_corner;
  c->older = c->last;
  c->last = next;
  return next;
}

/// Returns a vector with the `count` bytes at `p` first; the others are unused.
INLINE bytes32 load_first(const uint8_t *p, const size_t count) {
  bytes16 v = {0};
  memcpy(&v, p, count);
  return __builtin_shufflevector(
      v, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
      -1, -1, -1);
}

/// Runs a step at the start or end of the rows, where not all rows have a pixel.
INLINE void step_at_end(chain *c, uint8_t *rows, size_t stride, size_t count, size_t i, const shape s) {
  uint8_t pixels[sizeof(bytes32)] = {0};
  uint8_t above[8] = {0};
  bytes32 v;
  if (i < count) {
    memcpy(above, rows + i - stride, s.pixel_bytes);
  }
#pragma clang loop unroll(disable)
  for (size_t r = 0; r < s.row_count; r++) {
    const size_t at = i - r * SKEW * s.pixel_bytes; // wraps to a huge value before the row's first pixel
    if (at < count) {
      memcpy(pixels + r * lane_bytes(s), rows + r * stride + at, s.pixel_bytes);
    }
  }
  memcpy(&v, pixels, sizeof v);
  v = step(c, v, load_first(above, sizeof above), s);
  memcpy(pixels, &v, sizeof v);
#pragma clang loop unroll(disable)
  for (size_t r = 0; r < s.row_count; r++) {
    const size_t at = i - r * SKEW * s.pixel_bytes;
    if (at < count) {
      memcpy(rows + r * stride + at, pixels + r * lane_bytes(s), s.pixel_bytes);
    }
  }
}

// MARK: Eight rows in a vector

/// Returns four pixels of each of two rows, as four bytes each; the bytes after a smaller pixel are unused.
INLINE doubles8 load_two(const uint8_t *first, const uint8_t *second, const size_t pixel_bytes) {
  bytes16 a, b;
  memcpy(&a, first, sizeof a);
  memcpy(&b, second, sizeof b);
  const bytes32 v = __builtin_shufflevector(
      a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
      29, 30, 31);
  switch (pixel_bytes) {
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

/// Stores four pixels to each of two rows; the reverse of load_two. Nothing is stored after them: the load of the
/// pixels there would have to wait for that.
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
  KEEP(v);
  const bytes16 a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const bytes16 b = __builtin_shufflevector(v, v, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  memcpy(first, &a, STEPS * pixel_bytes);
  memcpy(second, &b, STEPS * pixel_bytes);
}

/// Turns vectors with four pixels of rows 0 and 4, 1 and 5, 2 and 6, 3 and 7 into those with one pixel of all rows, and
/// back.
INLINE void transpose(doubles8 v[STEPS]) {
  const quads4 a = (quads4)__builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
  const quads4 b = (quads4)__builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
  const quads4 c = (quads4)__builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
  const quads4 d = (quads4)__builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
  v[0] = (doubles8)__builtin_shufflevector(a, b, 0, 4, 2, 6);
  v[1] = (doubles8)__builtin_shufflevector(a, b, 1, 5, 3, 7);
  v[2] = (doubles8)__builtin_shufflevector(c, d, 0, 4, 2, 6);
  v[3] = (doubles8)__builtin_shufflevector(c, d, 1, 5, 3, 7);
  for (size_t i = 0; i < STEPS; i++) {
    KEEP(v[i]);
  }
}

/// Runs four steps on eight rows, starting at byte `i` of the first row.
INLINE void four_steps(chain *c, uint8_t *rows, size_t stride, size_t i, const shape s) {
  const size_t down = stride - SKEW * s.pixel_bytes;
  const uint8_t *above = rows + i - stride;
  uint8_t *first = rows + i;
  doubles8 pixels[STEPS];
#pragma clang loop unroll(full)
  for (size_t r = 0; r < STEPS; r++) {
    pixels[r] = load_two(first + r * down, first + (r + STEPS) * down, s.pixel_bytes);
  }
  transpose(pixels);
#pragma clang loop unroll(full)
  for (size_t n = 0; n < STEPS; n++) {
    pixels[n] = (doubles8)step(c, (bytes32)pixels[n], load_first(above + n * s.pixel_bytes, 4), s);
  }
  transpose(pixels);
#pragma clang loop unroll(full)
  for (size_t r = 0; r < STEPS; r++) {
    store_two(first + r * down, first + (r + STEPS) * down, pixels[r], s.pixel_bytes);
  }
}

// MARK: Four rows in a vector

/// Runs a step on four rows, starting at byte `i` of the first row.
INLINE void one_step(chain *c, uint8_t *rows, size_t stride, size_t i, const shape s) {
  const size_t down = stride - SKEW * s.pixel_bytes;
  uint8_t *first = rows + i;
  quads4 pixels;
#pragma clang loop unroll(full)
  for (size_t r = 0; r < 4; r++) {
    uint64_t pixel;
    memcpy(&pixel, first + r * down, sizeof pixel);
    pixels[r] = pixel;
  }
  pixels = (quads4)step(c, (bytes32)pixels, load_first(first - stride, 8), s);
#pragma clang loop unroll(full)
  for (size_t r = 0; r < 4; r++) {
    const uint64_t pixel = pixels[r];
    memcpy(first + r * down, &pixel, s.pixel_bytes);
  }
}

// MARK: All rows

/// Returns the chain before the rows' first pixels.
INLINE chain start_chain(const uint8_t *rows, size_t stride, const shape s) {
  uint8_t masks[4][sizeof(bytes32)];
#pragma clang loop unroll(disable)
  for (size_t r = 0; r < s.row_count; r++) {
    const uint8_t filter = filter_of(rows + r * stride);
    const bool uses[4] = {filter == 1 || filter == 4, filter == 2 || filter == 4, filter == 4, filter == 3};
    for (size_t i = 0; i < 4; i++) {
      memset(masks[i] + r * lane_bytes(s), uses[i] ? 255 : 0, lane_bytes(s));
    }
  }
  chain c = {0};
  memcpy(&c.takes_left, masks[0], sizeof(bytes32));
  memcpy(&c.takes_up, masks[1], sizeof(bytes32));
  memcpy(&c.takes_corner, masks[2], sizeof(bytes32));
  memcpy(&c.averages, masks[3], sizeof(bytes32));
  return c;
}

INLINE void undo(uint8_t *rows, size_t stride, size_t count, const shape s) {
  chain c = start_chain(rows, stride, s);
  const size_t behind = (s.row_count - 1) * SKEW * s.pixel_bytes; // distance of the last row
  const size_t block = s.row_count == 8 ? STEPS * s.pixel_bytes : s.pixel_bytes;
  size_t i = 0;
  for (; i < behind; i += s.pixel_bytes) {
    step_at_end(&c, rows, stride, count, i, s);
  }
  for (; i + block <= count; i += block) {
    if (s.row_count == 8) {
      four_steps(&c, rows, stride, i, s);
    } else {
      one_step(&c, rows, stride, i, s);
    }
  }
  for (; i < count + behind; i += s.pixel_bytes) {
    step_at_end(&c, rows, stride, count, i, s);
  }
}

#define UNDO(bytes, together)                                                                                          \
  case bytes:                                                                                                          \
    if (has_averages) {                                                                                                \
      undo(rows, stride, count, (shape){bytes, together, true});                                                       \
    } else {                                                                                                           \
      undo(rows, stride, count, (shape){bytes, together, false});                                                      \
    }                                                                                                                  \
    break;

TARGET static void undo_eight(uint8_t *rows, size_t stride, size_t count, size_t pixel_bytes, bool has_averages) {
  switch (pixel_bytes) {
    UNDO(1, 8)
    UNDO(2, 8)
    UNDO(3, 8)
    UNDO(4, 8)
  }
}

TARGET static void undo_four(uint8_t *rows, size_t stride, size_t count, size_t pixel_bytes, bool has_averages) {
  switch (pixel_bytes) {
    UNDO(1, 4)
    UNDO(2, 4)
    UNDO(3, 4)
    UNDO(4, 4)
    UNDO(6, 4)
    UNDO(8, 4)
  }
}

static bool is_available(void) {
#if defined(__x86_64__)
  return cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2");
#else
  return cinstructions_allow(CINSTRUCTIONS_VECTORS); // part of the base architecture
#endif
}

/// Returns whether the rows take longer one by one than together.
static bool is_worthwhile(const uint8_t *rows, size_t stride, size_t row_count, bool *has_averages) {
  // Measured, in hundredths of a nanosecond for a pixel: each filter alone, and a row of eight and of four.
  static const uint16_t alone[5] = {1, 50, 15, 120, 380};
  const size_t together = row_count == 8 ? 55 : 110;
  size_t sum = 0;
  *has_averages = false;
  for (size_t r = 0; r < row_count; r++) {
    const uint8_t filter = filter_of(rows + r * stride);
    sum += alone[filter];
    *has_averages = *has_averages || filter == 3;
  }
  return sum > together * row_count;
}

/// Unfilters several rows at once if that is faster. Returns their number, or 0 if it did nothing.
static size_t undo_several(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  bool has_averages;
  if (!is_available()) {
    return 0;
  }
  if (pixel_bytes <= 4 && row_count >= 8 && is_worthwhile(rows, stride, 8, &has_averages)) {
    undo_eight(rows, stride, count, pixel_bytes, has_averages);
    return 8;
  }
  if (row_count >= 4 && is_worthwhile(rows, stride, 4, &has_averages)) {
    undo_four(rows, stride, count, pixel_bytes, has_averages);
    return 4;
  }
  return 0;
}

#else

static size_t undo_several(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  (void)rows, (void)stride, (void)row_count, (void)count, (void)pixel_bytes;
  return 0;
}

#endif

void ccodecs_png_unfilter_rows(uint8_t *rows, size_t stride, size_t row_count, size_t count, size_t pixel_bytes) {
  while (row_count > 0) {
    size_t done = undo_several(rows, stride, row_count, count, pixel_bytes);
    if (done == 0) {
      ccodecs_png_unfilter(rows[-1], rows, rows - stride, count, pixel_bytes);
      done = 1;
    }
    rows += done * stride;
    row_count -= done;
  }
}
