#include "check.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

enum {
  STRICT_WINDOW = 64,
  MAX_UNIT_ROWS = 4 * 16, ///< Maximum rows of a component in a row of units: sampling factor 4, transform size 16.
};

typedef struct turbo {
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  jmp_buf escape;
  const file *f;
  size_t next;
  size_t window;
  uint32_t made_up_ends; ///< End markers supplied after the last byte.
  uint32_t warnings;
  uint32_t cuts;      ///< Of these warnings: a marker inside entropy-coded data,
  uint32_t resyncs;   ///< a restart marker out of order,
  uint32_t bad_codes; ///< a code that is in no table,
  uint32_t end_codes; ///< such a code among the last 8 bytes before a marker.
  bool is_too_wide;
  char message[JMSG_LENGTH_MAX];
  planes planes;
} turbo;

// MARK: Callbacks

static turbo *turbo_of(j_common_ptr info) {
  return info->client_data;
}

static void on_error(j_common_ptr info) {
  turbo *t = turbo_of(info);
  info->err->format_message(info, t->message);
  t->is_too_wide = info->err->msg_code == JERR_IMAGE_TOO_BIG;
  longjmp(t->escape, 1);
}

static void on_message(j_common_ptr info, int level) {
  turbo *t = turbo_of(info);
  if (level < 0) {
    t->warnings++;
    t->cuts += info->err->msg_code == JWRN_HIT_MARKER;
    t->resyncs += info->err->msg_code == JWRN_MUST_RESYNC;
    t->bad_codes += info->err->msg_code == JWRN_HUFF_BAD_CODE;
    t->end_codes += info->err->msg_code == JWRN_HUFF_BAD_CODE && t->info.unread_marker != 0;
  }
}

static void do_nothing(j_decompress_ptr info) {
  (void)info;
}

static boolean fill(j_decompress_ptr info) {
  static const JOCTET end[2] = {0xFF, JPEG_EOI};
  turbo *t = info->client_data;
  const size_t left = t->f->count - t->next;
  const size_t count = left < t->window ? left : t->window;
  t->made_up_ends += count == 0;
  t->source.next_input_byte = count == 0 ? end : t->f->bytes + t->next;
  t->source.bytes_in_buffer = count == 0 ? sizeof end : count;
  t->next += count;
  return TRUE;
}

static void skip(j_decompress_ptr info, long count) {
  struct jpeg_source_mgr *source = info->src;
  while (count > (long)source->bytes_in_buffer) {
    count -= (long)source->bytes_in_buffer;
    fill(info);
  }
  source->next_input_byte += count;
  source->bytes_in_buffer -= (size_t)count;
}

static void open_file(turbo *t, const file *f, size_t window) {
  t->f = f;
  t->window = window;
  t->info.err = jpeg_std_error(&t->errors);
  t->errors.error_exit = on_error;
  t->errors.emit_message = on_message;
  t->info.client_data = t;
  jpeg_create_decompress(&t->info);
  t->source = (struct jpeg_source_mgr){
      .init_source = do_nothing,
      .fill_input_buffer = fill,
      .skip_input_data = skip,
      .resync_to_restart = jpeg_resync_to_restart,
      .term_source = do_nothing,
  };
  t->info.src = &t->source;
}

// MARK: Planes

static void start(turbo *t, uint8_t eighths) {
  t->info.raw_data_out = TRUE;
  t->info.out_color_space = t->info.jpeg_color_space;
  t->info.dct_method = JDCT_ISLOW;
  t->info.do_block_smoothing = FALSE;
  t->info.scale_num = eighths;
  t->info.scale_denom = 8;
  jpeg_start_decompress(&t->info);
}

static uint32_t round_up(uint32_t value, int factor) {
  const uint32_t f = (uint32_t)factor;
  return (value + f - 1) / f * f;
}

/// Allocates planes for whole units; only one row of units unless all rows are kept.
static void allocate(turbo *t, bool keeps_all) {
  planes *p = &t->planes;
  p->count = (uint32_t)t->info.num_components;
  for (uint32_t i = 0; i < p->count; i++) {
    const jpeg_component_info *c = &t->info.comp_info[i];
    const uint32_t size = (uint32_t)c->DCT_scaled_size;
    const uint32_t unit_rows = (uint32_t)c->v_samp_factor * size;
    p->widths[i] = c->downsampled_width;
    p->heights[i] = c->downsampled_height;
    p->eighths[i] = size;
    p->strides[i] = (size_t)round_up(c->width_in_blocks, c->h_samp_factor) * size;
    p->samples[i] = malloc(p->strides[i] * (keeps_all ? unit_rows * t->info.total_iMCU_rows : unit_rows));
  }
}

static void read_rows(turbo *t, bool keeps_all) {
  JSAMPROW rows[MAX_PLANES][MAX_UNIT_ROWS];
  JSAMPARRAY arrays[MAX_PLANES];
  for (JDIMENSION unit_row = 0; t->info.output_scanline < t->info.output_height; unit_row++) {
    for (uint32_t i = 0; i < t->planes.count; i++) {
      const uint32_t count = (uint32_t)t->info.comp_info[i].v_samp_factor * t->planes.eighths[i];
      const size_t first = keeps_all ? (size_t)unit_row * count : 0;
      for (uint32_t row = 0; row < count; row++) {
        rows[i][row] = t->planes.samples[i] + (first + row) * t->planes.strides[i];
      }
      arrays[i] = rows[i];
    }
    const int lines = t->info.max_v_samp_factor * t->info.min_DCT_scaled_size;
    jpeg_read_raw_data(&t->info, arrays, (JDIMENSION)lines);
    if (!t->info.progressive_mode && t->cuts + t->resyncs + t->bad_codes > 0) {
      return; // damaged, regardless of the rest
    }
  }
}

// MARK: Outcomes

static bool is_native_kind(const struct jpeg_decompress_struct *info) {
  const bool is_known = info->jpeg_color_space == JCS_GRAYSCALE || info->jpeg_color_space == JCS_YCbCr;
  return is_known && !info->arith_code;
}

static turbo_outcome decode(turbo *t, uint8_t eighths, uint64_t max_pixels) {
  jpeg_read_header(&t->info, TRUE);
  if ((uint64_t)t->info.image_width * t->info.image_height > max_pixels) {
    return TURBO_TOO_LARGE;
  }
  if (t->made_up_ends > 0) {
    return TURBO_TRUNCATED; // inside a segment
  }
  if (!is_native_kind(&t->info)) {
    return TURBO_OTHER_KIND;
  }
  const bool has_scans = jpeg_has_multiple_scans(&t->info);
  start(t, eighths);
  allocate(t, true);
  read_rows(t, true);
  const bool is_damaged = t->cuts + t->resyncs + t->bad_codes > 0;
  if (t->made_up_ends > 0 && (has_scans || is_damaged)) {
    return TURBO_TRUNCATED;
  }
  if (!is_damaged) {
    return TURBO_DONE;
  }
  // A code truncated by a marker may look invalid and desynchronize the data after it.
  const bool is_cut = t->cuts > 0 || (t->end_codes > 0 && t->end_codes == t->bad_codes);
  return t->info.progressive_mode && is_cut ? TURBO_CUT : TURBO_DAMAGED;
}

/// Calls decode() under setjmp, in a separate function so that no local variable changes between setjmp and longjmp.
static turbo_outcome decode_guarded(turbo *t, uint8_t eighths, uint64_t max_pixels) {
  if (setjmp(t->escape) == 0) {
    return decode(t, eighths, max_pixels);
  }
  return t->made_up_ends > 0 ? TURBO_TRUNCATED : TURBO_FAILED;
}

turbo_result turbo_decode(const file *f, uint8_t eighths, uint64_t max_pixels) {
  turbo t = {0};
  open_file(&t, f, STRICT_WINDOW);
  turbo_result result = {.outcome = decode_guarded(&t, eighths, max_pixels)};
  jpeg_destroy_decompress(&t.info);
  if (result.outcome != TURBO_DONE && result.outcome != TURBO_CUT) {
    planes_free(&t.planes);
  }
  result.planes = t.planes;
  result.is_too_wide = t.is_too_wide;
  result.has_warned = t.warnings > 0;
  snprintf(
      result.message, sizeof result.message, "%.120s%scuts %u, resyncs %u, bad codes %u", t.message,
      t.message[0] == 0 ? "" : "; ", t.cuts, t.resyncs, t.bad_codes);
  return result;
}

static bool run_guarded(turbo *t, uint8_t eighths) {
  if (setjmp(t->escape) != 0) {
    return false;
  }
  jpeg_read_header(&t->info, TRUE);
  if (!is_native_kind(&t->info)) {
    return false;
  }
  start(t, eighths);
  allocate(t, false);
  read_rows(t, false);
  return t->info.output_scanline >= t->info.output_height; // the counter counts whole rows of units
}

bool turbo_run(const file *f, uint8_t eighths) {
  turbo t = {0};
  open_file(&t, f, f->count);
  const bool is_done = run_guarded(&t, eighths);
  jpeg_destroy_decompress(&t.info);
  planes_free(&t.planes);
  return is_done;
}
