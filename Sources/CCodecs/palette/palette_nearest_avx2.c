// Nearest colors and error diffusion with AVX2. The scalar version of the latter, in palette_map.c, is its oracle.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

#include "palette_nearest_lanes.h"

/// Returns four values, for the axes.
TARGET static inline __m128i axes_of(int a, int b, int c, int d) {
  return _mm_setr_epi16((short)a, (short)b, (short)c, (short)d, 0, 0, 0, 0);
}

TARGET static inline __m128i minimums(void) {
  return axes_of(PALETTE_MIN_0, PALETTE_MIN_1, PALETTE_MIN_2, PALETTE_MIN_3);
}

/// Adds the first two of four numbers.
TARGET static inline uint32_t sum_of_two(__m128i numbers) {
  return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(numbers, _mm_shuffle_epi32(numbers, _MM_SHUFFLE(1, 1, 1, 1))));
}

/// As palette_cell: products with powers of two shift right by the bits that cells do not distinguish.
TARGET static inline uint32_t cell_of(__m128i point) {
  enum { WHOLE = 16 + PALETTE_CELL_BITS };
  const __m128i shifts = axes_of(
      1 << (WHOLE - PALETTE_BITS_0), 1 << (WHOLE - PALETTE_BITS_1), 1 << (WHOLE - PALETTE_BITS_2),
      1 << (WHOLE - 1 - PALETTE_BITS_3));
  const __m128i places = axes_of(1 << (2 * PALETTE_CELL_BITS), 1 << PALETTE_CELL_BITS, 1, 1 << (3 * PALETTE_CELL_BITS));
  return sum_of_two(_mm_madd_epi16(_mm_mulhi_epu16(_mm_sub_epi16(point, minimums()), shifts), places));
}

/// As palette_squared_distance.
TARGET static inline uint32_t squared_distance(__m128i a, __m128i b) {
  const __m128i difference = _mm_sub_epi16(a, b);
  return sum_of_two(_mm_madd_epi16(difference, difference));
}

TARGET static inline __m128i load_point(const palette_point *point) {
  return _mm_loadl_epi64((const __m128i *)(const void *)point);
}

TARGET static inline void store_point(palette_point *point, __m128i value) {
  _mm_storel_epi64((__m128i *)(void *)point, value);
}

TARGET static inline uint32_t find_nearest(palette_nearest *nearest, __m128i point) {
  const uint32_t cell = palette_list_of(nearest, cell_of(point));
  palette_point wanted;
  store_point(&wanted, point);
  return nearest_of(nearest->groups + (cell & 0xffff), cell >> 16, wanted);
}

// MARK: Error diffusion

/// Returns the differences of four pixels to neighbors; 0 for one that is absent.
TARGET static inline __m256i differences(__m256i here, const palette_point *neighbors) {
  const __m256i others = _mm256_loadu_si256((const __m256i *)(const void *)neighbors);
  __m256i absent = _mm256_cmpeq_epi16(others, _mm256_set1_epi16(INT16_MIN));
  absent = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(absent, 0), 0);
  return _mm256_andnot_si256(absent, _mm256_abs_epi16(_mm256_subs_epi16(others, here)));
}

/// Sets `fixed` of four pixels, where it is not an index, to the negative strength. Points before the first pixel and
/// behind the last are absent.
TARGET static inline void set_strengths(const ccodecs_palette_mapper *m, size_t x) {
  const __m256i here = _mm256_loadu_si256((const __m256i *)(const void *)(m->points + x));
  __m256i maximum = _mm256_max_epi16(differences(here, m->points + x - 1), differences(here, m->points + x + 1));
  maximum = _mm256_max_epi16(maximum, differences(here, m->above + x));
  maximum = _mm256_max_epi16(maximum, _mm256_srli_epi64(maximum, 32));
  maximum = _mm256_max_epi16(maximum, _mm256_srli_epi64(maximum, 16));
  const __m256i edges = _mm256_min_epi16(maximum, _mm256_set1_epi16(PALETTE_EDGE));
  const __m256i strengths = _mm256_sub_epi16( // 4 units of contrast are one of strength: palette_strength
      _mm256_srli_epi16(edges, 2), _mm256_set1_epi16(PALETTE_SMOOTH_STRENGTH));
  const __m256i first = _mm256_shuffle_epi8(
      strengths, _mm256_setr_epi8(
                     0, 1, 8, 9, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 8, 9, -1, -1, -1,
                     -1, -1, -1, -1, -1));
  const __m128i packed = _mm_or_si128(_mm256_castsi256_si128(first), _mm256_extracti128_si256(first, 1));
  __m128i *fixed = (__m128i *)(void *)(m->fixed + x);
  const __m128i old = _mm_loadl_epi64(fixed);
  _mm_storel_epi64(fixed, _mm_blendv_epi8(old, packed, _mm_srai_epi16(old, 15)));
}

_Static_assert(PALETTE_EDGE == 4 * (PALETTE_SMOOTH_STRENGTH - PALETTE_EDGE_STRENGTH), "as set_strengths computes");

TARGET static void set_all_strengths(ccodecs_palette_mapper *m, size_t count) {
  m->points[-1] = m->points[count] = palette_absent;
  for (size_t x = 0; x < count && count < 4; x++) {
    if (m->fixed[x] < 0) {
      m->fixed[x] = (int16_t)-palette_strength(palette_contrast(m, x, count));
    }
  }
  for (size_t x = 0; x + 4 <= count; x += 4) {
    set_strengths(m, x);
  }
  if (count > 4) {
    set_strengths(m, count - 4); // some of them again
  }
}

/// As `choose` in palette_map.c.
TARGET static inline uint32_t choose(ccodecs_palette_mapper *m, __m128i target, int before) {
  uint32_t distance = UINT32_MAX;
  if (before >= 0) {
    distance = squared_distance(target, load_point(m->nearest.points + before));
    if (distance < m->radii[before]) {
      return (uint32_t)before;
    }
  }
  const uint32_t key = find_nearest(&m->nearest, target), best = key & 0xff;
  return distance <= (key >> 8) + m->repeats[best] ? (uint32_t)before : best;
}

/// Returns the error to diffuse, at most PALETTE_MAX_ERROR. Products have the strength's 256ths in their high halves.
TARGET static inline __m128i error_of(__m128i wanted, __m128i chosen, int strength) {
  const __m128i difference = _mm_sub_epi16(wanted, chosen);
  const __m128i size = _mm_slli_epi16(_mm_abs_epi16(difference), 3);
  const __m128i error = _mm_mulhi_epu16(size, _mm_set1_epi16((short)(strength << 5)));
  return _mm_sign_epi16(_mm_min_epi16(error, _mm_set1_epi16(PALETTE_MAX_ERROR)), difference);
}

/// Returns whether all of the PALETTE_MANY pixels from `fixed` on have indices, which are then written.
TARGET static inline bool put_fixed(const int16_t *fixed, uint8_t *indices) {
  const __m128i many = _mm_loadu_si128((const __m128i *)(const void *)fixed);
  const bool are_fixed = (_mm_movemask_epi8(_mm_srai_epi16(many, 15))) == 0;
  if (are_fixed) {
    _mm_storel_epi64((__m128i *)(void *)indices, _mm_packus_epi16(many, many));
  }
  return are_fixed;
}

/// Errors go to the pixel ahead and to three below. Sums of those are complete, and stored, in the order of the row.
TARGET static void diffuse(ccodecs_palette_mapper *m, uint32_t count, uint8_t *indices) {
  set_all_strengths(m, count);
  const __m128i low = minimums();
  const __m128i high = _mm_add_epi16(
      low,
      axes_of(
          (1 << PALETTE_BITS_0) - 1, (1 << PALETTE_BITS_1) - 1, (1 << PALETTE_BITS_2) - 1, (1 << PALETTE_BITS_3) - 1));
  const ptrdiff_t step = m->is_backward ? -1 : 1;
  ptrdiff_t x = m->is_backward ? (ptrdiff_t)count - 1 : 0;
  __m128i ahead = _mm_setzero_si128(), behind = ahead, under = ahead;
  int before = -1;
  for (uint32_t i = 0; i < count; i++, x += step) {
    const int fixed = m->fixed[x];
    __m128i error = _mm_setzero_si128();
    const ptrdiff_t end = x + step * (PALETTE_MANY - 1), first = step < 0 ? end : x;
    if (fixed >= 0 && i % PALETTE_MANY == 0 && i + PALETTE_MANY <= count &&
        put_fixed(m->fixed + first, indices + first)) {
      store_point(m->below + x - step, behind);
      memset(m->below + first, 0, PALETTE_MANY * sizeof *m->below);
      store_point(m->below + x, under);
      ahead = behind = under = error;
      before = m->fixed[end] - (int)m->first;
      i += PALETTE_MANY - 1;
      x = end;
      continue;
    }
    if (fixed >= 0) {
      indices[x] = (uint8_t)fixed;
      before = fixed - (int)m->first;
    } else {
      const __m128i into = _mm_add_epi16(_mm_add_epi16(load_point(m->into + x), _mm_set1_epi16(8)), ahead);
      const __m128i wanted = _mm_add_epi16(load_point(m->points + x), _mm_srai_epi16(into, 4));
      const uint32_t color = choose(m, _mm_min_epi16(_mm_max_epi16(wanted, low), high), before);
      indices[x] = (uint8_t)(color + m->first);
      error = error_of(wanted, load_point(m->nearest.points + color), -fixed);
      before = (int)color;
    }
    store_point(m->below + x - step, _mm_add_epi16(behind, _mm_add_epi16(_mm_slli_epi16(error, 1), error)));
    behind = _mm_add_epi16(under, _mm_add_epi16(_mm_slli_epi16(error, 2), error));
    under = error;
    ahead = _mm_sub_epi16(_mm_slli_epi16(error, 3), error);
  }
  store_point(m->below + x - step, behind);
  store_point(m->below + x, under);
}

const palette_kernels ccodecs_palette_kernels_avx2 = {list, find_gaps, find, diffuse};

#endif
