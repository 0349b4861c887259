// The common part of all decoders: order of calls, sticky failures, limits, and gray rows for missing ones.

#include "decoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ccodecs_decoder *ccodecs_decoder_allocate(
    const ccodecs_decoder_methods *methods, ccodecs_format format, const ccodecs_limits *limits,
    ccodecs_budget *budget) {
  ccodecs_decoder *decoder = ccodecs_allocate(budget, methods->byte_count);
  if (decoder == NULL) {
    return NULL;
  }
  memset(decoder, 0, methods->byte_count);
  decoder->methods = methods;
  decoder->budget = budget;
  decoder->limits = *limits;
  decoder->header.format = format;
  decoder->header.orientation = 1;
  decoder->header.bit_depth = 8;
  decoder->header.frame_count = 1;
  decoder->header.play_count = 1;
  decoder->selected_frames = 1;
  if (methods->init != NULL) {
    methods->init(decoder);
  }
  return decoder;
}

void ccodecs_decoder_describe_packed(const ccodecs_decoder *decoder, uint32_t channels, ccodecs_layout *layout) {
  const bool is_16bit = decoder->header.is_16bit;
  layout->pixels = channels == 1   ? is_16bit ? CCODECS_PIXELS_GRAY16 : CCODECS_PIXELS_GRAY8
                   : channels == 3 ? is_16bit ? CCODECS_PIXELS_RGB16 : CCODECS_PIXELS_RGB8
                   : is_16bit      ? CCODECS_PIXELS_RGBA16
                                   : CCODECS_PIXELS_RGBA8;
  layout->plane_count = 1;
  layout->planes[0] = (ccodecs_plane){
      .width = decoder->header.width,
      .height = decoder->header.height,
      .channels = (uint8_t)channels,
      .horizontal_scale = 1,
      .vertical_scale = 1,
  };
}

uint32_t ccodecs_decoder_strip_rows(size_t row_bytes) {
  const size_t rows = 64 * 1024 / row_bytes;
  return rows < 1 ? 1 : rows > 64 ? 64 : (uint32_t)rows;
}

ccodecs_status ccodecs_decoder_give_bitmap(
    const ccodecs_decoder *decoder, const uint8_t *bitmap, size_t row_stride, ccodecs_rows *rows) {
  const uint32_t left = decoder->rows_left[0];
  rows->planes[0] = bitmap + (decoder->header.height - left) * row_stride;
  rows->row_strides[0] = row_stride;
  rows->row_counts[0] = left < CCODECS_BITMAP_STRIP_ROWS ? left : CCODECS_BITMAP_STRIP_ROWS;
  return left > 0 ? CCODECS_ROWS_READY : CCODECS_DONE;
}

ccodecs_status ccodecs_decoder_fail(ccodecs_decoder *decoder, ccodecs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(decoder->message, sizeof decoder->message, format, arguments);
  va_end(arguments);
  decoder->failure = status;
  return status;
}

ccodecs_status ccodecs_decoder_charge(ccodecs_decoder *decoder, uint64_t byte_count) {
  if (byte_count > SIZE_MAX || !ccodecs_budget_charge(decoder->budget, (size_t)byte_count)) {
    return ccodecs_decoder_fail(
        decoder, CCODECS_NO_MEMORY, "decoding needs %llu bytes of memory", (unsigned long long)byte_count);
  }
  decoder->charged += (size_t)byte_count;
  return CCODECS_OK;
}

ccodecs_status ccodecs_decoder_exceed(ccodecs_decoder *decoder, const char *things, ccodecs_excess excess) {
  decoder->excess = excess;
  return ccodecs_decoder_fail(
      decoder, CCODECS_LIMIT, "the image has %llu %s, above the limit %s of %llu", (unsigned long long)excess.value,
      things, excess.limit_name, (unsigned long long)excess.limit);
}

bool ccodecs_decoder_tolerate(ccodecs_decoder *decoder, ccodecs_status failure, uint32_t row) {
  if (failure != CCODECS_CORRUPT || !decoder->tolerates_damage) {
    return false;
  }
  ccodecs_header *header = &decoder->header;
  const bool is_first = (header->warnings & CCODECS_WARNING_TOLERATED) == 0;
  row = row < header->height ? row : header->height - 1;
  header->damaged_row = is_first || row < header->damaged_row ? row : header->damaged_row;
  header->warnings |= CCODECS_WARNING_TOLERATED;
  decoder->failure = CCODECS_OK;
  return true;
}

bool ccodecs_decoder_tolerate_without_loss(ccodecs_decoder *decoder, ccodecs_status failure) {
  if (failure != CCODECS_CORRUPT || !decoder->tolerates_damage) {
    return false;
  }
  decoder->header.warnings |= CCODECS_WARNING_NO_LOSS;
  decoder->failure = CCODECS_OK;
  return true;
}

void ccodecs_decoder_note_damaged_header(ccodecs_decoder *decoder, const char *reason) {
  snprintf(decoder->message, sizeof decoder->message, "%s", reason);
  decoder->header.is_damaged = true;
}

ccodecs_status ccodecs_decoder_check_limits(ccodecs_decoder *decoder) {
  const ccodecs_header *header = &decoder->header;
  const uint64_t pixels = (uint64_t)header->width * header->height;
  const bool is_buffered = header->buffers_bitmap;
  const uint64_t limit = is_buffered ? decoder->limits.max_whole_input_pixels : decoder->limits.max_pixels;
  if (limit == 0 || pixels <= limit) {
    return CCODECS_OK;
  }
  decoder->excess = (ccodecs_excess){is_buffered ? "max_buffered_pixels" : "max_pixels", limit, pixels};
  return ccodecs_decoder_fail(
      decoder, CCODECS_LIMIT, "%ux%u has %llu pixels, above the limit %s of %llu", header->width, header->height,
      (unsigned long long)pixels, decoder->excess.limit_name, (unsigned long long)limit);
}

ccodecs_status ccodecs_decoder_count_frame(ccodecs_decoder *decoder, uint64_t pixels) {
  const ccodecs_limits *limits = &decoder->limits;
  const uint64_t canvas = (uint64_t)decoder->header.width * decoder->header.height;
  decoder->counted_frames++;
  decoder->frame_pixels += pixels > canvas ? pixels : canvas;
  if (limits->max_frames > 0 && decoder->counted_frames > limits->max_frames) {
    return ccodecs_decoder_exceed(
        decoder, "frames", (ccodecs_excess){"max_animation_frames", limits->max_frames, decoder->counted_frames});
  }
  if (limits->max_frame_pixels > 0 && decoder->frame_pixels > limits->max_frame_pixels) {
    return ccodecs_decoder_exceed(
        decoder, "pixels in its frames",
        (ccodecs_excess){"max_animation_pixels", limits->max_frame_pixels, decoder->frame_pixels});
  }
  return CCODECS_OK;
}

bool ccodecs_decoder_selects_all(const ccodecs_decoder *decoder) {
  return decoder->header.has_frames && decoder->first_frame == 0 && decoder->selected_frames == 0;
}

ccodecs_status ccodecs_decoder_choose_frame(ccodecs_decoder *decoder, int64_t first, int64_t count) {
  const int64_t index = first < 0 ? first + count : first;
  if (index < 0 || index >= count) {
    decoder->first_frame = (uint32_t)(first < 0 ? -first : first);
    return ccodecs_decoder_lack_frame(decoder);
  }
  decoder->first_frame = (uint32_t)index;
  return CCODECS_OK;
}

ccodecs_status ccodecs_decoder_choose_page(ccodecs_decoder *decoder, int64_t first) {
  CCODECS_TRY(ccodecs_decoder_choose_frame(decoder, first, decoder->header.frame_count));
  decoder->selected_frames = 1;
  return CCODECS_OK;
}

ccodecs_status ccodecs_decoder_refuse_selection(ccodecs_decoder *decoder) {
  return ccodecs_decoder_fail(
      decoder, CCODECS_UNSUPPORTED, "frames other than the first are not decoded of this format");
}

ccodecs_status ccodecs_decoder_lack_frame(ccodecs_decoder *decoder) {
  return ccodecs_decoder_fail(
      decoder, CCODECS_NO_FRAME, "frame_index is %u, but the image has %u frame%s", decoder->first_frame,
      decoder->header.frame_count, decoder->header.frame_count == 1 ? "" : "s");
}

/// Returns CCODECS_OK if the decoder is in `state`; otherwise the earlier failure, or CCODECS_MISUSE.
static ccodecs_status enter(ccodecs_decoder *decoder, ccodecs_decoder_state state) {
  CCODECS_TRY(decoder->failure);
  if (decoder->state != state) {
    return ccodecs_decoder_fail(decoder, CCODECS_MISUSE, "a decoder function was called out of order");
  }
  return CCODECS_OK;
}

/// Records a failure for which the concrete decoder gave no reason.
static ccodecs_status leave(ccodecs_decoder *decoder, ccodecs_status status) {
  if (status >= CCODECS_CORRUPT && decoder->failure == CCODECS_OK) {
    const char *reason = status == CCODECS_NO_MEMORY   ? "memory is exhausted"
                         : status == CCODECS_TRUNCATED ? "the input ends before the image"
                                                       : "the image cannot be decoded";
    return ccodecs_decoder_fail(decoder, status, "%s", reason);
  }
  return status;
}

// MARK: Cost in proportion to the file size

/// The number of pixels allowed for a file of any size, and the additional pixels allowed per byte. Without this limit,
/// a tiny file could demand a lot of work: a hundred million pixels cost about a second.
static const uint64_t free_pixels = 10000000;
static const uint64_t pixels_per_byte = 49152;

bool ccodecs_decoder_is_in_proportion(uint64_t pixels, uint64_t bytes) {
  return pixels <= free_pixels || (pixels - free_pixels) / pixels_per_byte <= bytes;
}

void ccodecs_decoder_note_disproportion(ccodecs_decoder *decoder, uint64_t pixels, uint64_t bytes) {
  const uint64_t per_byte = bytes == 0 ? pixels : (pixels - free_pixels + bytes - 1) / bytes;
  decoder->excess = (ccodecs_excess){"max_pixels_per_byte", pixels_per_byte, per_byte};
}

/// Fails with CCODECS_LIMIT if `bytes` are too few for `pixels`.
static ccodecs_status check_proportion(ccodecs_decoder *decoder, uint64_t pixels, uint64_t bytes) {
  if (ccodecs_decoder_is_in_proportion(pixels, bytes)) {
    return CCODECS_OK;
  }
  ccodecs_decoder_note_disproportion(decoder, pixels, bytes);
  return ccodecs_decoder_fail(
      decoder, CCODECS_LIMIT,
      "%llu bytes contain %llu pixels, above the limit max_pixels_per_byte of %llu beyond the first %llu",
      (unsigned long long)bytes, (unsigned long long)pixels, (unsigned long long)pixels_per_byte,
      (unsigned long long)free_pixels);
}

/// Returns the cost of decoding the whole image, in pixels.
static uint64_t all_pixels(const ccodecs_decoder *decoder) {
  const uint64_t pixels = (uint64_t)decoder->header.width * decoder->header.height;
  return decoder->work_pixels > pixels ? decoder->work_pixels : pixels;
}

/// Checks the proportion before decoding if the size of the file is known.
static ccodecs_status check_whole_proportion(ccodecs_decoder *decoder) {
  return decoder->is_whole ? check_proportion(decoder, all_pixels(decoder), decoder->taken_bytes + decoder->rest_bytes)
                           : CCODECS_OK;
}

/// Checks the decoded rows against the bytes consumed so far. Frames after the first have limits of their own.
static ccodecs_status check_rows_proportion(ccodecs_decoder *decoder) {
  if (decoder->counted_frames > 1) {
    return CCODECS_OK;
  }
  const uint64_t height = decoder->layout.planes[0].height;
  const double share = (double)(height - decoder->rows_left[0]) / (double)height;
  return check_proportion(decoder, (uint64_t)((double)all_pixels(decoder) * share), decoder->taken_bytes);
}

ccodecs_status ccodecs_decoder_read_header(ccodecs_decoder *decoder, ccodecs_input *input) {
  CCODECS_TRY(enter(decoder, CCODECS_STATE_HEADER));
  const size_t count = input->count;
  ccodecs_status status = decoder->methods->read_header(decoder, input);
  decoder->taken_bytes += count - input->count;
  if (status == CCODECS_OK) {
    status = ccodecs_decoder_check_limits(decoder);
  }
  if (status == CCODECS_OK) {
    status = ccodecs_decoder_settle_profile(decoder);
  }
  if (status == CCODECS_OK) {
    decoder->state = CCODECS_STATE_READY;
    decoder->is_whole = input->is_last;
    decoder->rest_bytes = input->count;
  }
  return leave(decoder, status);
}

const ccodecs_header *ccodecs_decoder_header(const ccodecs_decoder *decoder) {
  return &decoder->header;
}

ccodecs_status ccodecs_decoder_select_frames(ccodecs_decoder *decoder, int64_t first, uint32_t count) {
  CCODECS_TRY(enter(decoder, CCODECS_STATE_READY));
  decoder->first_frame = first > 0 && first <= UINT32_MAX ? (uint32_t)first : 0;
  decoder->selected_frames = count;
  if (first > UINT32_MAX || first < -(int64_t)UINT32_MAX) {
    return ccodecs_decoder_fail(decoder, CCODECS_MISUSE, "no image has so many frames");
  }
  if (decoder->methods->select_frames == NULL) {
    const bool is_only = first == 0 && (count == 1 || decoder->header.frame_count == 1);
    return is_only ? CCODECS_OK : ccodecs_decoder_refuse_selection(decoder);
  }
  ccodecs_status status = decoder->methods->select_frames(decoder, first, count);
  status = status == CCODECS_OK ? ccodecs_decoder_check_limits(decoder) : status;
  return leave(
      decoder, status == CCODECS_OK && decoder->header.has_pages ? ccodecs_decoder_settle_profile(decoder) : status);
}

ccodecs_status ccodecs_decoder_buffer_input(ccodecs_decoder *decoder) {
  CCODECS_TRY(enter(decoder, CCODECS_STATE_READY));
  if (!decoder->header.can_buffer_input) {
    return ccodecs_decoder_fail(decoder, CCODECS_MISUSE, "the decoder cannot buffer the file");
  }
  decoder->must_buffer_input = true;
  decoder->header.can_buffer_input = false;
  decoder->header.warnings = 0;
  decoder->first_frame = 0;
  decoder->selected_frames = 1;
  ccodecs_bytes_free(&decoder->profile, decoder->budget);
  decoder->state = CCODECS_STATE_HEADER;
  return CCODECS_OK;
}

void ccodecs_decoder_set_orientation(ccodecs_decoder *decoder, uint8_t orientation) {
  if (orientation >= 1 && orientation <= 8) {
    decoder->header.orientation = orientation;
  }
}

uint8_t ccodecs_decoder_scales(const ccodecs_decoder *decoder) {
  return decoder->methods->scales == NULL ? 1u << 7 : decoder->methods->scales(decoder);
}

static bool options_are_valid(const ccodecs_decoder *decoder, const ccodecs_decode_options *options) {
  return options->scale_eighths >= 1 && options->scale_eighths <= 8 &&
         (ccodecs_decoder_scales(decoder) & 1u << (options->scale_eighths - 1)) != 0;
}

/// Returns the size in bytes of the gray row that replaces missing rows.
static uint64_t fill_bytes(const ccodecs_decoder *decoder) {
  return (uint64_t)decoder->header.width * (decoder->header.is_16bit ? 8 : 4) / 8 * 8 + 64;
}

ccodecs_status ccodecs_decoder_estimate(
    const ccodecs_decoder *decoder, const ccodecs_decode_options *options, uint64_t *byte_count) {
  *byte_count = 0;
  CCODECS_TRY(decoder->failure);
  if (decoder->state != CCODECS_STATE_READY || !options_are_valid(decoder, options)) {
    return CCODECS_MISUSE;
  }
  const ccodecs_status status = decoder->methods->estimate(decoder, options, byte_count);
  *byte_count += decoder->budget->used; // already charged
  *byte_count += options->tolerates_truncation || options->tolerates_damage ? fill_bytes(decoder) + 128 : 0;
  *byte_count =
      *byte_count > decoder->budget->peak ? *byte_count : decoder->budget->peak; // the header may have needed more
  return status;
}

/// Fails if the header is damaged and damage is not tolerated; the reason was recorded before.
static ccodecs_status check_header(ccodecs_decoder *decoder) {
  if (!decoder->header.is_damaged) {
    return CCODECS_OK;
  }
  decoder->failure = CCODECS_CORRUPT;
  return ccodecs_decoder_tolerate_without_loss(decoder, CCODECS_CORRUPT) ? CCODECS_OK : CCODECS_CORRUPT;
}

/// Fails if the size of the file is known and too small for the image that its header specifies.
static ccodecs_status check_size(ccodecs_decoder *decoder) {
  const bool is_known = decoder->is_whole && decoder->methods->min_bytes != NULL;
  const uint64_t minimum = is_known ? decoder->methods->min_bytes(decoder) : 0;
  if (minimum <= decoder->rest_bytes || decoder->tolerates_truncation) {
    return CCODECS_OK;
  }
  return ccodecs_decoder_fail(
      decoder, CCODECS_TRUNCATED,
      "the header specifies %ux%u pixels, which need at least %llu bytes, but only %llu follow", decoder->header.width,
      decoder->header.height, (unsigned long long)minimum, (unsigned long long)decoder->rest_bytes);
}

/// Expects the rows of a frame.
static void expect_rows(ccodecs_decoder *decoder) {
  for (uint32_t i = 0; i < decoder->layout.plane_count; i++) {
    decoder->rows_left[i] = decoder->layout.planes[i].height;
  }
}

ccodecs_status ccodecs_decoder_start(
    ccodecs_decoder *decoder, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  memset(layout, 0, sizeof *layout);
  CCODECS_TRY(enter(decoder, CCODECS_STATE_READY));
  if (!options_are_valid(decoder, options)) {
    return ccodecs_decoder_fail(decoder, CCODECS_MISUSE, "the decoder has no scale %u/8", options->scale_eighths);
  }
  ccodecs_bytes_free(&decoder->profile, decoder->budget);
  ccodecs_decoder_free_metadata(decoder);
  decoder->tolerates_truncation = options->tolerates_truncation;
  decoder->tolerates_damage = options->tolerates_damage;
  ccodecs_status status = check_header(decoder);
  status = status == CCODECS_OK ? check_size(decoder) : status;
  status = status == CCODECS_OK ? decoder->methods->start(decoder, options, layout) : status;
  // Checked after start, because start's own checks give a more exact reason.
  status = status == CCODECS_OK ? check_whole_proportion(decoder) : status;
  if (status == CCODECS_OK) {
    decoder->state = CCODECS_STATE_ROWS;
    decoder->layout = *layout;
    decoder->frame = (ccodecs_frame){.width = decoder->header.width, .height = decoder->header.height, .play_count = 1};
    expect_rows(decoder);
  }
  return leave(decoder, status);
}

void ccodecs_decoder_note_rows(ccodecs_decoder *decoder, uint32_t top, uint32_t height, bool stays) {
  const bool is_first = decoder->frame_index == decoder->first_frame;
  const uint32_t all = decoder->header.height;
  const uint32_t begin = top < all ? top : all, end = height < all - begin ? begin + height : all;
  const uint32_t above = begin < decoder->disposed_top ? begin : decoder->disposed_top;
  const uint32_t below = all - (end > decoder->disposed_bottom ? end : decoder->disposed_bottom);
  decoder->kept_above = is_first ? 0 : above;
  decoder->kept_below = is_first ? 0 : below < all - above ? below : all - above;
  decoder->disposed_top = stays ? all : begin;
  decoder->disposed_bottom = stays ? 0 : end;
}

const ccodecs_frame *ccodecs_decoder_frame(const ccodecs_decoder *decoder) {
  return &decoder->frame;
}

/// Returns the number of stored rows that the returned rows cover.
static uint32_t given_rows(const ccodecs_decoder *decoder) {
  const ccodecs_plane *plane = &decoder->layout.planes[0];
  return (uint32_t)((plane->height - decoder->rows_left[0]) / plane->vertical_scale);
}

/// Returns whether the missing rows of truncated or damaged input may be filled with gray.
static bool may_fill(ccodecs_decoder *decoder, ccodecs_status failure) {
  if (decoder->rows_left[0] == decoder->layout.planes[0].height) {
    return false;
  }
  if (failure == CCODECS_TRUNCATED && decoder->tolerates_truncation) {
    decoder->header.warnings |= CCODECS_WARNING_TRUNCATED;
    return true;
  }
  return ccodecs_decoder_tolerate(decoder, failure, given_rows(decoder));
}

/// Returns whether an animation may end with the frames before one of which no row was decoded.
static bool may_stop(ccodecs_decoder *decoder, ccodecs_status failure) {
  if (decoder->done_frames == 0 || decoder->rows_left[0] < decoder->layout.planes[0].height) {
    return false;
  }
  if (failure == CCODECS_TRUNCATED && decoder->tolerates_truncation) {
    decoder->header.warnings |= CCODECS_WARNING_TRUNCATED;
    decoder->failure = CCODECS_OK;
    return true;
  }
  return ccodecs_decoder_tolerate(decoder, failure, 0);
}

/// Starts to fill missing rows after `failure`. Returns CCODECS_OK, or the failure if they must not be filled.
static ccodecs_status begin_filling(ccodecs_decoder *decoder, ccodecs_status failure) {
  if (!may_fill(decoder, failure)) {
    return failure;
  }
  decoder->fill = ccodecs_allocate(decoder->budget, fill_bytes(decoder));
  if (decoder->fill == NULL) {
    return ccodecs_decoder_fail(decoder, CCODECS_NO_MEMORY, "no room for a gray row");
  }
  memset(decoder->fill, 128, fill_bytes(decoder));
  for (size_t i = 0; i < fill_bytes(decoder); i += 8) {
    uint8_t *p = decoder->fill + i;
    switch (decoder->layout.pixels) {
    case CCODECS_PIXELS_RGBA8:
      p[3] = p[7] = 255;
      break;
    case CCODECS_PIXELS_RGBA16:
      p[6] = p[7] = 255;
      break;
    case CCODECS_PIXELS_CMYK8: // black ink only
      memset(p, 255, 3);
      memset(p + 4, 255, 3);
      break;
    case CCODECS_PIXELS_GRAY8:
    case CCODECS_PIXELS_RGB8:
    case CCODECS_PIXELS_YCC8:
    case CCODECS_PIXELS_GRAY16:
    case CCODECS_PIXELS_RGB16:
      break;
    }
  }
  decoder->failure = CCODECS_OK;
  decoder->is_filling = true;
  return CCODECS_OK;
}

/// Returns gray rows, a few at a time. Each plane has as many as belong to those of the first, as rows wait for the
/// planes that lag.
static ccodecs_status give_fill(ccodecs_decoder *decoder, ccodecs_rows *rows) {
  static const uint32_t maximum = 16;
  const uint32_t height = decoder->layout.planes[0].height, left = decoder->rows_left[0];
  const uint64_t given = height - left + (left < maximum ? left : maximum);
  bool has_rows = false;
  for (uint32_t i = 0; i < decoder->layout.plane_count; i++) {
    const uint32_t due = (uint32_t)(given * decoder->layout.planes[i].height / height);
    const uint32_t before = decoder->layout.planes[i].height - decoder->rows_left[i];
    rows->planes[i] = decoder->fill;
    rows->row_strides[i] = 0; // all rows share one buffer
    rows->row_counts[i] = due > before ? due - before : 0;
    has_rows = has_rows || rows->row_counts[i] > 0;
  }
  return has_rows ? CCODECS_ROWS_READY : CCODECS_DONE;
}

ccodecs_status ccodecs_decoder_read_rows(ccodecs_decoder *decoder, ccodecs_input *input, ccodecs_rows *rows) {
  memset(rows, 0, sizeof *rows);
  if (decoder->failure == CCODECS_OK && decoder->state == CCODECS_STATE_DONE) {
    return CCODECS_DONE;
  }
  CCODECS_TRY(enter(decoder, CCODECS_STATE_ROWS));
  const size_t count = input->count;
  ccodecs_status status =
      decoder->is_filling ? give_fill(decoder, rows) : decoder->methods->read_rows(decoder, input, rows);
  decoder->taken_bytes += count - input->count;
  if (status == CCODECS_TRUNCATED || status == CCODECS_CORRUPT) {
    status = may_stop(decoder, status) ? CCODECS_DONE : begin_filling(decoder, status);
    status = status == CCODECS_OK ? give_fill(decoder, rows) : status;
  }
  for (uint32_t i = 0; status == CCODECS_ROWS_READY && i < decoder->layout.plane_count; i++) {
    decoder->rows_left[i] -= rows->row_counts[i];
  }
  if (status == CCODECS_ROWS_READY) {
    const ccodecs_status proportion = check_rows_proportion(decoder);
    status = proportion == CCODECS_OK ? status : proportion;
  }
  if (status == CCODECS_ROWS_READY) {
    decoder->frame.kept_above = decoder->kept_above;
    decoder->frame.kept_below = decoder->kept_below;
  }
  if (status == CCODECS_FRAME_DONE) {
    decoder->done_frames++;
    expect_rows(decoder);
  }
  if (status == CCODECS_DONE) {
    decoder->state = CCODECS_STATE_DONE;
  }
  return leave(decoder, status);
}

const char *ccodecs_decoder_message(const ccodecs_decoder *decoder) {
  return decoder->message;
}

ccodecs_excess ccodecs_decoder_excess(const ccodecs_decoder *decoder) {
  return decoder->excess;
}

void ccodecs_decoder_destroy(ccodecs_decoder *decoder) {
  if (decoder != NULL) {
    ccodecs_free(decoder->budget, decoder->fill);
    ccodecs_decoder_free_metadata(decoder);
    ccodecs_bytes_free(&decoder->profile, decoder->budget);
    ccodecs_bytes_free(&decoder->artist, decoder->budget);
    ccodecs_bytes_free(&decoder->copyright, decoder->budget);
    decoder->methods->destroy(decoder);
    ccodecs_budget_refund(decoder->budget, decoder->charged);
    ccodecs_free(decoder->budget, decoder);
  }
}
