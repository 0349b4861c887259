// The axes of the resampler: the taps of each destination sample, their weights, and the layout of the weights for the
// kernels.

#include "kernels.h"

#include <math.h>
#include <string.h>

static const uint32_t max_count = 1u << 26;
static const double pi = 3.14159265358979323846;

double cpixels_kernel_radius(cpixels_kernel kernel) {
  switch (kernel) {
  case CPIXELS_KERNEL_TRIANGLE:
    return 1;
  case CPIXELS_KERNEL_BOX:
  case CPIXELS_KERNEL_MEAN:
  case CPIXELS_KERNEL_NEAREST:
    return 0.5 + 1e-9; // includes ties
  case CPIXELS_KERNEL_LANCZOS2:
  case CPIXELS_KERNEL_MITCHELL:
  case CPIXELS_KERNEL_CUBIC:
    return 2;
  case CPIXELS_KERNEL_LANCZOS3:
  case CPIXELS_KERNEL_DOUBLED_LANCZOS3:
    break;
  }
  return 3;
}

static double sinc(double x) {
  return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

double cpixels_kernel_value(cpixels_kernel kernel, double x) {
  const double a = fabs(x);
  switch (kernel) {
  case CPIXELS_KERNEL_LANCZOS3:
  case CPIXELS_KERNEL_DOUBLED_LANCZOS3:
    return a < 3 ? sinc(x) * sinc(x / 3) : 0;
  case CPIXELS_KERNEL_LANCZOS2:
    return a < 2 ? sinc(x) * sinc(x / 2) : 0;
  case CPIXELS_KERNEL_MITCHELL:
    return a < 1   ? ((7 * a - 12) * a * a + 16.0 / 3) / 6
           : a < 2 ? (((-7.0 / 3 * a + 12) * a - 20) * a + 32.0 / 3) / 6
                   : 0;
  case CPIXELS_KERNEL_CUBIC:
    return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? (((a - 5) * a + 8) * a - 4) * -0.5 : 0;
  case CPIXELS_KERNEL_TRIANGLE:
    return a < 1 ? 1 - a : 0;
  case CPIXELS_KERNEL_BOX:
  case CPIXELS_KERNEL_MEAN:
    return x > -0.5 && x <= 0.5 ? 1 : 0;
  case CPIXELS_KERNEL_NEAREST:
    break;
  }
  return 1;
}

static bool is_doubled(const cpixels_axis_options *axis) {
  return axis->kernel == CPIXELS_KERNEL_DOUBLED_LANCZOS3;
}

static bool is_emphasized(const cpixels_axis_options *axis) {
  return axis->emphasis > 0;
}

/// Returns the stretch of the kernel in samples of the resampled source, which is the source itself or the doubled
/// source.
static double stretch_of(const cpixels_axis_options *axis) {
  if (axis->kernel == CPIXELS_KERNEL_NEAREST) {
    return 1;
  }
  const double ratio = is_doubled(axis) ? 2 * axis->ratio : axis->ratio;
  return ratio > 1 ? ratio : 1;
}

/// Returns the maximum distance of a tap from the center of its destination sample, in source samples.
static double reach_of(const cpixels_axis_options *axis) {
  const double reach = cpixels_kernel_radius(axis->kernel) * stretch_of(axis);
  return is_doubled(axis) ? reach / 2 + 0.75 : is_emphasized(axis) ? reach + 1 : reach;
}

static bool is_identity(const cpixels_axis_options *axis) {
  return axis->ratio == 1 && axis->offset == 0 && axis->source_count == axis->destination_count && !is_doubled(axis) &&
         !is_emphasized(axis);
}

bool cpixels_axis_is_valid(const cpixels_axis_options *axis) {
  return axis->source_count >= 1 && axis->source_count <= max_count && axis->destination_count >= 1 &&
         axis->destination_count <= max_count && axis->ratio > 0 && axis->ratio <= max_count &&
         isfinite(axis->offset) && fabs(axis->offset) <= max_count && axis->kernel >= CPIXELS_KERNEL_LANCZOS3 &&
         axis->kernel <= CPIXELS_KERNEL_NEAREST && axis->emphasis >= 0 && axis->emphasis <= 0.25 &&
         (axis->emphasis == 0 || axis->kernel == CPIXELS_KERNEL_LANCZOS3);
}

cpixels_axis_options cpixels_axis_displayed(const cpixels_axis_options *options) {
  cpixels_axis_options axis = *options;
  if (options->is_reversed) {
    const double offset = options->source_count - options->offset - options->ratio * options->destination_count;
    axis.offset = fabs(offset) < 1e-6 ? 0 : offset;
  }
  return axis;
}

/// Returns the center of a destination sample of a reversed axis, as displayed.
static double displayed_center(const cpixels_axis_options *options, uint32_t destination) {
  const uint32_t shown = options->destination_count - 1 - destination;
  return (shown + 0.5) * options->ratio + cpixels_axis_displayed(options).offset;
}

/// Returns the maximum number of taps: the number of sample centers that an open interval of the kernel's width can
/// contain.
static uint32_t tap_count(const cpixels_axis_options *axis) {
  if (is_identity(axis)) {
    return 1;
  }
  if (axis->kernel == CPIXELS_KERNEL_NEAREST) {
    return 1;
  }
  const double count = ceil(2 * reach_of(axis));
  return count < axis->source_count ? (uint32_t)count : axis->source_count;
}

// MARK: Memory

void *cpixels_arena_take(cpixels_arena *arena, size_t count, size_t size) {
  size_t bytes;
  size_t end;
  if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, (size_t)63, &bytes) ||
      __builtin_add_overflow(arena->used, bytes & ~(size_t)63, &end)) {
    arena->overflowed = true;
    return NULL;
  }
  void *part = arena->base == NULL ? NULL : arena->base + arena->used;
  arena->used = end;
  return part;
}

double *cpixels_arena_take_weights(cpixels_arena *arena, uint32_t across, uint32_t down) {
  return cpixels_arena_take(arena, across > down ? across : down, sizeof(double));
}

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/// Returns the number of steps that one load can serve. It is 0 if the taps of neighboring destinations are too far
/// apart for any step, or the source is too small for the loads.
static uint32_t lane_depth(const cpixels_axis_options *options, cpixels_lane_shape lanes) {
  if (lanes.group == 0 || is_identity(options)) {
    return 0;
  }
  const double spread = ceil((lanes.load_lanes - 1) * options->ratio);
  if (spread + lanes.step > lanes.load_size) {
    return 0;
  }
  const uint32_t steps = cpixels_round_up(tap_count(options), lanes.step) / lanes.step;
  const uint32_t fitting = (lanes.load_size - (uint32_t)spread) / lanes.step;
  const uint32_t depth = smaller(smaller(fitting, steps), lanes.max_depth);
  return options->source_count >= lanes.load_size + (steps - depth) * lanes.step ? depth : 0;
}

/// Returns the fastest shape that serves the axis; its group is 0 if there is none.
static cpixels_lane_shape lane_shape(const cpixels_axis_options *options, const cpixels_resize_kernels *kernels) {
  for (uint32_t i = 0; i < CPIXELS_LANE_SHAPES; i++) {
    if (lane_depth(options, kernels->lanes[i]) > 0) {
      return kernels->lanes[i];
    }
  }
  return (cpixels_lane_shape){0};
}

/// Returns the multiple of the window's tap count for CPIXELS_LAYOUT_DOTS; 0 if the source is too small for any.
static uint32_t dot_multiple(const cpixels_axis_options *options, const cpixels_resize_kernels *kernels) {
  for (uint32_t i = 0; i < CPIXELS_DOT_MULTIPLES; i++) {
    const uint32_t multiple = kernels->dot_multiples[i];
    if (multiple != 0 && options->source_count >= cpixels_round_up(tap_count(options), multiple)) {
      return multiple;
    }
  }
  return 0;
}

cpixels_layout cpixels_axis_choose(const cpixels_axis_options *options, const cpixels_resize_kernels *kernels) {
  if (is_identity(options)) {
    return CPIXELS_LAYOUT_COPY;
  }
  if (lane_shape(options, kernels).group > 0) {
    return CPIXELS_LAYOUT_LANES;
  }
  return dot_multiple(options, kernels) > 0 ? CPIXELS_LAYOUT_DOTS : CPIXELS_LAYOUT_PLAIN;
}

static uint32_t window_of(
    cpixels_layout layout, uint32_t taps, const cpixels_axis_options *options, const cpixels_resize_kernels *kernels,
    bool is_fixed) {
  switch (layout) {
  case CPIXELS_LAYOUT_COPY:
    return 0;
  case CPIXELS_LAYOUT_PLAIN:
    return is_fixed ? taps : cpixels_round_up(taps, CPIXELS_FLOAT_TAP_MULTIPLE);
  case CPIXELS_LAYOUT_PAIRS:
    return taps / 2 * 2 + 2;
  case CPIXELS_LAYOUT_DOTS:
    return cpixels_round_up(taps, dot_multiple(options, kernels));
  case CPIXELS_LAYOUT_LANES:
    return cpixels_round_up(taps, lane_shape(options, kernels).step);
  }
  return 0;
}

void cpixels_axis_place(
    cpixels_arena *arena, const cpixels_axis_options *options, cpixels_layout layout,
    const cpixels_resize_kernels *kernels, bool is_fixed, cpixels_axis *axis) {
  axis->layout = layout;
  axis->source_count = options->source_count;
  axis->destination_count = options->destination_count;
  axis->tap_count = tap_count(options);
  axis->window = window_of(layout, axis->tap_count, options, kernels, is_fixed);
  size_t destinations = options->destination_count;
  const size_t begin = arena->used;
  axis->options = *options;
  axis->kernels = kernels;
  axis->memory = cpixels_arena_take(arena, 0, 1);
  axis->is_split = layout == CPIXELS_LAYOUT_DOTS && dot_multiple(options, kernels) == CPIXELS_SPLIT_DOT_MULTIPLE;
  if (layout == CPIXELS_LAYOUT_LANES) {
    axis->lanes = lane_shape(options, kernels);
    axis->is_split = axis->lanes.is_split;
    axis->depth = lane_depth(options, axis->lanes);
    axis->last_base = axis->source_count - (axis->lanes.load_size + axis->window - axis->depth * axis->lanes.step);
    destinations = cpixels_round_up(axis->destination_count, axis->lanes.group);
    axis->order = cpixels_arena_take(arena, destinations, axis->lanes.step);
  }
  axis->first = cpixels_arena_take(arena, destinations, sizeof(uint32_t));
  const size_t weights = destinations * axis->window;
  axis->fixed_weights = is_fixed ? cpixels_arena_take(arena, weights, sizeof(int16_t)) : NULL;
  axis->float_weights = is_fixed ? NULL : cpixels_arena_take(arena, weights, sizeof(float));
  axis->byte_count = arena->used - begin;
}

// MARK: Weights

/// Iterates over a kernel's values at equal distances. It computes the sines of the default kernel by rotating one
/// angle, because an image's axes have some ten thousand taps and a sine costs as much as many of them.
typedef struct kernel_walk {
  cpixels_kernel kernel;
  double x;
  double step;
  double sine; ///< The sine of pi x / 3.
  double cosine;
  double step_sine;
  double step_cosine;
} kernel_walk;

static kernel_walk kernel_walk_by(cpixels_kernel kernel, double step) {
  return (kernel_walk){
      .kernel = kernel, .step = step, .step_sine = sin(pi / 3 * step), .step_cosine = cos(pi / 3 * step)};
}

static void kernel_walk_start(kernel_walk *walk, double x) {
  walk->x = x;
  walk->sine = sin(pi / 3 * x);
  walk->cosine = cos(pi / 3 * x);
}

static double kernel_walk_value(const kernel_walk *walk) {
  if (walk->kernel >= CPIXELS_KERNEL_LANCZOS2) {
    return cpixels_kernel_value(walk->kernel, walk->x);
  }
  const double x = fabs(walk->x);
  if (x >= cpixels_kernel_radius(walk->kernel)) {
    return 0;
  }
  if (walk->kernel == CPIXELS_KERNEL_TRIANGLE) {
    return 1 - x;
  }
  if (walk->kernel == CPIXELS_KERNEL_BOX) {
    return 1;
  }
  const double squared_angle = pi * pi * x * x;
  if (x < 1e-5) {
    return 1 - squared_angle * (5.0 / 27);
  }
  // sin(3 b) = sin(b) (3 - 4 sin(b)^2), and the value is 3 sin(3 b) sin(b) / (3 b)^2.
  const double squared_sine = walk->sine * walk->sine;
  return 3 * squared_sine * (3 - 4 * squared_sine) / squared_angle;
}

static void kernel_walk_advance(kernel_walk *walk) {
  const double sine = walk->sine * walk->step_cosine + walk->cosine * walk->step_sine;
  walk->cosine = walk->cosine * walk->step_cosine - walk->sine * walk->step_sine;
  walk->sine = sine;
  walk->x += walk->step;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/// The taps of one destination sample.
typedef struct tap_range {
  double center;
  int64_t left; ///< The first and last source sample under the kernel; they may be outside the source.
  int64_t right;
  int64_t start;  ///< The first sample of the window.
  bool is_folded; ///< Whether taps outside the source are folded onto the edge samples, or the window had to move
                  ///< inside.
} tap_range;

/// Returns the start of the window whose ideal start is `left`.
static int64_t window_start(const cpixels_axis *axis, int64_t left) {
  const bool is_inside = axis->layout == CPIXELS_LAYOUT_DOTS || axis->layout == CPIXELS_LAYOUT_LANES;
  const int64_t taps = is_inside ? axis->window : axis->tap_count;
  return clamp(left, 0, (int64_t)axis->source_count - taps);
}

static tap_range tap_range_of(const cpixels_axis_options *options, const cpixels_axis *axis, uint32_t destination) {
  tap_range range = {.left = destination, .right = destination};
  if (!is_identity(options)) {
    const double reach = reach_of(options);
    range.center = (destination + 0.5) * options->ratio + options->offset;
    if (options->kernel == CPIXELS_KERNEL_NEAREST) {
      range.center = options->is_reversed ? options->source_count - 0.5 - floor(displayed_center(options, destination))
                                          : floor(range.center) + 0.5;
    }
    range.left = (int64_t)floor(range.center - reach - 0.5) + 1;
    range.right = (int64_t)ceil(range.center + reach - 0.5) - 1;
  }
  range.start = window_start(axis, range.left);
  range.is_folded = range.start != range.left || range.right >= (int64_t)axis->source_count;
  if (axis->layout == CPIXELS_LAYOUT_PAIRS) {
    range.start &= ~(int64_t)1;
  }
  return range;
}

/// Iterates over the weights of a destination sample's taps.
typedef struct tap_walk {
  kernel_walk *kernel;
  bool is_doubled;
  double emphasis;
  /// If samples are doubled: the kernel's values at the last half of the previous sample and at the first half of the
  /// current one. If samples are emphasized: the values at the previous sample and at the current one.
  double before;
  double first;
} tap_walk;

static double next_value(kernel_walk *walk) {
  const double value = kernel_walk_value(walk);
  kernel_walk_advance(walk);
  return value;
}

static tap_walk tap_walk_from(const cpixels_axis_options *options, tap_range range, kernel_walk *walk) {
  tap_walk taps = {.kernel = walk, .is_doubled = is_doubled(options), .emphasis = options->emphasis};
  if (taps.is_doubled) {
    kernel_walk_start(walk, (2 * ((double)range.left - range.center) - 0.5) / stretch_of(options));
  } else if (is_emphasized(options)) {
    kernel_walk_start(walk, ((double)range.left - 0.5 - range.center) / stretch_of(options));
  } else {
    kernel_walk_start(walk, ((double)range.left + 0.5 - range.center) / stretch_of(options));
    return taps;
  }
  taps.before = next_value(walk);
  taps.first = next_value(walk);
  return taps;
}

static double tap_walk_value(tap_walk *taps) {
  if (taps->emphasis > 0) {
    const double after = next_value(taps->kernel);
    const double value = (1 + 2 * taps->emphasis) * taps->first - taps->emphasis * (taps->before + after);
    taps->before = taps->first;
    taps->first = after;
    return value;
  }
  if (!taps->is_doubled) {
    return next_value(taps->kernel);
  }
  // A sample has weight 3/4 in its own two doubled samples, and 1/4 in the adjacent ones.
  const double last = next_value(taps->kernel);
  const double after = next_value(taps->kernel);
  const double value = 0.75 * (taps->first + last) + 0.25 * (taps->before + after);
  taps->before = last;
  taps->first = after;
  return value;
}

/// Returns the weight of a source sample of a reversed axis, with the kernel that has another value at each of its
/// ends.
static double reversed_mean(const cpixels_axis_options *options, double center, int64_t sample) {
  const double shown = (double)(options->source_count - 1 - sample);
  return cpixels_kernel_value(CPIXELS_KERNEL_MEAN, (shown - center + 0.5) * (1 / stretch_of(options)));
}

/// Computes the weights of one destination sample over its window. They sum to 1.
static void make_weights(
    const cpixels_axis_options *options, const cpixels_axis *axis, uint32_t destination, tap_range range,
    kernel_walk *walk, double *weights) {
  memset(weights, 0, axis->window * sizeof *weights);
  if (is_identity(options)) {
    if (axis->window != 0) {
      weights[range.left - range.start] = 1;
    }
    return;
  }
  const bool is_reversed_mean = options->kernel == CPIXELS_KERNEL_MEAN && options->is_reversed;
  const double center = is_reversed_mean ? displayed_center(options, destination) : 0;
  tap_walk taps = tap_walk_from(options, range, walk);
  double sum = 0;
  for (int64_t s = range.left; s <= range.right; s++) {
    const double weight = is_reversed_mean ? reversed_mean(options, center, s) : tap_walk_value(&taps);
    // Rounding may put a sample with a negligible weight just outside the window.
    const int64_t inside = clamp(s, 0, (int64_t)axis->source_count - 1);
    if (options->drops_outside && inside != s) {
      continue;
    }
    weights[clamp(inside - range.start, 0, (int64_t)axis->window - 1)] += weight;
    sum += weight;
  }
  if (sum == 0) { // all taps were dropped
    const int64_t nearest = clamp(range.left, 0, (int64_t)axis->source_count - 1);
    weights[clamp(nearest - range.start, 0, (int64_t)axis->window - 1)] = 1;
    return;
  }
  const double scale = 1 / sum;
  for (uint32_t t = 0; t < axis->window; t++) {
    weights[t] *= scale;
  }
}

/// The location of a destination sample's fixed-point weights: groups of `step` adjacent weights, `stride` apart.
typedef struct fixed_place {
  int16_t *weights;
  uint32_t step;
  uint32_t stride;
} fixed_place;

static fixed_place fixed_place_of(const cpixels_axis *axis, uint32_t destination) {
  const uint32_t step = axis->lanes.step;
  const uint32_t group = axis->lanes.group;
  if (axis->layout != CPIXELS_LAYOUT_LANES) {
    return (fixed_place){axis->fixed_weights + (size_t)destination * axis->window, axis->window, 0};
  }
  int16_t *of_group = axis->fixed_weights + (size_t)(destination / group) * group * axis->window;
  return (fixed_place){of_group + destination % group * step, step, group * step};
}

/// Rounds weights to Q14 such that they still sum to exactly 1. It rounds the running sum, so the next tap gains what
/// one tap loses.
static void put_fixed(const double *weights, uint32_t count, fixed_place place) {
  const double above_zero = 1 << 20; // makes truncation round down
  double sum = above_zero + 0.5;
  int32_t rounded = (int32_t)above_zero;
  for (uint32_t t = 0; t < count; place.weights += place.stride) {
    for (uint32_t i = 0; i < place.step; i++, t++) {
      sum += weights[t] * (1 << CPIXELS_WEIGHT_BITS);
      place.weights[i] = (int16_t)((int32_t)sum - rounded);
      rounded = (int32_t)sum;
    }
  }
}

static void put_weights(cpixels_axis *axis, uint32_t destination, const double *weights) {
  if (axis->fixed_weights != NULL) {
    put_fixed(weights, axis->window, fixed_place_of(axis, destination));
    return;
  }
  for (uint32_t t = 0; t < axis->window; t++) {
    axis->float_weights[(size_t)destination * axis->window + t] = (float)weights[t];
  }
}

static void copy_weights(cpixels_axis *axis, uint32_t from, uint32_t to) {
  const size_t window = axis->window;
  if (axis->fixed_weights == NULL) {
    memcpy(axis->float_weights + to * window, axis->float_weights + from * window, window * sizeof(float));
    return;
  }
  fixed_place source = fixed_place_of(axis, from);
  fixed_place destination = fixed_place_of(axis, to);
  for (size_t t = 0; t < window; t += source.step) {
    memcpy(destination.weights, source.weights, source.step * sizeof(int16_t));
    source.weights += source.stride;
    destination.weights += destination.stride;
  }
}

/// Computes the positions of a step's taps in their loads; the missing destinations of the last group repeat the last
/// one.
static void fill_order(cpixels_axis *axis) {
  const cpixels_lane_shape lanes = axis->lanes;
  const uint32_t padded_count = cpixels_round_up(axis->destination_count, lanes.group);
  for (uint32_t d = axis->destination_count; d < padded_count; d++) {
    axis->first[d] = axis->first[axis->destination_count - 1];
  }
  for (uint32_t d = 0; d < padded_count; d++) {
    const uint32_t base = cpixels_lane_base(axis, d - d % lanes.load_lanes);
    for (uint32_t t = 0; t < lanes.step; t++) {
      axis->order[(size_t)d * lanes.step + t] = (uint8_t)(axis->first[d] - base + t);
    }
  }
}

/// Splits each weight into 256 high + low, with low from -128 to 127.
static void split_weights(cpixels_axis *axis) {
  enum { LARGEST_COUNT = CPIXELS_SPLIT_DOT_MULTIPLE };
  const bool is_lanes = axis->layout == CPIXELS_LAYOUT_LANES;
  const size_t count = is_lanes ? (size_t)axis->lanes.group * axis->lanes.step : CPIXELS_SPLIT_DOT_MULTIPLE;
  const size_t total =
      (size_t)cpixels_round_up(axis->destination_count, is_lanes ? axis->lanes.group : 1) * axis->window;
  for (size_t at = 0; at < total; at += count) {
    int16_t whole[LARGEST_COUNT];
    memcpy(whole, axis->fixed_weights + at, count * sizeof *whole);
    int8_t *low = (int8_t *)(axis->fixed_weights + at);
    for (size_t i = 0; i < count; i++) {
      low[i] = (int8_t)(((whole[i] + 128) & 255) - 128);
      low[count + i] = (int8_t)((whole[i] - low[i]) / 256);
    }
  }
}

/// Returns the number of destination samples after which weights repeat, shifted by an integer number of samples; 0 if
/// they do not repeat soon. Most ratios are ratios of small integers, and computing the weights costs more than
/// resampling a row.
static uint32_t period_of(const cpixels_axis_options *options, const cpixels_axis *axis) {
  const uint32_t longest = smaller(256, axis->destination_count / 2);
  for (uint32_t period = 1; period <= longest; period++) {
    const double moved = period * options->ratio;
    const double whole = floor(moved + 0.5);
    if (fabs(moved - whole) <= 1e-14 * moved && (axis->layout != CPIXELS_LAYOUT_PAIRS || fmod(whole, 2) == 0)) {
      return period;
    }
  }
  return 0;
}

static void fill_weights(const cpixels_axis_options *options, double *scratch, cpixels_axis *axis) {
  const uint32_t period = period_of(options, axis);
  const int64_t moved = (int64_t)floor(period * options->ratio + 0.5);
  kernel_walk walk = kernel_walk_by(options->kernel, 1 / stretch_of(options));
  uint32_t unfolded_run = 0; // the number of consecutive destination samples up to this one with no folded taps
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const tap_range range = tap_range_of(options, axis, d);
    axis->first[d] = (uint32_t)range.start;
    unfolded_run = range.is_folded ? 0 : unfolded_run + 1;
    if (period != 0 && unfolded_run > period && range.start == axis->first[d - period] + moved) {
      copy_weights(axis, d - period, d);
    } else {
      make_weights(options, axis, d, range, &walk, scratch);
      put_weights(axis, d, scratch);
    }
  }
}

void cpixels_axis_fill(const cpixels_axis_options *options, double *scratch, cpixels_axis *axis) {
  const bool is_lanes = axis->layout == CPIXELS_LAYOUT_LANES;
  if (is_lanes) {
    const size_t count = cpixels_round_up(axis->destination_count, axis->lanes.group);
    memset(axis->fixed_weights, 0, count * axis->window * sizeof(int16_t));
  }
  fill_weights(options, scratch, axis);
  if (is_lanes) {
    fill_order(axis);
  }
  if (axis->is_split) {
    split_weights(axis);
  }
}

static bool are_same(const cpixels_axis_options *a, const cpixels_axis_options *b) {
  return a->source_count == b->source_count && a->destination_count == b->destination_count && a->ratio == b->ratio &&
         a->offset == b->offset && a->kernel == b->kernel && a->emphasis == b->emphasis &&
         a->drops_outside == b->drops_outside;
}

bool cpixels_axis_copy(const cpixels_axis *from, cpixels_axis *to) {
  const bool are_fixed = from->fixed_weights != NULL;
  const bool is_same = are_same(&from->options, &to->options) && from->layout == to->layout &&
                       from->kernels == to->kernels && are_fixed == (to->fixed_weights != NULL);
  if (is_same) {
    memcpy(to->memory, from->memory, to->byte_count);
  }
  return is_same;
}
