// Faces in a small gray image: a cascade judges all windows of the image at several sizes, and windows that are alike
// are one face.

#include "faces.h"

#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

enum {
  MAX_GROUPS = 512,
  /// The number of windows that find a face if there is one.
  MIN_HITS = 2,
  /// Positions are stored in fractions of a pixel.
  UNITS = 16,
  /// The minimum deviation of a window's pixels, in levels.
  MIN_DEVIATION = 10,
  INTERPOLATION_BITS = 11,
};

/// The ratio of the sizes at which an image is searched, one after the other.
static const double LEVEL_RATIO = 1.25;

/// Windows that are alike, as sums.
typedef struct group {
  uint64_t x, y, width, height;
  uint32_t count;
} group;

/// The search of an image.
typedef struct search {
  const cpixels_cascade *cascade;
  cpixels_faces_judge judge;
  uint32_t width; ///< Of the image.
  uint32_t height;
  uint8_t *source; ///< The image, or a half, a quarter, ... of it.
  uint32_t source_width;
  uint32_t source_height;
  uint8_t *level; ///< The image at the current size.
  uint32_t level_width;
  uint32_t level_height;
  uint32_t *sums; ///< The integral images of its samples and their squares, modulo 2^32.
  uint32_t *squares;
  float *deviations; ///< Of a row of windows.
  group *groups;
  uint32_t group_count;
} search;

static size_t sum_count(uint32_t height) {
  return (size_t)(height + 1) * CPIXELS_FACES_STRIDE;
}

static size_t aligned(size_t byte_count) {
  return (byte_count + 63) / 64 * 64;
}

size_t cpixels_faces_workspace(uint32_t width, uint32_t height) {
  return 2 * aligned((size_t)width * height) + 2 * aligned(4 * sum_count(height)) + aligned(4 * CPIXELS_FACES_STRIDE) +
         aligned(MAX_GROUPS * sizeof(group));
}

void cpixels_faces_gray(const uint8_t *row, size_t pixel_count, uint32_t channels, uint8_t *gray) {
  for (size_t i = 0; i < pixel_count; i++) {
    const uint8_t *pixel = row + i * channels;
    const uint32_t luma = channels == 1 ? pixel[0] : (77U * pixel[0] + 150U * pixel[1] + 29U * pixel[2]) >> 8;
    gray[i] = (uint8_t)(channels == 4 ? (luma * pixel[3] + 127) / 255 + 255 - pixel[3] : luma);
  }
}

// MARK: Sizes

static void halve(search *search) {
  const uint32_t width = search->source_width / 2;
  const uint32_t height = search->source_height / 2;
  for (uint32_t y = 0; y < height; y++) {
    const uint8_t *above = search->source + (size_t)(2 * y) * search->source_width;
    const uint8_t *below = above + search->source_width;
    uint8_t *row = search->source + (size_t)y * width; // never ahead of what is read
    for (uint32_t x = 0; x < width; x++) {
      row[x] = (uint8_t)((above[2 * x] + above[2 * x + 1] + below[2 * x] + below[2 * x + 1] + 2) / 4);
    }
  }
  search->source_width = width;
  search->source_height = height;
}

/// The first of two samples between which one of a smaller image lies, and the share of the second.
typedef struct place {
  uint32_t first;
  uint32_t share;
} place;

static place place_of(uint32_t index, uint32_t count, uint32_t source_count) {
  const int64_t position = ((2 * (int64_t)index + 1) * source_count << INTERPOLATION_BITS) / (2 * (int64_t)count) -
                           (1 << (INTERPOLATION_BITS - 1));
  const int64_t last = (int64_t)(source_count - 1) << INTERPOLATION_BITS;
  const int64_t clamped = position < 0 ? 0 : position > last ? last : position;
  return (place){(uint32_t)(clamped >> INTERPOLATION_BITS), (uint32_t)clamped & ((1 << INTERPOLATION_BITS) - 1)};
}

/// Interpolates the image of the current level.
static void interpolate(search *search) {
  place columns[CPIXELS_FACES_MAX_SIDE];
  const uint32_t one = 1 << INTERPOLATION_BITS;
  for (uint32_t x = 0; x < search->level_width; x++) {
    columns[x] = place_of(x, search->level_width, search->source_width);
  }
  for (uint32_t y = 0; y < search->level_height; y++) {
    const place row = place_of(y, search->level_height, search->source_height);
    const uint8_t *above = search->source + (size_t)row.first * search->source_width;
    const uint8_t *below = above + (row.share > 0 ? search->source_width : 0);
    uint8_t *out = search->level + (size_t)y * search->level_width;
    for (uint32_t x = 0; x < search->level_width; x++) {
      const uint32_t first = columns[x].first;
      const uint32_t share = columns[x].share;
      const uint32_t next = first + (share > 0);
      const uint32_t upper = above[first] * (one - share) + above[next] * share;
      const uint32_t lower = below[first] * (one - share) + below[next] * share;
      // Both weights have 11 bits: together with the sample they fill 30.
      out[x] =
          (uint8_t)((upper * (one - row.share) + lower * row.share + (1U << (2 * INTERPOLATION_BITS - 1))) >> (2 * INTERPOLATION_BITS));
    }
  }
}

static void integrate(search *search) {
  for (uint32_t y = 0; y < search->level_height; y++) {
    const uint8_t *row = search->level + (size_t)y * search->level_width;
    const uint32_t *sums_above = search->sums + (size_t)y * CPIXELS_FACES_STRIDE;
    const uint32_t *squares_above = search->squares + (size_t)y * CPIXELS_FACES_STRIDE;
    uint32_t *sums = search->sums + (size_t)(y + 1) * CPIXELS_FACES_STRIDE;
    uint32_t *squares = search->squares + (size_t)(y + 1) * CPIXELS_FACES_STRIDE;
    uint32_t sum = 0;
    uint32_t square = 0;
    for (uint32_t x = 0; x < search->level_width; x++) {
      sum += row[x];
      square += (uint32_t)row[x] * row[x];
      sums[x + 1] = sums_above[x + 1] + sum;
      squares[x + 1] = squares_above[x + 1] + square;
    }
  }
}

// MARK: Windows

static uint32_t sum_of(const uint32_t *sums, uint32_t width, uint32_t height) {
  const size_t down = (size_t)height * CPIXELS_FACES_STRIDE;
  return sums[0] - sums[width] - sums[down] + sums[down + width];
}

/// Computes the deviations of a row of windows, without a pixel at their edges, times their area.
/// - `row`: The offset of the first window in the integral images.
static void measure(search *search, size_t row, uint32_t count) {
  const uint32_t width = search->cascade->width - 2;
  const uint32_t height = search->cascade->height - 2;
  const double area = (double)width * height;
  for (uint32_t x = 0; x < count; x++) {
    const size_t first = row + CPIXELS_FACES_STRIDE + 1 + x;
    const double sum = sum_of(search->sums + first, width, height);
    const double square = sum_of(search->squares + first, width, height);
    const double variance = area * square - sum * sum;
    search->deviations[x] = variance < MIN_DEVIATION * MIN_DEVIATION * area * area ? -1 : (float)sqrt(variance);
  }
  for (uint32_t x = count; x < count + CPIXELS_FACES_LANES && x < CPIXELS_FACES_STRIDE; x++) {
    search->deviations[x] = -1;
  }
}

static bool is_close(uint64_t a, uint64_t b, uint64_t reach) {
  return (a > b ? a - b : b - a) <= reach;
}

/// Whether two groups are the same face: their edges differ by a fifth of the smaller one at most.
static bool are_alike(const group *a, const group *b) {
  const uint64_t a_width = a->width / a->count;
  const uint64_t b_width = b->width / b->count;
  const uint64_t reach = (a_width < b_width ? a_width : b_width) / 5;
  const uint64_t a_x = a->x / a->count;
  const uint64_t b_x = b->x / b->count;
  const uint64_t a_y = a->y / a->count;
  const uint64_t b_y = b->y / b->count;
  return is_close(a_x, b_x, reach) && is_close(a_y, b_y, reach) && is_close(a_x + a_width, b_x + b_width, reach) &&
         is_close(a_y + a->height / a->count, b_y + b->height / b->count, reach);
}

static void merge(group *into, const group *from) {
  into->x += from->x;
  into->y += from->y;
  into->width += from->width;
  into->height += from->height;
  into->count += from->count;
}

static void note_hit(search *search, uint32_t x, uint32_t y) {
  const uint64_t across = (uint64_t)UNITS * search->width;
  const uint64_t down = (uint64_t)UNITS * search->height;
  const group hit = {
      x * across / search->level_width, y * down / search->level_height,
      search->cascade->width * across / search->level_width, search->cascade->height * down / search->level_height, 1};
  // The latest one first, as neighbors follow each other.
  for (uint32_t i = search->group_count; i > 0; i--) {
    if (are_alike(&search->groups[i - 1], &hit)) {
      merge(&search->groups[i - 1], &hit);
      return;
    }
  }
  // Larger windows are judged last; the smallest group of one window makes room for them.
  group *room = search->group_count < MAX_GROUPS ? search->groups + search->group_count++ : NULL;
  for (uint32_t i = 0; room == NULL && i < MAX_GROUPS; i++) {
    room = search->groups[i].count == 1 && search->groups[i].width < hit.width ? search->groups + i : NULL;
  }
  if (room != NULL) {
    *room = hit;
  }
}

/// Judges the windows of the current level; every other row of them where it is large.
static void search_level(search *search) {
  const uint32_t columns = search->level_width - search->cascade->width + 1;
  const uint32_t rows = search->level_height - search->cascade->height + 1;
  const uint32_t step = 2 * search->level_width > search->width ? 2 : 1;
  for (uint32_t y = 0; y < rows; y += step) {
    const size_t row = (size_t)y * CPIXELS_FACES_STRIDE;
    measure(search, row, columns);
    for (uint32_t x = 0; x < columns; x += CPIXELS_FACES_LANES) {
      uint32_t hits = search->judge(search->cascade, search->sums + row + x, search->deviations + x);
      for (; hits != 0; hits &= hits - 1) {
        note_hit(search, x + (uint32_t)__builtin_ctz(hits), y);
      }
    }
  }
}

// MARK: Groups

/// Whether the center of a group is in another one.
static bool is_inside(const group *inner, const group *outer) {
  const uint64_t x = (inner->x + inner->width / 2) / inner->count;
  const uint64_t y = (inner->y + inner->height / 2) / inner->count;
  return x >= outer->x / outer->count && x <= (outer->x + outer->width) / outer->count &&
         y >= outer->y / outer->count && y <= (outer->y + outer->height) / outer->count;
}

static void merge_alike(search *search) {
  for (uint32_t i = 0; i < search->group_count; i++) {
    for (uint32_t j = i + 1; j < search->group_count;) {
      if (are_alike(&search->groups[i], &search->groups[j])) {
        merge(&search->groups[i], &search->groups[j]);
        search->groups[j] = search->groups[--search->group_count];
      } else {
        j++;
      }
    }
  }
}

/// Whether another group shows the same part of the image with more windows.
static bool is_hidden(const search *search, uint32_t index) {
  const group *own = &search->groups[index];
  for (uint32_t i = 0; i < search->group_count; i++) {
    const group *other = &search->groups[i];
    const bool is_stronger = other->count > own->count || (other->count == own->count && i < index);
    if (i != index && is_stronger && (is_inside(own, other) || is_inside(other, own))) {
      return true;
    }
  }
  return false;
}

static int compare(const void *a, const void *b) {
  const cpixels_face *first = a;
  const cpixels_face *second = b;
  const double areas[2] = {(double)first->width * first->height, (double)second->width * second->height};
  if (areas[0] != areas[1]) {
    return areas[0] > areas[1] ? -1 : 1;
  }
  if (first->y != second->y) {
    return first->y < second->y ? -1 : 1;
  }
  return first->x < second->x ? -1 : first->x > second->x;
}

static size_t faces_of(search *search, cpixels_face *faces, size_t max_count) {
  merge_alike(search);
  size_t count = 0;
  for (uint32_t i = 0; i < search->group_count; i++) {
    const group *group = &search->groups[i];
    if (group->count < MIN_HITS || is_hidden(search, i)) {
      continue;
    }
    const float total = (float)UNITS * (float)group->count;
    const cpixels_face face = {
        (float)group->x / total, (float)group->y / total, (float)group->width / total, (float)group->height / total};
    if (count < max_count) {
      faces[count++] = face;
      continue;
    }
    size_t minimum = 0;
    for (size_t k = 1; k < count; k++) {
      minimum = compare(&faces[k], &faces[minimum]) > 0 ? k : minimum;
    }
    if (count > 0 && compare(&face, &faces[minimum]) < 0) {
      faces[minimum] = face;
    }
  }
  qsort(faces, count, sizeof *faces, compare);
  return count;
}

size_t cpixels_faces_find(
    const cpixels_cascade *cascade, const uint8_t *gray, uint32_t width, uint32_t height, void *workspace,
    cpixels_isa isa, cpixels_face *faces, size_t max_count) {
  if (width == 0 || height == 0 || width > CPIXELS_FACES_MAX_SIDE || height > CPIXELS_FACES_MAX_SIDE) {
    return 0;
  }
  memset(workspace, 0, cpixels_faces_workspace(width, height));
  uint8_t *next = workspace;
  search search = {
      .cascade = cascade,
      .judge = cpixels_faces_judge_of(isa),
      .width = width,
      .height = height,
      .source_width = width,
      .source_height = height,
  };
  search.source = next;
  next += aligned((size_t)width * height);
  search.level = next;
  next += aligned((size_t)width * height);
  search.sums = (uint32_t *)next;
  next += aligned(4 * sum_count(height));
  search.squares = (uint32_t *)next;
  next += aligned(4 * sum_count(height));
  search.deviations = (float *)next;
  next += aligned(4 * CPIXELS_FACES_STRIDE);
  search.groups = (group *)next;
  memcpy(search.source, gray, (size_t)width * height);
  for (double scale = 1;; scale *= LEVEL_RATIO) {
    search.level_width = (uint32_t)(width / scale);
    search.level_height = (uint32_t)(height / scale);
    if (search.level_width < cascade->width || search.level_height < cascade->height) {
      break;
    }
    while (search.source_width >= 2 * search.level_width && search.source_height >= 2 * search.level_height) {
      halve(&search);
    }
    interpolate(&search);
    integrate(&search);
    search_level(&search);
  }
  return faces_of(&search, faces, max_count);
}
