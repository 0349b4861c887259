// Chooses the colors of a palette: boxes of points are split in two where that lowers the squared error most, and the
// means of the boxes are refined by k-means.
//
// Sources: X. Wu, Efficient Statistical Computations for Optimal Color Quantization (Graphics Gems II, 1991); N. Otsu,
// A Threshold Selection Method from Gray-Level Histograms (1979); S. Lloyd, Least Squares Quantization in PCM (1982).

#include "palette_private.h"

#pragma STDC FP_CONTRACT OFF

enum {
  BUCKETS = 1 << 11, // of an axis
  WEIGHT_BITS = 38,  // of the sum of all weights, so that products with squared distances have 62 bits
  ROUNDS = 12,       // of k-means
  BATCH = 64,        // of points whose nearest centers are found at once
};

/// A color to represent.
typedef struct weighted_point {
  palette_point point;
  uint32_t bin;
  uint64_t weight;
} weighted_point;

typedef struct sums {
  uint64_t weight;
  int64_t axes[PALETTE_AXES];
} sums;

/// Consecutive points, and how to split them best.
typedef struct box {
  uint32_t first, count;
  int axis, threshold; ///< Points below the threshold go to the first half.
  double gain;         ///< By how much a split lowers the squared error; 0 if it cannot be split.
} box;

typedef struct builder {
  uint32_t count;
  uint32_t box_count;
  box boxes[CCODECS_PALETTE_MAX_COLORS];
  palette_point centers[CCODECS_PALETTE_MAX_COLORS];
  uint32_t heaviest[CCODECS_PALETTE_MAX_COLORS]; ///< The point with the largest weight of each cluster.
  sums clusters[CCODECS_PALETTE_MAX_COLORS];
  uint64_t bucket_weights[BUCKETS];
  uint32_t keys[BATCH]; ///< Squared distances and centers: ccodecs_palette_nearest_find.
  palette_nearest nearest;
  weighted_point points[PALETTE_MAX_BINS];
} builder;

_Static_assert(sizeof(builder) + PALETTE_BLOCK_BYTES <= CCODECS_PALETTE_BUILD_BYTES, "documented");

// MARK: Points

static void fill_points(builder *b, ccodecs_palette_histogram *h) {
  uint64_t total = 0;
  uint32_t shift = 0;
  for (uint32_t i = 0; i < h->bin_count; i++) {
    total += h->bins[i].weight;
  }
  while (total >> shift >> WEIGHT_BITS != 0) {
    shift++;
  }
  b->count = h->bin_count;
  ccodecs_palette_histogram_locate(h);
  for (uint32_t i = 0; i < b->count; i++) {
    const uint64_t weight = h->bins[i].weight >> shift;
    b->points[i] = (weighted_point){h->points[i], i, weight > 0 ? weight : 1};
  }
}

// MARK: Splitting

static void mean_of(
    const weighted_point *points, uint32_t count, uint64_t *weight, double means[4], double squares[4]) {
  int64_t axes[4] = {0};
  double squared[4] = {0};
  *weight = 0;
  for (uint32_t i = 0; i < count; i++) {
    *weight += points[i].weight;
    for (int k = 0; k < PALETTE_AXES; k++) {
      const int value = points[i].point.axes[k];
      axes[k] += (int64_t)points[i].weight * value;
      squared[k] += (double)points[i].weight * (value * value);
    }
  }
  for (int k = 0; k < PALETTE_AXES; k++) {
    means[k] = (double)axes[k] / (double)*weight;
    squares[k] = squared[k] - means[k] * (double)axes[k];
  }
}

/// Finds the threshold of the box's axis that lowers the squared error most.
static void find_threshold(builder *b, box *box, uint64_t weight, double mean) {
  const weighted_point *points = b->points + box->first;
  int low = INT16_MAX, high = INT16_MIN;
  for (uint32_t i = 0; i < box->count; i++) {
    const int value = points[i].point.axes[box->axis];
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  memset(b->bucket_weights, 0, (size_t)(high - low + 1) * sizeof b->bucket_weights[0]);
  for (uint32_t i = 0; i < box->count; i++) {
    b->bucket_weights[points[i].point.axes[box->axis] - low] += points[i].weight;
  }
  double below = 0, sum = 0;
  for (int value = low; value < high; value++) {
    const double here = (double)b->bucket_weights[value - low];
    if (here == 0) {
      continue;
    }
    below += here;
    sum += here * value;
    const double difference = sum / below - mean; // of the first half's mean; that of the other follows
    const double gain = below * difference * difference * (1 + below / ((double)weight - below));
    if (gain > box->gain) {
      box->gain = gain;
      box->threshold = value + 1;
    }
  }
}

static void plan_split(builder *b, box *box) {
  uint64_t weight;
  double means[4], squares[4];
  mean_of(b->points + box->first, box->count, &weight, means, squares);
  box->axis = 0;
  for (int k = 1; k < PALETTE_AXES; k++) {
    box->axis = squares[k] > squares[box->axis] ? k : box->axis;
  }
  box->gain = 0;
  if (box->count > 1) {
    find_threshold(b, box, weight, means[box->axis]);
  }
}

/// Splits the box with the largest gain. Returns false if there is none.
static bool split_one(builder *b) {
  box *best = b->boxes;
  for (uint32_t i = 1; i < b->box_count; i++) {
    best = b->boxes[i].gain > best->gain ? b->boxes + i : best;
  }
  if (best->gain <= 0) {
    return false;
  }
  weighted_point *points = b->points + best->first;
  uint32_t low = 0, high = best->count;
  while (low < high) {
    if (points[low].point.axes[best->axis] < best->threshold) {
      low++;
      continue;
    }
    const weighted_point moved = points[low];
    points[low] = points[--high];
    points[high] = moved;
  }
  box *other = b->boxes + b->box_count++;
  *other = (box){.first = best->first + low, .count = best->count - low};
  best->count = low;
  plan_split(b, best);
  plan_split(b, other);
  return true;
}

static void split(builder *b, uint32_t max_count) {
  b->box_count = 1;
  b->boxes[0] = (box){.first = 0, .count = b->count};
  plan_split(b, b->boxes);
  while (b->box_count < max_count && split_one(b)) {
  }
  for (uint32_t i = 0; i < b->box_count; i++) {
    uint64_t weight;
    double means[4], squares[4];
    mean_of(b->points + b->boxes[i].first, b->boxes[i].count, &weight, means, squares);
    for (int k = 0; k < PALETTE_AXES; k++) {
      b->centers[i].axes[k] = (int16_t)(means[k] + (means[k] < 0 ? -0.5 : 0.5));
    }
  }
}

// MARK: k-means

/// Finds the nearest center of points, for a batch.
static void find_colors(builder *b, uint32_t first) {
  palette_point points[BATCH];
  const uint32_t left = b->count - first, count = left < BATCH ? left : BATCH;
  for (uint32_t i = 0; i < count; i++) {
    points[i] = b->points[first + i].point;
  }
  ccodecs_palette_nearest_find(&b->nearest, points, count, b->keys);
}

/// Assigns points to centers and adds them up.
static void assign(builder *b) {
  ccodecs_palette_nearest_set(&b->nearest, b->centers, b->box_count);
  memset(b->clusters, 0, sizeof b->clusters);
  for (uint32_t i = 0; i < b->count; i++) {
    const weighted_point *p = b->points + i;
    if (i % BATCH == 0) {
      find_colors(b, i);
    }
    const uint32_t key = b->keys[i % BATCH];
    sums *cluster = b->clusters + (key & 0xff);
    if (cluster->weight == 0 || p->weight > b->points[b->heaviest[key & 0xff]].weight) {
      b->heaviest[key & 0xff] = i;
    }
    cluster->weight += p->weight;
    for (int k = 0; k < PALETTE_AXES; k++) {
      cluster->axes[k] += (int64_t)p->weight * p->point.axes[k];
    }
  }
}

/// Moves the centers to the means of their points. Returns whether one has moved.
static bool move_centers(builder *b) {
  bool has_moved = false;
  for (uint32_t i = 0; i < b->box_count; i++) {
    const sums *cluster = b->clusters + i;
    for (int k = 0; k < PALETTE_AXES && cluster->weight > 0; k++) {
      const double mean = (double)cluster->axes[k] / (double)cluster->weight;
      const int16_t value = (int16_t)(mean + (mean < 0 ? -0.5 : 0.5));
      has_moved |= value != b->centers[i].axes[k];
      b->centers[i].axes[k] = value;
    }
  }
  return has_moved;
}

static void refine(builder *b) {
  for (int round = 0; round < ROUNDS; round++) {
    assign(b);
    if (!move_centers(b)) {
      break;
    }
  }
}

// MARK: Palette

static int32_t order_of(const uint8_t rgba[4]) {
  return (rgba[3] == 255 ? 1 << 28 : rgba[3] << 18) + (299 * rgba[0] + 587 * rgba[1] + 114 * rgba[2]);
}

static bool has_color(const ccodecs_palette *palette, const uint8_t rgba[4]) {
  for (uint32_t i = 0; i < palette->count; i++) {
    if (memcmp(palette->colors[i], rgba, 4) == 0) {
      return true;
    }
  }
  return false;
}

/// Adds a color, which must be within the maximum, unless the palette has it.
static void add_color(ccodecs_palette *palette, const uint8_t rgba[4]) {
  if (!has_color(palette, rgba)) {
    memcpy(palette->colors[palette->count++], rgba, 4);
  }
}

/// Sorts the colors and describes them.
static void finish_palette(ccodecs_palette *palette) {
  for (uint32_t i = 1; i < palette->count; i++) {
    uint8_t color[4];
    memcpy(color, palette->colors[i], 4);
    uint32_t k = i;
    for (; k > 0 && order_of(palette->colors[k - 1]) > order_of(color); k--) {
      memcpy(palette->colors[k], palette->colors[k - 1], 4);
    }
    memcpy(palette->colors[k], color, 4);
  }
  palette->transparent = palette->colors[0][3] == 0 ? 0 : -1;
  palette->opaque_first = 0;
  while (palette->opaque_first < palette->count && palette->colors[palette->opaque_first][3] < 255) {
    palette->opaque_first++;
  }
}

static void add_centers(builder *b, const ccodecs_palette_histogram *h, ccodecs_palette *palette) {
  assign(b);
  for (uint32_t i = 0; i < b->box_count; i++) {
    uint8_t rgba[4];
    if (b->clusters[i].weight == 0) {
      continue;
    }
    const weighted_point *heaviest = b->points + b->heaviest[i];
    if (h->dropped_bits == 0 && heaviest->weight >= b->clusters[i].weight - heaviest->weight) {
      palette_bin_color(h, heaviest->bin, rgba);
    } else {
      ccodecs_palette_space_color(b->centers[i], rgba);
    }
    if (palette->is_binary) {
      rgba[3] = 255;
    }
    add_color(palette, rgba);
  }
}

ccodecs_status ccodecs_palette_build(ccodecs_palette_histogram *h, uint32_t max_colors, ccodecs_palette *palette) {
  if (max_colors < 2 || max_colors > CCODECS_PALETTE_MAX_COLORS) {
    return CCODECS_MISUSE;
  }
  memset(palette, 0, sizeof *palette);
  palette->is_binary = h->transparency != CCODECS_PALETTE_ALPHA;
  // The first entry is all zeros already.
  const bool is_reserved = palette->is_binary && (h->has_transparent || h->transparency == CCODECS_PALETTE_RESERVED);
  palette->count = is_reserved ? 1 : 0;
  palette->is_exact = h->dropped_bits == 0 && h->bin_count <= max_colors - palette->count;
  if (palette->is_exact) {
    for (uint32_t i = 0; i < h->bin_count; i++) {
      uint8_t rgba[4];
      palette_bin_color(h, i, rgba);
      memcpy(palette->colors[palette->count++], rgba, 4);
    }
    palette->colors[0][3] = palette->count == 0 ? 255 : palette->colors[0][3];
    palette->count = palette->count == 0 ? 1 : palette->count;
  } else {
    builder *b = ccodecs_allocate(h->budget, sizeof *b);
    if (b == NULL) {
      return CCODECS_NO_MEMORY;
    }
    fill_points(b, h);
    split(b, max_colors - palette->count);
    refine(b);
    add_centers(b, h, palette);
    ccodecs_free(h->budget, b);
  }
  finish_palette(palette);
  return CCODECS_OK;
}

/// Appends the colors that an exact palette lacks. Returns false if there is no room for them.
static bool append_all(const ccodecs_palette_histogram *h, uint32_t max_colors, ccodecs_palette *palette) {
  const uint32_t count = palette->count;
  for (uint32_t i = 0; i < h->bin_count; i++) {
    uint8_t rgba[4];
    palette_bin_color(h, i, rgba);
    if (has_color(palette, rgba)) {
      continue;
    }
    if (palette->count == max_colors) {
      palette->count = count;
      return false;
    }
    memcpy(palette->colors[palette->count++], rgba, 4);
  }
  return true;
}

/// Keeps the points that are farther than `max_error` from every color of a palette.
static void keep_distant(builder *b, uint32_t max_error) {
  uint32_t count = 0;
  ccodecs_palette_nearest_set(&b->nearest, b->centers, b->box_count);
  for (uint32_t i = 0; i < b->count; i++) {
    if (i % BATCH == 0) {
      find_colors(b, i);
    }
    if (b->keys[i % BATCH] >> 8 > max_error) {
      b->points[count++] = b->points[i];
    }
  }
  b->count = count;
}

ccodecs_status ccodecs_palette_extend(
    ccodecs_palette_histogram *h, uint32_t max_colors, uint32_t max_error, ccodecs_palette *palette) {
  if (max_colors < 2 || max_colors > CCODECS_PALETTE_MAX_COLORS || palette->count > max_colors) {
    return CCODECS_MISUSE;
  }
  if (h->dropped_bits == 0 && h->bin_count <= CCODECS_PALETTE_MAX_COLORS && append_all(h, max_colors, palette)) {
    return CCODECS_OK;
  }
  if (palette->count == max_colors) {
    return CCODECS_OK;
  }
  builder *b = ccodecs_allocate(h->budget, sizeof *b);
  if (b == NULL) {
    return CCODECS_NO_MEMORY;
  }
  const uint32_t first = palette_first_color(palette);
  for (uint32_t i = first; i < palette->count; i++) {
    b->centers[i - first] = ccodecs_palette_space_point(&h->space, palette->colors[i]);
  }
  b->box_count = palette->count - first;
  fill_points(b, h);
  keep_distant(b, max_error);
  if (b->count > 0) {
    split(b, max_colors - palette->count);
    refine(b);
    add_centers(b, h, palette);
  }
  ccodecs_free(h->budget, b);
  return CCODECS_OK;
}

uint32_t ccodecs_palette_color_count(const ccodecs_palette_histogram *h, uint64_t *pixel_count) {
  *pixel_count = 0;
  for (uint32_t i = 0; i < h->bin_count; i++) {
    *pixel_count += h->bins[i].weight;
  }
  return h->bin_count;
}
