// The means of square cells of an image, and what its rows are like, gathered row by row. All arithmetic is exact
// integer arithmetic, and simple enough for the compiler to vectorize.

#include "kernels.h"

#include <string.h>

/// The number of samples that are added up side by side, and the maximum number of rows that do not overflow 16 bits.
enum { VECTOR_SIZE = 16, LANE_COUNT = 4 * VECTOR_SIZE, MAX_ROW_COUNT = 256 };

typedef uint8_t bytes __attribute__((vector_size(VECTOR_SIZE)));
typedef uint32_t quad __attribute__((vector_size(VECTOR_SIZE)));
typedef uint16_t words __attribute__((vector_size(2 * VECTOR_SIZE)));

CPIXELS_INLINE void add_bytes(const uint8_t *samples, words *sums) {
  bytes loaded;
  memcpy(&loaded, samples, sizeof loaded);
  *sums += __builtin_convertvector(loaded, words);
}

CPIXELS_INLINE void add_words(const words *part, uint32_t *sums) {
  for (size_t i = 0; i < VECTOR_SIZE; i++) {
    sums[i] += (*part)[i];
  }
}

CPIXELS_INLINE void add_block(const uint8_t *rows, size_t row_stride, size_t row_count, uint32_t *sums) {
  words part[LANE_COUNT / VECTOR_SIZE] = {{0}};
  for (size_t row = 0; row < row_count; row++, rows += row_stride) {
    add_bytes(rows, &part[0]);
    add_bytes(rows + VECTOR_SIZE, &part[1]);
    add_bytes(rows + 2 * VECTOR_SIZE, &part[2]);
    add_bytes(rows + 3 * VECTOR_SIZE, &part[3]);
  }
  for (size_t i = 0; i < LANE_COUNT / VECTOR_SIZE; i++) {
    add_words(&part[i], sums + i * VECTOR_SIZE);
  }
}

CPIXELS_INLINE void add_rows(
    const uint8_t *rows, size_t row_stride, size_t row_count, uint32_t *sums, size_t sample_count) {
  while (row_count > 0) {
    const size_t count = row_count < MAX_ROW_COUNT ? row_count : MAX_ROW_COUNT;
    size_t i = 0;
    for (; i + LANE_COUNT <= sample_count; i += LANE_COUNT) {
      add_block(rows + i, row_stride, count, sums + i);
    }
    for (; i < sample_count; i++) {
      for (size_t row = 0; row < count; row++) {
        sums[i] += rows[row * row_stride + i];
      }
    }
    rows += count * row_stride;
    row_count -= count;
  }
}

CPIXELS_AVX2 static void add_rows_avx2(
    const uint8_t *rows, size_t row_stride, size_t row_count, uint32_t *sums, size_t sample_count) {
  add_rows(rows, row_stride, row_count, sums, sample_count);
}

void cpixels_add_rows(
    const uint8_t *rows, size_t row_stride, size_t row_count, uint32_t *sums, size_t sample_count, cpixels_isa isa) {
  CPIXELS_VECTORIZED(add_rows, isa)(rows, row_stride, row_count, sums, sample_count);
}

/// A division by the number of pixels of a cell.
typedef struct divisor {
  uint64_t count;
  uint64_t multiplier;
} divisor;

/// The number of pixels up to which a division is done by multiplication.
enum { MAX_PILLOW_COUNT = 1 << 16 };

/// Source: Pillow, Image.reduce: a division by multiplication that rounds as it does.
CPIXELS_INLINE uint8_t mean(uint64_t sum, const divisor *divisor) {
  const uint64_t dividend = sum + divisor->count / 2;
  const bool multiplies = divisor->count <= MAX_PILLOW_COUNT;
  return (uint8_t)(multiplies ? dividend * divisor->multiplier >> 24 : dividend / divisor->count);
}

CPIXELS_INLINE void take_cells(
    const uint32_t *sums, size_t pixel_count, uint32_t channel_count, size_t first_width, size_t width,
    size_t row_count, uint8_t *cells) {
  divisor by = {0};
  size_t start = 0;
  size_t end = first_width < pixel_count ? first_width : pixel_count;
  while (start < pixel_count) {
    uint64_t totals[4] = {0};
    size_t i = start;
    if (channel_count == 1) {
      quad four = {0};
      for (; i + 4 <= end; i += 4) {
        quad loaded;
        memcpy(&loaded, sums + i, sizeof loaded);
        four += loaded;
      }
      totals[0] = (uint64_t)four[0] + four[1] + four[2] + four[3];
    }
    for (; i < end; i++) {
      for (uint32_t c = 0; c < channel_count; c++) {
        totals[c] += sums[i * channel_count + c];
      }
    }
    const uint64_t count = (uint64_t)(end - start) * row_count;
    if (count != by.count) {
      by = (divisor){.count = count, .multiplier = (1U << 24) / count};
    }
    for (uint32_t c = 0; c < channel_count; c++) {
      *cells++ = mean(totals[c], &by);
    }
    start = end;
    end = end + width < pixel_count ? end + width : pixel_count;
  }
}

void cpixels_take_cells(
    uint32_t *sums, size_t pixel_count, uint32_t channel_count, size_t first_width, size_t width, size_t row_count,
    uint8_t *cells) {
  switch (channel_count) {
  case 1:
    take_cells(sums, pixel_count, 1, first_width, width, row_count, cells);
    break;
  case 3:
    take_cells(sums, pixel_count, 3, first_width, width, row_count, cells);
    break;
  default:
    take_cells(sums, pixel_count, channel_count, first_width, width, row_count, cells);
  }
  memset(sums, 0, pixel_count * channel_count * sizeof *sums);
}

static uint8_t product(uint32_t color, uint32_t alpha) {
  const uint32_t scaled = color * alpha + 128;
  return (uint8_t)((scaled + (scaled >> 8)) >> 8); // equals color * alpha / 255, rounded
}

void cpixels_premultiply_8bit(const uint8_t *rgba, uint8_t *premultiplied, size_t pixel_count) {
  for (size_t i = 0; i < 4 * pixel_count; i += 4) {
    const uint32_t alpha = rgba[i + 3];
    for (size_t c = 0; c < 3; c++) {
      premultiplied[i + c] = product(rgba[i + c], alpha);
    }
    premultiplied[i + 3] = (uint8_t)alpha;
  }
}

void cpixels_unpremultiply_8bit(const uint8_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < 4 * pixel_count; i += 4) {
    const uint32_t alpha = premultiplied[i + 3];
    for (size_t c = 0; c < 3; c++) {
      const uint32_t color = alpha == 0 ? premultiplied[i + c] : 255 * (uint32_t)premultiplied[i + c] / alpha;
      rgba[i + c] = (uint8_t)(color < 255 ? color : 255);
    }
    rgba[i + 3] = (uint8_t)alpha;
  }
}

void cpixels_expand_rgb(const uint8_t *rgb, uint8_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++) {
    rgba[4 * i] = rgb[3 * i];
    rgba[4 * i + 1] = rgb[3 * i + 1];
    rgba[4 * i + 2] = rgb[3 * i + 2];
    rgba[4 * i + 3] = 255;
  }
}

void cpixels_narrow_premultiplied(const uint16_t *samples, uint8_t *premultiplied, size_t sample_count) {
  for (size_t i = 0; i < sample_count; i++) {
    const uint32_t narrow = ((uint32_t)samples[i] + 127) / 255;
    premultiplied[i] = (uint8_t)(narrow < 255 ? narrow : 255);
  }
}

void cpixels_luma(const uint8_t *pixels, uint32_t channel_count, uint8_t *luma, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, pixels += channel_count) {
    const uint32_t sum = 19595U * pixels[0] + 38470U * pixels[1] + 7471U * pixels[2];
    luma[i] = (uint8_t)((sum + 0x8000) >> 16);
  }
}

bool cpixels_are_opaque(const uint8_t *rgba, size_t pixel_count) {
  uint8_t all = 255;
  for (size_t i = 0; i < pixel_count; i++) {
    all &= rgba[4 * i + 3];
  }
  return all == 255;
}

bool cpixels_are_gray(const uint8_t *pixels, uint32_t channel_count, size_t pixel_count, int32_t tolerance) {
  for (size_t i = 0; i < pixel_count; i++, pixels += channel_count) {
    const int32_t red_green = pixels[0] - pixels[1];
    const int32_t green_blue = pixels[1] - pixels[2];
    const int32_t blue_red = pixels[2] - pixels[0];
    const bool is_gray = red_green <= tolerance && red_green >= -tolerance && green_blue <= tolerance &&
                         green_blue >= -tolerance && blue_red <= tolerance && blue_red >= -tolerance;
    if (!is_gray && (channel_count < 4 || pixels[3] > 0)) {
      return false;
    }
  }
  return true;
}

bool cpixels_are_neutral(const uint8_t *chroma, size_t sample_count, int32_t tolerance) {
  int32_t minimum = 128;
  int32_t maximum = 128;
  for (size_t i = 0; i < sample_count; i++) {
    minimum = chroma[i] < minimum ? chroma[i] : minimum;
    maximum = chroma[i] > maximum ? chroma[i] : maximum;
  }
  return minimum >= 128 - tolerance && maximum <= 128 + tolerance;
}

/// Counts the steps of a row that are at most `limit` levels.
static uint32_t count_steps(const uint8_t *luma, size_t pixel_count, uint8_t limit) {
  uint32_t count = 0;
  size_t i = 1;
  while (i < pixel_count) {
    const size_t end = i + UINT8_MAX < pixel_count ? i + UINT8_MAX : pixel_count;
    uint8_t part = 0;
    for (; i < end; i++) {
      const uint8_t more = luma[i] > luma[i - 1] ? luma[i] : luma[i - 1];
      const uint8_t less = luma[i] > luma[i - 1] ? luma[i - 1] : luma[i];
      part = (uint8_t)(part + ((uint8_t)(more - less) <= limit));
    }
    count += part;
  }
  return count;
}

void cpixels_tally_luma(const uint8_t *luma, size_t pixel_count, cpixels_luma_tally *tally) {
  enum { MAX_SMALL_STEP = 8 };
  for (size_t i = 0; i < pixel_count; i++) {
    tally->levels[luma[i]]++;
  }
  const uint32_t flat = count_steps(luma, pixel_count, 0);
  tally->flat_count += flat;
  tally->small_count += count_steps(luma, pixel_count, MAX_SMALL_STEP) - flat;
  tally->step_count += pixel_count > 0 ? (uint32_t)pixel_count - 1 : 0;
}
