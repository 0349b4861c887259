#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jpeg/jpeg_decoder.h"

/// The state of one decoding.
typedef struct run {
  const file *f;
  const native_options *options;
  ccodecs_decoder *decoder;
  ccodecs_input input;
  uint8_t *window; ///< Exact-size copy of the window; NULL if the window is the whole file.
  size_t next;     ///< Offset of the first byte that has not been supplied.
  uint32_t rows[MAX_PLANES];
  native_result result;
} run;

static void require(bool holds, const run *r, const char *what) {
  if (!holds) {
    fprintf(stderr, "%s at %u/8: %s\n", r->f->name, r->options->eighths, what);
    abort();
  }
}

/// Supplies the next window; the previous one must be consumed.
static void feed(run *r) {
  require(r->input.count == 0 && !r->input.is_last, r, "the decoder wants input although it has some");
  const size_t left = r->f->count - r->next;
  const size_t count = left < r->options->window ? left : r->options->window;
  const uint8_t *bytes = r->f->bytes;
  free(r->window);
  r->window = NULL;
  if (count < r->f->count) {
    r->window = malloc(count == 0 ? 1 : count);
    memcpy(r->window, r->f->bytes + r->next, count);
    bytes = r->window;
  }
  r->next += count;
  r->input = (ccodecs_input){.bytes = bytes, .count = count, .is_last = r->next == r->f->count};
}

static ccodecs_status start(run *r) {
  ccodecs_status status;
  do {
    feed(r);
    status = ccodecs_decoder_read_header(r->decoder, &r->input);
  } while (status == CCODECS_NEEDS_INPUT);
  if (status != CCODECS_OK) {
    return status;
  }
  const ccodecs_decode_options options = {
      .scale_eighths = r->options->eighths,
      .tolerates_truncation = r->options->tolerates_truncation,
      .tolerates_damage = r->options->tolerates_damage,
  };
  ccodecs_layout layout;
  ccodecs_decoder_estimate(r->decoder, &options, &r->result.estimate);
  status = ccodecs_decoder_start(r->decoder, &options, &layout);
  planes *p = &r->result.planes;
  p->count = status == CCODECS_OK ? layout.plane_count : 0;
  for (uint32_t i = 0; i < p->count; i++) {
    p->widths[i] = layout.planes[i].width;
    p->heights[i] = layout.planes[i].height;
    p->strides[i] = layout.planes[i].width;
    p->eighths[i] = r->options->eighths;
    p->samples[i] = r->options->keeps_samples ? malloc((size_t)p->widths[i] * p->heights[i]) : NULL;
  }
  return status;
}

static void take_rows(run *r, const ccodecs_rows *rows) {
  planes *p = &r->result.planes;
  for (uint32_t i = 0; i < p->count; i++) {
    require(rows->row_counts[i] <= p->heights[i] - r->rows[i], r, "there are more rows than the image has");
    for (uint32_t row = 0; row < rows->row_counts[i] && p->samples[i] != NULL; row++) {
      memcpy(
          p->samples[i] + (size_t)(r->rows[i] + row) * p->strides[i], rows->planes[i] + row * rows->row_strides[i],
          p->widths[i]);
    }
    r->rows[i] += rows->row_counts[i];
  }
}

static ccodecs_status read_all_rows(run *r) {
  ccodecs_rows rows;
  ccodecs_status status;
  while ((status = ccodecs_decoder_read_rows(r->decoder, &r->input, &rows)) < CCODECS_DONE) {
    if (status == CCODECS_ROWS_READY) {
      take_rows(r, &rows);
    } else {
      feed(r);
    }
  }
  for (uint32_t i = 0; i < r->result.planes.count && status == CCODECS_DONE; i++) {
    require(r->rows[i] == r->result.planes.heights[i], r, "fewer rows than the image has");
  }
  return status;
}

native_result native_decode(const file *f, const native_options *options) {
  run r = {.f = f, .options = options};
  ccodecs_budget budget = {.limit = options->budget, .used = options->buffered, .peak = options->buffered};
  const ccodecs_limits limits = {
      .max_pixels = options->max_pixels,
      .max_whole_input_pixels = options->max_pixels,
      .max_scans = options->max_scans,
      .can_spill = options->spill_directory >= 0,
      .spill_directory = options->spill_directory,
  };
  r.decoder = ccodecs_decoder_allocate(&ccodecs_jpeg_native_decoder, CCODECS_FORMAT_JPEG, &limits, &budget);
  if (r.decoder == NULL) {
    r.result.status = CCODECS_NO_MEMORY;
    return r.result;
  }
  r.result.status = start(&r);
  if (r.result.status == CCODECS_OK) {
    r.result.status = read_all_rows(&r);
  }
  r.result.warnings = ccodecs_decoder_header(r.decoder)->warnings;
  r.result.consumed = r.next - r.input.count;
  memcpy(r.result.message, ccodecs_decoder_message(r.decoder), sizeof r.result.message);
  ccodecs_decoder_destroy(r.decoder);
  require(budget.used == options->buffered, &r, "memory was not given back");
  r.result.peak = budget.peak;
  free(r.window);
  if (r.result.status != CCODECS_DONE) {
    planes_free(&r.result.planes);
  }
  return r.result;
}

bool native_is_refused_by_size(const native_result *result) {
  return result->status == CCODECS_TRUNCATED && strstr(result->message, "the header specifies") == result->message;
}
