// The resampling kernels for AVX2 and FMA.
//
// Integer kernels sum the same products as the scalar ones in 32 bits, where order does not matter, and so agree with
// them bit for bit. Kernels may read up to CPIXELS_ROW_PADDING samples past a source row: it is a padded copy.

#if defined(__x86_64__)

#include "kernels.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

enum { SHIFT = CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS };

/// The sums over taps of one destination sample, in eight partial sums.
AVX2 static inline __m256i gray_sums(const uint8_t *samples, const int16_t *weights, uint32_t tap_stride) {
  __m256i sum = _mm256_setzero_si256();
  for (uint32_t t = 0; t < tap_stride; t += 16) {
    __m256i s = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(samples + t)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(s, _mm256_loadu_si256((const __m256i *)(weights + t))));
  }
  return sum;
}

/// Eight destination samples at a time; their partial sums are added up by one tree of horizontal additions.
AVX2 static void horizontal_gray(const cpixels_axis *axis, const uint8_t *source, int16_t *destination) {
  const __m256i rounding = _mm256_set1_epi32(1 << (SHIFT - 1));
  const uint32_t stride = axis->tap_stride;
  for (uint32_t d = 0; d < axis->destination_count; d += 8) {
    __m256i sums[8];
    const uint32_t count = axis->destination_count - d < 8 ? axis->destination_count - d : 8;
    for (uint32_t i = 0; i < 8; i++) {
      const uint32_t at = d + (i < count ? i : count - 1);
      sums[i] = gray_sums(source + axis->first[at], axis->fixed_weights + (size_t)at * stride, stride);
    }
    __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[4], sums[5]), _mm256_hadd_epi32(sums[6], sums[7]));
    __m256i sum =
        _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
    sum = _mm256_srai_epi32(_mm256_add_epi32(sum, rounding), SHIFT);
    __m128i packed = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    if (count == 8) {
      _mm_storeu_si128((__m128i *)(destination + d), packed);
    } else {
      int16_t last[8];
      _mm_storeu_si128((__m128i *)last, packed);
      for (uint32_t i = 0; i < count; i++) {
        destination[d + i] = last[i];
      }
    }
  }
}

/// Four taps at a time: `order` brings the same channel of two neighbouring pixels side by side, as madd wants them.
AVX2 static void horizontal_interleaved(
    const cpixels_axis *axis, uint32_t channels, const uint8_t *source, int16_t *destination) {
  const __m256i order = channels == 3
                            ? _mm256_setr_epi8(
                                  0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
                                  6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1)
                            : _mm256_setr_epi8(
                                  0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, //
                                  8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
  const __m256i pairs = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  const __m128i rounding = _mm_set1_epi32(1 << (SHIFT - 1));
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const uint8_t *samples = source + (size_t)axis->first[d] * channels;
    const int16_t *weights = axis->fixed_weights + (size_t)d * axis->tap_stride;
    __m256i sums = _mm256_setzero_si256();
    for (uint32_t t = 0; t < axis->tap_count; t += 4) {
      __m128i pixels = _mm_loadu_si128((const __m128i *)(samples + (size_t)t * channels));
      __m256i s = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(pixels), order);
      __m256i w = _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(weights + t)));
      sums = _mm256_add_epi32(sums, _mm256_madd_epi16(s, _mm256_permutevar8x32_epi32(w, pairs)));
    }
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_srai_epi32(_mm_add_epi32(sum, rounding), SHIFT);
    int16_t values[8];
    _mm_storeu_si128((__m128i *)values, _mm_packs_epi32(sum, sum));
    for (uint32_t c = 0; c < channels; c++) {
      *destination++ = values[c];
    }
  }
}

AVX2 static void horizontal_u8(
    const cpixels_axis *axis, uint8_t channels, const uint8_t *source, int16_t *destination) {
  if (channels == 1) {
    horizontal_gray(axis, source, destination);
  } else {
    horizontal_interleaved(axis, channels, source, destination);
  }
}

/// Sixteen samples at a time, rows in pairs, as madd wants them.
AVX2 static void vertical_u8(
    const int16_t *const *rows, const int16_t *weights, uint32_t tap_count, size_t sample_count,
    uint8_t *destination) {
  const int bits = CPIXELS_WEIGHT_BITS + CPIXELS_INTERMEDIATE_BITS;
  const __m256i rounding = _mm256_set1_epi32(1 << (bits - 1));
  size_t x = 0;
  for (; x + 16 <= sample_count; x += 16) {
    __m256i low = rounding;
    __m256i high = rounding;
    uint32_t t = 0;
    for (; t + 2 <= tap_count; t += 2) {
      __m256i a = _mm256_loadu_si256((const __m256i *)(rows[t] + x));
      __m256i b = _mm256_loadu_si256((const __m256i *)(rows[t + 1] + x));
      __m256i w = _mm256_set1_epi32((int32_t)((uint16_t)weights[t] | (uint32_t)(uint16_t)weights[t + 1] << 16));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w));
    }
    if (t < tap_count) {
      __m256i a = _mm256_loadu_si256((const __m256i *)(rows[t] + x));
      __m256i zero = _mm256_setzero_si256();
      __m256i w = _mm256_set1_epi32((uint16_t)weights[t]);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, zero), w));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, zero), w));
    }
    __m256i packed = _mm256_packs_epi32(_mm256_srai_epi32(low, bits), _mm256_srai_epi32(high, bits));
    packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(packed, packed), 0x08);
    _mm_storeu_si128((__m128i *)(destination + x), _mm256_castsi256_si128(packed));
  }
  if (x < sample_count) {
    // The rest, shifted: rows[t] + x for every t would need a second array of pointers.
    for (; x < sample_count; x++) {
      int32_t sum = 1 << (bits - 1);
      for (uint32_t t = 0; t < tap_count; t++) {
        sum += rows[t][x] * weights[t];
      }
      sum >>= bits;
      destination[x] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
  }
}

/// Four channels, two taps at a time. Other channel counts have no vector kernel: no picture needs one yet.
AVX2 static void horizontal_u16(
    const cpixels_axis *axis, uint8_t channels, const uint16_t *source, float *destination) {
  if (channels != 4) {
    cpixels_resize_scalar.horizontal_u16(axis, channels, source, destination);
    return;
  }
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const uint16_t *samples = source + (size_t)axis->first[d] * 4;
    const float *weights = axis->float_weights + (size_t)d * axis->tap_stride;
    __m256 sums = _mm256_setzero_ps();
    for (uint32_t t = 0; t < axis->tap_count; t += 2) {
      __m128i pixels = _mm_loadu_si128((const __m128i *)(samples + (size_t)t * 4));
      __m256 s = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(pixels));
      __m256 w = _mm256_set_m128(_mm_set1_ps(weights[t + 1]), _mm_set1_ps(weights[t]));
      sums = _mm256_fmadd_ps(s, w, sums);
    }
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
    _mm_storeu_ps(destination + (size_t)d * 4, sum);
  }
}

AVX2 static void vertical_u16(
    const float *const *rows, const float *weights, uint32_t tap_count, size_t sample_count,
    uint16_t *destination) {
  size_t x = 0;
  for (; x + 8 <= sample_count; x += 8) {
    __m256 sum = _mm256_setzero_ps();
    for (uint32_t t = 0; t < tap_count; t++) {
      sum = _mm256_fmadd_ps(_mm256_loadu_ps(rows[t] + x), _mm256_set1_ps(weights[t]), sum);
    }
    // Truncation after adding a half, as the scalar kernel rounds; packus clamps.
    __m256i whole = _mm256_cvttps_epi32(_mm256_add_ps(sum, _mm256_set1_ps(0.5f)));
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storeu_si128((__m128i *)(destination + x), packed);
  }
  for (; x < sample_count; x++) {
    float sum = 0;
    for (uint32_t t = 0; t < tap_count; t++) {
      sum = __builtin_fmaf(rows[t][x], weights[t], sum);
    }
    sum += 0.5f;
    destination[x] = sum <= 0 ? 0 : sum >= 65535 ? 65535 : (uint16_t)sum;
  }
}

const cpixels_resize_kernels cpixels_resize_avx2 = {
    .horizontal_u8 = horizontal_u8,
    .vertical_u8 = vertical_u8,
    .horizontal_u16 = horizontal_u16,
    .vertical_u16 = vertical_u16,
};

#endif
