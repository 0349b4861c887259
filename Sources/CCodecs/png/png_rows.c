// The image data reader: inflates the bytes of IDAT and returns rows.
//
// Rows are inflated in batches into a block in which each row follows its filter byte and the row above. Rows that need
// no expansion are returned directly from this block.

#include "../memory/bytes.h"
#include "png_decoder.h"

#include <string.h>

/// The number of complete rows of an incomplete batch whose filters are checked is a multiple of this.
enum { CHECKED_ROWS = 4 };

/// Size of a batch in bytes: large enough for few inflate calls, each of which copies 32 KB that it may refer to, small
/// enough for the cache. It may be larger for several times PNG_ROWS_AT_ONCE rows.
static const size_t batch_bytes = 128 << 10;
static const size_t max_batch_bytes = 256 << 10;

static size_t stored_row_bytes(const png_decoder *d, uint32_t width) {
  return ((size_t)width * d->stored_bits + 7) / 8;
}

/// Returns the number of rows in a batch, limited to the image's height: a multiple of twice PNG_ROWS_AT_ONCE, or of
/// less if rows are too large for that.
static size_t batch_rows(const png_decoder *d) {
  const size_t row_bytes = stored_row_bytes(d, d->base.header.width) + 1;
  const size_t fitting = batch_bytes / row_bytes;
  size_t multiple = (size_t)2 * PNG_ROWS_AT_ONCE;
  while (multiple > CHECKED_ROWS && multiple * row_bytes > max_batch_bytes) {
    multiple /= 2;
  }
  const size_t rows = fitting < multiple ? multiple : fitting - fitting % multiple;
  const size_t height = d->base.header.height;
  return rows > height ? height : rows;
}

static size_t block_bytes(const png_decoder *d) {
  return (batch_rows(d) + 1) * (stored_row_bytes(d, d->base.header.width) + 1) + PNG_ROW_SLACK;
}

static size_t expanded_rows(const png_decoder *d) {
  return d->is_interlaced ? 1 : ccodecs_png_is_plain(&d->expansion) ? 0 : batch_rows(d);
}

static uint64_t buffered_bytes(const png_decoder *d) {
  return (uint64_t)d->given_bytes * d->base.header.height;
}

uint64_t ccodecs_png_rows_estimate(const png_decoder *d) {
  const uint64_t rows = block_bytes(d) + expanded_rows(d) * (uint64_t)d->given_bytes;
  const uint64_t buffered =
      d->is_interlaced ? ccodecs_spill_charge(buffered_bytes(d), d->base.budget->used, &d->base.limits) : 0;
  return rows + buffered + ccodecs_inflater_estimate() + 4 * 128;
}

// MARK: Passes

/// Begins the rows of an image or pass of size pass_width x pass_height.
static void begin_rows(png_decoder *d) {
  d->row = 0;
  d->row_stride = stored_row_bytes(d, d->pass_width) + 1;
  memset(d->rows, 0, d->row_stride); // the row above the first is zero
}

/// Begins the next pass that has pixels, starting at d->pass.
static void begin_pass(png_decoder *d) {
  for (; d->pass < 7; d->pass++) {
    const png_pass pass = ccodecs_png_passes[d->pass];
    d->pass_width = d->image_width > pass.x ? (d->image_width - pass.x + pass.across - 1) / pass.across : 0;
    d->pass_height = d->image_height > pass.y ? (d->image_height - pass.y + pass.down - 1) / pass.down : 0;
    if (d->pass_width > 0 && d->pass_height > 0) {
      begin_rows(d);
      return;
    }
  }
}

/// Copies a row of a pass to the positions of its pixels.
static void spread(png_decoder *d, uint32_t number) {
  const size_t pixel_bytes = (size_t)d->expansion.channels * (d->expansion.bit_depth == 16 ? 2 : 1);
  const png_pass pass = ccodecs_png_passes[d->pass];
  const size_t y = pass.y + (size_t)number * pass.down;
  uint8_t *row = d->buffered.bytes + y * d->given_bytes;
  uint8_t *to = row + pass.x * pixel_bytes;
  const size_t step = pass.across * pixel_bytes;
  for (uint32_t x = 0; x < d->pass_width; x++, to += step) {
    memcpy(to, d->expanded + x * pixel_bytes, pixel_bytes);
  }
  ccodecs_spill_pass(&d->buffered, y * d->given_bytes);
}

// MARK: Lifetime

ccodecs_status ccodecs_png_rows_start(png_decoder *d) {
  ccodecs_budget *budget = d->base.budget;
  const size_t expanded = expanded_rows(d);
  d->rows_capacity = batch_rows(d);
  d->inflater = ccodecs_inflater_create(budget, d->base.tolerates_damage);
  d->rows = ccodecs_allocate(budget, block_bytes(d));
  d->expanded = expanded > 0 ? ccodecs_allocate(budget, expanded * d->given_bytes) : NULL;
  const bool has_buffered =
      !d->is_interlaced || ccodecs_spill_create(&d->buffered, buffered_bytes(d), &d->base.limits, budget);
  if (d->inflater == NULL || d->rows == NULL || (expanded > 0 && d->expanded == NULL) || !has_buffered) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_NO_MEMORY, "the image's rows need %llu bytes, which do not fit",
        (unsigned long long)ccodecs_png_rows_estimate(d));
  }
  memset(d->rows, 0, block_bytes(d));
  d->image_width = d->base.header.width;
  d->image_height = d->base.header.height;
  ccodecs_png_rows_restart(d);
  return CCODECS_OK;
}

void ccodecs_png_rows_restart(png_decoder *d) {
  ccodecs_inflater_restart(d->inflater);
  d->may_have_rows = false;
  d->is_inflated = false;
  d->filled = 0;
  d->ready = 0;
  d->given = 0;
  d->pass = 0;
  d->pass_width = d->image_width;
  d->pass_height = d->image_height;
  if (d->is_interlaced) {
    begin_pass(d);
  } else {
    begin_rows(d);
  }
}

void ccodecs_png_rows_destroy(png_decoder *d) {
  ccodecs_budget *budget = d->base.budget;
  ccodecs_inflater_destroy(d->inflater, budget);
  ccodecs_free(budget, d->rows);
  ccodecs_free(budget, d->expanded);
  ccodecs_spill_destroy(&d->buffered, budget);
}

bool ccodecs_png_rows_are_complete(const png_decoder *d) {
  return d->is_interlaced ? d->pass == 7 : d->row == d->image_height;
}

// MARK: Rows

/// Returns stored row `index` of the batch; -1 is the row above the batch.
static uint8_t *batch_row(const png_decoder *d, ptrdiff_t index) {
  return d->rows + (size_t)(index + 1) * d->row_stride + 1;
}

/// Inflates up to `count` bytes to `to` and sets *produced to their number. Returns false if damaged data follows them.
static bool inflate_into(png_decoder *d, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  const bool is_good = ccodecs_inflater_run(d->inflater, input, to, count, produced);
  d->is_inflated = ccodecs_inflater_has_ended(d->inflater);
  return is_good;
}

/// Returns the number of complete rows of the batch before the first one with an unknown filter.
static uint32_t count_known(const png_decoder *d, uint32_t complete) {
  uint32_t known = d->ready;
  while (known < complete && batch_row(d, known)[-1] <= 4) {
    known++;
  }
  return known;
}

/// Unfilters and expands the complete rows of the batch, up to an unknown filter. Returns false if there is one.
static bool finish_rows(png_decoder *d, uint32_t complete) {
  const size_t count = stored_row_bytes(d, d->pass_width);
  const size_t pixel_bytes = d->stored_bits < 8 ? 1 : d->stored_bits / 8;
  const uint32_t known = count_known(d, complete);
  ccodecs_png_unfilter_rows(batch_row(d, d->ready), d->row_stride, known - d->ready, count, pixel_bytes);
  for (; d->ready < known; d->ready++) {
    const uint8_t *row = batch_row(d, d->ready);
    if (d->expanded != NULL) {
      uint8_t *to = d->expanded + (d->is_interlaced ? 0 : d->ready * d->given_bytes);
      const bool is_good = ccodecs_png_expand(&d->expansion, row, to, d->pass_width);
      d->base.header.warnings |= is_good ? 0u : CCODECS_WARNING_DAMAGED;
    }
    if (d->is_interlaced) {
      spread(d, d->row + d->ready);
    }
  }
  return known == complete;
}

/// Makes the last row of the batch the row above the next batch.
static void end_batch(png_decoder *d) {
  memmove(batch_row(d, -1), batch_row(d, (ptrdiff_t)d->ready - 1), d->row_stride - 1);
  d->row += d->ready;
  d->ready = 0;
  d->filled = 0;
}

/// Reads the rest of the compressed stream after the last row, up to its checksum.
static void drain(png_decoder *d, ccodecs_input *input) {
  uint8_t extra[64];
  while (input->count > 0 && !d->is_inflated) {
    size_t count;
    if (!inflate_into(d, input, extra, sizeof extra, &count) ||
        count != 0) { // damage or excess data is only a warning, as in libpng
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      d->is_inflated = true;
    }
  }
  ccodecs_input_advance(input, input->count);
}

/// Fills the batch as far as the input allows. Returns CCODECS_OK or records the failure.
static ccodecs_status fill_batch(png_decoder *d, ccodecs_input *input, uint32_t wanted) {
  const size_t wanted_bytes = wanted * d->row_stride;
  while (d->filled < wanted_bytes && !d->is_inflated) {
    size_t count;
    const bool is_good = inflate_into(d, input, batch_row(d, 0) - 1 + d->filled, wanted_bytes - d->filled, &count);
    d->filled += count;
    if (!is_good && d->filled < wanted_bytes) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's compressed data is damaged");
    }
    if (!is_good) { // behind these rows, which are the last ones if only the checksum is wrong
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      d->is_inflated = true;
    }
    if (count == 0 && input->count == 0) {
      break;
    }
  }
  if (d->is_inflated && d->filled < wanted_bytes) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's compressed data ends before the image");
  }
  const uint32_t complete = (uint32_t)(d->filled / d->row_stride);
  const uint32_t checked = complete < wanted ? complete - complete % CHECKED_ROWS : complete;
  const bool is_finished = complete == wanted || count_known(d, checked) < checked;
  if (!finish_rows(d, is_finished ? checked : complete - complete % PNG_ROWS_AT_ONCE)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a row of the PNG has an unknown filter");
  }
  return CCODECS_OK;
}

/// Returns the unfiltered rows of the batch.
static void give_batch(png_decoder *d, ccodecs_rows *rows) {
  rows->planes[0] = d->expanded != NULL ? d->expanded : batch_row(d, 0);
  rows->row_strides[0] = d->expanded != NULL ? d->given_bytes : d->row_stride;
  rows->row_counts[0] = d->ready;
  d->given += d->ready;
  end_batch(d);
}

ccodecs_status ccodecs_png_rows_give_last(png_decoder *d, ccodecs_rows *rows) {
  if (d->is_interlaced) {
    return CCODECS_OK;
  }
  finish_rows(d, (uint32_t)(d->filled / d->row_stride)); // up to an unknown filter, if any
  if (d->ready == 0) {
    return CCODECS_OK;
  }
  give_batch(d, rows);
  return CCODECS_ROWS_READY;
}

ccodecs_status ccodecs_png_rows_read(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  while (!ccodecs_png_rows_are_complete(d)) {
    const uint32_t left = d->pass_height - d->row;
    const uint32_t wanted = left < d->rows_capacity ? left : (uint32_t)d->rows_capacity;
    CCODECS_TRY(fill_batch(d, input, wanted));
    if (d->ready < wanted) {
      return CCODECS_OK;
    }
    if (d->is_interlaced) {
      end_batch(d);
      if (d->row == d->pass_height) {
        d->pass++;
        begin_pass(d);
      }
      continue;
    }
    give_batch(d, rows);
    return CCODECS_ROWS_READY;
  }
  drain(d, input);
  return CCODECS_OK;
}

ccodecs_status ccodecs_png_rows_emit_buffered(png_decoder *d, ccodecs_rows *rows) {
  static const uint32_t strip_row_count = 64;
  const uint32_t left = d->image_height - d->given;
  if (left == 0) {
    return CCODECS_DONE;
  }
  ccodecs_spill_pass(&d->buffered, d->given * d->given_bytes);
  rows->planes[0] = d->buffered.bytes + d->given * d->given_bytes;
  rows->row_strides[0] = d->given_bytes;
  rows->row_counts[0] = left < strip_row_count ? left : strip_row_count;
  d->given += rows->row_counts[0];
  return CCODECS_ROWS_READY;
}
