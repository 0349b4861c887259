// The similarity kernels in plain C, written from the definitions: the oracle for the others.

#include "similarity_kernels.h"

#include <math.h>

static const float weights[CPIXELS_BLUR_TAPS] = {
    CPIXELS_BLUR_5, CPIXELS_BLUR_4, CPIXELS_BLUR_3, CPIXELS_BLUR_2, CPIXELS_BLUR_1, CPIXELS_BLUR_0,
    CPIXELS_BLUR_1, CPIXELS_BLUR_2, CPIXELS_BLUR_3, CPIXELS_BLUR_4, CPIXELS_BLUR_5,
};

static void linearize(
    const float *table, const uint8_t *row, uint32_t channels, size_t pixel_count, float *const *linear) {
  for (size_t c = 0; c < 3; c++) {
    const uint8_t *samples = row + (channels == 1 ? 0 : c);
    for (size_t x = 0; x < pixel_count; x++) {
      linear[c][x] = table[samples[x * channels]];
    }
  }
}

static void perceive(const float *const *linear, size_t pixel_count, float *const *planes) {
  for (size_t x = 0; x < pixel_count; x++) {
    const float r = linear[0][x];
    const float g = linear[1][x];
    const float b = linear[2][x];
    const float cones[3] = {
        CPIXELS_OPSIN_00 * r + CPIXELS_OPSIN_01 * g + CPIXELS_OPSIN_02 * b + CPIXELS_OPSIN_BIAS,
        CPIXELS_OPSIN_10 * r + CPIXELS_OPSIN_11 * g + CPIXELS_OPSIN_12 * b + CPIXELS_OPSIN_BIAS,
        CPIXELS_OPSIN_20 * r + CPIXELS_OPSIN_21 * g + CPIXELS_OPSIN_22 * b + CPIXELS_OPSIN_BIAS,
    };
    const float l = cbrtf(cones[0]) - CPIXELS_OPSIN_BIAS_ROOT;
    const float m = cbrtf(cones[1]) - CPIXELS_OPSIN_BIAS_ROOT;
    const float y = 0.5f * (l + m);
    if (planes[CPIXELS_PLANE_X] != NULL) {
      planes[CPIXELS_PLANE_X][x] = 0.5f * (l - m) * 14 + 0.42f;
    }
    if (planes[CPIXELS_PLANE_Y] != NULL) {
      planes[CPIXELS_PLANE_Y][x] = y + 0.01f;
    }
    if (planes[CPIXELS_PLANE_B] != NULL) {
      planes[CPIXELS_PLANE_B][x] = cbrtf(cones[2]) - CPIXELS_OPSIN_BIAS_ROOT - y + 0.55f;
    }
  }
}

static void subtract(const float *reference, size_t count, float *row) {
  for (size_t x = 0; x < count; x++) {
    row[x] -= reference[x];
  }
}

static void halve(const float *upper, const float *lower, size_t pixel_count, float *destination) {
  for (size_t x = 0; x < pixel_count; x++) {
    destination[x] = 0.25f * (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1]);
  }
}

static void blur_down(
    const float *const reference[CPIXELS_BLUR_TAPS], const float *const difference[CPIXELS_BLUR_TAPS],
    size_t pixel_count, const cpixels_moment_rows *moments) {
  for (size_t x = 0; x < pixel_count; x++) {
    double sums[5] = {0};
    for (int t = 0; t < CPIXELS_BLUR_TAPS; t++) {
      const double r = reference[t][x];
      const double d = difference[t][x];
      sums[0] += weights[t] * r;
      sums[1] += weights[t] * d;
      sums[2] += weights[t] * r * r;
      sums[3] += weights[t] * d * d;
      sums[4] += weights[t] * r * d;
    }
    moments->r[x] = (float)sums[0];
    moments->d[x] = (float)sums[1];
    moments->rr[x] = (float)sums[2];
    moments->dd[x] = (float)sums[3];
    moments->rd[x] = (float)sums[4];
  }
}

static double blurred(const float *row, size_t x) {
  double sum = 0;
  for (int t = -CPIXELS_BLUR_REACH; t <= CPIXELS_BLUR_REACH; t++) {
    sum += weights[t + CPIXELS_BLUR_REACH] * (double)row[(ptrdiff_t)x + t];
  }
  return sum;
}

static void add_error(double error, double sums[2]) {
  const double positive = error > 0 ? error : 0;
  sums[0] += positive;
  sums[1] += positive * positive * positive * positive;
}

static void compare(
    const cpixels_moment_rows *moments, const float *reference, const float *difference, size_t pixel_count,
    cpixels_error_sums *sums) {
  double structure[2] = {0};
  double ringing[2] = {0};
  double blurring[2] = {0};
  for (size_t x = 0; x < pixel_count; x++) {
    const double mean_1 = blurred(moments->r, x);
    const double mean_2 = mean_1 + blurred(moments->d, x);
    const double square_1 = blurred(moments->rr, x);
    const double product = square_1 + blurred(moments->rd, x);
    const double square_2 = square_1 + 2 * blurred(moments->rd, x) + blurred(moments->dd, x);
    const double luminance = 1 - (mean_1 - mean_2) * (mean_1 - mean_2);
    const double covariance = 2 * (product - mean_1 * mean_2) + (double)CPIXELS_SIMILARITY_C2;
    const double variances =
        (square_1 - mean_1 * mean_1) + (square_2 - mean_2 * mean_2) + (double)CPIXELS_SIMILARITY_C2;
    add_error(1 - luminance * covariance / variances, structure);

    const double edge_1 = fabs((double)reference[x] - mean_1);
    const double edge_2 = fabs((double)reference[x] + (double)difference[x] - mean_2);
    const double change = (1 + edge_2) / (1 + edge_1) - 1;
    add_error(change, ringing);
    add_error(-change, blurring);
  }
  for (int n = 0; n < 2; n++) {
    sums->structure[n] = (float)structure[n];
    sums->ringing[n] = (float)ringing[n];
    sums->blurring[n] = (float)blurring[n];
  }
}

const cpixels_similarity_kernels cpixels_similarity_scalar = CPIXELS_SIMILARITY_KERNELS;
