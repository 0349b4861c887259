// GIF encoding: palettes of our own (palette.h), codes of our own (gif_lzw.h), and of each frame the rectangle that
// changed.
//
// A frame is written once the next one is known to differ from it, so the output leaves while later frames arrive.
// Pixels that did not change are transparent, so that dithering does not move.
//
// Frames share the global palette, as one of their own takes up to 768 bytes. The palette of the first frame grows by
// the colors of those that follow until it is written, which is when it is full, or so much output waits for it that a
// larger table matters little. A frame has a palette of its own if the error of the global one is not worth these
// bytes.
//
// A pixel can become transparent only if a frame is cleared. Then the pending frame is encoded once more, as the whole
// canvas, which is cleared after it.
//
// Source: GIF89a.

#include "../core/animation.h"
#include "../formats.h"
#include "../palette/palette.h"
#include "gif_lzw.h"

#include <math.h>
#include <string.h>

enum { DISPOSAL_KEEP = 1, DISPOSAL_CLEAR = 2 };

/// The minimum share of pixels that did not change for which these are transparent, as a divisor. A few among others
/// only interrupt what repeats.
enum { KEPT_SHARE = 8 };

/// The maximum of a frame's duration in hundredths of a second.
static const uint32_t max_delay = UINT16_MAX;
/// The maximum number of bytes of frames that wait for the global palette.
static const size_t max_waiting = 6 << 10;
/// The global palette serves other frames if its mean squared error for their colors is at most this much, in the units
/// of ccodecs_palette_mapper_error, or at most twice that for the colors of the first one.
static const double fine_error = 100;
/// It also serves them if the sum of all squared errors is at most this much for each byte of a table of their own,
/// which has colors as close as possible, or all of them. Measured: see Benchmarks/results/animations.md.
static const double error_of_byte = 1000, error_of_exact_byte = 100;

typedef struct gif_encoder {
  ccodecs_encoder base;
  ccodecs_canvases canvases;
  ccodecs_palette_histogram *histogram;
  ccodecs_palette palette;        ///< Of the frame that is compressed.
  ccodecs_palette_mapper *mapper; ///< Maps to the palette; NULL before the first frame.
  ccodecs_palette global;
  double global_error;   ///< The mean squared error of the global palette for the first frame.
  bool is_global;        ///< The palette is the global one.
  bool has_all_colors;   ///< The global palette has every color of the frame that was counted last.
  bool was_exact;        ///< The last frame had the global palette, which had all of its colors.
  ccodecs_bytes waiting; ///< Frames that wait for the global palette.
  uint8_t *indices;      ///< A row.
  uint8_t *kept;         ///< A row of the transparent index.
  gif_lzw lzw;
  ccodecs_bytes compressed; ///< The pending frame, from its descriptor on.
  bool has_begun;           ///< The header, with the global palette, was written.
  uint8_t disposal;         ///< Of the pending frame.
  int32_t transparent;      ///< The transparent index of the pending frame; -1 for none.
  double excess;            ///< Hundredths of a second by which the frames so far are too short in the file.
} gif_encoder;

// MARK: Palettes

static const uint8_t *pixel_at(const gif_encoder *e, const uint8_t *canvas, uint32_t x, uint32_t y) {
  return canvas + y * e->canvases.row_bytes + x * e->canvases.pixel_bytes;
}

/// Counts the colors of a part of a canvas, except pixels that equal those of `before` if it is not NULL.
static void count_colors(gif_encoder *e, const uint8_t *canvas, const uint8_t *before, ccodecs_rectangle part) {
  ccodecs_palette_histogram_clear(e->histogram);
  for (uint32_t y = part.top; y < part.top + part.height; y++) {
    ccodecs_palette_histogram_add_changes(
        e->histogram, pixel_at(e, canvas, part.left, y), before == NULL ? NULL : pixel_at(e, before, part.left, y),
        (uint32_t)e->canvases.pixel_bytes, part.width);
  }
}

static uint32_t max_colors(const gif_encoder *e) {
  const uint32_t count = e->base.options.gif.color_count;
  return count == 0 ? CCODECS_PALETTE_MAX_COLORS : count;
}

/// Makes a palette that of the frame, which maps to it.
static ccodecs_status use_palette(gif_encoder *e, const ccodecs_palette *palette) {
  if (e->mapper == NULL) {
    const uint32_t width = e->base.options.width;
    CCODECS_TRY(ccodecs_palette_mapper_create(palette, width, e->base.budget, &e->mapper));
  } else {
    ccodecs_palette_mapper_set(e->mapper, palette);
  }
  e->palette = *palette;
  return CCODECS_OK;
}

/// Chooses the global palette for the counted colors of the first frame.
static ccodecs_status choose_global(gif_encoder *e) {
  ccodecs_status status = ccodecs_palette_build(e->histogram, max_colors(e), &e->global);
  status = status == CCODECS_OK ? use_palette(e, &e->global) : status;
  e->is_global = true;
  e->global_error = status == CCODECS_OK ? ccodecs_palette_mapper_error(e->mapper, e->histogram, INFINITY) : 0;
  return status;
}

/// Returns the number of bits of indices into so many colors.
static uint32_t bits_of(uint32_t count) {
  uint32_t bits = 1;
  while (1u << bits < count) {
    bits++;
  }
  return bits;
}

/// Returns the mean squared error up to which the global palette represents the counted colors about as well as those
/// of the first frame.
static double max_fine_error(const gif_encoder *e) {
  return e->global.is_exact ? 0 : fmax(fine_error, 2 * e->global_error);
}

/// Returns the sum of squared errors of the global palette for the counted colors, whose number of pixels is returned,
/// too, up to which they are not worth the bytes of another palette.
static double max_worth_squares(const gif_encoder *e, double *pixel_count) {
  uint64_t pixels;
  const uint32_t colors = ccodecs_palette_color_count(e->histogram, &pixels) + 1; // one is transparent
  const bool is_exact = colors <= max_colors(e);
  const uint32_t table = 3u << bits_of(is_exact ? colors : max_colors(e));
  *pixel_count = (double)pixels;
  return (is_exact ? error_of_exact_byte : error_of_byte) * table;
}

/// Adds colors to the global palette, if it is not written yet and has room.
static ccodecs_status grow_global(gif_encoder *e) {
  const uint32_t count = e->global.count;
  if (e->has_begun || count == max_colors(e)) {
    return CCODECS_OK;
  }
  const ccodecs_status status = ccodecs_palette_extend(e->histogram, max_colors(e), (uint32_t)fine_error, &e->global);
  return status == CCODECS_OK && e->global.count > count ? use_palette(e, &e->global) : status;
}

/// Chooses a palette for a part of a canvas.
static ccodecs_status settle_palette(
    gif_encoder *e, const uint8_t *canvas, const uint8_t *before, ccodecs_rectangle part) {
  count_colors(e, canvas, before, part);
  if (e->mapper == NULL) {
    const ccodecs_status status = choose_global(e);
    e->has_all_colors = e->global.is_exact;
    return status;
  }
  ccodecs_status status = e->is_global ? CCODECS_OK : use_palette(e, &e->global);
  e->is_global = true;
  double pixel_count;
  const double squares = max_worth_squares(e, &pixel_count);
  // A larger error need not be known. The last digits do not matter.
  const double maximum = fmax(max_fine_error(e), squares / pixel_count) * (1 + 1e-9);
  double error = ccodecs_palette_mapper_error(e->mapper, e->histogram, maximum);
  e->has_all_colors = e->global.is_exact && error == 0;
  if (status != CCODECS_OK || error <= max_fine_error(e)) {
    return status;
  }
  const uint32_t count = e->global.count;
  status = grow_global(e);
  error = e->global.count > count ? ccodecs_palette_mapper_error(e->mapper, e->histogram, maximum) : error;
  if (status != CCODECS_OK || error * pixel_count <= squares) {
    return status;
  }
  ccodecs_palette own;
  e->is_global = false;
  status = ccodecs_palette_build(e->histogram, max_colors(e), &own);
  return status == CCODECS_OK ? use_palette(e, &own) : status;
}

// MARK: Frames

/// Returns the number of bits of a palette's indices.
static uint32_t index_bits(const ccodecs_palette *palette) {
  return bits_of(palette->count);
}

static bool append(gif_encoder *e, ccodecs_bytes *bytes, const uint8_t *source, size_t count) {
  return ccodecs_bytes_append(bytes, source, count, e->base.budget);
}

/// Appends a color table, whose size is a power of two.
static bool append_table(gif_encoder *e, ccodecs_bytes *bytes, const ccodecs_palette *palette) {
  uint8_t table[3 * CCODECS_PALETTE_MAX_COLORS] = {0};
  for (uint32_t i = 0; i < palette->count; i++) {
    memcpy(table + 3 * i, palette->colors[i], 3);
  }
  return append(e, bytes, table, (size_t)3 << index_bits(palette));
}

static bool append_descriptor(gif_encoder *e, ccodecs_rectangle part) {
  uint8_t descriptor[10] = {0x2C};
  ccodecs_put_le16(descriptor + 1, part.left);
  ccodecs_put_le16(descriptor + 3, part.top);
  ccodecs_put_le16(descriptor + 5, part.width);
  ccodecs_put_le16(descriptor + 7, part.height);
  descriptor[9] = e->is_global ? 0 : (uint8_t)(0x80 | (index_bits(&e->palette) - 1));
  return append(e, &e->compressed, descriptor, sizeof descriptor) &&
         (e->is_global || append_table(e, &e->compressed, &e->palette));
}

/// Maps a part of a canvas to the palette and compresses it. If `is_exact`, stops at a row with a color that the
/// palette does not have. Returns CCODECS_OK if all rows were compressed, CCODECS_UNSUPPORTED if not, or
/// CCODECS_NO_MEMORY.
static ccodecs_status compress_rows(
    gif_encoder *e, const uint8_t *canvas, const uint8_t *before, ccodecs_rectangle part, bool is_exact) {
  ccodecs_bytes_take(&e->compressed, e->compressed.count);
  if (!append_descriptor(e, part)) {
    return CCODECS_NO_MEMORY;
  }
  const uint32_t bits = index_bits(&e->palette), channels = (uint32_t)e->canvases.pixel_bytes;
  ccodecs_gif_lzw_begin(&e->lzw, bits < 2 ? 2 : bits, &e->compressed, e->base.budget);
  ccodecs_palette_mapper_begin(e->mapper);
  memset(e->kept, e->palette.transparent < 0 ? 0 : e->palette.transparent, part.width);
  for (uint32_t y = part.top; y < part.top + part.height; y++) {
    ccodecs_palette_previous previous = {.indices = e->kept};
    if (before != NULL) {
      previous.pixels = pixel_at(e, before, part.left, y);
    }
    const uint8_t *row = pixel_at(e, canvas, part.left, y);
    const ccodecs_palette_previous *kept = before == NULL ? NULL : &previous;
    if (!is_exact) {
      ccodecs_palette_mapper_map(e->mapper, row, channels, part.width, kept, e->indices);
    } else if (!ccodecs_palette_mapper_map_exact(e->mapper, row, channels, part.width, kept, e->indices)) {
      return CCODECS_UNSUPPORTED;
    }
    ccodecs_gif_lzw_write(&e->lzw, e->indices, part.width);
  }
  return ccodecs_gif_lzw_end(&e->lzw) ? CCODECS_OK : CCODECS_NO_MEMORY;
}

/// Compresses a part of a canvas, which becomes the pending frame. Pixels that equal those of `before` are transparent,
/// if it is not NULL.
///
/// If the global palette had all colors of the frame before, it is likely to have all of this one. Then the palette is
/// settled without counting them.
static ccodecs_status compress_part(
    gif_encoder *e, const uint8_t *canvas, const uint8_t *before, ccodecs_rectangle part) {
  ccodecs_status status = CCODECS_UNSUPPORTED;
  if (e->was_exact) {
    status = compress_rows(e, canvas, before, part, true);
  }
  if (status == CCODECS_UNSUPPORTED) {
    status = settle_palette(e, canvas, before, part);
    status = status == CCODECS_OK ? compress_rows(e, canvas, before, part, false) : status;
    e->was_exact = e->is_global && e->has_all_colors;
  }
  e->transparent = e->palette.transparent;
  e->disposal = DISPOSAL_KEEP;
  return status;
}

/// Writes what precedes the frames, and the frames that waited for it. Source: GIF89a, and Netscape's application
/// extension.
static bool write_beginning(gif_encoder *e, bool is_animation) {
  const ccodecs_encode_options *options = &e->base.options;
  const uint32_t plays = e->base.pending.play_count;
  uint8_t screen[13] = {'G', 'I', 'F', '8', '9', 'a'};
  ccodecs_put_le16(screen + 6, options->width);
  ccodecs_put_le16(screen + 8, options->height);
  screen[10] = (uint8_t)(0x80 | 0x70 | (index_bits(&e->global) - 1));
  uint8_t loop[19] = "\x21\xFF\x0BNETSCAPE2.0\x03\x01";
  const uint32_t repeats = plays == 0 ? 0 : plays - 1;
  ccodecs_put_le16(loop + 16, repeats < UINT16_MAX ? repeats : UINT16_MAX);
  e->has_begun = true;
  const bool has_room = append(e, &e->base.output, screen, sizeof screen) &&
                        append_table(e, &e->base.output, &e->global) &&
                        (!is_animation || plays == 1 || append(e, &e->base.output, loop, sizeof loop)) &&
                        append(e, &e->base.output, ccodecs_bytes_start(&e->waiting), e->waiting.count);
  ccodecs_bytes_free(&e->waiting, e->base.budget);
  return has_room;
}

/// Returns whether the pending frame is to wait for the global palette.
static bool must_wait(const gif_encoder *e, bool is_last) {
  return !is_last && !e->has_begun && e->global.count < max_colors(e) &&
         e->waiting.count + e->compressed.count <= max_waiting;
}

/// Takes as much of a duration as a frame can last.
static uint32_t take_delay(uint64_t *left) {
  const uint32_t delay = *left < max_delay ? (uint32_t)*left : max_delay;
  *left -= delay;
  return delay;
}

/// Appends the pending frame.
static bool append_frame(gif_encoder *e, ccodecs_bytes *output, uint32_t delay, uint8_t disposal) {
  uint8_t control[8] = {0x21, 0xF9, 4, (uint8_t)(disposal << 2 | (e->transparent >= 0))};
  ccodecs_put_le16(control + 4, delay);
  control[6] = (uint8_t)(e->transparent >= 0 ? e->transparent : 0);
  e->base.stored_frames++;
  return append(e, output, control, sizeof control) &&
         append(e, output, ccodecs_bytes_start(&e->compressed), e->compressed.count);
}

/// Appends a frame that changes nothing: one pixel, whose index 0 is transparent.
static bool append_pause(gif_encoder *e, ccodecs_bytes *output, uint32_t delay) {
  uint8_t frame[23] = {0x21, 0xF9, 4, DISPOSAL_KEEP << 2 | 1, [8] = 0x2C, [13] = 1, [15] = 1};
  static const uint8_t codes[5] = {2, 2, 0x44, 1, 0}; // of three bits: clear, 0, end
  ccodecs_put_le16(frame + 4, delay);
  memcpy(frame + 18, codes, sizeof codes);
  e->base.stored_frames++;
  return append(e, output, frame, sizeof frame);
}

/// Writes the pending frame. One that lasts longer than the format can specify is followed by frames that change
/// nothing, and if it is cleared, by itself, as only the last one clears its part.
static ccodecs_status flush_pending(gif_encoder *e, bool is_animation, bool is_last) {
  const bool is_waiting = must_wait(e, is_last);
  if (!is_waiting && !e->has_begun && !write_beginning(e, is_animation)) {
    return CCODECS_NO_MEMORY;
  }
  ccodecs_bytes *output = is_waiting ? &e->waiting : &e->base.output;
  uint64_t left = is_animation ? ccodecs_frame_delay(&e->base.pending, 100, &e->excess) : 0;
  const uint32_t first = take_delay(&left);
  bool has_room = append_frame(e, output, first, left > 0 ? DISPOSAL_KEEP : e->disposal);
  while (has_room && left > 0) {
    const uint32_t delay = take_delay(&left);
    has_room = left == 0 && e->disposal == DISPOSAL_CLEAR ? append_frame(e, output, delay, DISPOSAL_CLEAR)
                                                          : append_pause(e, output, delay);
  }
  e->base.has_pending = false;
  return has_room ? CCODECS_OK : CCODECS_NO_MEMORY;
}

/// Spools the output if the result is written at its end.
static ccodecs_status spool_output(gif_encoder *e) {
  if (!e->base.is_spooling) {
    return CCODECS_OK;
  }
  ccodecs_bytes *output = &e->base.output;
  const ccodecs_status status = ccodecs_encoder_spool(&e->base, ccodecs_bytes_start(output), output->count);
  ccodecs_bytes_take(output, output->count);
  return status;
}

/// Returns whether a pixel of the current frame is transparent that was not in the previous one.
static bool needs_clearing(const gif_encoder *e, ccodecs_rectangle part) {
  uint32_t cleared = 0; // the highest bit: alpha is below 128 now, and was not before
  for (uint32_t y = part.top; y < part.top + part.height && e->canvases.pixel_bytes == 4 && cleared >> 31 == 0; y++) {
    const uint8_t *now = pixel_at(e, e->canvases.current, part.left, y);
    const uint8_t *before = pixel_at(e, e->canvases.previous, part.left, y);
    for (size_t x = 0; x < part.width; x++) {
      cleared |= ~ccodecs_le32(now + 4 * x) & ccodecs_le32(before + 4 * x);
    }
  }
  return cleared >> 31 != 0;
}

/// Returns how many of `count` pixels are equal.
static inline __attribute__((always_inline)) uint32_t count_equal(
    const uint8_t *a, const uint8_t *b, uint32_t count, size_t pixel_bytes) {
  uint32_t equal = 0;
  for (size_t x = 0; x < count; x++) {
    equal += memcmp(a + x * pixel_bytes, b + x * pixel_bytes, pixel_bytes) == 0 ? 1 : 0;
  }
  return equal;
}

/// Returns whether so few pixels of a part are unchanged that none of them is made transparent.
static bool is_scattered(const gif_encoder *e, ccodecs_rectangle part) {
  const size_t size = e->canvases.pixel_bytes;
  const uint64_t pixels = (uint64_t)part.width * part.height;
  uint64_t count = 0;
  for (uint32_t y = part.top; y < part.top + part.height && count * KEPT_SHARE < pixels; y++) {
    const uint8_t *now = pixel_at(e, e->canvases.current, part.left, y);
    const uint8_t *before = pixel_at(e, e->canvases.previous, part.left, y);
    // Each size is a loop of its own, so that pixels are compared as numbers.
    count += size == 4   ? count_equal(now, before, part.width, 4)
             : size == 3 ? count_equal(now, before, part.width, 3)
                         : count_equal(now, before, part.width, 1);
  }
  return count * KEPT_SHARE < pixels;
}

/// Writes the pending frame and compresses the current one, of which `part` changed.
static ccodecs_status advance(gif_encoder *e, ccodecs_rectangle part) {
  const ccodecs_rectangle whole = {.width = e->base.options.width, .height = e->base.options.height};
  const bool is_cleared = needs_clearing(e, part);
  if (is_cleared) {
    CCODECS_TRY(compress_part(e, e->canvases.previous, NULL, whole));
    e->disposal = DISPOSAL_CLEAR;
  }
  CCODECS_TRY(flush_pending(e, true, false));
  if (is_cleared) {
    return compress_part(e, e->canvases.current, NULL, whole);
  }
  return compress_part(e, e->canvases.current, is_scattered(e, part) ? NULL : e->canvases.previous, part);
}

static ccodecs_status begin_frame(ccodecs_encoder *base) {
  ((gif_encoder *)base)->canvases.written = 0;
  return CCODECS_OK;
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  ccodecs_canvases_write(&((gif_encoder *)base)->canvases, rows);
  return CCODECS_OK;
}

static ccodecs_status end_frame(ccodecs_encoder *base) {
  gif_encoder *e = (gif_encoder *)base;
  const ccodecs_rectangle whole = {.width = base->options.width, .height = base->options.height};
  ccodecs_status status;
  if (e->base.has_pending) {
    ccodecs_rectangle part = ccodecs_canvases_changes(&e->canvases, &base->options);
    if (part.width == 0 && ccodecs_encoder_extend_frame(base, &base->frame)) {
      return CCODECS_OK;
    }
    part.width = part.width > 0 ? part.width : 1;
    part.height = part.height > 0 ? part.height : 1;
    status = advance(e, part);
  } else {
    status = compress_part(e, e->canvases.current, NULL, whole);
  }
  e->base.pending = base->frame;
  e->base.has_pending = true;
  ccodecs_canvases_advance(&e->canvases, false);
  return status == CCODECS_OK ? spool_output(e) : status;
}

/// Frees what only frames need.
static void free_frames(gif_encoder *e) {
  ccodecs_palette_mapper_destroy(e->mapper);
  ccodecs_palette_histogram_destroy(e->histogram);
  ccodecs_canvases_destroy(&e->canvases, e->base.budget);
  e->mapper = NULL;
  e->histogram = NULL;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  gif_encoder *e = (gif_encoder *)base;
  ccodecs_status status = flush_pending(e, base->is_animation, true);
  const uint8_t trailer = 0x3B;
  status = status == CCODECS_OK && !append(e, &base->output, &trailer, 1) ? CCODECS_NO_MEMORY : status;
  free_frames(e);
  status = status == CCODECS_OK ? spool_output(e) : status;
  return status == CCODECS_OK && base->is_spooling ? ccodecs_encoder_end_spool(base) : status;
}

// MARK: Lifetime

static void destroy(ccodecs_encoder *base) {
  gif_encoder *e = (gif_encoder *)base;
  ccodecs_budget *budget = base->budget;
  free_frames(e);
  ccodecs_free(budget, e->indices);
  ccodecs_free(budget, e->kept);
  ccodecs_bytes_free(&e->compressed, budget);
  ccodecs_bytes_free(&e->waiting, budget);
}

/// Returns the maximum size of a frame: codes of 12 bits, one for each index, and clear codes.
static uint64_t max_frame_bytes(const ccodecs_encode_options *options) {
  const uint64_t pixels = (uint64_t)options->width * options->height;
  return pixels * 3 / 2 + pixels / 100 + 2048;
}

static uint64_t max_bytes(const ccodecs_encode_options *options) {
  return max_frame_bytes(options) + 1024;
}

static uint64_t estimate(const ccodecs_encode_options *options) {
  // A compressed frame is pending while the one before is in the output, both in blocks that grow by half.
  const uint64_t frames =
      options->gif.is_spooled ? ccodecs_animation_estimate(options) : ccodecs_canvases_estimate(options);
  return sizeof(gif_encoder) + frames + CCODECS_PALETTE_HISTOGRAM_BYTES + CCODECS_PALETTE_BUILD_BYTES +
         CCODECS_PALETTE_MAPPER_BYTES + (uint64_t)options->width * (CCODECS_PALETTE_MAPPER_PIXEL_BYTES + 2) +
         max_frame_bytes(options) * 5 + 3 * max_waiting + 10 * 128;
}

bool ccodecs_gif_options_are_valid(const ccodecs_gif_options *options) {
  return options->color_count == 0 || (options->color_count >= 2 && options->color_count <= CCODECS_PALETTE_MAX_COLORS);
}

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  gif_encoder *e = (gif_encoder *)encoder;
  e->transparent = -1;
  e->indices = ccodecs_allocate(budget, options->width);
  e->kept = ccodecs_allocate(budget, options->width);
  // Frames that store only what changed need a transparent index.
  const ccodecs_palette_transparency transparency =
      options->has_frames ? CCODECS_PALETTE_RESERVED : CCODECS_PALETTE_BINARY;
  if (e->indices != NULL && e->kept != NULL && ccodecs_canvases_create(&e->canvases, &e->base) &&
      ccodecs_palette_histogram_create(transparency, budget, &e->histogram) == CCODECS_OK) {
    if (options->has_frames && options->gif.is_spooled) {
      ccodecs_encoder_begin_spool(&e->base);
    }
    return true;
  }
  return false;
}

const ccodecs_encoder_methods ccodecs_gif_encoder = {
    .byte_count = sizeof(gif_encoder),
    .create = create,
    .estimate = estimate,
    .max_bytes = max_bytes,
    .begin_frame = begin_frame,
    .write = write,
    .end_frame = end_frame,
    .finish = finish,
    .destroy = destroy};
