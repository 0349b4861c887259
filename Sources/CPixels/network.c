// The planes of an image through the layers of a network, and the faces in what comes out.

#include "network.h"
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  SIDE_MULTIPLE = 1 << CPIXELS_NETWORK_MAX_LEVEL,
  /// The number of floats that layers compute at a time of each plane, so that they stay in the cache.
  BLOCK = 128,
  /// Floats before and behind the planes of a value, which kernels read.
  MARGIN = 32,
  /// The maximum number of places that are compared with each other.
  MAX_CANDIDATES = 512,
};

/// The logit of the score from which a place is a face: 0.4.
static const float MIN_LOGIT = -0.405465F;
/// The share of common area from which two places are the same face.
static const float MAX_OVERLAP = 0.3F;

/// A place that can be a face, in pixels of the network's image.
typedef struct candidate {
  float left, top, right, bottom;
  float score;
} candidate;

/// The arrangement of an image and of all values in a workspace, in floats.
typedef struct plan {
  uint32_t width, height; ///< Of the network's image.
  size_t offsets[CPIXELS_NETWORK_MAX_LAYERS + 1];
  size_t zeros;   ///< A row of zeros, with a margin.
  size_t columns; ///< The channels of a block.
  size_t total;
} plan;

typedef struct run {
  const cpixels_network *network;
  const cpixels_network_kernels *kernels;
  plan plan;
  float *floats;
} run;

void cpixels_network_rgb(const uint8_t *row, size_t pixel_count, uint32_t channels, uint8_t *rgb) {
  for (size_t i = 0; i < pixel_count; i++) {
    const uint8_t *pixel = row + i * channels;
    const uint32_t alpha = channels == 4 ? pixel[3] : 255;
    for (size_t channel = 0; channel < 3; channel++) {
      const uint32_t level = pixel[channels == 1 ? 0 : channel];
      rgb[3 * i + channel] = (uint8_t)((level * alpha + 127) / 255 + 255 - alpha);
    }
  }
}

// MARK: The arrangement

static uint32_t width_of(const plan *plan, const cpixels_network_value *value) {
  return plan->width >> value->level;
}

static uint32_t height_of(const plan *plan, const cpixels_network_value *value) {
  return plan->height >> value->level;
}

/// The number of floats in a row.
static uint32_t stride_of(const plan *plan, const cpixels_network_value *value) {
  return cpixels_round_up(width_of(plan, value) + 1, CPIXELS_NETWORK_COLUMN_MULTIPLE);
}

/// The number of floats in a plane.
static size_t plane_of(const plan *plan, const cpixels_network_value *value) {
  return (size_t)stride_of(plan, value) * height_of(plan, value);
}

static size_t size_of(const plan *plan, const cpixels_network_value *value) {
  return value->channel_count * plane_of(plan, value) + 2 * MARGIN;
}

/// The number of rows that a layer computes at a time.
static uint32_t block_rows(const plan *plan, const cpixels_network_value *value) {
  const uint32_t stride = stride_of(plan, value);
  return stride < BLOCK ? BLOCK / stride : 1;
}

/// Places a value where no value is that exists at the same time.
static void place(const cpixels_network *network, plan *plan, uint32_t index) {
  const cpixels_network_value *value = &network->values[index];
  const size_t size = size_of(plan, value);
  size_t offset = 0;
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (uint32_t i = 0; i < index; i++) {
      const cpixels_network_value *other = &network->values[i];
      const bool coexists =
          i == 0 ? value->writer <= other->reader : other->writer <= value->reader && value->writer <= other->reader;
      const size_t end = plan->offsets[i] + size_of(plan, other);
      if (coexists && offset < end && plan->offsets[i] < offset + size) {
        offset = end;
        has_moved = true;
      }
    }
  }
  plan->offsets[index] = offset;
  plan->total = offset + size > plan->total ? offset + size : plan->total;
}

static plan plan_for(const cpixels_network *network, uint32_t width, uint32_t height) {
  plan plan = {.width = cpixels_round_up(width, SIDE_MULTIPLE), .height = cpixels_round_up(height, SIDE_MULTIPLE)};
  for (uint32_t i = 0; i < network->value_count; i++) {
    place(network, &plan, i);
  }
  size_t columns = 0;
  for (uint32_t i = 0; i < network->layer_count; i++) {
    const cpixels_network_layer *layer = &network->layers[i];
    const cpixels_network_value *output = &network->values[layer->output];
    const size_t size = (size_t)layer->columns * block_rows(&plan, output) * stride_of(&plan, output);
    columns = size > columns ? size : columns;
  }
  plan.zeros = plan.total;
  plan.columns = plan.zeros + 2 * MARGIN + cpixels_round_up(plan.width + 1, CPIXELS_NETWORK_COLUMN_MULTIPLE);
  plan.total = plan.columns + columns + MARGIN;
  return plan;
}

size_t cpixels_network_workspace(const cpixels_network *network, uint32_t width, uint32_t height) {
  return plan_for(network, width, height).total * sizeof(float);
}

static float *planes_of(const run *run, uint32_t value) {
  return run->floats + run->plan.offsets[value] + MARGIN;
}

// MARK: Layers

/// Makes the columns behind the values of rows zero, which are borders.
static void clear_border(float *rows, uint32_t row_count, uint32_t width, uint32_t stride) {
  for (uint32_t y = 0; y < row_count; y++) {
    memset(rows + (size_t)y * stride + width, 0, (stride - width) * sizeof *rows);
  }
}

/// The row of a plane, or zeros above and below it.
static const float *row_of(const run *run, const float *plane, const cpixels_network_value *value, int64_t y) {
  return y < 0 || y >= height_of(&run->plan, value) ? run->floats + run->plan.zeros + MARGIN
                                                    : plane + (size_t)y * stride_of(&run->plan, value);
}

/// Computes the taps of all channels for rows of the output, from row `y` on.
static void tap_rows(
    const run *run, const cpixels_network_layer *layer, uint32_t y, uint32_t row_count, float *rows,
    size_t plane_stride) {
  const cpixels_network_value *input = &run->network->values[layer->input];
  const uint32_t stride = stride_of(&run->plan, &run->network->values[layer->output]);
  for (uint32_t channel = 0; channel < layer->columns; channel++) {
    const float *plane = planes_of(run, layer->input) + channel * plane_of(&run->plan, input);
    for (uint32_t i = 0; i < row_count; i++) {
      const int64_t center = (int64_t)layer->step * (y + i);
      const float *const around[3] = {
          row_of(run, plane, input, center - 1), row_of(run, plane, input, center),
          row_of(run, plane, input, center + 1)};
      run->kernels->tap(
          around, layer->taps + (size_t)channel * CPIXELS_NETWORK_TAPS, layer->tap_bias[channel], layer->step,
          rows + channel * plane_stride + (size_t)i * stride, stride);
    }
  }
}

/// Arranges 3x3 pixels of three channels around every other pixel, as channels, in the order of weights.
static void gather_rows(
    const run *run, const cpixels_network_layer *layer, uint32_t y, uint32_t row_count, float *rows,
    size_t plane_stride) {
  const cpixels_network_value *input = &run->network->values[layer->input];
  const uint32_t stride = stride_of(&run->plan, &run->network->values[layer->output]);
  for (uint32_t source = 0; source < CPIXELS_NETWORK_TAPS; source++) {
    const uint32_t channel = source % 3;
    const float *plane = planes_of(run, layer->input) + channel * plane_of(&run->plan, input);
    for (uint32_t i = 0; i < row_count; i++) {
      const float *from = row_of(run, plane, input, 2 * (int64_t)(y + i) + source / 3 - 1);
      float *left = rows + (source / 3 * 9 + channel) * plane_stride + (size_t)i * stride;
      float *center = left + 3 * plane_stride;
      float *right = center + 3 * plane_stride;
      for (uint32_t x = 0; x < stride; x++) {
        center[x] = from[2 * (size_t)x];
        right[x] = from[2 * (size_t)x + 1];
      }
      left[0] = 0;
      memcpy(left + 1, right, (stride - 1) * sizeof *left);
    }
  }
}

/// Computes a layer of weights, rows of all channels at a time.
static void weigh_layer(const run *run, const cpixels_network_layer *layer) {
  const plan *plan = &run->plan;
  const cpixels_network_value *output = &run->network->values[layer->output];
  const uint32_t stride = stride_of(plan, output);
  const uint32_t step = block_rows(plan, output);
  const size_t plane = plane_of(plan, output);
  float *columns = run->floats + plan->columns;
  for (uint32_t y = 0; y < height_of(plan, output); y += step) {
    const uint32_t row_count = height_of(plan, output) - y < step ? height_of(plan, output) - y : step;
    const size_t count = (size_t)row_count * stride;
    const size_t first = (size_t)y * stride;
    const float *from = columns;
    size_t from_stride = (size_t)step * stride;
    if (layer->kind == CPIXELS_NETWORK_STEM) {
      gather_rows(run, layer, y, row_count, columns, from_stride);
    } else if (layer->step > 0) {
      tap_rows(run, layer, y, row_count, columns, from_stride);
    } else {
      from = planes_of(run, layer->input) + first;
      from_stride = plane;
    }
    for (uint32_t channel = 0; channel < output->channel_count; channel++) {
      const uint32_t start = layer->starts[channel];
      const size_t offset = channel * plane + first;
      float *to = planes_of(run, layer->output) + offset;
      const float *addend = layer->addend == CPIXELS_NETWORK_NONE ? NULL : planes_of(run, layer->addend) + offset;
      run->kernels->weigh(
          from, from_stride, layer->weights + start, layer->starts[channel + 1] - start, layer->bias[channel], addend,
          layer->clips, to, count);
      clear_border(to, row_count, width_of(plan, output), stride);
    }
  }
}

static void tap_layer(const run *run, const cpixels_network_layer *layer) {
  const cpixels_network_value *output = &run->network->values[layer->output];
  const uint32_t height = height_of(&run->plan, output);
  float *to = planes_of(run, layer->output);
  tap_rows(run, layer, 0, height, to, plane_of(&run->plan, output));
  clear_border(to, output->channel_count * height, width_of(&run->plan, output), stride_of(&run->plan, output));
}

/// Adds a row at twice its size. Pixels are interpolated between their centers, and repeat at the border.
static void add_twice(const float *near, const float *far, uint32_t width, const float *addend, float *output) {
  for (uint32_t x = 0; x < width; x++) {
    const uint32_t left = x > 0 ? x - 1 : 0;
    const uint32_t right = x + 1 < width ? x + 1 : x;
    const float center = 0.75F * near[x] + 0.25F * far[x];
    output[2 * x] = addend[2 * x] + 0.75F * center + 0.25F * (0.75F * near[left] + 0.25F * far[left]);
    output[2 * x + 1] = addend[2 * x + 1] + 0.75F * center + 0.25F * (0.75F * near[right] + 0.25F * far[right]);
  }
}

static void upsample_layer(const run *run, const cpixels_network_layer *layer) {
  const plan *plan = &run->plan;
  const cpixels_network_value *input = &run->network->values[layer->input];
  const cpixels_network_value *output = &run->network->values[layer->output];
  const uint32_t height = height_of(plan, input);
  const uint32_t stride = stride_of(plan, output);
  for (uint32_t channel = 0; channel < output->channel_count; channel++) {
    const float *small = planes_of(run, layer->input) + channel * plane_of(plan, input);
    const float *addend = planes_of(run, layer->addend) + channel * plane_of(plan, output);
    float *to = planes_of(run, layer->output) + channel * plane_of(plan, output);
    for (uint32_t y = 0; y < 2 * height; y++) {
      const uint32_t near = y / 2;
      const uint32_t far = y % 2 == 0 ? (near > 0 ? near - 1 : 0) : (near + 1 < height ? near + 1 : near);
      const size_t row = (size_t)y * stride;
      add_twice(
          small + (size_t)near * stride_of(plan, input), small + (size_t)far * stride_of(plan, input),
          width_of(plan, input), addend + row, to + row);
    }
    clear_border(to, 2 * height, width_of(plan, output), stride);
  }
}

static void run_layer(const run *run, const cpixels_network_layer *layer) {
  // The border left of the first row; that of all others is the end of the row before.
  *(planes_of(run, layer->input) - 1) = 0;
  switch (layer->kind) {
  case CPIXELS_NETWORK_STEM:
  case CPIXELS_NETWORK_POINTS:
    weigh_layer(run, layer);
    break;
  case CPIXELS_NETWORK_DEPTHWISE:
    tap_layer(run, layer);
    break;
  case CPIXELS_NETWORK_UPSAMPLING:
    upsample_layer(run, layer);
    break;
  }
}

// MARK: Faces

/// Puts the image in the middle of black planes, from -1 (black) to 1.
static void place_image(
    const run *run, const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t left, uint32_t top) {
  const cpixels_network_value *value = &run->network->values[0];
  const uint32_t stride = stride_of(&run->plan, value);
  for (uint32_t channel = 0; channel < 3; channel++) {
    float *plane = planes_of(run, 0) + channel * plane_of(&run->plan, value);
    for (size_t i = 0; i < plane_of(&run->plan, value); i++) {
      plane[i] = -1;
    }
    for (uint32_t y = 0; y < height; y++) {
      const uint8_t *from = rgb + 3 * (size_t)y * width + channel;
      float *to = plane + (size_t)(y + top) * stride + left;
      for (uint32_t x = 0; x < width; x++) {
        to[x] = (float)from[3 * (size_t)x] / 127.5F - 1;
      }
    }
    clear_border(plane, run->plan.height, run->plan.width, stride);
  }
}

/// Returns one of the `count` values of a place; the four places of a pixel are channels.
static float grid_value(const run *run, uint32_t value, uint32_t count, uint32_t index, uint32_t x, uint32_t y) {
  const cpixels_network_value *grid = &run->network->values[value];
  const uint32_t channel = (y % 2 * 2 + x % 2) * count + index;
  return planes_of(
      run, value)[channel * plane_of(&run->plan, grid) + (size_t)(y / 2) * stride_of(&run->plan, grid) + x / 2];
}

static bool has_candidates(const run *run) {
  for (uint32_t y = 0; y < run->plan.height / CPIXELS_NETWORK_GRID; y++) {
    for (uint32_t x = 0; x < run->plan.width / CPIXELS_NETWORK_GRID; x++) {
      if (grid_value(run, run->network->scores, 1, 0, x, y) > MIN_LOGIT) {
        return true;
      }
    }
  }
  return false;
}

static size_t find_candidates(const run *run, candidate *candidates) {
  size_t count = 0;
  for (uint32_t y = 0; y < run->plan.height / CPIXELS_NETWORK_GRID; y++) {
    for (uint32_t x = 0; x < run->plan.width / CPIXELS_NETWORK_GRID && count < MAX_CANDIDATES; x++) {
      const float score = grid_value(run, run->network->scores, 1, 0, x, y);
      if (!(score > MIN_LOGIT)) {
        continue;
      }
      float box[4];
      for (uint32_t i = 0; i < 4; i++) {
        box[i] = grid_value(run, run->network->boxes, CPIXELS_NETWORK_BOX_VALUES, i, x, y);
      }
      const float center_x = ((float)x + 0.5F) * (float)CPIXELS_NETWORK_GRID + box[0];
      const float center_y = ((float)y + 0.5F) * (float)CPIXELS_NETWORK_GRID + box[1];
      const candidate found = {
          center_x - box[2] / 2, center_y - box[3] / 2, center_x + box[2] / 2, center_y + box[3] / 2,
          1 / (1 + expf(-score))};
      // Nothing of a network that was not trained for it is a face.
      if (box[2] > 0 && box[3] > 0 && fabsf(center_x) < 1e4F && fabsf(center_y) < 1e4F && box[2] < 1e4F &&
          box[3] < 1e4F) {
        candidates[count++] = found;
      }
    }
  }
  return count;
}

static int compare_scores(const void *a, const void *b) {
  const candidate *first = a;
  const candidate *second = b;
  if (first->score != second->score) {
    return first->score > second->score ? -1 : 1;
  }
  if (first->top != second->top) {
    return first->top < second->top ? -1 : 1;
  }
  return first->left < second->left ? -1 : first->left > second->left;
}

static float area_of(const candidate *place) {
  return (place->right - place->left) * (place->bottom - place->top);
}

/// The share of two places that is common to both.
static float overlap(const candidate *a, const candidate *b) {
  const float width = fminf(a->right, b->right) - fmaxf(a->left, b->left);
  const float height = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);
  if (width <= 0 || height <= 0) {
    return 0;
  }
  return width * height / (area_of(a) + area_of(b) - width * height);
}

/// Takes the best place and all that are the same face out of `candidates`, and returns their weighted mean.
static candidate take_best(candidate *candidates, size_t *count) {
  const candidate best = candidates[0];
  candidate sum = {0};
  size_t rest = 0;
  for (size_t i = 0; i < *count; i++) {
    const candidate other = candidates[i];
    if (i > 0 && overlap(&best, &other) <= MAX_OVERLAP) {
      candidates[rest++] = other;
      continue;
    }
    sum.left += other.score * other.left;
    sum.top += other.score * other.top;
    sum.right += other.score * other.right;
    sum.bottom += other.score * other.bottom;
    sum.score += other.score;
  }
  *count = rest;
  return (candidate){
      sum.left / sum.score, sum.top / sum.score, sum.right / sum.score, sum.bottom / sum.score, best.score};
}

static int compare_faces(const void *a, const void *b) {
  const cpixels_face *first = a;
  const cpixels_face *second = b;
  const float areas[2] = {first->width * first->height, second->width * second->height};
  if (areas[0] != areas[1]) {
    return areas[0] > areas[1] ? -1 : 1;
  }
  if (first->y != second->y) {
    return first->y < second->y ? -1 : 1;
  }
  return first->x < second->x ? -1 : first->x > second->x;
}

/// Stores the faces among the candidates, within an image whose left upper pixel is at `left` and `top`.
static size_t faces_of(
    candidate *candidates, size_t count, const uint32_t size[2], const uint32_t start[2], cpixels_face *faces,
    size_t max_count) {
  qsort(candidates, count, sizeof *candidates, compare_scores);
  size_t face_count = 0;
  while (count > 0 && face_count < max_count) {
    const candidate place = take_best(candidates, &count);
    const float left = fmaxf(place.left - (float)start[0], 0);
    const float top = fmaxf(place.top - (float)start[1], 0);
    const float right = fminf(place.right - (float)start[0], (float)size[0]);
    const float bottom = fminf(place.bottom - (float)start[1], (float)size[1]);
    if (right > left && bottom > top) {
      faces[face_count++] = (cpixels_face){left, top, right - left, bottom - top};
    }
  }
  qsort(faces, face_count, sizeof *faces, compare_faces);
  return face_count;
}

const cpixels_network_kernels *cpixels_network_kernels_of(cpixels_isa isa) {
#if defined(__x86_64__)
  return CPIXELS_CHOOSE(cpixels_network, isa);
#else
  (void)isa;
  return &cpixels_network_scalar; // in vectors of clang, which NEON has
#endif
}

size_t cpixels_network_find(
    const cpixels_network *network, const uint8_t *rgb, uint32_t width, uint32_t height, void *workspace,
    cpixels_isa isa, cpixels_face *faces, size_t max_count) {
  if (width == 0 || height == 0 || width > CPIXELS_NETWORK_MAX_SIDE || height > CPIXELS_NETWORK_MAX_SIDE) {
    return 0;
  }
  const run run = {network, cpixels_network_kernels_of(isa), plan_for(network, width, height), workspace};
  const uint32_t start[2] = {(run.plan.width - width) / 2, (run.plan.height - height) / 2};
  memset(run.floats + run.plan.zeros, 0, (run.plan.columns - run.plan.zeros) * sizeof *run.floats);
  place_image(&run, rgb, width, height, start[0], start[1]);
  for (uint32_t i = 0; i < network->layer_count; i++) {
    if (i == network->values[network->scores].writer + 1U && !has_candidates(&run)) {
      return 0; // The boxes of no face.
    }
    run_layer(&run, &network->layers[i]);
  }
  candidate candidates[MAX_CANDIDATES];
  const size_t count = find_candidates(&run, candidates);
  return faces_of(candidates, count, (uint32_t[2]){width, height}, start, faces, max_count);
}
