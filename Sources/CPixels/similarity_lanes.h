// The similarity kernels over vectors of floats, written once for all instruction sets. The including file defines
// LANES (the number of floats in a vector), SUMS (of a vector of sums, at most as many), TARGET (a function attribute),
// and linearize.
//
// The errors are computed from the difference between result and reference instead of from the result, because the
// difference is small: it loses no accuracy in single precision, and equal images have no error at all.

#include "lanes.h"
#include "similarity_kernels.h"

#include <string.h>

#pragma STDC FP_CONTRACT ON

typedef float sum_lanes __attribute__((vector_size(4 * SUMS)));

INLINE lanes select_lanes(whole_lanes mask, lanes x) {
  return (lanes)(mask & (whole_lanes)x);
}

/// The cube root of a positive number to about 2^-22: two steps towards the inverse root from an estimate by the
/// exponent, which is within 3.5 %.
INLINE lanes cube_root(lanes x) {
  const lanes third = __builtin_convertvector((whole_lanes)x, lanes) * (1 / 3.0f);
  lanes r = (lanes)(0x54A2FA8C - __builtin_convertvector(third, whole_lanes));
  const lanes h = 1 - x * r * r * r;
  r = r + r * h * (1 / 3.0f + h * (2 / 9.0f + h * (14 / 81.0f)));
  const lanes rest = 1 - x * r * r * r;
  r = r + r * rest * (1 / 3.0f);
  return x * r * r;
}

INLINE lanes cone(const float *const *linear, size_t x, float red, float green, float blue) {
  const lanes sum = red * load_lanes(linear[0] + x) + CPIXELS_OPSIN_BIAS;
  return cube_root(sum + green * load_lanes(linear[1] + x) + blue * load_lanes(linear[2] + x)) -
         CPIXELS_OPSIN_BIAS_ROOT;
}

TARGET static void perceive(const float *const *linear, size_t pixel_count, float *const *planes) {
  float *const x_plane = planes[CPIXELS_PLANE_X];
  float *const y_plane = planes[CPIXELS_PLANE_Y];
  float *const b_plane = planes[CPIXELS_PLANE_B];
  for (size_t x = 0; x < pixel_count; x += LANES) {
    const lanes l = cone(linear, x, CPIXELS_OPSIN_00, CPIXELS_OPSIN_01, CPIXELS_OPSIN_02);
    const lanes m = cone(linear, x, CPIXELS_OPSIN_10, CPIXELS_OPSIN_11, CPIXELS_OPSIN_12);
    const lanes y = 0.5f * (l + m);
    if (x_plane != NULL) {
      store_lanes(x_plane + x, (l - m) * 7 + 0.42f);
    }
    if (y_plane != NULL) {
      store_lanes(y_plane + x, y + 0.01f);
    }
    if (b_plane != NULL) {
      const lanes s = cone(linear, x, CPIXELS_OPSIN_20, CPIXELS_OPSIN_21, CPIXELS_OPSIN_22);
      store_lanes(b_plane + x, s - y + 0.55f);
    }
  }
}

TARGET static void subtract(const float *reference, size_t count, float *row) {
  for (size_t x = 0; x < count; x += LANES) {
    store_lanes(row + x, load_lanes(row + x) - load_lanes(reference + x));
  }
}

TARGET static void halve(const float *upper, const float *lower, size_t pixel_count, float *destination) {
  for (size_t x = 0; x < pixel_count; x += LANES) {
    lanes sums[2] = {
        load_lanes(upper + 2 * x) + load_lanes(lower + 2 * x),
        load_lanes(upper + 2 * x + LANES) + load_lanes(lower + 2 * x + LANES)};
    float both[2 * LANES];
    lanes even, odd;
    memcpy(both, sums, sizeof both);
#pragma unroll
    for (int i = 0; i < LANES; i++) {
      even[i] = both[2 * i];
      odd[i] = both[2 * i + 1];
    }
    store_lanes(destination + x, (even + odd) * 0.25f);
  }
}

/// The taps of a blur, from the middle outwards; both sides are added.
typedef struct tap_lanes {
  lanes taps[CPIXELS_BLUR_REACH + 1];
} tap_lanes;

INLINE lanes weighted(const tap_lanes *t) {
  const lanes near = CPIXELS_BLUR_0 * t->taps[0] + CPIXELS_BLUR_1 * t->taps[1] + CPIXELS_BLUR_2 * t->taps[2];
  return near + CPIXELS_BLUR_3 * t->taps[3] + CPIXELS_BLUR_4 * t->taps[4] + CPIXELS_BLUR_5 * t->taps[5];
}

INLINE lanes blurred_rows(const lanes *rows) {
  tap_lanes t = {{rows[CPIXELS_BLUR_REACH]}};
#pragma unroll
  for (int i = 1; i <= CPIXELS_BLUR_REACH; i++) {
    t.taps[i] = rows[CPIXELS_BLUR_REACH - i] + rows[CPIXELS_BLUR_REACH + i];
  }
  return weighted(&t);
}

INLINE lanes blurred_products(const lanes *a, const lanes *b) {
  tap_lanes t = {{a[CPIXELS_BLUR_REACH] * b[CPIXELS_BLUR_REACH]}};
#pragma unroll
  for (int i = 1; i <= CPIXELS_BLUR_REACH; i++) {
    const int before = CPIXELS_BLUR_REACH - i;
    const int after = CPIXELS_BLUR_REACH + i;
    t.taps[i] = a[before] * b[before] + a[after] * b[after];
  }
  return weighted(&t);
}

TARGET static void blur_down(
    const float *const reference[CPIXELS_BLUR_TAPS], const float *const difference[CPIXELS_BLUR_TAPS],
    size_t pixel_count, const cpixels_moment_rows *moments) {
  for (size_t x = 0; x < pixel_count; x += LANES) {
    lanes r[CPIXELS_BLUR_TAPS];
    lanes d[CPIXELS_BLUR_TAPS];
#pragma unroll
    for (int t = 0; t < CPIXELS_BLUR_TAPS; t++) {
      r[t] = load_lanes(reference[t] + x);
      d[t] = load_lanes(difference[t] + x);
    }
    store_lanes(moments->r + x, blurred_rows(r));
    store_lanes(moments->d + x, blurred_rows(d));
    store_lanes(moments->rr + x, blurred_products(r, r));
    store_lanes(moments->dd + x, blurred_products(d, d));
    store_lanes(moments->rd + x, blurred_products(r, d));
  }
}

INLINE lanes blurred(const float *row) {
  tap_lanes t = {{load_lanes(row)}};
#pragma unroll
  for (int i = 1; i <= CPIXELS_BLUR_REACH; i++) {
    t.taps[i] = load_lanes(row - i) + load_lanes(row + i);
  }
  return weighted(&t);
}

typedef struct error_lanes {
  sum_lanes sum;
  sum_lanes fourth;
} error_lanes;

/// Adds the parts of a vector in the order of the narrower one, so that the sums of both are the same.
INLINE void add_lanes(lanes x, sum_lanes *sums) {
  sum_lanes parts[LANES / SUMS];
  memcpy(parts, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < LANES / SUMS; i++) {
    *sums += parts[i];
  }
}

INLINE void add_error(lanes error, error_lanes *sums) {
  const lanes positive = select_lanes(error > 0, error);
  const lanes square = positive * positive;
  add_lanes(positive, &sums->sum);
  add_lanes(square * square, &sums->fourth);
}

INLINE lanes magnitude(lanes x) {
  return (lanes)((whole_lanes)x & 0x7FFFFFFF);
}

INLINE void total(const error_lanes *lanes_sums, float sums[2]) {
  sums[0] = 0;
  sums[1] = 0;
  for (int i = 0; i < SUMS; i++) {
    sums[0] += lanes_sums->sum[i];
    sums[1] += lanes_sums->fourth[i];
  }
}

TARGET static void compare(
    const cpixels_moment_rows *moments, const float *reference, const float *difference, size_t pixel_count,
    cpixels_error_sums *sums) {
  error_lanes structure = {{0}, {0}};
  error_lanes ringing = {{0}, {0}};
  error_lanes blurring = {{0}, {0}};
  whole_lanes left; // the number of pixels from this one to the end of the row
  for (int32_t i = 0; i < LANES; i++) {
    left[i] = (int32_t)pixel_count - i;
  }
  for (size_t x = 0; x < pixel_count; x += LANES, left -= LANES) {
    const lanes mean = blurred(moments->r + x);
    const lanes shift = blurred(moments->d + x);
    const lanes variance = blurred(moments->rr + x) - mean * mean;
    const lanes spread = blurred(moments->dd + x) - shift * shift;
    const lanes covariance = blurred(moments->rd + x) - mean * shift;
    const lanes share = spread / (2 * (variance + covariance) + spread + CPIXELS_SIMILARITY_C2);
    const lanes square = shift * shift;
    const whole_lanes is_inside = left > 0;
    add_error(select_lanes(is_inside, square + share - square * share), &structure);

    const lanes detail = load_lanes(reference + x) - mean;
    const lanes edge_1 = magnitude(detail);
    const lanes edge_2 = magnitude(detail + (load_lanes(difference + x) - shift));
    const lanes change = select_lanes(is_inside, (edge_2 - edge_1) / (1 + edge_1));
    add_error(change, &ringing);
    add_error(-change, &blurring);
  }
  total(&structure, sums->structure);
  total(&ringing, sums->ringing);
  total(&blurring, sums->blurring);
}
