// Row-by-row decoding of progressive images in the native JPEG decoder: the scans' bytes are buffered, and when all of
// them are available, each row of units is decoded from every scan.
//
// So only the coefficients of one row exist at a time, and they stay in the processor's cache. Passing over the
// coefficients of the whole image for each of its scans, often ten, would cost as much as decoding them. The buffer
// holds the compressed file instead, often a tenth of the size of the coefficients. At 1/8, which needs only DC
// coefficients, those are smaller than the compressed bytes, so scans are decoded as they arrive.

#include "jpeg_codes.h"
#include "jpeg_decoder.h"

#include <string.h>

enum {
  SCANS_FORESEEN = 100, ///< Assumed when neither the file nor max_scans limits the number of scans.
};

// MARK: Memory

/// Records what an SOS segment requires. `p` points to its body of `count` bytes.
static void foresee_scan(jpeg_rest *rest, const uint8_t *p, size_t count) {
  const uint32_t component_count = count > 0 ? p[0] : 0;
  const bool is_dc = count > 2 * (size_t)component_count + 1 && p[2 * component_count + 1] == 0;
  rest->scan_count++;
  rest->table_count += is_dc && component_count < 3 ? component_count : is_dc ? 3 : 1;
}

void ccodecs_jpeg_rows_foresee(jpeg_decoder *d, const ccodecs_input *window) {
  jpeg_rest *rest = &d->rest;
  const uint8_t *p = window->bytes;
  const uint8_t *end = window->count == 0 ? p : p + window->count;
  bool is_scan = true;
  *rest = (jpeg_rest){.is_known = true, .scan_count = 1, .table_count = d->scan.component_count};
  while (p < end) {
    const uint8_t *escape = memchr(p, 0xFF, (size_t)(end - p));
    const uint8_t *next = escape == NULL ? end : escape + 1;
    while (next < end && *next == 0xFF) {
      next++;
    }
    const uint8_t code = next < end ? *next++ : 0;
    rest->byte_count += is_scan ? (size_t)(next - p) : 0;
    p = next;
    if (code == EOI) {
      return;
    }
    if (code == 0 || ccodecs_jpeg_is_restart(code) || code < 0xC0) {
      continue;
    }
    const size_t left = (size_t)(end - p);
    const size_t length = left < 2 ? left : (size_t)p[0] << 8 | p[1];
    const size_t count = length < 2 ? 2 : length < left ? length : left;
    if (left < 2) {
      return;
    }
    is_scan = code == SOS;
    if (is_scan) {
      foresee_scan(rest, p + 2, count - 2);
    }
    p += count;
  }
}

/// Returns the size of a scan's own memory, without its tables.
static size_t scan_bytes(void) {
  return sizeof(jpeg_buffered_scan) + JPEG_HELD_INPUT_BYTES + JPEG_HELD_INPUT_SLACK;
}

/// Returns the size of all coefficients, an upper bound for their compressed size.
static uint64_t coefficient_bytes(const jpeg_decoder *d) {
  uint64_t bytes = 64 << 10;
  for (uint32_t i = 0; i < d->component_count; i++) {
    bytes += (uint64_t)d->components[i].padded_across * d->components[i].padded_down * 64 * sizeof(int16_t);
  }
  return bytes;
}

uint64_t ccodecs_jpeg_rows_charge(const jpeg_decoder *d, uint64_t buffered) {
  const uint64_t limit = d->base.limits.max_scans;
  uint64_t scans = d->rest.is_known ? d->rest.scan_count : SCANS_FORESEEN;
  scans = limit != 0 && limit < scans ? limit : scans;
  uint64_t tables = d->rest.is_known ? d->rest.table_count : scans + 2;
  tables = tables < 3 * scans ? tables : 3 * scans;
  const uint64_t bytes = d->rest.is_known ? d->rest.byte_count : coefficient_bytes(d);
  // The tables of a skipped scan are built as well.
  const uint64_t table_bytes = ccodecs_jpeg_table_bytes(JPEG_TABLE_PROGRESSIVE_AC, 0) + 128;
  return scans * (scan_bytes() + 128) + (tables + 3) * table_bytes +
         ccodecs_spool_charge(bytes, buffered, &d->base.limits);
}

// MARK: Holding

static ccodecs_status no_room(jpeg_decoder *d) {
  return ccodecs_decoder_fail(
      &d->base, CCODECS_NO_MEMORY, "scan %u must be buffered after %llu bytes of other scans, which do not fit",
      d->scan_count, (unsigned long long)d->buffered.count);
}

/// Moves the tables that the scan uses out of the decoder, so that the next scan builds its own.
static void take_tables(jpeg_decoder *d, jpeg_table *tables[3]) {
  const bool is_dc = d->scan.spectral_start == 0;
  for (uint32_t i = 0; i < d->scan.component_count; i++) {
    const jpeg_component *c = d->scan.components[i];
    const uint32_t index = is_dc ? c->dc_index : c->ac_index;
    jpeg_table **table = is_dc ? &d->dc_tables[index & 3] : &d->ac_tables[index & 3];
    tables[i] = index < 4 ? *table : NULL;
    *table = index < 4 ? NULL : *table;
  }
}

static void destroy_scan(jpeg_decoder *d, jpeg_buffered_scan *s) {
  for (uint32_t i = 0; i < 3; i++) {
    ccodecs_free(d->base.budget, s->tables[i]);
  }
  ccodecs_free(d->base.budget, s);
}

ccodecs_status ccodecs_jpeg_rows_begin_scan(jpeg_decoder *d) {
  if (d->buffered.max_memory == 0) {
    d->buffered.max_memory = d->rest.is_known ? UINT64_MAX : coefficient_bytes(d);
  }
  jpeg_buffered_scan *s = ccodecs_allocate(d->base.budget, scan_bytes());
  if (s == NULL) {
    return no_room(d);
  }
  *s = (jpeg_buffered_scan){
      .scan = d->scan,
      .in = {.bytes = (uint8_t *)(s + 1), .capacity = JPEG_HELD_INPUT_BYTES, .slack = JPEG_HELD_INPUT_SLACK},
      .restart_interval = d->restart_interval,
      .place = d->buffered.count,
  };
  take_tables(d, s->tables);
  if (d->scan.is_skipped) {
    destroy_scan(d, s);
    return CCODECS_OK;
  }
  jpeg_buffered_scan **link = d->buffered_scans == NULL ? &d->buffered_scans : &d->last_buffered_scan->next;
  *link = s;
  d->last_buffered_scan = s;
  return CCODECS_OK;
}

/// Returns how many bytes of a window are entropy-coded: up to a marker that ends the scan, or a 0xFF whose second byte
/// is not in the window.
static size_t coded_bytes(const ccodecs_input *window) {
  const uint8_t *p = window->bytes;
  const uint8_t *end = p + window->count;
  while (p < end) {
    const uint8_t *escape = memchr(p, 0xFF, (size_t)(end - p));
    if (escape == NULL) {
      return window->count;
    }
    if (end - escape < 2 || (escape[1] != 0 && !ccodecs_jpeg_is_restart(escape[1]))) {
      return (size_t)(escape - window->bytes);
    }
    p = escape + 2;
  }
  return window->count;
}

/// Returns an upper bound for the bytes of a scan's units: 31 bits for each coefficient, every byte stuffed, and a
/// restart marker for each unit.
static uint64_t max_bytes(const jpeg_scan *scan) {
  const uint64_t units = (uint64_t)scan->mcus_across * scan->mcus_down;
  const uint64_t coefficients = units * scan->block_count * (scan->spectral_end - scan->spectral_start + 1);
  return 8 * coefficients + 4 * units + 64;
}

/// Buffers bytes, unless the scan is skipped. Bytes beyond the maximum size of the scan's units are dropped. All scans
/// together may take twice the size of the coefficients plus 1 MiB, so that an endless file cannot fill the disk.
static ccodecs_status hold(jpeg_decoder *d, const uint8_t *bytes, size_t count) {
  if (d->scan.is_skipped) {
    return CCODECS_OK;
  }
  const uint64_t buffered = d->buffered.count - d->last_buffered_scan->place;
  const uint64_t maximum = max_bytes(&d->scan);
  const uint64_t left = buffered < maximum ? maximum - buffered : 0;
  if (count > left) {
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
    count = (size_t)left;
  }
  const uint64_t limit = 2 * coefficient_bytes(d) + (1 << 20);
  if (d->buffered.count + count > limit) {
    return ccodecs_decoder_exceed(
        &d->base, "bytes in its scans", (ccodecs_excess){"max_scan_bytes", limit, d->buffered.count + count});
  }
  return ccodecs_spool_append(&d->buffered, bytes, count, &d->base.limits, d->base.budget) ? CCODECS_OK : no_room(d);
}

/// Ends the buffered scan, whose last bytes are the marker; `marker` is 0 at the end of the input.
static ccodecs_status end_scan(jpeg_decoder *d, uint8_t marker) {
  d->in.marker = marker;
  if (!d->scan.is_skipped) {
    d->last_buffered_scan->end = d->buffered.count;
  }
  return CCODECS_OK;
}

ccodecs_status ccodecs_jpeg_rows_buffer(jpeg_decoder *d, ccodecs_input *window) {
  while (window->count > 0) {
    if (!d->in.has_ff) {
      const size_t count = coded_bytes(window);
      CCODECS_TRY(hold(d, window->bytes, count));
      ccodecs_input_advance(window, count);
      d->in.has_ff = window->count > 0;
      ccodecs_input_advance(window, d->in.has_ff);
      continue;
    }
    const uint8_t code = *window->bytes;
    ccodecs_input_advance(window, 1);
    if (code == 0xFF) { // any number of them may precede a marker
      continue;
    }
    d->in.has_ff = false;
    CCODECS_TRY(hold(d, (const uint8_t[]){0xFF, code}, 2));
    if (code != 0 && !ccodecs_jpeg_is_restart(code)) {
      return end_scan(d, code);
    }
  }
  return window->is_last ? end_scan(d, 0) : CCODECS_NEEDS_INPUT;
}

// MARK: Reading

/// Sets `window` to the next bytes of a scan. Returns false when they cannot be read.
static bool open_window(jpeg_decoder *d, const jpeg_buffered_scan *s, ccodecs_input *window) {
  return ccodecs_spool_window(&d->buffered, s->place, s->end, window);
}

static ccodecs_status lost(jpeg_decoder *d) {
  d->base.budget->has_machine_failed = true;
  return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "spooled data cannot be read");
}

/// Decodes the decoder's current scan up to its row of units `end`.
static ccodecs_status read_units(jpeg_decoder *d, jpeg_buffered_scan *s, uint32_t end) {
  for (;;) {
    ccodecs_input window;
    if (!open_window(d, s, &window)) {
      return lost(d);
    }
    const size_t count = window.count;
    const ccodecs_status status = ccodecs_jpeg_progressive_read(d, &window, end);
    s->place += count - window.count;
    if (status != CCODECS_NEEDS_INPUT) {
      return status;
    }
  }
}

/// Ends a scan after its last unit: warns of unused bytes before the marker that ends the scan.
static ccodecs_status end_units(jpeg_decoder *d, jpeg_buffered_scan *s) {
  bool has_dropped = false;
  bool is_there = false;
  while (!is_there && !has_dropped) {
    ccodecs_input window;
    if (!open_window(d, s, &window)) {
      return lost(d);
    }
    const size_t count = window.count;
    is_there = ccodecs_jpeg_input_drop(&d->in, &window, &has_dropped);
    s->place += count - window.count;
    if (is_there && ccodecs_jpeg_is_restart(d->in.marker)) { // out of place
      ccodecs_jpeg_input_reset(&d->in);
      is_there = false;
    }
  }
  d->base.header.warnings |= has_dropped ? CCODECS_WARNING_DAMAGED : 0u;
  s->is_done = true;
  return CCODECS_OK;
}

/// Ends a damaged scan and the scans that refine it, which cannot be decoded without it.
static void end_damaged(jpeg_buffered_scan *s) {
  s->is_done = true;
  for (jpeg_buffered_scan *t = s->next; t != NULL; t = t->next) {
    const bool is_refinement = t->scan.high_bit != 0 && t->scan.spectral_start > 0;
    t->is_done = t->is_done ||
                 (is_refinement && t->scan.components[0] == s->scan.components[0] &&
                  t->scan.spectral_start <= s->scan.spectral_end && s->scan.spectral_start <= t->scan.spectral_end);
  }
}

/// Decodes the part of a scan that belongs to a row of units.
static ccodecs_status read_scan(jpeg_decoder *d, jpeg_buffered_scan *s, uint32_t mcu_row) {
  const bool is_single = s->scan.component_count == 1;
  const uint32_t down = is_single ? s->scan.components[0]->vertical : 1;
  const uint32_t maximum = (mcu_row + 1) * down;
  d->scan = s->scan;
  d->in = s->in;
  d->restart_interval = s->restart_interval;
  ccodecs_status status = read_units(d, s, maximum < d->scan.mcus_down ? maximum : d->scan.mcus_down);
  const bool has_rows = d->scan_count > 1 || mcu_row > 0;
  if (status == CCODECS_TRUNCATED && d->base.tolerates_truncation && has_rows) {
    d->base.failure = CCODECS_OK;
    d->base.header.warnings |= CCODECS_WARNING_TRUNCATED; // missing coefficients are zero
    s->is_done = true;
    return CCODECS_OK;
  }
  if (has_rows && ccodecs_decoder_tolerate(&d->base, status, mcu_row * 8 * d->max_vertical)) {
    end_damaged(s);
    return CCODECS_OK;
  }
  if (status == CCODECS_OK && d->scan.mcu_y == d->scan.mcus_down) {
    status = end_units(d, s);
  }
  s->scan = d->scan;
  s->in = d->in;
  return status;
}

ccodecs_status ccodecs_jpeg_rows_read(jpeg_decoder *d, uint32_t mcu_row) {
  if (mcu_row == 0 && !ccodecs_spool_end(&d->buffered)) {
    d->base.budget->has_machine_failed = true;
    return no_room(d);
  }
  d->band_row = mcu_row;
  for (jpeg_buffered_scan *s = d->buffered_scans; s != NULL; s = s->next) {
    CCODECS_TRY(s->is_done ? CCODECS_OK : read_scan(d, s, mcu_row));
  }
  return CCODECS_OK;
}

void ccodecs_jpeg_rows_destroy(jpeg_decoder *d) {
  if (d->buffered_scans != NULL) {
    d->in.bytes = NULL; // belongs to a scan
  }
  for (jpeg_buffered_scan *s = d->buffered_scans; s != NULL;) {
    jpeg_buffered_scan *next = s->next;
    destroy_scan(d, s);
    s = next;
  }
  ccodecs_spool_destroy(&d->buffered, d->base.budget);
}
