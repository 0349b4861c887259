// Compares filters of single pixels, elements of raw results, and the arithmetic of networks.

#include "check.h"
#include "filter_kernels.h"
#include "network.h"
#include "raw/raw_rows.h"

#include <string.h>

enum { PIXELS = 600, CHANNELS = 12 };

/// A number from -1 to 1.
static float next_number(void) {
  return (float)next_random() / 2147483648.0f - 1;
}

// MARK: Filters

/// A step with numbers that its kind allows.
static cpixels_color_step next_step(void) {
  cpixels_color_step step = {.kind = (cpixels_color_step_kind)(next_random() % 6)};
  for (size_t i = 0; i < 12; i++) {
    step.numbers[i] = next_number();
  }
  if (step.kind == CPIXELS_COLOR_POWER) {
    step.numbers[0] = 0.01f + 3 * (step.numbers[0] + 1);
  } else if (step.kind == CPIXELS_COLOR_EXPOSURE) {
    step.numbers[0] = 2 * (step.numbers[0] + 1);
  } else if (step.kind == CPIXELS_COLOR_VIGNETTE) {
    step.numbers[1] = 0.01f + step.numbers[1] + 1;
    step.numbers[2] = (step.numbers[2] + 1) / 2;
  }
  return step;
}

static void check_color_filters(void) {
  static uint8_t source[4 * PIXELS], results[2][4 * PIXELS + GUARD];
  static const cpixels_isa sets[2] = {CPIXELS_ISA_SCALAR, CPIXELS_ISA_BEST};
  const uint32_t channels = 3 + next_random() % 2;
  cpixels_color_step steps[3];
  for (size_t i = 0; i < 3; i++) {
    steps[i] = next_step();
  }
  const cpixels_color_program program = {
      .steps = steps, .step_count = 1 + next_random() % 3, .width = 1 + next_random() % PIXELS, .height = 100};
  fill(source, sizeof source);
  for (int i = 0; i < 2; i++) {
    cpixels_color_row(&program, 30, channels, source, results[i], sets[i]);
  }
  report("color filters", memcmp(results[0], results[1], sizeof results[0]) == 0);
  uint8_t table[256];
  fill(table, sizeof table);
  for (int i = 0; i < 2; i++) {
    cpixels_map_levels(table, channels, source, results[i], program.width, sets[i]);
  }
  report("maps of levels", memcmp(results[0], results[1], sizeof results[0]) == 0);
}

// MARK: Raw results

static void check_raw(void) {
  static uint8_t pixels[3 * PIXELS], rows[2][3][PIXELS + GUARD], elements[2][4 * 3 * PIXELS + GUARD];
  static const ccodecs_raw_element kinds[3] = {CCODECS_RAW_F16, CCODECS_RAW_BF16, CCODECS_RAW_F32};
  const raw_kernels *kernels[2] = {&ccodecs_raw_scalar, ccodecs_raw_kernels()};
  const size_t count = next_random() % PIXELS;
  fill(pixels, sizeof pixels);
  for (int i = 0; i < 2; i++) {
    kernels[i]->split(pixels, count, rows[i][0], rows[i][1], rows[i][2]);
  }
  report("rows of channels", memcmp(rows[0], rows[1], sizeof rows[0]) == 0);
  raw_scaling scaling;
  for (size_t i = 0; i < RAW_PERIOD; i++) { // to halves that are too small, too large, and between
    const float factor = next_random() % 3 == 0 ? 1e-7f : next_random() % 3 == 0 ? 1000 : 1;
    scaling.scales[i] = factor * next_number();
    scaling.offsets[i] = factor * next_number();
  }
  const ccodecs_raw_element kind = kinds[next_random() % 3];
  for (int i = 0; i < 2; i++) {
    kernels[i]->convert(pixels, 3 * PIXELS - count, &scaling, kind, elements[i]);
  }
  report("elements", memcmp(elements[0], elements[1], sizeof elements[0]) == 0);
}

// MARK: Networks

/// Whether sums are equal up to rounding.
static bool are_close(const float *a, const float *b, size_t count) {
  bool is_close = true;
  for (size_t i = 0; i < count; i++) {
    is_close = is_close && a[i] - b[i] < 1e-4f && b[i] - a[i] < 1e-4f;
  }
  return is_close;
}

static void check_network(void) {
  static float planes[CHANNELS][2 * PIXELS + 2], sums[2][PIXELS];
  static const cpixels_isa sets[2] = {CPIXELS_ISA_SCALAR, CPIXELS_ISA_BEST};
  for (size_t i = 0; i < sizeof planes / sizeof planes[0][0]; i++) {
    planes[0][i] = next_number();
  }
  cpixels_network_weight weights[CHANNELS];
  for (uint32_t i = 0; i < CHANNELS; i++) {
    weights[i] = (cpixels_network_weight){next_random() % CHANNELS, next_number()};
  }
  const size_t count = (1 + next_random() % 70) * CPIXELS_NETWORK_COLUMN_MULTIPLE;
  const float *rows[3] = {planes[0] + 1, planes[1] + 1, planes[2] + 1};
  const float *addend = next_random() % 2 == 0 ? NULL : planes[3];
  const bool clips = next_random() % 2 == 0;
  const uint32_t step = 1 + next_random() % 2;
  for (int i = 0; i < 2; i++) {
    cpixels_network_kernels_of(sets[i])->tap(rows, planes[4], 0.1f, step, sums[i], count);
  }
  report("taps of a network", are_close(sums[0], sums[1], count));
  for (int i = 0; i < 2; i++) {
    cpixels_network_kernels_of(sets[i])->weigh(
        planes[0], 2 * PIXELS + 2, weights, CHANNELS, 0.2f, addend, clips, sums[i], count);
  }
  report("weights of a network", are_close(sums[0], sums[1], count));
}

void check_samples(void) {
  check_color_filters();
  check_raw();
  check_network();
}
