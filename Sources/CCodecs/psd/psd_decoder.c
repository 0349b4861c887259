// Streaming decoder for the merged image of PSD and PSB documents; layers are skipped.
//
// The channels are stored one after another. All needed channels except the last are buffered, in a file if they are
// large, and rows are returned while the last channel is read. Supported are bitmap, indexed (8 bits), gray, duotone,
// RGB and CMYK (8 and 16 bits). An extra channel is alpha if the layers specify transparency, otherwise a saved
// selection. Not supported: Lab, multichannel, 32 bits, ZIP. Source: Adobe Photoshop File Formats Specification (2019).

#include "psd_decoder.h"
#include "../color/linear.h"
#include "../formats.h"
#include "../memory/bytes.h"

enum { RAW = 0, PACK_BITS = 1 };

// MARK: Memory

/// Returns the lower bound: the layers and the channels. Channels are raw, or PackBits runs that encode up to 128 bytes
/// in two, preceded by the byte counts of all rows.
static uint64_t min_bytes(const ccodecs_decoder *base) {
  const psd_decoder *d = (const psd_decoder *)base;
  const uint64_t rows = (uint64_t)base->header.height * d->needed;
  const uint64_t raw = rows * d->channel_row_bytes;
  const uint64_t counts = (uint64_t)base->header.height * d->channel_count * (d->is_large ? 4 : 2);
  const uint64_t packed = counts + rows * 2 * ((d->channel_row_bytes + 127) / 128);
  const uint64_t layers = d->section_left < INT64_MAX ? d->section_left : INT64_MAX;
  return layers + 2 + (raw < packed ? raw : packed);
}

static uint64_t plane_bytes(const psd_decoder *d) {
  return (uint64_t)d->channel_row_bytes * d->base.header.height;
}

/// Returns whether rows are CMYK, for a conversion with the profile.
static bool gives_cmyk(const psd_decoder *d, const ccodecs_decode_options *options) {
  return d->mode == PSD_MODE_CMYK && options->keeps_cmyk && !d->base.header.is_16bit;
}

static size_t given_row_bytes(const psd_decoder *d, bool has_cmyk) {
  return (size_t)d->base.header.width * (has_cmyk ? 4 : d->channels) * (d->base.header.is_16bit ? 2 : 1);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const psd_decoder *d = (const psd_decoder *)base;
  const size_t row_bytes = given_row_bytes(d, gives_cmyk(d, options));
  uint64_t total = 0;
  for (uint32_t i = 0; i + 1 < d->needed;
       i++) { // in order, because the memory in use decides which planes go to a file
    total += ccodecs_spill_charge(plane_bytes(d), base->budget->used + total, &base->limits);
  }
  *byte_count = total + d->channel_row_bytes + row_bytes * ccodecs_decoder_strip_rows(row_bytes) + 2 * 128;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  psd_decoder *d = (psd_decoder *)base;
  d->keeps_cmyk = gives_cmyk(d, options);
  d->row_bytes = given_row_bytes(d, d->keeps_cmyk);
  d->strip_rows = ccodecs_decoder_strip_rows(d->row_bytes);
  ccodecs_decoder_describe_packed(base, d->keeps_cmyk ? 4 : d->channels, layout);
  layout->pixels = d->keeps_cmyk ? CCODECS_PIXELS_CMYK8 : layout->pixels;
  for (uint32_t i = 0; i + 1 < d->needed; i++) {
    if (!ccodecs_spill_create(&d->planes[i], plane_bytes(d), &base->limits, base->budget)) {
      return ccodecs_decoder_fail(
          base, CCODECS_NO_MEMORY, "a channel's samples need %llu bytes, which do not fit",
          (unsigned long long)plane_bytes(d));
    }
  }
  d->stored = ccodecs_allocate(base->budget, d->channel_row_bytes);
  d->strip = ccodecs_allocate(base->budget, d->row_bytes * d->strip_rows);
  d->state = PSD_STATE_LAYERS_REST;
  d->skip_left = d->section_left;
  return d->stored == NULL || d->strip == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Channels

/// Decodes PackBits runs into the row. Returns true once it is complete. Source: Apple, "PackBits" (Technical Note
/// TN1023).
static bool unpack(psd_decoder *d, ccodecs_input *input, uint8_t *row) {
  while (d->stored_count < d->channel_row_bytes) {
    const size_t room = d->channel_row_bytes - d->stored_count;
    const bool needs_byte = d->run_left == 0 || d->is_literal || !d->has_value;
    if (needs_byte && input->count == 0) {
      return false;
    }
    if (d->run_left == 0) {
      const uint8_t code = *input->bytes;
      ccodecs_input_advance(input, 1);
      d->is_literal = code < 128;
      d->run_left = code == 128 ? 0 : code < 128 ? code + 1u : 257u - code;
      d->has_value = false;
    } else if (d->is_literal) {
      size_t count = d->run_left < room ? d->run_left : room;
      count = count < input->count ? count : input->count;
      memcpy(row + d->stored_count, input->bytes, count);
      ccodecs_input_advance(input, count);
      d->stored_count += count;
      d->run_left -= (uint32_t)count;
    } else if (!d->has_value) {
      d->value = *input->bytes;
      d->has_value = true;
      ccodecs_input_advance(input, 1);
    } else {
      const size_t count = d->run_left < room ? d->run_left : room;
      memset(row + d->stored_count, d->value, count);
      d->stored_count += count;
      d->run_left -= (uint32_t)count;
    }
  }
  return true;
}

/// Completes the next row of a channel. Returns CCODECS_OK or CCODECS_NEEDS_INPUT.
static ccodecs_status read_channel_row(psd_decoder *d, ccodecs_input *input, uint8_t *row) {
  const bool is_whole = d->compression == RAW
                            ? ccodecs_input_collect(input, row, &d->stored_count, d->channel_row_bytes)
                            : unpack(d, input, row);
  if (!is_whole) {
    return CCODECS_NEEDS_INPUT;
  }
  d->stored_count = 0;
  d->row++;
  return CCODECS_OK;
}

/// Reads a whole channel into its plane.
static ccodecs_status read_channel(psd_decoder *d, ccodecs_input *input) {
  ccodecs_spill *plane = &d->planes[d->channel];
  while (d->row < d->base.header.height) {
    const size_t offset = (size_t)d->row * d->channel_row_bytes;
    CCODECS_TRY(read_channel_row(d, input, plane->bytes + offset));
    ccodecs_spill_pass(plane, offset + d->channel_row_bytes);
  }
  d->row = 0;
  d->channel++;
  return d->run_left == 0 ? CCODECS_OK : ccodecs_psd_corrupt(d, "a run exceeds its channel");
}

/// Runs one step of the state machine from the layers to the last needed channel.
static ccodecs_status step_to_channels(psd_decoder *d, ccodecs_input *input) {
  switch (d->state) {
  case PSD_STATE_LAYERS_REST:
    d->state = ccodecs_input_skip(input, &d->skip_left) ? PSD_STATE_COMPRESSION : d->state;
    return d->state == PSD_STATE_COMPRESSION ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  case PSD_STATE_COMPRESSION:
    if (!ccodecs_psd_collect(d, input, 2)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->compression = ccodecs_be16(d->token);
    d->skip_left =
        d->compression == RAW ? 0 : (uint64_t)d->channel_count * d->base.header.height * (d->is_large ? 4 : 2);
    d->state = PSD_STATE_COUNTS;
    return d->compression == RAW || d->compression == PACK_BITS
               ? CCODECS_OK
               : ccodecs_psd_unsupported(d, "images with this compression");
  case PSD_STATE_COUNTS:
    d->state = ccodecs_input_skip(input, &d->skip_left) ? PSD_STATE_CHANNELS : d->state;
    return d->state == PSD_STATE_CHANNELS ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  default:
    return read_channel(d, input);
  }
}

// MARK: Rows

static uint16_t sample_of(const uint8_t *row, uint32_t x, bool is_wide) {
  return is_wide ? (uint16_t)ccodecs_be16(row + 2 * (size_t)x) : row[x];
}

/// Removes the white background with which the merged image is blended.
static uint32_t without_white(uint32_t color, uint32_t alpha, uint32_t maximum) {
  if (alpha == 0 || alpha == maximum) {
    return color;
  }
  const uint64_t white = (uint64_t)maximum * (maximum - alpha);
  const uint64_t scaled = (uint64_t)color * maximum;
  const uint64_t value = scaled < white ? 0 : (scaled - white + alpha / 2) / alpha;
  return value > maximum ? maximum : (uint32_t)value;
}

static void put_sample(const psd_decoder *d, uint8_t *out, size_t index, uint32_t value) {
  if (d->base.header.is_16bit) {
    ((uint16_t *)(void *)out)[index] = (uint16_t)value;
  } else {
    out[index] = d->bits == 16 ? ccodecs_narrow(value) : (uint8_t)value;
  }
}

static void put_pixels(const psd_decoder *d, const uint8_t *const rows[4], uint8_t *out) {
  const bool is_wide = d->bits == 16;
  const uint32_t maximum = is_wide ? 65535 : 255;
  const uint32_t colors = d->channels == 1 ? 1 : 3;
  for (uint32_t x = 0; x < d->base.header.width; x++) {
    const uint32_t last = sample_of(rows[d->needed - 1], x, is_wide);
    for (uint32_t i = 0; i < colors; i++) {
      uint32_t value = sample_of(rows[d->colors == 1 ? 0 : i], x, is_wide);
      if (d->mode == PSD_MODE_CMYK) { // 255 means no ink
        value = (uint32_t)(((uint64_t)value * last + maximum / 2) / maximum);
      } else if (d->base.header.has_alpha) {
        value = without_white(value, last, maximum);
      }
      put_sample(d, out, (size_t)x * d->channels + i, value);
    }
    if (d->base.header.has_alpha) {
      put_sample(d, out, (size_t)x * d->channels + 3, last);
    }
  }
}

/// Combines row `y` of all channels into a row of the strip.
static void put_row(psd_decoder *d, uint32_t y, uint8_t *out) {
  const uint8_t *rows[4];
  const uint32_t width = d->base.header.width;
  const size_t offset = (size_t)y * d->channel_row_bytes;
  for (uint32_t i = 0; i < d->needed; i++) {
    rows[i] = i + 1 < d->needed ? d->planes[i].bytes + offset : d->stored;
  }
  for (uint32_t x = 0; x < width && d->mode == PSD_MODE_BITMAP; x++) {
    out[x] = (d->stored[x / 8] >> (7 - x % 8) & 1) != 0 ? 0 : 255;
  }
  for (uint32_t x = 0; x < width && d->mode == PSD_MODE_INDEXED; x++) {
    memcpy(out + 3 * (size_t)x, d->palette[d->stored[x]], 3);
  }
  for (size_t i = 0; i < (size_t)width * 4 && d->keeps_cmyk; i++) {
    put_sample(d, out, i, sample_of(rows[i % 4], (uint32_t)(i / 4), d->bits == 16));
  }
  if (d->mode != PSD_MODE_BITMAP && d->mode != PSD_MODE_INDEXED && !d->keeps_cmyk) {
    put_pixels(d, rows, out);
  }
  for (uint32_t i = 0; i + 1 < d->needed; i++) {
    ccodecs_spill_pass(&d->planes[i], offset);
  }
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  psd_decoder *d = (psd_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && (d->state != PSD_STATE_CHANNELS || d->channel + 1 < d->needed)) {
    status = step_to_channels(d, input);
  }
  uint32_t count = 0;
  while (status == CCODECS_OK && count < d->strip_rows && d->row < base->header.height) {
    const uint32_t y = d->row;
    status = read_channel_row(d, input, d->stored);
    if (status == CCODECS_OK) {
      put_row(d, y, d->strip + count++ * d->row_bytes);
    }
  }
  if (count > 0) {
    rows->planes[0] = d->strip;
    rows->row_strides[0] = d->row_bytes;
    rows->row_counts[0] = count;
    return CCODECS_ROWS_READY;
  }
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PSD data ends before the last row");
  }
  return status == CCODECS_OK ? CCODECS_DONE : status;
}

static void destroy(ccodecs_decoder *base) {
  psd_decoder *d = (psd_decoder *)base;
  ccodecs_budget *budget = base->budget;
  for (uint32_t i = 0; i < 3; i++) {
    ccodecs_spill_destroy(&d->planes[i], budget);
  }
  ccodecs_bytes_free(&d->resource_bytes, budget);
  ccodecs_free(budget, d->stored);
  ccodecs_free(budget, d->strip);
}

const ccodecs_decoder_methods ccodecs_psd_decoder = {
    .byte_count = sizeof(psd_decoder),
    .read_header = ccodecs_psd_read_header,
    .estimate = estimate,
    .min_bytes = min_bytes,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};
