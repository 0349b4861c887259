// JPEG decoding with libjpeg-turbo: raw component planes if the image is YCbCr or gray, RGB rows otherwise.
//
// libjpeg suspends when its source is empty, and later restarts at the last position that it can, so the bytes from
// there on must stay available. The source reads directly from the caller's window; only the rest of a consumed window
// is carried over. Arithmetic coding, which cannot suspend, is in jpeg_turbo_arithmetic.c.

#include "jpeg_turbo.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((uint32_t)(component)->DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((uint32_t)(component)->DCT_scaled_size)
#endif

/// Bytes that libjpeg allocates in addition to coefficients and rows: tables, one MCU row of blocks, the decoder
/// itself.
static const size_t library_bytes = 192 * 1024;
/// Bytes of the row buffers of the color converter and the upsampler, per pixel of width, if they are used.
static const size_t library_bytes_per_column = 96;
/// Rows of an RGB strip.
static const uint32_t packed_row_count = 16;
/// Bytes appended to the carried ones at a time, until the source can continue in the window.
static const size_t carry_step = 4096;

// MARK: Callbacks of the library

static jpeg_turbo *owner(j_common_ptr info) {
  return (jpeg_turbo *)info->client_data;
}

_Static_assert(sizeof((ccodecs_decoder){0}.message) >= JMSG_LENGTH_MAX, "as libjpeg's messages need");

static void on_error(j_common_ptr info) {
  jpeg_turbo *d = owner(info);
  switch (info->err->msg_code) {
  case JERR_OUT_OF_MEMORY:
  case JERR_NO_BACKING_STORE:
    d->escape_status = CCODECS_NO_MEMORY;
    break;
  case JERR_BAD_PRECISION:
  case JERR_ARITH_NOTIMPL:
  case JERR_SOF_UNSUPPORTED:
  case JERR_NOTIMPL:
  case JERR_CONVERSION_NOTIMPL:
  case JERR_COMPONENT_COUNT:
  case JERR_CCIR601_NOTIMPL:
  case JERR_FRACT_SAMPLE_NOTIMPL:
    d->escape_status = CCODECS_UNSUPPORTED;
    break;
  default:
    d->escape_status = CCODECS_CORRUPT;
    break;
  }
  info->err->format_message(info, d->base.message);
  longjmp(d->escape, 1);
}

/// Handles damage for which the library produces gray blocks: records it if it is tolerated, otherwise fails.
static void note_damage(jpeg_turbo *d) {
  const uint32_t scale = d->info.scale_num == 0 ? 8 : d->info.scale_num;
  if (!ccodecs_decoder_tolerate(&d->base, CCODECS_CORRUPT, d->info.output_scanline * 8 / scale)) {
    d->is_damaged = true;
    d->info.err->format_message((j_common_ptr)&d->info, d->base.message);
  }
}

static void on_message(j_common_ptr info, int level) {
  if (level >= 0) {
    return;
  }
  jpeg_turbo *d = owner(info);
  info->err->num_warnings++;
  switch (info->err->msg_code) {
  case JWRN_HIT_MARKER:
    if (d->info.progressive_mode) {
      // A refinement is missing, not a part of the image.
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      break;
    }
    note_damage(d);
    break;
  case JWRN_MUST_RESYNC:
  case JWRN_HUFF_BAD_CODE:
    note_damage(d);
    break;
  default:
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
    break;
  }
}

static void on_output(j_common_ptr info) {
  (void)info;
}

static void on_reset(j_common_ptr info) {
  info->err->num_warnings = 0;
  info->err->msg_code = 0;
}

/// Called for every row of blocks of every scan: a small file can contain a thousand scans of a large image.
static void on_progress(j_common_ptr info) {
  jpeg_turbo *d = owner(info);
  const uint32_t limit = d->base.limits.max_scans;
  if (limit != 0 && (uint32_t)d->info.input_scan_number > limit) {
    const ccodecs_excess excess = {"max_scans", limit, (uint64_t)d->info.input_scan_number};
    d->escape_status = ccodecs_decoder_exceed(&d->base, "scans", excess);
    longjmp(d->escape, 1);
  }
  if (ccodecs_jpeg_turbo_has_too_many_scans(d)) {
    d->escape_status = CCODECS_LIMIT;
    longjmp(d->escape, 1);
  }
  if (d->is_damaged) {
    d->escape_status = CCODECS_CORRUPT;
    longjmp(d->escape, 1);
  }
}

static void on_source(j_decompress_ptr info) {
  (void)info;
}

static void on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) {
    return;
  }
  jpeg_turbo *d = (jpeg_turbo *)info->client_data;
  const size_t here = (size_t)count < d->source.bytes_in_buffer ? (size_t)count : d->source.bytes_in_buffer;
  d->source.next_input_byte += here;
  d->source.bytes_in_buffer -= here;
  d->skip += (size_t)count - here;
}

// MARK: Input

/// A step of libjpeg. Returns true when it completed, false when it had to suspend.
typedef bool (*step)(jpeg_turbo *d);

/// Runs `step` and catches libjpeg's errors. The only function with a setjmp.
static ccodecs_status run_caught(jpeg_turbo *d, step step, bool *is_done) {
  if (setjmp(d->escape) != 0) {
    d->base.failure = d->escape_status;
    return d->escape_status;
  }
  *is_done = step(d);
  if (d->is_damaged) {
    d->base.failure = CCODECS_CORRUPT;
    return CCODECS_CORRUPT;
  }
  return CCODECS_OK;
}

/// Runs `step` once, on the carried bytes or on the window. Sets *has_all when no byte is left to offer.
static ccodecs_status run_once(jpeg_turbo *d, ccodecs_input *input, step step, bool *is_done, bool *has_all) {
  const size_t skipped = d->skip < input->count ? d->skip : input->count;
  ccodecs_input_advance(input, skipped);
  d->skip -= skipped;
  const size_t old = d->carry.count;
  const bool is_whole = input->count < carry_step || d->info.arith_code;
  const size_t moved = old == 0 ? 0 : is_whole ? input->count : carry_step;
  if (!ccodecs_bytes_append(&d->carry, input->bytes, moved, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for a marker segment");
  }
  const bool from_carry = old > 0;
  const uint8_t *start = from_carry ? ccodecs_bytes_start(&d->carry) : input->bytes;
  d->source.next_input_byte = start;
  const size_t given = from_carry ? d->carry.count : input->count;
  d->source.bytes_in_buffer = given;
  d->has_ended = false;
  CCODECS_TRY(run_caught(d, step, is_done));
  const size_t used = d->has_ended ? given : (size_t)(d->source.next_input_byte - start);
  if (!from_carry) {
    ccodecs_input_advance(input, used);
    *has_all = true;
  } else if (used >= old) { // the source is at bytes that are also in the window
    ccodecs_bytes_take(&d->carry, d->carry.count);
    ccodecs_input_advance(input, used - old);
    *has_all = input->count == 0;
  } else {
    ccodecs_bytes_take(&d->carry, used);
    ccodecs_input_advance(input, moved);
    *has_all = input->count == 0;
  }
  return CCODECS_OK;
}

/// Runs `step` until it completes or the window is consumed. Returns CCODECS_OK when it completed.
static ccodecs_status run(jpeg_turbo *d, ccodecs_input *input, step step) {
  while (true) {
    bool is_done = false;
    bool has_all = false;
    const size_t before = input->count;
    CCODECS_TRY(run_once(d, input, step, &is_done, &has_all));
    if (is_done) {
      return CCODECS_OK;
    }
    if (!has_all && (input->count < before || input->count > 0)) {
      continue;
    }
    if (input->is_last) {
      return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the JPEG data ends before the image");
    }
    if (!ccodecs_bytes_gather(&d->carry, input, SIZE_MAX, d->base.budget)) {
      return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for a marker segment");
    }
    return CCODECS_NEEDS_INPUT;
  }
}

// MARK: Header

static bool header_step(jpeg_turbo *d) {
  if (!d->is_created) {
    jpeg_create_decompress(&d->info);
    d->is_created = true;
    d->info.client_data = d;
    d->info.src = &d->source;
    d->info.progress = &d->progress;
    jpeg_save_markers(&d->info, JPEG_APP0 + 1, 0xFFFF);
    jpeg_save_markers(&d->info, JPEG_APP0 + 2, CCODECS_MPF_BYTES);
  }
  if (jpeg_read_header(&d->info, TRUE) != JPEG_HEADER_OK) {
    return false;
  }
  // Those between scans are not read, and libjpeg walks through those that it keeps for each one more.
  jpeg_save_markers(&d->info, JPEG_APP0 + 1, 0);
  jpeg_save_markers(&d->info, JPEG_APP0 + 2, 0);
  return true;
}

static void read_markers(jpeg_turbo *d) {
  ccodecs_header *header = &d->base.header;
  bool has_exif = false;
  for (jpeg_saved_marker_ptr marker = d->info.marker_list; marker != NULL; marker = marker->next) {
    if (marker->marker == JPEG_APP0 + 1 && !has_exif && marker->data_length >= 6 &&
        memcmp(marker->data, "Exif\0", 5) == 0) {
      bool is_broken;
      header->orientation = ccodecs_exif_orientation(marker->data + 6, marker->data_length - 6, &is_broken);
      header->warnings |= is_broken ? CCODECS_WARNING_BAD_EXIF : 0;
      has_exif = true;
    }
    if (marker->marker == JPEG_APP0 + 2 && marker->data_length >= 4 && memcmp(marker->data, "MPF\0", 4) == 0) {
      header->warnings |=
          ccodecs_mpf_has_more_images(marker->data + 4, marker->data_length - 4) ? CCODECS_WARNING_FIRST_FRAME : 0;
    }
  }
}

static ccodecs_color_space color_space(const jpeg_turbo *d) {
  switch (d->info.jpeg_color_space) {
  case JCS_GRAYSCALE:
    return CCODECS_COLOR_GRAY;
  case JCS_YCbCr:
    return CCODECS_COLOR_YCBCR;
  case JCS_CMYK:
    return CCODECS_COLOR_CMYK;
  case JCS_YCCK:
    return CCODECS_COLOR_YCCK;
  default:
    return CCODECS_COLOR_RGB;
  }
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  jpeg_turbo *d = (jpeg_turbo *)base;
  CCODECS_TRY(run(d, input, header_step));
  base->header.width = d->info.image_width;
  base->header.height = d->info.image_height;
  base->header.bit_depth = (uint8_t)d->info.data_precision;
  base->header.is_progressive = d->info.progressive_mode;
  base->header.buffers_input = d->info.arith_code;
  base->header.color_space = color_space(d);
  d->is_raw = base->header.color_space == CCODECS_COLOR_GRAY || base->header.color_space == CCODECS_COLOR_YCBCR;
  read_markers(d);
  return CCODECS_OK;
}

// MARK: Memory

/// 1, 2, 4 and 8: the sizes for which libjpeg-turbo has fast transforms.
static uint8_t scales(const ccodecs_decoder *base) {
  (void)base;
  return 1u << 0 | 1u << 1 | 1u << 3 | 1u << 7;
}

/// Same as in the native decoder. Arithmetic coding can store any number of blocks in a byte.
static uint64_t min_bytes(const ccodecs_decoder *base) {
  const jpeg_turbo *d = (const jpeg_turbo *)base;
  uint64_t blocks = 0;
  for (int i = 0; i < d->info.num_components; i++) {
    const jpeg_component_info *c = &d->info.comp_info[i];
    blocks += (uint64_t)c->width_in_blocks * c->height_in_blocks;
  }
  return d->info.arith_code ? 0 : blocks * (d->info.progressive_mode ? 1 : 2) / 8;
}

static uint64_t coefficient_bytes(const jpeg_turbo *d) {
  if (!jpeg_has_multiple_scans((j_decompress_ptr)&d->info)) {
    return 0;
  }
  uint64_t blocks = 0;
  for (int i = 0; i < d->info.num_components; i++) {
    const jpeg_component_info *c = &d->info.comp_info[i];
    const uint64_t across = c->width_in_blocks + (uint64_t)c->h_samp_factor;
    const uint64_t down = c->height_in_blocks + (uint64_t)c->v_samp_factor;
    blocks += across * down;
  }
  return blocks * DCTSIZE2 * sizeof(JCOEF);
}

static uint64_t internal_bytes(const jpeg_turbo *d) {
  const uint64_t rows = d->is_raw ? 0 : (uint64_t)d->info.image_width * library_bytes_per_column;
  return library_bytes + rows + coefficient_bytes(d);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const jpeg_turbo *d = (const jpeg_turbo *)base;
  uint64_t strip = 0;
  if (d->is_raw) {
    // A component may be decoded at up to twice the scale of another, but not above full size.
    const uint64_t scale = options->scale_eighths <= 4 ? options->scale_eighths * 2 : 8;
    for (int i = 0; i < d->info.num_components; i++) {
      const jpeg_component_info *c = &d->info.comp_info[i];
      strip += (c->width_in_blocks + 1) * scale * (uint64_t)c->v_samp_factor * scale;
    }
  } else {
    strip = ((uint64_t)d->info.image_width + 8) * (4 * packed_row_count + 4);
  }
  *byte_count = internal_bytes(d) + strip + 3 * 65536; // markers are carried as a whole
  return CCODECS_OK;
}

// MARK: Rows

static bool setup_step(jpeg_turbo *d) {
  jpeg_calc_output_dimensions(&d->info);
  return true;
}

static ccodecs_status start_planes(jpeg_turbo *d, ccodecs_layout *layout) {
  const uint32_t count = (uint32_t)d->info.num_components;
  layout->pixels = count == 1 ? CCODECS_PIXELS_GRAY8 : CCODECS_PIXELS_YCC8;
  layout->plane_count = count;
  size_t bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const jpeg_component_info *c = &d->info.comp_info[i];
    const uint32_t scaled = SCALED_SIZE(c);
    layout->planes[i] = (ccodecs_plane){
        .width = c->downsampled_width,
        .height = c->downsampled_height,
        .channels = 1,
        .horizontal_scale = (double)c->h_samp_factor * scaled / (d->info.max_h_samp_factor * 8.0),
        .vertical_scale = (double)c->v_samp_factor * scaled / (d->info.max_v_samp_factor * 8.0),
    };
    d->rows_left[i] = c->downsampled_height;
    bytes += (size_t)c->width_in_blocks * scaled * (size_t)c->v_samp_factor * scaled;
  }
  d->strip = ccodecs_allocate(d->base.budget, bytes);
  return d->strip == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

static ccodecs_status start_packed(jpeg_turbo *d, ccodecs_layout *layout) {
  const double horizontal = (double)d->info.scale_num / d->info.scale_denom;
  const uint8_t channels = d->keeps_cmyk ? 4 : 3;
  layout->pixels = d->keeps_cmyk ? CCODECS_PIXELS_CMYK8 : CCODECS_PIXELS_RGB8;
  layout->plane_count = 1;
  layout->planes[0] = (ccodecs_plane){
      .width = d->info.output_width,
      .height = d->info.output_height,
      .channels = channels,
      .horizontal_scale = horizontal,
      .vertical_scale = horizontal,
  };
  d->rows_left[0] = d->info.output_height;
  d->strip = ccodecs_allocate(d->base.budget, (size_t)d->info.output_width * channels * packed_row_count);
  d->inverted = ccodecs_allocate(d->base.budget, (size_t)d->info.output_width * 4);
  return d->strip == NULL || d->inverted == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  jpeg_turbo *d = (jpeg_turbo *)base;
  const uint64_t internal = internal_bytes(d);
  if (internal > SIZE_MAX || !ccodecs_budget_charge(base->budget, (size_t)internal)) {
    return ccodecs_decoder_fail(
        base, CCODECS_NO_MEMORY, "the coefficients need %llu bytes of memory", (unsigned long long)internal);
  }
  base->charged = (size_t)internal;
  d->info.mem->max_memory_to_use = (long)(internal + (1 << 20));
  d->info.scale_num = options->scale_eighths;
  d->info.scale_denom = 8;
  d->info.dct_method = JDCT_ISLOW;
  d->info.do_block_smoothing = FALSE; // the other decoder has none, and it would spread what a region hides
  d->info.raw_data_out = d->is_raw;
  const bool has_cmyk =
      base->header.color_space == CCODECS_COLOR_CMYK || base->header.color_space == CCODECS_COLOR_YCCK;
  d->keeps_cmyk = has_cmyk && options->keeps_cmyk;
  d->info.out_color_space = d->is_raw ? d->info.jpeg_color_space : has_cmyk ? JCS_CMYK : JCS_RGB;
  bool is_done;
  CCODECS_TRY(run_caught(d, setup_step, &is_done));
  return d->is_raw ? start_planes(d, layout) : start_packed(d, layout);
}

static bool start_step(jpeg_turbo *d) {
  return jpeg_start_decompress(&d->info);
}

/// Decodes one row of MCUs into the strip.
static bool planes_step(jpeg_turbo *d) {
  JSAMPROW rows[CCODECS_MAX_PLANES][4 * DCTSIZE];
  JSAMPARRAY planes[CCODECS_MAX_PLANES];
  uint8_t *next = d->strip;
  for (int i = 0; i < d->info.num_components; i++) {
    const jpeg_component_info *c = &d->info.comp_info[i];
    const size_t stride = (size_t)c->width_in_blocks * SCALED_SIZE(c);
    for (uint32_t row = 0; row < (uint32_t)c->v_samp_factor * SCALED_SIZE(c); row++, next += stride) {
      rows[i][row] = next;
    }
    planes[i] = rows[i];
  }
  return jpeg_read_raw_data(&d->info, planes, (JDIMENSION)(d->info.max_v_samp_factor * DCTSIZE)) > 0;
}

static void describe_planes(jpeg_turbo *d, ccodecs_rows *rows) {
  const uint8_t *next = d->strip;
  for (int i = 0; i < d->info.num_components; i++) {
    const jpeg_component_info *c = &d->info.comp_info[i];
    const uint32_t count = (uint32_t)c->v_samp_factor * SCALED_SIZE(c);
    rows->planes[i] = next;
    rows->row_strides[i] = (size_t)c->width_in_blocks * SCALED_SIZE(c);
    rows->row_counts[i] = count < d->rows_left[i] ? count : d->rows_left[i];
    d->rows_left[i] -= rows->row_counts[i];
    next += rows->row_strides[i] * count;
  }
}

/// Converts CMYK to RGB without a profile. Files with an Adobe marker store CMYK inverted: 255 means no ink.
static void convert_cmyk(jpeg_turbo *d, uint8_t *rgb) {
  const uint8_t *cmyk = d->inverted;
  const uint8_t flip = d->info.saw_Adobe_marker ? 0 : 255;
  for (JDIMENSION x = 0; x < d->info.output_width; x++, cmyk += 4, rgb += 3) {
    const uint32_t black = cmyk[3] ^ flip;
    for (int c = 0; c < 3; c++) {
      rgb[c] = (uint8_t)(((cmyk[c] ^ flip) * black + 127) / 255);
    }
  }
}

/// Copies CMYK in the output convention: 255 means no ink.
static void keep_cmyk(jpeg_turbo *d, uint8_t *cmyk) {
  const uint8_t flip = d->info.saw_Adobe_marker ? 0 : 255;
  for (size_t i = 0; i < 4 * (size_t)d->info.output_width; i++) {
    cmyk[i] = d->inverted[i] ^ flip;
  }
}

/// Decodes one row of RGB or CMYK into the strip's first free row.
static bool packed_step(jpeg_turbo *d) {
  const bool has_cmyk = d->info.out_color_space == JCS_CMYK;
  const size_t row_bytes = (size_t)d->info.output_width * (d->keeps_cmyk ? 4 : 3);
  uint8_t *to = d->strip + d->info.output_scanline % packed_row_count * row_bytes;
  JSAMPROW row = has_cmyk ? d->inverted : to;
  if (jpeg_read_scanlines(&d->info, &row, 1) == 0) {
    return false;
  }
  if (d->keeps_cmyk) {
    keep_cmyk(d, to);
  } else if (has_cmyk) {
    convert_cmyk(d, to);
  }
  return true;
}

static ccodecs_status read_packed(jpeg_turbo *d, ccodecs_input *input, ccodecs_rows *rows) {
  do {
    CCODECS_TRY(run(d, input, packed_step));
    d->rows_left[0]--;
  } while (d->rows_left[0] > 0 && d->info.output_scanline % packed_row_count != 0);
  const uint32_t count = (d->info.output_scanline - 1) % packed_row_count + 1;
  rows->planes[0] = d->strip;
  rows->row_strides[0] = (size_t)d->info.output_width * (d->keeps_cmyk ? 4 : 3);
  rows->row_counts[0] = count;
  return CCODECS_ROWS_READY;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  jpeg_turbo *d = (jpeg_turbo *)base;
  if (d->info.arith_code && !input->is_last) {
    return ccodecs_jpeg_turbo_carry_all(d, input);
  }
  d->has_all = d->info.arith_code;
  if (!d->is_started) {
    CCODECS_TRY(run(d, input, start_step));
    d->is_started = true;
  }
  if (d->info.output_scanline >= d->info.output_height) {
    return CCODECS_DONE;
  }
  if (!d->is_raw) {
    return read_packed(d, input, rows);
  }
  CCODECS_TRY(run(d, input, planes_step));
  describe_planes(d, rows);
  return CCODECS_ROWS_READY;
}

static void destroy(ccodecs_decoder *base) {
  jpeg_turbo *d = (jpeg_turbo *)base;
  ccodecs_budget *budget = base->budget;
  if (d->is_created) {
    jpeg_destroy_decompress(&d->info);
  }
  ccodecs_bytes_free(&d->carry, budget);
  ccodecs_free(budget, d->strip);
  ccodecs_free(budget, d->inverted);
}

static void init(ccodecs_decoder *decoder) {
  jpeg_turbo *d = (jpeg_turbo *)decoder;
  d->info.err = jpeg_std_error(&d->errors);
  d->errors.error_exit = on_error;
  d->errors.emit_message = on_message;
  d->errors.output_message = on_output;
  d->errors.reset_error_mgr = on_reset;
  d->source.init_source = on_source;
  d->source.fill_input_buffer = ccodecs_jpeg_turbo_source_empty;
  d->source.skip_input_data = on_skip;
  d->source.resync_to_restart = jpeg_resync_to_restart;
  d->source.term_source = on_source;
  d->progress.progress_monitor = on_progress;
}

const ccodecs_decoder_methods ccodecs_jpeg_turbo_decoder = {
    .byte_count = sizeof(jpeg_turbo),
    .init = init,
    .read_header = read_header,
    .scales = scales,
    .min_bytes = min_bytes,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};
