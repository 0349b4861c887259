// JPEG: which decoder takes a picture, and the reduced decoding of baseline pictures.
//
// The markers before the first scan are read here. Those that a decoder needs are kept, others (thumbnails, profiles,
// comments) are passed over however long they are. Then, when the scale is known:
//
// - A baseline picture of one scan, gray or YCbCr, at 1/8, 2/8 or 4/8 is decoded here: entropy decoding that passes over
//   what the reduced transform does not use (jpeg_entropy.h), and the transform across rows of blocks (jpeg_idct.h).
// - Any other picture or scale goes to libjpeg-turbo (jpeg_turbo.c), which is given the markers that were kept.
//
// Where a file is damaged, this decoder refuses what libjpeg-turbo would warn of: a segment that ends early, a
// restart marker out of turn, a code that no table has (which libjpeg-turbo takes for a zero where it decodes fast).
// Bytes between a segment's last MCU and its marker, and between marker segments, are passed over with a warning by
// both.

#include "jpeg.h"

#include <string.h>

/// Unstuffed bytes that are held, beside those of an MCU that is not complete.
static const size_t segment_bytes = 32 * 1024;
/// Zeros behind the last byte: an MCU of a segment that ends early may be read to its end before that is noticed.
static const size_t segment_slack = JPEG_LARGEST_MCU + 64;

/// Hands the picture to libjpeg-turbo, which reads the markers that were kept.
static ccodecs_status hand_over(jpeg_decoder *d) {
  d->turbo = ccodecs_jpeg_turbo_decoder_create(&d->base.limits, d->base.budget);
  if (d->turbo == NULL) {
    return jpeg_no_room(d);
  }
  ccodecs_input markers = {.bytes = ccodecs_bytes_start(&d->markers), .count = d->markers.count, .is_last = false};
  const ccodecs_status status = ccodecs_decoder_read_header(d->turbo, &markers);
  if (status != CCODECS_OK) {
    const bool is_short = status == CCODECS_NEEDS_INPUT;
    return ccodecs_decoder_fail(
        &d->base, is_short ? CCODECS_CORRUPT : status, "%s",
        is_short ? "the JPEG's markers are not complete" : ccodecs_decoder_message(d->turbo));
  }
  ccodecs_bytes_free(&d->markers, d->base.budget);
  ccodecs_free(d->base.budget, d->tables);
  d->tables = NULL;
  const uint32_t warnings = d->base.header.warnings;
  d->base.header = *ccodecs_decoder_header(d->turbo);
  d->base.header.warnings |= warnings;
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  bool is_scan = false;
  while (!is_scan) {
    const ccodecs_status status = jpeg_read_marker(d, input, &is_scan);
    if (status == CCODECS_NEEDS_INPUT && input->is_last) {
      return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the JPEG data ends before its first scan");
    }
    if (status != CCODECS_OK) {
      return status;
    }
  }
  ccodecs_bytes_free(&d->marker, base->budget);
  if (!d->is_baseline) {
    return hand_over(d);
  }
  base->header.color_space = d->component_count == 1 ? CCODECS_COLOR_GRAY : CCODECS_COLOR_YCBCR;
  return CCODECS_OK;
}

// MARK: Sizes

/// 1, 2 and 4 are decoded here or by libjpeg-turbo, 8 by libjpeg-turbo.
static uint8_t scales(const ccodecs_decoder *base) {
  (void)base;
  return 1u << 0 | 1u << 1 | 1u << 3 | 1u << 7;
}

static uint32_t ceiling(uint64_t value, uint32_t divisor) {
  return (uint32_t)((value + divisor - 1) / divisor);
}

/// Sizes of a component and its buffers at d->scale.
static void measure(jpeg_decoder *d) {
  uint32_t across = 1;
  uint32_t down = 1;
  for (uint32_t i = 0; i < d->component_count; i++) {
    across = d->components[i].across > across ? d->components[i].across : across;
    down = d->components[i].down > down ? d->components[i].down : down;
  }
  const uint32_t scale = (uint32_t)d->scale;
  d->mcus_across = ceiling(d->base.header.width, 8 * across);
  d->mcu_rows = ceiling(d->base.header.height, 8 * down);
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    const size_t blocks = (size_t)d->mcus_across * c->across;
    c->stride = (blocks + JPEG_IDCT_LANES - 1) / JPEG_IDCT_LANES * JPEG_IDCT_LANES;
    c->plane = (ccodecs_plane){
        .width = ceiling((uint64_t)d->base.header.width * c->across * scale, across * 8),
        .height = ceiling((uint64_t)d->base.header.height * c->down * scale, down * 8),
        .channels = 1,
        .horizontal_scale = (double)c->across * scale / (across * 8.0),
        .vertical_scale = (double)c->down * scale / (down * 8.0),
    };
    c->rows_left = c->plane.height;
  }
}

static size_t coefficient_bytes(const jpeg_decoder *d, const jpeg_component *c) {
  return c->stride * c->down * (size_t)(d->scale * d->scale) * sizeof(int16_t);
}

static size_t sample_bytes(const jpeg_decoder *d, const jpeg_component *c) {
  return c->stride * c->down * (size_t)(d->scale * d->scale);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const jpeg_decoder *d = (const jpeg_decoder *)base;
  if (d->turbo != NULL) {
    // What libjpeg-turbo's decoder holds already is counted by our caller.
    return d->turbo->methods->estimate(d->turbo, options, byte_count);
  }
  jpeg_decoder measured = *d;
  measured.scale = options->scale_eighths;
  measure(&measured);
  *byte_count = segment_bytes + JPEG_LARGEST_MCU + segment_slack + 256;
  for (uint32_t i = 0; i < d->component_count; i++) {
    const jpeg_component *c = &measured.components[i];
    *byte_count += coefficient_bytes(&measured, c) + sample_bytes(&measured, c) + 256;
  }
  if (options->scale_eighths == 8) {
    *byte_count += 512 * 1024; // libjpeg-turbo's own, whose strips are no larger than the above
  }
  return CCODECS_OK;
}

// MARK: Start

static ccodecs_status start_own(jpeg_decoder *d, ccodecs_layout *layout) {
  jpeg_zigzag_init(&d->zigzag, d->scale);
  measure(d);
  layout->pixels = d->component_count == 1 ? CCODECS_PIXELS_GRAY8 : CCODECS_PIXELS_YCC8;
  layout->plane_count = d->component_count;
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    layout->planes[i] = c->plane;
    jpeg_idct_factors(d->quantization[c->quantization_index], d->scale, c->factors);
    c->coefficients = ccodecs_allocate(d->base.budget, coefficient_bytes(d, c));
    c->samples = ccodecs_allocate(d->base.budget, sample_bytes(d, c));
    if (c->coefficients == NULL || c->samples == NULL) {
      return jpeg_no_room(d);
    }
    memset(c->coefficients, 0, coefficient_bytes(d, c));
  }
  d->segment = ccodecs_allocate(d->base.budget, segment_bytes + JPEG_LARGEST_MCU + segment_slack);
  d->restarts_left = d->restart_interval;
  return d->segment == NULL ? jpeg_no_room(d) : CCODECS_OK;
}

/// Copies a failure of libjpeg-turbo's decoder.
static ccodecs_status from_turbo(jpeg_decoder *d, ccodecs_status status) {
  if (status >= CCODECS_CORRUPT) {
    return ccodecs_decoder_fail(&d->base, status, "%s", ccodecs_decoder_message(d->turbo));
  }
  d->base.header.warnings |= d->turbo->header.warnings;
  return status;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  d->scale = options->scale_eighths;
  if (d->turbo == NULL && d->scale == 8) {
    const ccodecs_status status = hand_over(d);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  if (d->turbo != NULL) {
    return from_turbo(d, ccodecs_decoder_start(d->turbo, options, layout));
  }
  ccodecs_bytes_free(&d->markers, base->budget);
  return start_own(d, layout);
}

// MARK: Entropy-coded segments

/// Unstuffs bytes of the window behind those that are held, until the room, the window or the segment ends.
static void unstuff(jpeg_decoder *d, ccodecs_input *input) {
  const size_t used = d->segment_used;
  memmove(d->segment, d->segment + used, d->segment_count - used);
  d->segment_count -= used;
  d->segment_used = 0;
  const size_t capacity = segment_bytes + JPEG_LARGEST_MCU;
  while (input->count > 0 && d->segment_count < capacity && !d->is_ended) {
    if (d->saw_ff) {
      const uint8_t byte = *input->bytes;
      ccodecs_input_advance(input, 1);
      if (byte == 0) {
        d->segment[d->segment_count++] = 0xFF;
        d->saw_ff = false;
      } else if (byte != 0xFF) {
        d->saw_ff = false;
        d->is_ended = true;
        d->end_marker = byte;
      }
      continue;
    }
    const size_t room = capacity - d->segment_count;
    const size_t most = input->count < room ? input->count : room;
    const uint8_t *ff = memchr(input->bytes, 0xFF, most);
    const size_t run = ff == NULL ? most : (size_t)(ff - input->bytes);
    memcpy(d->segment + d->segment_count, input->bytes, run);
    d->segment_count += run;
    ccodecs_input_advance(input, run);
    if (ff != NULL) {
      ccodecs_input_advance(input, 1);
      d->saw_ff = true;
    }
  }
  memset(d->segment + d->segment_count, 0, d->is_ended ? segment_slack : 64);
}

/// Bytes that the bit reader has not begun.
static size_t bytes_left(const jpeg_decoder *d) {
  const size_t taken = (size_t)(d->bits.next - d->segment) - (size_t)(d->bits.count / 8);
  return taken < d->segment_count ? d->segment_count - taken : 0;
}

/// Whether the bit reader has used bits that the segment does not have.
static bool is_overrun(const jpeg_decoder *d) {
  return (size_t)(d->bits.next - d->segment) * 8 - (size_t)d->bits.count > d->segment_count * 8;
}

/// Lets the window be unstuffed behind what the bit reader has not used, at a byte's edge or not.
static void refill_segment(jpeg_decoder *d, ccodecs_input *input) {
  const size_t bit = (size_t)(d->bits.next - d->segment) * 8 - (size_t)d->bits.count;
  d->segment_used = bit / 8;
  unstuff(d, input);
  // The reader begins again at the byte that it had begun, without the bits that it had used.
  d->bits = (jpeg_bits){.next = d->segment};
  if (bit % 8 != 0) {
    d->bits.buffer = (uint64_t)d->segment[0] << 56 << bit % 8;
    d->bits.count = 8 - (int)(bit % 8);
    d->bits.next++;
  }
}

static ccodecs_status restart(jpeg_decoder *d) {
  if (d->end_marker != JPEG_RST0 + d->next_restart) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a JPEG restart marker is missing or out of turn");
  }
  if (bytes_left(d) > 0) {
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
  }
  d->next_restart = (d->next_restart + 1) & 7;
  d->restarts_left = d->restart_interval;
  d->is_ended = false;
  d->segment_count = 0;
  d->bits = (jpeg_bits){.next = d->segment};
  for (uint32_t i = 0; i < d->component_count; i++) {
    d->components[i].prediction = 0;
  }
  return CCODECS_OK;
}

// MARK: MCUs

static bool decode_mcu(jpeg_decoder *d) {
  const size_t block_coefficients = (size_t)(d->scale * d->scale);
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    for (uint32_t row = 0; row < c->down; row++) {
      int16_t *first = c->coefficients + row * block_coefficients * c->stride + (size_t)d->mcu_x * c->across;
      for (uint32_t column = 0; column < c->across; column++) {
        if (!jpeg_decode_block(&d->bits, c->dc, c->ac, &d->zigzag, &c->prediction, first + column, c->stride)) {
          return false;
        }
      }
    }
  }
  return true;
}

/// Decodes the MCUs of a row as far as bytes go. CCODECS_OK when the row is complete.
static ccodecs_status decode_mcu_row(jpeg_decoder *d, ccodecs_input *input) {
  while (d->mcu_x < d->mcus_across) {
    if (d->restart_interval > 0 && d->restarts_left == 0) {
      while (!d->is_ended && input->count > 0) { // bytes behind the last MCU
        refill_segment(d, input);
        if (!d->is_ended && bytes_left(d) > segment_bytes) {
          return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a JPEG restart marker is missing");
        }
      }
      if (!d->is_ended) {
        return CCODECS_NEEDS_INPUT;
      }
      const ccodecs_status status = restart(d);
      if (status != CCODECS_OK) {
        return status;
      }
    }
    if (!d->is_ended && bytes_left(d) < JPEG_LARGEST_MCU + 8) {
      refill_segment(d, input);
      if (!d->is_ended && bytes_left(d) < JPEG_LARGEST_MCU + 8) {
        return CCODECS_NEEDS_INPUT;
      }
    }
    if (!decode_mcu(d) || (d->is_ended && is_overrun(d))) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the JPEG's entropy-coded data is damaged");
    }
    d->mcu_x++;
    d->restarts_left--;
  }
  return CCODECS_OK;
}

/// Transforms the coefficients of a row of MCUs, and clears them for the next.
static void transform(jpeg_decoder *d, ccodecs_rows *rows) {
  const size_t scale = (size_t)d->scale;
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    const size_t row_stride = c->stride * scale;
    for (size_t row = 0; row < c->down; row++) {
      jpeg_idct_row(
          c->coefficients + row * scale * scale * c->stride, c->stride, d->scale, c->factors,
          c->samples + row * scale * row_stride, row_stride);
    }
    memset(c->coefficients, 0, coefficient_bytes(d, c));
    const uint32_t count = (uint32_t)(c->down * scale);
    rows->planes[i] = c->samples;
    rows->row_strides[i] = row_stride;
    rows->row_counts[i] = count < c->rows_left ? count : c->rows_left;
    c->rows_left -= rows->row_counts[i];
  }
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  if (d->turbo != NULL) {
    return from_turbo(d, ccodecs_decoder_read_rows(d->turbo, input, rows));
  }
  if (d->mcu_y == d->mcu_rows) {
    return CCODECS_DONE;
  }
  if (d->bits.next == NULL) {
    d->bits.next = d->segment;
  }
  const ccodecs_status status = decode_mcu_row(d, input);
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    // A file may lack its last marker. Then what is held must be enough.
    d->is_ended = true;
    d->is_cut = true;
    d->end_marker = JPEG_EOI;
    memset(d->segment + d->segment_count, 0, segment_slack);
    return read_rows(base, input, rows);
  }
  if (status == CCODECS_CORRUPT && d->is_cut) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the JPEG data ends before the picture does");
  }
  if (status != CCODECS_OK) {
    return status;
  }
  d->mcu_x = 0;
  d->mcu_y++;
  transform(d, rows);
  return CCODECS_ROWS_READY;
}

static void destroy(ccodecs_decoder *base) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_decoder_destroy(d->turbo);
  for (uint32_t i = 0; i < 3; i++) {
    ccodecs_free(budget, d->components[i].coefficients);
    ccodecs_free(budget, d->components[i].samples);
  }
  ccodecs_bytes_free(&d->markers, budget);
  ccodecs_bytes_free(&d->marker, budget);
  ccodecs_free(budget, d->tables);
  ccodecs_free(budget, d->segment);
  ccodecs_free(budget, d);
}

ccodecs_decoder *ccodecs_jpeg_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  static const ccodecs_decoder_methods methods = {
      .read_header = read_header,
      .scales = scales,
      .estimate = estimate,
      .start = start,
      .read_rows = read_rows,
      .destroy = destroy,
  };
  jpeg_decoder *d = ccodecs_allocate(budget, sizeof *d);
  if (d == NULL) {
    return NULL;
  }
  memset(d, 0, sizeof *d);
  ccodecs_decoder_init(&d->base, &methods, CCODECS_FORMAT_JPEG, limits, budget);
  d->is_baseline = true;
  d->adobe_transform = -1;
  return &d->base;
}
