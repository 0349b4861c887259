// What a thumbnail of at most 100x100 pixels is like: sums of cosines, hashes and colors. Everything is computed in the
// same order for every instruction set.

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

enum { MAX_SIDE = CPIXELS_MAX_THUMBNAIL_SIDE, MAX_COSINES = CPIXELS_MAX_COSINES };

static const double PI = 3.14159265358979323846;

// MARK: Cosines

void cpixels_cosines(size_t length, size_t count, bool is_centered, double *cosines) {
  // cos(pi * m / (2 * length)) for a whole turn, by symmetry of a quarter of it.
  double turn[4 * MAX_SIDE];
  for (size_t m = 0; m <= length; m++) {
    const double value = m == length ? 0 : cos(PI * (double)m / (2 * (double)length));
    turn[2 * length - m] = -value;
    turn[2 * length + m] = -value;
    turn[(4 * length - m) % (4 * length)] = value;
    turn[m] = value;
  }
  for (size_t k = 0; k < count; k++) {
    for (size_t x = 0; x < length; x++) {
      cosines[k * length + x] = turn[(k * (2 * x + (is_centered ? 1 : 0))) % (4 * length)];
    }
  }
}

/// Writes a channel of a row of pixels.
CPIXELS_INLINE void read_channel(
    const uint8_t *rgba, size_t width, cpixels_channel channel, const double *background, const double *levels,
    double *row) {
  if (channel >= CPIXELS_CHANNEL_LIGHT_OF_RED) {
    const size_t c = (size_t)(channel - CPIXELS_CHANNEL_LIGHT_OF_RED);
    for (size_t x = 0; x < width; x++) {
      row[x] = levels[rgba[4 * x + c]];
    }
    return;
  }
  if (channel == CPIXELS_CHANNEL_ALPHA) {
    for (size_t x = 0; x < width; x++) {
      row[x] = rgba[4 * x + 3] / 255.0;
    }
    return;
  }
  const double *const weights = channel == CPIXELS_CHANNEL_LUMINANCE     ? (const double[]){1.0 / 3, 1.0 / 3, 1.0 / 3}
                                : channel == CPIXELS_CHANNEL_YELLOW_BLUE ? (const double[]){0.5, 0.5, -1}
                                                                         : (const double[]){1, -1, 0};
  // The channel of the color in front and of the background, which are mixed by alpha.
  const double behind = weights[0] * background[0] + weights[1] * background[1] + weights[2] * background[2];
  const double red = weights[0] / 255;
  const double green = weights[1] / 255;
  const double blue = weights[2] / 255;
  for (size_t x = 0; x < width; x++) {
    const double alpha = rgba[4 * x + 3] * (1 / 255.0);
    const double front = red * rgba[4 * x] + green * rgba[4 * x + 1] + blue * rgba[4 * x + 2];
    row[x] = behind * (1 - alpha) + alpha * front;
  }
}

CPIXELS_INLINE void add_waves(
    const uint8_t *rgba, size_t width, size_t height, cpixels_channel channel, const double *background,
    const double *levels, const double *down, size_t down_count, double columns[MAX_COSINES][MAX_SIDE]) {
  double row[MAX_SIDE];
  for (size_t y = 0; y < height; y++) {
    read_channel(rgba + 4 * width * y, width, channel, background, levels, row);
    for (size_t j = 0; j < down_count; j++) {
      const double weight = down[j * height + y];
      for (size_t x = 0; x < width; x++) {
        columns[j][x] += weight * row[x];
      }
    }
  }
}

CPIXELS_AVX2 static void add_waves_avx2(
    const uint8_t *rgba, size_t width, size_t height, cpixels_channel channel, const double *background,
    const double *levels, const double *down, size_t down_count, double columns[MAX_COSINES][MAX_SIDE]) {
  add_waves(rgba, width, height, channel, background, levels, down, down_count, columns);
}

void cpixels_cosine_sums(
    const uint8_t *rgba, size_t width, size_t height, cpixels_channel channel, const double *background,
    const double *light, const double *across, size_t across_count, const double *down, size_t down_count, double *sums,
    cpixels_isa isa) {
  double columns[MAX_COSINES][MAX_SIDE] = {{0}};
  CPIXELS_VECTORIZED(add_waves, isa)(rgba, width, height, channel, background, light, down, down_count, columns);
  for (size_t j = 0; j < down_count; j++) {
    for (size_t i = 0; i < across_count; i++) {
      double sum = 0;
      for (size_t x = 0; x < width; x++) {
        sum += columns[j][x] * across[i * width + x];
      }
      sums[j * across_count + i] = sum;
    }
  }
}

void cpixels_alpha_sums(const uint8_t *rgba, size_t pixel_count, uint64_t sums[4]) {
  uint32_t parts[4] = {0}; // 10,000 pixels of 255 * 255 fit
  for (size_t i = 0; i < pixel_count; i++, rgba += 4) {
    const uint32_t alpha = rgba[3];
    parts[0] += rgba[0] * alpha;
    parts[1] += rgba[1] * alpha;
    parts[2] += rgba[2] * alpha;
    parts[3] += alpha;
  }
  for (size_t c = 0; c < 4; c++) {
    sums[c] = parts[c];
  }
}

// MARK: Hashes

/// The maximum number of taps: 2 * 3 * 100 / 8, and one at each end.
enum { MAX_TAPS = 80, PRECISION_BITS = 22 };

typedef struct window {
  size_t start;
  size_t count;
  int32_t weights[MAX_TAPS];
} window;

/// Source: Pillow, Resample.c: precompute_coeffs and normalize_coeffs_8bpc for Lanczos.
static window lanczos_window(size_t length, size_t count, size_t index) {
  const double scale = (double)length / (double)count;
  const double stretch = scale < 1 ? 1 : scale;
  const double support = 3 * stretch;
  const double center = ((double)index + 0.5) * scale;
  const double first = center - support + 0.5;
  const double last = center + support + 0.5;
  window result = {.start = first < 0 ? 0 : (size_t)first};
  const size_t end = last > (double)length ? length : (size_t)last;
  result.count = end - result.start;
  double weights[MAX_TAPS];
  double total = 0;
  // The angle of a tap in the wider of both waves, of which the other one is three times as fast.
  const double step = PI / stretch / 3;
  const double start = ((double)result.start - center + 0.5) * step;
  double sine = sin(start);
  double cosine = cos(start);
  const double step_sine = sin(step);
  const double step_cosine = cos(step);
  for (size_t i = 0; i < result.count; i++) {
    const double angle = ((double)(result.start + i) - center + 0.5) * step;
    const double fast = sine * (3 - 4 * sine * sine);
    const bool is_inside = angle >= -PI && angle < PI;
    weights[i] = !is_inside ? 0 : fabs(angle) < 1e-12 ? 1 : fast * sine / (3 * angle * angle);
    total += weights[i];
    const double next = sine * step_cosine + cosine * step_sine;
    cosine = cosine * step_cosine - sine * step_sine;
    sine = next;
  }
  const double unit = (1 << PRECISION_BITS) / total;
  for (size_t i = 0; i < result.count; i++) {
    const double weight = weights[i] * unit;
    result.weights[i] = (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
  }
  return result;
}

CPIXELS_INLINE uint8_t weigh(const uint8_t *samples, const window *taps) {
  int32_t sum = 1 << (PRECISION_BITS - 1);
  for (size_t i = 0; i < taps->count; i++) {
    sum += samples[taps->start + i] * taps->weights[i];
  }
  sum >>= PRECISION_BITS;
  return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/// Resizes as Pillow does with Lanczos, horizontally first.
CPIXELS_INLINE void resize_rows(
    const uint8_t *gray, size_t width, size_t height, size_t new_width, size_t new_height, uint8_t *resized) {
  uint8_t columns[MAX_SIDE * CPIXELS_PERCEPTUAL_SIDE];
  for (size_t x = 0; x < new_width; x++) {
    const window taps = lanczos_window(width, new_width, x);
    for (size_t y = 0; y < height; y++) {
      columns[x * height + y] = weigh(gray + y * width, &taps);
    }
  }
  for (size_t y = 0; y < new_height; y++) {
    const window taps = lanczos_window(height, new_height, y);
    for (size_t x = 0; x < new_width; x++) {
      resized[y * new_width + x] = weigh(columns + x * height, &taps);
    }
  }
}

CPIXELS_AVX2 static void resize_rows_avx2(
    const uint8_t *gray, size_t width, size_t height, size_t new_width, size_t new_height, uint8_t *resized) {
  resize_rows(gray, width, height, new_width, new_height, resized);
}

static void resize_lanczos(
    const uint8_t *gray, size_t width, size_t height, size_t new_width, size_t new_height, uint8_t *resized,
    cpixels_isa isa) {
  CPIXELS_VECTORIZED(resize_rows, isa)(gray, width, height, new_width, new_height, resized);
}

static int compare(const void *first, const void *second) {
  const double a = *(const double *)first;
  const double b = *(const double *)second;
  return (a > b) - (a < b);
}

uint64_t cpixels_perceptual_hash(const uint8_t *gray, size_t width, size_t height, cpixels_isa isa) {
  enum { SIDE = CPIXELS_PERCEPTUAL_SIDE, LOW = 8 };
  uint8_t pixels[SIDE * SIDE];
  resize_lanczos(gray, width, height, SIDE, SIDE, pixels, isa);
  double cosines[LOW * SIDE];
  cpixels_cosines(SIDE, LOW, true, cosines);
  double columns[LOW][SIDE] = {{0}};
  for (size_t k = 0; k < LOW; k++) {
    for (size_t y = 0; y < SIDE; y++) {
      for (size_t x = 0; x < SIDE; x++) {
        columns[k][x] += cosines[k * SIDE + y] * pixels[y * SIDE + x];
      }
    }
  }
  double waves[LOW * LOW];
  for (size_t i = 0; i < LOW * LOW; i++) {
    double sum = 0;
    for (size_t x = 0; x < SIDE; x++) {
      sum += columns[i / LOW][x] * cosines[i % LOW * SIDE + x];
    }
    waves[i] = fabs(sum) < 1e-6 ? 0 : sum; // nothing but rounding
  }
  double sorted[LOW * LOW];
  memcpy(sorted, waves, sizeof waves);
  qsort(sorted, LOW * LOW, sizeof *sorted, compare);
  const double median = (sorted[LOW * LOW / 2 - 1] + sorted[LOW * LOW / 2]) / 2;
  uint64_t hash = 0;
  for (size_t i = 0; i < LOW * LOW; i++) {
    hash = hash << 1 | (waves[i] > median);
  }
  return hash;
}

uint64_t cpixels_difference_hash(const uint8_t *gray, size_t width, size_t height, cpixels_isa isa) {
  enum { WIDTH = 9, HEIGHT = 8 };
  uint8_t pixels[WIDTH * HEIGHT];
  resize_lanczos(gray, width, height, WIDTH, HEIGHT, pixels, isa);
  uint64_t hash = 0;
  for (size_t y = 0; y < HEIGHT; y++) {
    for (size_t x = 1; x < WIDTH; x++) {
      hash = hash << 1 | (pixels[y * WIDTH + x] > pixels[y * WIDTH + x - 1]);
    }
  }
  return hash;
}

// MARK: Dominant colors

/// Colors are counted in bins of 32 levels per channel.
enum { BIN_COUNT = 512, ROUND_COUNT = 5, MIN_DISTANCE = 32, MIN_ALPHA = 128 };

typedef struct bin {
  uint32_t count;
  int32_t color[3];
} bin;

static int32_t distance(const int32_t *one, const int32_t *other) {
  int32_t sum = 0;
  for (size_t c = 0; c < 3; c++) {
    sum += (one[c] - other[c]) * (one[c] - other[c]);
  }
  return sum;
}

/// Returns the bins that contain pixels, with their mean colors.
static size_t fill_bins(const uint8_t *rgba, size_t pixel_count, bin *bins) {
  memset(bins, 0, BIN_COUNT * sizeof *bins);
  for (size_t i = 0; i < pixel_count; i++, rgba += 4) {
    if (rgba[3] < MIN_ALPHA) {
      continue;
    }
    bin *own = &bins[(rgba[0] >> 5) << 6 | (rgba[1] >> 5) << 3 | rgba[2] >> 5];
    own->count++;
    for (size_t c = 0; c < 3; c++) {
      own->color[c] += rgba[c];
    }
  }
  size_t count = 0;
  for (size_t i = 0; i < BIN_COUNT; i++) {
    if (bins[i].count == 0) {
      continue;
    }
    bins[count] = bins[i];
    for (size_t c = 0; c < 3; c++) {
      bins[count].color[c] = (bins[count].color[c] + (int32_t)bins[count].count / 2) / (int32_t)bins[count].count;
    }
    count++;
  }
  return count;
}

/// Chooses bins of many pixels that are far from each other.
static size_t choose_centers(const bin *bins, size_t bin_count, int32_t centers[][3]) {
  // The distance of each bin to the closest center.
  int32_t nearest[BIN_COUNT];
  size_t count = 0;
  while (count < CPIXELS_MAX_DOMINANT_COLORS) {
    int64_t best = 0;
    size_t chosen = 0;
    for (size_t i = 0; i < bin_count; i++) {
      const int32_t next = count == 0 ? 1 : distance(bins[i].color, centers[count - 1]);
      nearest[i] = count > 1 && nearest[i] < next ? nearest[i] : next;
      const bool is_near = count > 0 && nearest[i] < MIN_DISTANCE * MIN_DISTANCE;
      const int64_t score = is_near ? 0 : (int64_t)bins[i].count * nearest[i];
      if (score > best) {
        best = score;
        chosen = i;
      }
    }
    if (best == 0) {
      break;
    }
    memcpy(centers[count++], bins[chosen].color, sizeof centers[0]);
  }
  return count;
}

/// Moves each center to the mean of the pixels that are closest to it, and counts these.
static void move_centers(
    const bin *bins, size_t bin_count, int32_t centers[][3], size_t center_count, uint32_t *counts) {
  int64_t sums[CPIXELS_MAX_DOMINANT_COLORS][3] = {{0}};
  memset(counts, 0, center_count * sizeof *counts);
  for (size_t i = 0; i < bin_count; i++) {
    size_t nearest = 0;
    int32_t minimum = INT32_MAX;
    for (size_t k = 0; k < center_count; k++) {
      const int32_t next = distance(bins[i].color, centers[k]);
      nearest = next < minimum ? k : nearest;
      minimum = next < minimum ? next : minimum;
    }
    counts[nearest] += bins[i].count;
    for (size_t c = 0; c < 3; c++) {
      sums[nearest][c] += (int64_t)bins[i].color[c] * bins[i].count;
    }
  }
  for (size_t k = 0; k < center_count; k++) {
    for (size_t c = 0; c < 3 && counts[k] > 0; c++) {
      centers[k][c] = (int32_t)((sums[k][c] + counts[k] / 2) / counts[k]);
    }
  }
}

size_t cpixels_dominant_colors(
    const uint8_t *rgba, size_t pixel_count, cpixels_color_share colors[CPIXELS_MAX_DOMINANT_COLORS]) {
  bin bins[BIN_COUNT];
  const size_t bin_count = fill_bins(rgba, pixel_count, bins);
  int32_t centers[CPIXELS_MAX_DOMINANT_COLORS][3];
  uint32_t counts[CPIXELS_MAX_DOMINANT_COLORS] = {0};
  const size_t center_count = choose_centers(bins, bin_count, centers);
  for (size_t round = 0; round < ROUND_COUNT; round++) {
    move_centers(bins, bin_count, centers, center_count, counts);
  }
  size_t count = 0;
  for (size_t k = 0; k < center_count; k++) {
    if (counts[k] == 0) {
      continue;
    }
    size_t place = count++;
    for (; place > 0 && colors[place - 1].count < counts[k]; place--) {
      colors[place] = colors[place - 1];
    }
    colors[place].count = counts[k];
    for (size_t c = 0; c < 3; c++) {
      colors[place].color[c] = (uint8_t)centers[k][c];
    }
  }
  return count;
}
