#include "row_decoder.h"

/// Returns the format, whose first member are the methods.
static const row_format *format_of(const row_decoder *d) {
  return (const row_format *)d->base.methods;
}

ccodecs_status ccodecs_row_decoder_corrupt(row_decoder *d, const char *reason) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "%s data: %s", format_of(d)->name, reason);
}

void ccodecs_row_decoder_measure(row_decoder *d, size_t stored_bytes) {
  // No overflow: a width has 31 bits, and the pixel limit of streamed images is far below the overflow.
  d->stored_bytes = stored_bytes;
  d->row_bytes = (size_t)d->base.header.width * d->channels * (d->base.header.is_16bit ? 2 : 1);
  d->strip_rows = ccodecs_decoder_strip_rows(d->row_bytes);
}

ccodecs_status ccodecs_row_decoder_end_header(row_decoder *d, const ccodecs_input *input, ccodecs_status status) {
  return status == CCODECS_NEEDS_INPUT && input->is_last
             ? ccodecs_decoder_fail(
                   &d->base, CCODECS_TRUNCATED, "the %s data ends before the first row", format_of(d)->name)
             : status;
}

ccodecs_status ccodecs_row_decoder_look_ahead(row_decoder *d, ccodecs_input *input) {
  d->base.header.buffers_input = true;
  if (!ccodecs_bytes_gather(&d->ahead, input, SIZE_MAX, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the %s file", format_of(d)->name);
  }
  return CCODECS_OK;
}

ccodecs_status ccodecs_row_decoder_read_plain(row_decoder *d, ccodecs_input *input) {
  return ccodecs_input_collect(input, d->stored, &d->stored_count, d->stored_bytes) ? CCODECS_OK : CCODECS_NEEDS_INPUT;
}

ccodecs_status ccodecs_row_decoder_estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const row_decoder *d = (const row_decoder *)base;
  *byte_count = (uint64_t)d->stored_bytes + (uint64_t)d->row_bytes * d->strip_rows + 4 * 64;
  return CCODECS_OK;
}

ccodecs_status ccodecs_row_decoder_start(
    ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  row_decoder *d = (row_decoder *)base;
  ccodecs_decoder_describe_packed(base, d->channels, layout);
  d->stored = ccodecs_allocate(base->budget, d->stored_bytes);
  d->strip = ccodecs_allocate(base->budget, d->row_bytes * d->strip_rows);
  if (d->stored == NULL || d->strip == NULL) {
    return CCODECS_NO_MEMORY;
  }
  memset(d->stored, 0, d->stored_bytes); // runs may skip pixels
  return CCODECS_OK;
}

static ccodecs_status read_strip(row_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  ccodecs_decoder *base = &d->base;
  uint32_t count = 0;
  ccodecs_status status = d->postponed;
  d->postponed = CCODECS_OK;
  while (status == CCODECS_OK && count < d->strip_rows && d->row < base->header.height) {
    status = format_of(d)->read_row(d, input);
    if (status == CCODECS_OK) {
      d->stored_count = 0;
      format_of(d)->put_row(d, d->strip + count * d->row_bytes);
      count++;
      d->row++;
    }
  }
  if (count > 0) {
    if (status >= CCODECS_CORRUPT) {
      d->postponed = status;
      base->failure = CCODECS_OK;
    }
    rows->planes[0] = d->strip;
    rows->row_strides[0] = d->row_bytes;
    rows->row_counts[0] = count;
    return CCODECS_ROWS_READY;
  }
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the %s data ends before the last row", format_of(d)->name);
  }
  base->failure = status >= CCODECS_CORRUPT ? status : base->failure;
  return status == CCODECS_OK ? CCODECS_DONE : status;
}

ccodecs_status ccodecs_row_decoder_read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  row_decoder *d = (row_decoder *)base;
  if (d->ahead.count > 0) {
    ccodecs_input buffered = {.bytes = ccodecs_bytes_start(&d->ahead), .count = d->ahead.count};
    const ccodecs_status status = read_strip(d, &buffered, rows);
    ccodecs_bytes_take(&d->ahead, d->ahead.count - buffered.count);
    if (status != CCODECS_NEEDS_INPUT) {
      return status;
    }
    ccodecs_bytes_free(&d->ahead, base->budget);
  }
  return read_strip(d, input, rows);
}

void ccodecs_row_decoder_destroy(ccodecs_decoder *base) {
  row_decoder *d = (row_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_bytes_free(&d->ahead, budget);
  ccodecs_free(budget, d->stored);
  ccodecs_free(budget, d->strip);
}
