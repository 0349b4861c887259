// The native JPEG decoder's methods: header, memory, and the steps from scans to rows. See jpeg_decoder.h for the
// documentation.

#include "jpeg_decoder.h"
#include "jpeg_ahead.h"
#include "jpeg_codes.h"

#include <string.h>

enum {
  MAX_SEGMENT_BYTES = 65536 + 128,
  STRIP_ROWS_MAX = 32,         ///< Rows of a strip that has several rows of units.
  STRIP_BYTES_MAX = 64 * 1024, ///< Samples of such a strip.
};

static uint32_t divide_up(uint32_t count, uint32_t unit) {
  return (count + unit - 1) / unit;
}

// MARK: Header

/// Returns whether the image is RGB, by the rules that libjpeg uses to distinguish RGB from YCbCr.
static bool is_rgb(const jpeg_decoder *d) {
  if (d->component_count != 3 || d->has_jfif) {
    return false;
  }
  if (d->has_adobe) {
    return d->adobe_transform == 0;
  }
  return d->components[0].id == 'R' && d->components[1].id == 'G' && d->components[2].id == 'B';
}

/// Computes the sizes that do not depend on the scale.
static void measure(jpeg_decoder *d) {
  const ccodecs_header *header = &d->base.header;
  d->mcu_rows = divide_up(header->height, 8 * d->max_vertical);
  const uint32_t mcus_across = divide_up(header->width, 8 * d->max_horizontal);
  const uint32_t groups = divide_up(mcus_across, JPEG_LANES);
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    c->blocks_across = divide_up(header->width * c->horizontal, 8 * d->max_horizontal);
    c->blocks_down = divide_up(header->height * c->vertical, 8 * d->max_vertical);
    c->padded_across = groups * JPEG_LANES * c->horizontal;
    c->padded_down = d->mcu_rows * c->vertical;
  }
}

/// Reports the chroma subsampling if luma has the most samples and both chroma planes have a whole fraction of them.
static void tell_sampling(jpeg_decoder *d) {
  const jpeg_component *c = d->components;
  const bool is_usual = d->component_count == 3 && c[0].horizontal == d->max_horizontal &&
                        c[0].vertical == d->max_vertical && c[1].horizontal == c[2].horizontal &&
                        c[1].vertical == c[2].vertical && c[0].horizontal % c[1].horizontal == 0 &&
                        c[0].vertical % c[1].vertical == 0;
  if (is_usual) {
    d->base.header.chroma_across = (uint8_t)(c[0].horizontal / c[1].horizontal);
    d->base.header.chroma_down = (uint8_t)(c[0].vertical / c[1].vertical);
  }
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  switch (ccodecs_jpeg_markers_read(d, input)) {
  case JPEG_MARKER_NEEDS_INPUT:
    if (input->is_last) {
      return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the input ends inside the header");
    }
    return CCODECS_NEEDS_INPUT;
  case JPEG_MARKER_END:
    return ccodecs_decoder_fail(base, CCODECS_CORRUPT, "there is no scan before EOI");
  case JPEG_MARKER_FAILED:
    return base->failure;
  case JPEG_MARKER_SCAN:
    break;
  }
  if (is_rgb(d)) {
    return ccodecs_decoder_fail(base, CCODECS_UNSUPPORTED, "RGB components are unsupported");
  }
  ccodecs_free(base->budget, d->body);
  d->body = NULL;
  d->body_capacity = 0;
  d->is_multiscan = d->is_progressive || d->scan.component_count < d->component_count;
  base->header.is_progressive = d->is_progressive;
  base->header.color_space = d->component_count == 1 ? CCODECS_COLOR_GRAY : CCODECS_COLOR_YCBCR;
  measure(d);
  tell_sampling(d);
  ccodecs_jpeg_native_foresee(base, input);
  return CCODECS_OK;
}

void ccodecs_jpeg_native_foresee(ccodecs_decoder *base, const ccodecs_input *window) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  d->is_short = window->is_last && window->count < JPEG_AHEAD_BYTES_MIN;
  if (window->is_last && d->is_progressive) {
    ccodecs_jpeg_rows_foresee(d, window);
  }
}

static uint8_t scales(const ccodecs_decoder *base) {
  (void)base;
  return 0xFF;
}

/// A sequential block takes at least two bits, the codes of its DC difference and its end. A progressive block takes at
/// least one, in the scan of its DC coefficient; in the other scans one code can end thousands of blocks.
static uint64_t min_bytes(const ccodecs_decoder *base) {
  const jpeg_decoder *d = (const jpeg_decoder *)base;
  uint64_t blocks = 0;
  for (uint32_t i = 0; i < d->component_count; i++) {
    blocks += (uint64_t)d->components[i].blocks_across * d->components[i].blocks_down;
  }
  return blocks * (d->is_progressive ? 1 : 2) / 8;
}

// MARK: Memory

static size_t plane_stride(const jpeg_component *c, uint32_t n) {
  return ((size_t)c->padded_across * n + 8 + 63) & ~(size_t)63; // 8 for what a transform writes after a row
}

/// Returns the rows of units in a strip. Of small ones there are several, as passing a strip through the stages costs
/// as much as some of its rows.
static uint32_t strip_rows(const jpeg_decoder *d, uint32_t n) {
  if (d->is_multiscan) {
    return 1;
  }
  size_t bytes = 0;
  for (uint32_t i = 0; i < d->component_count; i++) {
    bytes += plane_stride(&d->components[i], n) * d->components[i].vertical * n;
  }
  const uint32_t fitting = (uint32_t)(STRIP_BYTES_MAX / bytes);
  const uint32_t wanted = STRIP_ROWS_MAX / (d->max_vertical * n);
  const uint32_t count = fitting < wanted ? fitting : wanted;
  return count < 1 ? 1 : count < d->mcu_rows ? count : d->mcu_rows;
}

/// Returns the rows of a component in memory: those of a strip, or of the whole plane.
static uint32_t plane_rows(const jpeg_decoder *d, const jpeg_component *c, uint32_t n) {
  return n * (d->is_multiscan && !d->is_progressive ? c->padded_down : c->vertical * strip_rows(d, n));
}

static uint64_t sample_bytes(const jpeg_decoder *d, const jpeg_component *c, uint32_t n) {
  return (uint64_t)plane_stride(c, n) * plane_rows(d, c, n) + 64;
}

static size_t group_bytes(uint32_t n) {
  return (size_t)JPEG_MAX_MCU_BLOCKS * (n * n + 1) * JPEG_LANES * sizeof(int16_t);
}

/// Returns the size of all tables that an image can use: one per component in one scan, four in several scans.
static uint64_t table_bytes(const jpeg_decoder *d) {
  const uint64_t count = d->is_multiscan ? 4 : d->component_count;
  const uint64_t dc = ccodecs_jpeg_table_bytes(JPEG_TABLE_DC, 0);
  const uint64_t ac = d->is_progressive ? ccodecs_jpeg_table_bytes(JPEG_TABLE_PROGRESSIVE_AC, 0)
                                        : ccodecs_jpeg_table_bytes(JPEG_TABLE_AC, JPEG_SKIP_BITS);
  return count * (dc + ac + 2 * 128);
}

/// Returns the capacity of the input buffer.
static size_t input_bytes(const jpeg_decoder *d, uint32_t n) {
  return ccodecs_jpeg_ahead_is_useful(d, n) ? JPEG_AHEAD_INPUT_BYTES : JPEG_INPUT_BYTES;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const jpeg_decoder *d = (const jpeg_decoder *)base;
  const uint32_t n = options->scale_eighths;
  const uint64_t alignment = 8 * 128; // alignment of the budget's blocks
  *byte_count = alignment;
  if (!d->is_progressive) {
    *byte_count += group_bytes(n);
  }
  if (!ccodecs_jpeg_buffers_scans(d, n)) {
    *byte_count += input_bytes(d, n) + JPEG_INPUT_SLACK + table_bytes(d);
  }
  if (ccodecs_jpeg_ahead_is_useful(d, n)) {
    *byte_count += sizeof(jpeg_ahead);
  }
  if (d->is_multiscan) {
    *byte_count += MAX_SEGMENT_BYTES;
  }
  // In the order of the allocations, because the bytes already charged decide which blocks move to a file.
  uint64_t planes = 0;
  for (uint32_t i = 0; i < d->component_count; i++) {
    planes += ccodecs_spill_charge(sample_bytes(d, &d->components[i], n), base->budget->used + planes, &base->limits);
  }
  if (d->is_progressive) {
    planes += ccodecs_jpeg_progressive_charge(d, n, base->budget->used + planes);
  }
  *byte_count += planes;
  if (ccodecs_jpeg_buffers_scans(d, n)) {
    *byte_count += ccodecs_jpeg_rows_charge(d, base->budget->used + planes);
  }
  return CCODECS_OK;
}

/// Computes the position in a tile of each zigzag index. Coefficients that are not needed, and the ends that lookups
/// write, go to the tile's last row.
static void fill_places(jpeg_decoder *d) {
  const uint16_t elsewhere = (uint16_t)(d->n * d->n * JPEG_LANES);
  for (uint32_t i = 0; i < sizeof d->places / sizeof *d->places; i++) {
    d->places[i] = elsewhere;
  }
  for (uint32_t k = 0; k < 80; k++) {
    const uint32_t natural = k < 64 ? ccodecs_jpeg_zigzag[k] : 63; // for runs that go past the end
    const uint32_t v = natural / 8, u = natural % 8;
    if (u < d->n && v < d->n) {
      d->places[k + 1] = (uint16_t)((v * d->n + u) * JPEG_LANES);
      d->limit = k < 64 ? k + 1 : d->limit;
      d->needed |= k < 64 ? 1ull << k : 0;
    }
  }
}

static ccodecs_status start_planes(jpeg_decoder *d, ccodecs_layout *layout) {
  const ccodecs_header *header = &d->base.header;
  layout->pixels = d->component_count == 1 ? CCODECS_PIXELS_GRAY8 : CCODECS_PIXELS_YCC8;
  layout->plane_count = d->component_count;
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    c->stride = plane_stride(c, d->n);
    if (!ccodecs_spill_create(&c->samples, sample_bytes(d, c, d->n), &d->base.limits, d->base.budget)) {
      return ccodecs_decoder_fail(
          &d->base, CCODECS_NO_MEMORY, "a component's samples need %llu bytes, which do not fit",
          (unsigned long long)sample_bytes(d, c, d->n));
    }
    c->plane_width = divide_up(header->width * c->horizontal * d->n, d->max_horizontal * 8);
    c->plane_height = divide_up(header->height * c->vertical * d->n, d->max_vertical * 8);
    layout->planes[i] = (ccodecs_plane){
        .width = c->plane_width,
        .height = c->plane_height,
        .channels = 1,
        .horizontal_scale = (double)(c->horizontal * d->n) / (d->max_horizontal * 8),
        .vertical_scale = (double)(c->vertical * d->n) / (d->max_vertical * 8),
    };
  }
  return CCODECS_OK;
}

static ccodecs_status start_scan(jpeg_decoder *d) {
  const ccodecs_status status = ccodecs_jpeg_scan_start(d);
  return status == CCODECS_OK && ccodecs_jpeg_buffers_scans(d, d->n) ? ccodecs_jpeg_rows_begin_scan(d) : status;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  d->n = options->scale_eighths;
  d->strip_rows = strip_rows(d, d->n);
  d->tile_size = (d->n * d->n + 1) * JPEG_LANES;
  d->transform = ccodecs_jpeg_transform(d->n);
  fill_places(d);
  CCODECS_TRY(start_planes(d, layout));
  const bool buffers_scans = ccodecs_jpeg_buffers_scans(d, d->n); // each scan has its own input
  d->in.capacity = input_bytes(d, d->n);
  d->in.slack = JPEG_INPUT_SLACK;
  d->in.bytes = buffers_scans ? NULL : ccodecs_allocate(base->budget, d->in.capacity + JPEG_INPUT_SLACK);
  d->group = d->is_progressive ? NULL : ccodecs_allocate(base->budget, group_bytes(d->n));
  if ((d->in.bytes == NULL && !buffers_scans) || (d->group == NULL && !d->is_progressive)) {
    return ccodecs_decoder_fail(base, CCODECS_NO_MEMORY, "no room for the decoder's buffers");
  }
  if (d->is_progressive) {
    CCODECS_TRY(ccodecs_jpeg_progressive_create(d));
  } else {
    memset(d->group, 0, group_bytes(d->n));
  }
  d->may_go_ahead = ccodecs_jpeg_ahead_is_useful(d, d->n);
  return start_scan(d);
}

// MARK: Rows

/// Describes the next `mcu_rows` rows of units, in the strip or in the planes of an image with several scans.
static void describe(jpeg_decoder *d, uint32_t mcu_rows, ccodecs_rows *rows) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    const uint32_t count = mcu_rows * c->vertical * d->n;
    const uint32_t first = d->output_row * c->vertical * d->n;
    const uint32_t left = first < c->plane_height ? c->plane_height - first : 0;
    const bool is_whole = d->is_multiscan && !d->is_progressive;
    if (is_whole) {
      ccodecs_spill_pass(&c->samples, first * c->stride);
    }
    const size_t place = is_whole ? first : (size_t)(d->output_row % d->strip_rows) * c->vertical * d->n;
    rows->planes[i] = c->samples.bytes + place * c->stride;
    rows->row_strides[i] = c->stride;
    rows->row_counts[i] = count < left ? count : left;
  }
  d->output_row += mcu_rows;
}

static ccodecs_status read_single(jpeg_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  if (d->output_row == d->mcu_rows || d->late_failure != CCODECS_OK) {
    d->base.failure = d->late_failure;
    return d->late_failure == CCODECS_OK ? CCODECS_DONE : d->late_failure;
  }
  // A strip begins at a multiple of its rows, and is returned in parts where the input pauses.
  const uint32_t strip_end = (d->output_row / d->strip_rows + 1) * d->strip_rows;
  const uint32_t end = strip_end < d->mcu_rows ? strip_end : d->mcu_rows;
  ccodecs_status status = CCODECS_ROWS_READY;
  while (d->decoded_row < end && status == CCODECS_ROWS_READY) {
    status = ccodecs_jpeg_scan_read_row(d, input);
    d->decoded_row += status == CCODECS_ROWS_READY;
  }
  if (d->decoded_row == d->output_row) {
    return status;
  }
  // The rows before a failure are still good.
  d->late_failure = status < CCODECS_CORRUPT ? CCODECS_OK : status;
  d->base.failure = CCODECS_OK;
  describe(d, d->decoded_row - d->output_row, rows);
  return CCODECS_ROWS_READY;
}

/// Decodes or buffers a scan to its end. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status read_scan(jpeg_decoder *d, ccodecs_input *input) {
  if (d->is_progressive && ccodecs_jpeg_buffers_scans(d, d->n)) {
    return ccodecs_jpeg_rows_buffer(d, input);
  }
  if (d->is_progressive) {
    const ccodecs_status status = ccodecs_jpeg_progressive_read(d, input, d->scan.mcus_down);
    const bool has_rows = d->scan_count > 1 || d->scan.mcu_y > 0;
    const bool is_tolerated = has_rows && ccodecs_decoder_tolerate(&d->base, status, ccodecs_jpeg_damage_row(d));
    return is_tolerated ? CCODECS_OK : status;
  }
  while (d->scan.mcu_y < d->scan.mcus_down) {
    const ccodecs_status status = ccodecs_jpeg_scan_read_row(d, input);
    if (status != CCODECS_ROWS_READY) {
      return status;
    }
    for (uint32_t i = 0; i < d->scan.component_count; i++) {
      jpeg_component *c = d->scan.components[i];
      const uint32_t rows = d->n * (d->scan.component_count == 1 ? 1u : c->vertical);
      ccodecs_spill_pass(&c->samples, (size_t)d->scan.mcu_y * rows * c->stride);
    }
  }
  return CCODECS_OK;
}

/// Returns whether every component had a scan.
static bool has_scans(const jpeg_decoder *d) {
  bool has_all = true;
  for (uint32_t i = 0; i < d->component_count; i++) {
    has_all = has_all && d->components[i].has_scan;
  }
  return has_all;
}

/// Returns whether the image is complete although EOI is missing.
static bool is_complete(const jpeg_decoder *d) {
  return d->is_progressive ? ccodecs_jpeg_progressive_is_complete(d) : has_scans(d);
}

/// Skips to the marker after the last unit of a scan. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status end_scan(jpeg_decoder *d, ccodecs_input *input) {
  if (!ccodecs_jpeg_buffers_scans(d, d->n)) { // otherwise the marker was read already
    bool has_dropped = false;
    const bool is_there = ccodecs_jpeg_input_drop(&d->in, input, &has_dropped);
    d->base.header.warnings |= has_dropped && !d->scan.is_skipped ? CCODECS_WARNING_DAMAGED : 0u;
    if (!is_there) {
      return CCODECS_NEEDS_INPUT;
    }
  }
  const uint8_t marker = d->in.marker;
  if (marker == 0) {
    d->stage = JPEG_STAGE_OUTPUT;
    return is_complete(d) ? CCODECS_OK
                          : ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the input ends before the last scan");
  }
  if (ccodecs_jpeg_is_restart(marker)) { // of a scan that is skipped, or out of place
    ccodecs_jpeg_input_reset(&d->in);
    return CCODECS_OK;
  }
  ccodecs_jpeg_markers_resume(d, marker);
  d->stage = JPEG_STAGE_MARKERS;
  return CCODECS_OK;
}

/// Reads the segments between scans. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status read_markers(jpeg_decoder *d, ccodecs_input *input) {
  switch (ccodecs_jpeg_markers_read(d, input)) {
  case JPEG_MARKER_NEEDS_INPUT:
    if (!input->is_last) {
      return CCODECS_NEEDS_INPUT;
    }
    d->stage = JPEG_STAGE_OUTPUT;
    return is_complete(d) ? CCODECS_OK
                          : ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the input ends between two scans");
  case JPEG_MARKER_END:
    d->stage = JPEG_STAGE_OUTPUT;
    return has_scans(d) ? CCODECS_OK
                        : ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a component has no scan before EOI");
  case JPEG_MARKER_FAILED:
    return d->base.failure;
  case JPEG_MARKER_SCAN:
    break;
  }
  d->stage = JPEG_STAGE_SCAN;
  return start_scan(d);
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  if (!d->is_multiscan) {
    return read_single(d, input, rows);
  }
  ccodecs_status status = CCODECS_OK;
  while (d->stage != JPEG_STAGE_OUTPUT && status == CCODECS_OK) {
    if (d->stage == JPEG_STAGE_SCAN) {
      status = read_scan(d, input);
      d->stage = status == CCODECS_OK ? JPEG_STAGE_SCAN_END : JPEG_STAGE_SCAN;
    } else if (d->stage == JPEG_STAGE_SCAN_END) {
      status = end_scan(d, input);
    } else {
      status = read_markers(d, input);
    }
  }
  const bool has_rows =
      d->is_progressive && (d->scan_count > 1 || d->scan.mcu_y > 0 || ccodecs_jpeg_buffers_scans(d, d->n));
  if (status == CCODECS_TRUNCATED && base->tolerates_truncation && has_rows) {
    base->failure = CCODECS_OK;
    base->header.warnings |= CCODECS_WARNING_TRUNCATED;
    d->stage = JPEG_STAGE_OUTPUT; // the image as refined so far; missing coefficients are zero
    status = CCODECS_OK;
  }
  if (d->stage == JPEG_STAGE_MARKERS && (has_rows || has_scans(d)) && ccodecs_decoder_tolerate(base, status, 0)) {
    d->stage = JPEG_STAGE_OUTPUT;
    status = CCODECS_OK;
  }
  CCODECS_TRY(status);
  if (d->output_row == d->mcu_rows) {
    return CCODECS_DONE;
  }
  if (ccodecs_jpeg_buffers_scans(d, d->n)) {
    CCODECS_TRY(ccodecs_jpeg_rows_read(d, d->output_row));
  }
  if (d->is_progressive) {
    ccodecs_jpeg_progressive_output(d, d->output_row);
  }
  describe(d, 1, rows);
  return CCODECS_ROWS_READY;
}

// MARK: Life

static void destroy(ccodecs_decoder *base) {
  jpeg_decoder *d = (jpeg_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_jpeg_rows_destroy(d);
  ccodecs_jpeg_progressive_destroy(d);
  for (uint32_t i = 0; i < 4; i++) {
    ccodecs_free(budget, d->dc_tables[i]);
    ccodecs_free(budget, d->ac_tables[i]);
  }
  ccodecs_free(budget, d->body);
  for (uint32_t i = 0; i < 3; i++) {
    ccodecs_spill_destroy(&d->components[i].samples, budget);
  }
  ccodecs_free(budget, d->in.bytes);
  ccodecs_free(budget, d->group);
  ccodecs_free(budget, d->ahead);
}

const ccodecs_decoder_methods ccodecs_jpeg_native_decoder = {
    .byte_count = sizeof(jpeg_decoder),
    .read_header = read_header,
    .scales = scales,
    .min_bytes = min_bytes,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};
