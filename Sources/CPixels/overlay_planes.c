// Overlays on planes of YCbCr.
//
// Blending over is linear, and so is the conversion of colors and the mean of pixels. A sample of a plane is therefore
// the sum of the overlay's premultiplied colors and of the sample below times their mean transparency:
//
//   sample = (sum(alpha * converted) + sum(255 - alpha) * below) / (255 * count)

#include "cpixels.h"

/// The precision of the coefficients.
enum { COEFFICIENT_BITS = 14 };

/// Red, green and blue of each channel in Q14, and the value of black: JFIF 1.02. Each row sums to 1 or 0.
static const int32_t coefficients[3][3] = {{4899, 9617, 1868}, {-2765, -5427, 8192}, {8192, -6860, -1332}};
static const int32_t offsets[3] = {0, 128, 128};

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/// The sums over the pixels of a sample: alpha, and the premultiplied value of the channel in Q14.
typedef struct sums {
  uint64_t alpha;
  uint64_t value;
} sums;

static inline void add(sums *sums, const uint8_t *pixel, const int32_t *factors, int32_t offset) {
  const int32_t value = factors[0] * pixel[0] + factors[1] * pixel[1] + factors[2] * pixel[2] +
                        (int32_t)((uint32_t)offset << COEFFICIENT_BITS);
  sums->alpha += pixel[3];
  sums->value += (uint32_t)value * pixel[3]; // value is from 0 to 255.5
}

static inline uint8_t blended_over(sums sums, uint64_t count, uint64_t below) {
  const uint64_t unit = (255 * count) << COEFFICIENT_BITS;
  const uint64_t clear = 255 * count - sums.alpha;
  const uint64_t sample = (sums.value + ((clear * below) << COEFFICIENT_BITS) + unit / 2) / unit;
  return (uint8_t)(sample < 255 ? sample : 255);
}

/// Draws over a sample of `count` pixels. Divisions by constants are several times as fast.
static inline uint8_t blended(sums sums, int64_t count, uint8_t below) {
  switch (count) {
  case 4:
    return blended_over(sums, 4, below);
  case 2:
    return blended_over(sums, 2, below);
  default:
    return blended_over(sums, 1, below);
  }
}

/// Luma, and chroma of full size: every sample is one pixel.
static void draw_pixels(const uint8_t *pixels, int64_t count, uint8_t channel, uint8_t *row) {
  const uint32_t unit = 255U << COEFFICIENT_BITS;
  const int32_t *factors = coefficients[channel];
  const int32_t offset = offsets[channel] * (1 << COEFFICIENT_BITS);
  for (int64_t i = 0; i < count; i++, pixels += 4) {
    // From 0 to 255 in Q14, as chroma of pure colors is half a level more.
    const int32_t value = factors[0] * pixels[0] + factors[1] * pixels[1] + factors[2] * pixels[2] + offset;
    const uint32_t sum = (uint32_t)value * pixels[3] + (((255U - pixels[3]) * row[i]) << COEFFICIENT_BITS);
    const uint32_t sample = (sum + unit / 2) / unit;
    row[i] = (uint8_t)(sample < 255 ? sample : 255);
  }
}

/// Returns the sums of four pixels, two of each line.
static inline sums sums_of_4(const uint8_t *upper, const uint8_t *lower, const int32_t *factors, int32_t offset) {
  const uint32_t alphas[4] = {upper[3], upper[7], lower[3], lower[7]};
  const uint32_t alpha = alphas[0] + alphas[1] + alphas[2] + alphas[3];
  int64_t value = (int64_t)((uint32_t)offset * alpha) << COEFFICIENT_BITS;
  for (uint32_t c = 0; c < 3; c++) {
    const uint32_t color =
        alphas[0] * upper[c] + alphas[1] * upper[c + 4] + alphas[2] * lower[c] + alphas[3] * lower[c + 4];
    value += (int64_t)factors[c] * color;
  }
  return (sums){alpha, (uint64_t)value};
}

/// Pixels from `first` to before `end`.
typedef struct span {
  int64_t first;
  int64_t end;
} span;

/// Chroma of half the width and, with two rows, half the height.
static void draw_blocks(
    const uint8_t *rgba, const cpixels_overlay_place *place, span columns, span rows, uint8_t *row) {
  const int32_t *factors = coefficients[place->channel];
  const int32_t offset = offsets[place->channel];
  const span drawn = {larger(rows.first, place->top), smaller(rows.end, place->top + place->height)};
  if (drawn.first >= drawn.end) {
    return;
  }
  for (int64_t x = columns.first / place->across; x * place->across < columns.end; x++) {
    const int64_t first = x * place->across;
    const int64_t end = smaller(first + place->across, place->image_width);
    const span inside = {larger(first, columns.first), smaller(end, columns.end)};
    if (drawn.end - drawn.first == 2 && inside.end - inside.first == 2) { // most of them
      const uint8_t *upper = rgba + 4 * (ptrdiff_t)((drawn.first - place->top) * place->width + first - place->left);
      row[x] = blended_over(sums_of_4(upper, upper + 4 * (size_t)place->width, factors, offset), 4, row[x]);
      continue;
    }
    sums sums = {0, 0};
    for (int64_t y = drawn.first; y < drawn.end; y++) {
      const uint8_t *line = rgba + 4 * (ptrdiff_t)((y - place->top) * place->width);
      for (int64_t i = inside.first; i < inside.end; i++) {
        add(&sums, line + 4 * (i - place->left), factors, offset);
      }
    }
    row[x] = blended(sums, (rows.end - rows.first) * (end - first), row[x]);
  }
}

void cpixels_overlay_plane(const uint8_t *rgba, const cpixels_overlay_place *place, uint32_t plane_row, uint8_t *row) {
  const int64_t first_x = larger(place->left, 0);
  const int64_t end_x = smaller(place->left + place->width, place->image_width);
  const int64_t first_y = (int64_t)plane_row * place->down;
  const int64_t end_y = smaller(first_y + place->down, place->image_height);
  if (first_x >= end_x || first_y >= end_y) {
    return;
  }
  if (place->across == 1 && place->down == 1) {
    const int64_t y = first_y - place->top;
    if (y >= 0 && y < place->height) {
      const uint8_t *pixels = rgba + 4 * (size_t)(y * place->width + first_x - place->left);
      draw_pixels(pixels, end_x - first_x, place->channel, row + first_x);
    }
    return;
  }
  draw_blocks(rgba, place, (span){first_x, end_x}, (span){first_y, end_y}, row);
}
