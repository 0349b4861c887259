// The parts of a frame that an animated WebP need not store, because the frame before it shows them.
//
// They become transparent, and the frame is blended with the one before it: blocks of a lossy frame whose samples
// differ little, pixels of a lossless one that are equal. A block that was not stored stays in the canvas as it was, so
// that later frames are compared with what was stored last, and differences do not add up.

#include "webp_kept.h"

#include <math.h>
#include <stdlib.h>

/// The side of a block of a lossy frame, in which libwebp makes transparent pixels of one color.
static const uint32_t block_side = 8;

/// The minimum share of pixels for which transparency is worth its bytes, as a divisor. Measured: see
/// Benchmarks/results/webp.md.
enum { KEPT_SHARE = 8 };

/// Returns the maximum difference of samples that a frame does not store: what libwebp's own animation encoder
/// tolerates.
static int tolerance(const webp_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const double share = sqrt(options->quality / 100.0);
  return options->webp.is_lossless ? 0 : (int)(31 * (1 - share) + share + 0.5);
}

static uint8_t *pixel_at(const webp_encoder *e, uint8_t *canvas, uint32_t x, uint32_t y) {
  return canvas + y * e->canvases.row_bytes + x * e->canvases.pixel_bytes;
}

/// Returns whether pixels differ by at most `maximum` in color and not in alpha.
static bool are_alike(const uint8_t *a, const uint8_t *b, size_t pixel_bytes, int maximum) {
  return abs(a[0] - b[0]) <= maximum && abs(a[1] - b[1]) <= maximum && abs(a[2] - b[2]) <= maximum &&
         (pixel_bytes < 4 || a[3] == b[3]);
}

/// As are_alike, whether a pixel is transparent.
static bool is_transparent(const uint8_t *a, const uint8_t *b, size_t pixel_bytes, int maximum) {
  (void)b, (void)pixel_bytes, (void)maximum;
  return a[3] == 0;
}

/// Returns the smallest rectangle that contains the pixels of `part` of which `is_outside` is not true, for their
/// samples in the current and in the previous canvas.
static inline __attribute__((always_inline)) ccodecs_rectangle bounds(
    const webp_encoder *e, ccodecs_rectangle part, bool (*is_outside)(const uint8_t *, const uint8_t *, size_t, int),
    int maximum) {
  const size_t size = e->canvases.pixel_bytes;
  uint32_t top = UINT32_MAX, bottom = 0, left = part.width, right = 0;
  for (uint32_t y = part.top; y < part.top + part.height; y++) {
    const uint8_t *now = pixel_at(e, e->canvases.current, part.left, y);
    const uint8_t *before = pixel_at(e, e->canvases.previous, part.left, y);
    uint32_t first = 0, end = part.width;
    while (first < end && is_outside(now + first * size, before + first * size, size, maximum)) {
      first++;
    }
    if (first == end) {
      continue;
    }
    while (is_outside(now + (end - 1) * size, before + (end - 1) * size, size, maximum)) {
      end--;
    }
    left = first < left ? first : left;
    right = end > right ? end : right;
    top = top == UINT32_MAX ? y : top;
    bottom = y + 1;
  }
  return right == 0
             ? (ccodecs_rectangle){0}
             : (ccodecs_rectangle){.left = part.left + left, .top = top, .width = right - left, .height = bottom - top};
}

/// Makes pixels of a row of the current canvas those of the frame before.
static void restore(webp_encoder *e, uint32_t left, uint32_t y, uint32_t count) {
  memcpy(
      pixel_at(e, e->canvases.current, left, y), pixel_at(e, e->canvases.previous, left, y),
      count * e->canvases.pixel_bytes);
}

ccodecs_rectangle ccodecs_webp_changes(webp_encoder *e) {
  const ccodecs_rectangle part = ccodecs_canvases_changes(&e->canvases, &e->base.options);
  const int maximum = tolerance(e);
  if (maximum == 0 || part.width == 0) {
    return part;
  }
  const ccodecs_rectangle inner = bounds(e, part, are_alike, maximum);
  const uint32_t right = inner.left + inner.width, end = part.left + part.width;
  for (uint32_t y = part.top; y < part.top + part.height; y++) {
    if (y < inner.top || y >= inner.top + inner.height) {
      restore(e, part.left, y, part.width);
    } else {
      restore(e, part.left, y, inner.left - part.left);
      restore(e, right, y, end - right);
    }
  }
  return inner;
}

/// Returns whether the frame before it shows a block.
static bool is_kept(const webp_encoder *e, ccodecs_rectangle block, int maximum) {
  const size_t size = e->canvases.pixel_bytes;
  for (uint32_t y = block.top; y < block.top + block.height; y++) {
    const uint8_t *now = pixel_at(e, e->canvases.current, block.left, y);
    const uint8_t *before = pixel_at(e, e->canvases.previous, block.left, y);
    for (uint32_t x = 0; x < block.width; x++, now += size, before += size) {
      if (!are_alike(now, before, size, maximum)) {
        return false;
      }
    }
  }
  return true;
}

/// Returns whether a block that is blended with the frame before it looks as it does alone: it is opaque, or there is
/// nothing below. Blending with nothing rounds colors, which a lossless frame must not.
static bool can_blend(const webp_encoder *e, ccodecs_rectangle block) {
  const bool is_lossless = e->base.options.webp.is_lossless;
  for (uint32_t y = block.top; y < block.top + block.height && e->canvases.pixel_bytes == 4; y++) {
    const uint8_t *now = pixel_at(e, e->canvases.current, block.left, y);
    const uint8_t *before = pixel_at(e, e->canvases.previous, block.left, y);
    for (size_t x = 0; x < block.width; x++) {
      if (now[4 * x + 3] < 255 && (is_lossless || before[4 * x + 3] > 0)) {
        return false;
      }
    }
  }
  return true;
}

/// Returns the block of a part at an offset in it.
static ccodecs_rectangle block_at(const webp_encoder *e, ccodecs_rectangle part, uint32_t x, uint32_t y) {
  const uint32_t side = e->base.options.webp.is_lossless ? 1 : block_side;
  const uint32_t right = part.width - x;
  const uint32_t down = part.height - y;
  return (ccodecs_rectangle){
      .left = part.left + x,
      .top = part.top + y,
      .width = side < right ? side : right,
      .height = side < down ? side : down,
  };
}

bool ccodecs_webp_can_keep(const webp_encoder *e, ccodecs_rectangle part) {
  const bool is_lossless = e->base.options.webp.is_lossless;
  const uint32_t side = is_lossless ? 1 : block_side;
  const int maximum = tolerance(e);
  uint64_t kept = 0;
  for (uint32_t y = 0; y < part.height; y += side) {
    for (uint32_t x = 0; x < part.width; x += side) {
      const ccodecs_rectangle block = block_at(e, part, x, y);
      if (is_kept(e, block, maximum)) {
        kept += (uint64_t)block.width * block.height;
      } else if (!can_blend(e, block)) {
        return false;
      }
    }
  }
  return kept * KEPT_SHARE >= (uint64_t)part.width * part.height;
}

/// Makes a block transparent, with its mean color, and the canvas' block that of the frame before.
static void keep(webp_encoder *e, ccodecs_rectangle part, ccodecs_rectangle block) {
  const size_t size = e->canvases.pixel_bytes;
  uint32_t sums[3] = {0};
  for (uint32_t y = block.top; y < block.top + block.height; y++) {
    uint8_t *now = pixel_at(e, e->canvases.current, block.left, y);
    memcpy(now, pixel_at(e, e->canvases.previous, block.left, y), block.width * size);
    for (uint32_t x = 0; x < block.width; x++, now += size) {
      for (int c = 0; c < 3; c++) {
        sums[c] += now[c];
      }
    }
  }
  const uint32_t count = block.width * block.height;
  const bool is_lossless = e->base.options.webp.is_lossless; // then one color for all is smallest
  const uint32_t color = is_lossless ? 0 : sums[0] / count << 16 | sums[1] / count << 8 | sums[2] / count;
  for (uint32_t y = 0; y < block.height; y++) {
    uint32_t *argb = e->image.argb + (size_t)(block.top - part.top + y) * (size_t)e->image.argb_stride;
    for (uint32_t x = 0; x < block.width; x++) {
      argb[block.left - part.left + x] = color;
    }
  }
}

void ccodecs_webp_keep(webp_encoder *e, ccodecs_rectangle part) {
  const uint32_t side = e->base.options.webp.is_lossless ? 1 : block_side;
  const int maximum = tolerance(e);
  for (uint32_t y = 0; y < part.height; y += side) {
    for (uint32_t x = 0; x < part.width; x += side) {
      const ccodecs_rectangle block = block_at(e, part, x, y);
      if (is_kept(e, block, maximum)) {
        keep(e, part, block);
      }
    }
  }
}

ccodecs_rectangle ccodecs_webp_visible(const webp_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const ccodecs_rectangle whole = {.width = options->width, .height = options->height};
  if (e->canvases.pixel_bytes < 4 || options->webp.is_lossless) {
    return whole;
  }
  const ccodecs_rectangle visible = bounds(e, whole, is_transparent, 0);
  return visible.width == 0 ? (ccodecs_rectangle){.width = 1, .height = 1} : visible;
}
