// Lossless JPEG rotation and mirroring: whole blocks move, and their coefficients change signs and positions.
//
// libjpeg reads the coefficients as the bytes arrive, stores them, and compresses those of the transformed image. The
// Huffman tables are optimized for it unless the input used the standard ones; a progressive image stays progressive.
// TurboJPEG's tjTransform works the same way, but also needs the whole file and the whole result in memory. The input's
// coefficients are released before the result is compressed, which is never larger than they are.

#include "jpeg_rotator.h"

#include "jpeg_metadata.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
  OUTPUT_BYTES = 64 * 1024,
  /// Size of the slices that libjpeg receives, independent of how the bytes arrive: which damage it detects depends on
  /// it.
  SLICE_BYTES = 16 * 1024,
};

/// Bytes that libjpeg allocates in addition to coefficients, for decoding and for encoding.
static const uint64_t library_bytes = 512 * 1024;

/// A block of compressed output, in a linked list.
typedef struct output_block {
  struct output_block *next;
  size_t count;
  uint8_t bytes[OUTPUT_BYTES];
} output_block;

typedef enum transform_stage { STAGE_HEADER, STAGE_COEFFICIENTS, STAGE_WHOLE } transform_stage;

typedef struct jpeg_rotator {
  ccodecs_transform base;
  ccodecs_budget *budget;
  uint8_t orientation;
  transform_stage stage;
  struct jpeg_decompress_struct in;
  struct jpeg_compress_struct out;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_destination_mgr destination;
  jmp_buf escape;
  bool is_created;
  bool is_in_freed;
  bool is_out_of_room;
  size_t charged_in; ///< For the decoded coefficients; released before compression.
  size_t charged_out;
  jvirt_barray_ptr *read;
  jvirt_barray_ptr rotated[3];
  size_t slice_count;     ///< Bytes of the current slice.
  ccodecs_bytes carry;    ///< Bytes that libjpeg has not consumed yet.
  ccodecs_bytes metadata; ///< Its segments.
  output_block *first;
  output_block *last;
} jpeg_rotator;

// MARK: Geometry

static bool swaps_axes(uint8_t orientation) {
  return orientation >= 5;
}

static bool reverses_columns(uint8_t orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static bool reverses_rows(uint8_t orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

static void max_sampling(const ccodecs_jpeg_frame *frame, uint32_t *horizontal, uint32_t *vertical) {
  *horizontal = *vertical = 1;
  for (uint32_t i = 0; i < frame->component_count; i++) {
    *horizontal = frame->horizontal[i] > *horizontal ? frame->horizontal[i] : *horizontal;
    *vertical = frame->vertical[i] > *vertical ? frame->vertical[i] : *vertical;
  }
}

bool ccodecs_jpeg_transform_is_perfect(const ccodecs_jpeg_frame *frame, uint8_t orientation) {
  uint32_t horizontal;
  uint32_t vertical;
  max_sampling(frame, &horizontal, &vertical);
  return (!reverses_columns(orientation) || frame->width % (8 * horizontal) == 0) &&
         (!reverses_rows(orientation) || frame->height % (8 * vertical) == 0);
}

/// Returns the size of the coefficients of all components, including the blocks that complete units, and of the row
/// pointers.
static uint64_t coefficient_bytes(const ccodecs_jpeg_frame *frame) {
  uint32_t horizontal;
  uint32_t vertical;
  max_sampling(frame, &horizontal, &vertical);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < frame->component_count; i++) {
    const uint64_t across = ((uint64_t)frame->width * frame->horizontal[i] + 8 * horizontal - 1) / (8 * horizontal);
    const uint64_t down = ((uint64_t)frame->height * frame->vertical[i] + 8 * vertical - 1) / (8 * vertical);
    // Either axis may be that of the rows after the transform.
    bytes += (across + 4) * (down + 4) * DCTSIZE2 * sizeof(JCOEF) + (across + down + 8) * sizeof(void *);
  }
  return bytes;
}

uint64_t ccodecs_jpeg_transform_estimate(const ccodecs_jpeg_frame *frame, const ccodecs_rewrite_options *options) {
  return sizeof(jpeg_rotator) + 2 * coefficient_bytes(frame) + library_bytes + 2 * 65536 + 2 * OUTPUT_BYTES +
         2 * ccodecs_jpeg_metadata_bytes(&options->metadata) + 1024;
}

// MARK: Callbacks of the library

_Static_assert(sizeof((ccodecs_transform){0}.message) >= JMSG_LENGTH_MAX, "as libjpeg's messages need");

static void on_error(j_common_ptr info) {
  jpeg_rotator *t = (jpeg_rotator *)info->client_data;
  info->err->format_message(info, t->base.message);
  longjmp(t->escape, 1);
}

/// Damage that libjpeg would tolerate is an error, because the result must be the same image. Extra bytes after the
/// last unit of a scan are not an error.
static void on_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA) {
    on_error(info);
  }
}

static void on_output(j_common_ptr info) {
  (void)info;
}

static void on_source(j_decompress_ptr info) {
  (void)info;
}

static boolean on_source_empty(j_decompress_ptr info) {
  (void)info;
  return FALSE;
}

static void on_skip(j_decompress_ptr info, long count) {
  jpeg_rotator *t = (jpeg_rotator *)info->client_data;
  // A copy contains nothing that could be skipped, except in the buffer.
  const size_t wanted = count < 0 ? 0 : (size_t)count;
  const size_t taken = wanted < t->source.bytes_in_buffer ? wanted : t->source.bytes_in_buffer;
  t->source.next_input_byte += taken;
  t->source.bytes_in_buffer -= taken;
}

static bool add_block(jpeg_rotator *t) {
  output_block *block = ccodecs_allocate(t->budget, sizeof *block);
  if (block == NULL) {
    return false;
  }
  block->next = NULL;
  block->count = 0;
  *(t->last == NULL ? &t->first : &t->last->next) = block;
  t->last = block;
  t->destination.next_output_byte = block->bytes;
  t->destination.free_in_buffer = OUTPUT_BYTES;
  return true;
}

static void on_destination(j_compress_ptr info) {
  (void)info;
}

static boolean on_full(j_compress_ptr info) {
  jpeg_rotator *t = (jpeg_rotator *)info->client_data;
  t->last->count = OUTPUT_BYTES;
  if (!add_block(t)) {
    t->is_out_of_room = true;
    longjmp(t->escape, 1);
  }
  return TRUE;
}

static void on_end(j_compress_ptr info) {
  jpeg_rotator *t = (jpeg_rotator *)info->client_data;
  t->last->count = OUTPUT_BYTES - t->destination.free_in_buffer;
}

// MARK: Reading

static uint32_t round_up(uint32_t count, int unit) {
  return (count + (uint32_t)unit - 1) / (uint32_t)unit * (uint32_t)unit;
}

/// Reads the header, then coefficients, as far as the bytes reach.
static void read_step(jpeg_rotator *t) {
  if (t->stage == STAGE_HEADER && jpeg_read_header(&t->in, TRUE) == JPEG_HEADER_OK) {
    t->stage = STAGE_COEFFICIENTS;
  }
  if (t->stage == STAGE_COEFFICIENTS) {
    t->read = jpeg_read_coefficients(&t->in);
    t->stage = t->read != NULL ? STAGE_WHOLE : STAGE_COEFFICIENTS;
  }
}

// MARK: Rotation

/// Requests the arrays of the transformed coefficients.
static void request_arrays(jpeg_rotator *t) {
  for (int i = 0; i < t->in.num_components; i++) {
    const jpeg_component_info *c = &t->in.comp_info[i];
    const bool swaps = swaps_axes(t->orientation);
    const JDIMENSION across = round_up(c->width_in_blocks, c->h_samp_factor);
    const JDIMENSION down = round_up(c->height_in_blocks, c->v_samp_factor);
    t->rotated[i] = t->out.mem->request_virt_barray(
        (j_common_ptr)&t->out, JPOOL_IMAGE, TRUE, swaps ? down : across, swaps ? across : down,
        (JDIMENSION)(swaps ? c->h_samp_factor : c->v_samp_factor));
  }
}

static void transpose_tables(struct jpeg_compress_struct *out) {
  for (int table = 0; table < NUM_QUANT_TBLS; table++) {
    UINT16 *entries = out->quant_tbl_ptrs[table] == NULL ? NULL : out->quant_tbl_ptrs[table]->quantval;
    for (int row = 0; entries != NULL && row < DCTSIZE; row++) {
      for (int column = 0; column < row; column++) {
        const UINT16 entry = entries[row * DCTSIZE + column];
        entries[row * DCTSIZE + column] = entries[column * DCTSIZE + row];
        entries[column * DCTSIZE + row] = entry;
      }
    }
  }
}

/// Returns whether the table at `index` equals another one. Scans may state one that they do not use, and that does not
/// exist.
static bool is_same_table(JHUFF_TBL *const tables[NUM_HUFF_TBLS], int index, const JHUFF_TBL *other) {
  const JHUFF_TBL *table = index < NUM_HUFF_TBLS ? tables[index] : NULL;
  return table != NULL && other != NULL && memcmp(table->bits, other->bits, sizeof table->bits) == 0 &&
         memcmp(table->huffval, other->huffval, sizeof table->huffval) == 0;
}

/// Returns whether the image uses the tables of T.81 annex K. The result then uses them too, which saves a pass.
static bool has_standard_tables(const jpeg_rotator *t) {
  bool is_standard = true;
  for (int i = 0; i < t->in.num_components; i++) {
    const jpeg_component_info *c = &t->in.comp_info[i];
    const int standard = i == 0 ? 0 : 1;
    is_standard = is_standard &&
                  is_same_table(t->in.dc_huff_tbl_ptrs, c->dc_tbl_no, t->out.dc_huff_tbl_ptrs[standard]) &&
                  is_same_table(t->in.ac_huff_tbl_ptrs, c->ac_tbl_no, t->out.ac_huff_tbl_ptrs[standard]);
  }
  return is_standard;
}

/// Sets up the frame of the result: that of the input, with its axes swapped if the transform swaps them.
static void set_parameters(jpeg_rotator *t) {
  jpeg_copy_critical_parameters(&t->in, &t->out);
  for (int i = 0; i < t->out.num_components && swaps_axes(t->orientation); i++) {
    jpeg_component_info *c = &t->out.comp_info[i];
    const int horizontal = c->h_samp_factor;
    c->h_samp_factor = c->v_samp_factor;
    c->v_samp_factor = horizontal;
  }
  if (swaps_axes(t->orientation)) {
    t->out.image_width = t->in.image_height;
    t->out.image_height = t->in.image_width;
#if JPEG_LIB_VERSION >= 70
    t->out.jpeg_width = t->out.image_width;
    t->out.jpeg_height = t->out.image_height;
#endif
    transpose_tables(&t->out);
  }
  t->out.optimize_coding = !has_standard_tables(t);
  if (t->in.progressive_mode) {
    jpeg_simple_progression(&t->out);
  }
}

/// A row of a block.
typedef int16_t block_row __attribute__((vector_size(16)));

/// The change to each block: rows and columns are swapped first, then signs change.
typedef struct block_change {
  bool swaps;
  block_row signs[DCTSIZE]; ///< 1 or -1.
} block_change;

/// Mirroring an axis negates its odd frequencies.
static block_change make_change(uint8_t orientation) {
  block_change change = {.swaps = swaps_axes(orientation)};
  for (int v = 0; v < DCTSIZE; v++) {
    for (int u = 0; u < DCTSIZE; u++) {
      const int from_v = change.swaps ? u : v;
      const int from_u = change.swaps ? v : u;
      const bool flips =
          (reverses_columns(orientation) && (from_u & 1) != 0) != (reverses_rows(orientation) && (from_v & 1) != 0);
      change.signs[v][u] = flips ? -1 : 1;
    }
  }
  return change;
}

static void change_block(const block_change *change, const JCOEF *from, JCOEF *to) {
  block_row rows[DCTSIZE];
  memcpy(rows, from, sizeof rows);
  for (int round = 0; round < 3 && change->swaps; round++) { // three interleaving rounds transpose the block
    block_row riffled[DCTSIZE];
    for (int i = 0; i < DCTSIZE / 2; i++) {
      riffled[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      riffled[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    memcpy(rows, riffled, sizeof rows);
  }
  for (int i = 0; i < DCTSIZE; i++) {
    rows[i] *= change->signs[i];
  }
  memcpy(to, rows, sizeof rows);
}

static void transform_component(jpeg_rotator *t, int index, const block_change *change) {
  const jpeg_component_info *from = &t->in.comp_info[index];
  const bool swaps = swaps_axes(t->orientation);
  const JDIMENSION across = swaps ? from->height_in_blocks : from->width_in_blocks;
  const JDIMENSION down = swaps ? from->width_in_blocks : from->height_in_blocks;
  for (JDIMENSION y = 0; y < down; y++) {
    JBLOCKROW to = t->out.mem->access_virt_barray((j_common_ptr)&t->out, t->rotated[index], y, 1, TRUE)[0];
    for (JDIMENSION x = 0; x < across; x++) {
      JDIMENSION from_x = swaps ? y : x;
      JDIMENSION from_y = swaps ? x : y;
      from_x = reverses_columns(t->orientation) ? from->width_in_blocks - 1 - from_x : from_x;
      from_y = reverses_rows(t->orientation) ? from->height_in_blocks - 1 - from_y : from_y;
      const JCOEF *block =
          t->in.mem->access_virt_barray((j_common_ptr)&t->in, t->read[index], from_y, 1, FALSE)[0][from_x];
      change_block(change, block, to[x]);
    }
  }
}

static void write_metadata(jpeg_rotator *t) {
  enum { MARKER_BYTES = 2, LENGTH_BYTES = 2 };
  const uint8_t *bytes = ccodecs_bytes_start(&t->metadata);
  for (size_t at = 0; at < t->metadata.count;) {
    const uint32_t length = ccodecs_be16(bytes + at + MARKER_BYTES);
    jpeg_write_m_header(&t->out, bytes[at + 1], length - LENGTH_BYTES);
    for (size_t i = LENGTH_BYTES; i < length; i++) {
      jpeg_write_m_byte(&t->out, bytes[at + MARKER_BYTES + i]);
    }
    at += MARKER_BYTES + length;
  }
}

static void transform_step(jpeg_rotator *t) {
  request_arrays(t);
  set_parameters(t);
  jpeg_write_coefficients(&t->out, t->rotated);
  write_metadata(t);
  const block_change change = make_change(t->orientation);
  for (int i = 0; i < t->in.num_components; i++) {
    transform_component(t, i, &change);
  }
}

static void compress_step(jpeg_rotator *t) {
  jpeg_finish_compress(&t->out);
}

// MARK: Steps

/// Runs a step of libjpeg and catches its errors. The only function with a setjmp.
static ccodecs_status run(jpeg_rotator *t, void (*step)(jpeg_rotator *t)) {
  if (setjmp(t->escape) != 0) {
    return t->is_out_of_room ? CCODECS_NO_MEMORY : CCODECS_CORRUPT;
  }
  step(t);
  return CCODECS_OK;
}

static ccodecs_status fail(jpeg_rotator *t, ccodecs_status status, const char *reason) {
  snprintf(t->base.message, sizeof t->base.message, "%s", reason);
  return status;
}

static void free_in(jpeg_rotator *t) {
  if (t->is_created && !t->is_in_freed) {
    jpeg_destroy_decompress(&t->in);
  }
  t->is_in_freed = true;
  ccodecs_budget_refund(t->budget, t->charged_in);
  t->charged_in = 0;
}

/// Passes the carried bytes to libjpeg.
static ccodecs_status read_carried(jpeg_rotator *t) {
  t->source.next_input_byte = ccodecs_bytes_start(&t->carry);
  t->source.bytes_in_buffer = t->carry.count;
  const ccodecs_status status = t->stage == STAGE_WHOLE ? CCODECS_OK : run(t, read_step);
  ccodecs_bytes_take(&t->carry, t->carry.count - t->source.bytes_in_buffer);
  return status;
}

static ccodecs_status push(ccodecs_transform *base, const uint8_t *bytes, size_t count) {
  jpeg_rotator *t = (jpeg_rotator *)base;
  while (count > 0) {
    const size_t missing = SLICE_BYTES - t->slice_count;
    const size_t taken = count < missing ? count : missing;
    if (!ccodecs_bytes_append(&t->carry, bytes, taken, t->budget)) {
      return fail(t, CCODECS_NO_MEMORY, "no room for a marker segment");
    }
    bytes += taken;
    count -= taken;
    t->slice_count += taken;
    if (t->slice_count == SLICE_BYTES) {
      t->slice_count = 0;
      CCODECS_TRY(read_carried(t));
    }
  }
  return CCODECS_OK;
}

static ccodecs_status finish(ccodecs_transform *base) {
  jpeg_rotator *t = (jpeg_rotator *)base;
  ccodecs_status status = read_carried(t);
  ccodecs_bytes_free(&t->carry, t->budget);
  CCODECS_TRY(status);
  if (t->stage != STAGE_WHOLE) {
    return fail(t, CCODECS_TRUNCATED, "the JPEG data ends before the image");
  }
  if (!add_block(t)) {
    return fail(t, CCODECS_NO_MEMORY, "no room for the rotated image");
  }
  status = run(t, transform_step);
  free_in(t);
  if (status == CCODECS_OK) {
    status = run(t, compress_step);
  }
  return t->is_out_of_room ? fail(t, status, "no room for the rotated image") : status;
}

static ccodecs_status read(ccodecs_transform *base, ccodecs_piece *piece) {
  jpeg_rotator *t = (jpeg_rotator *)base;
  if (t->is_created) { // the result is complete, and its input is no longer needed
    jpeg_destroy_compress(&t->out);
    t->is_created = false;
    ccodecs_budget_refund(t->budget, t->charged_out);
    t->charged_out = 0;
    return ccodecs_piece_give(t->first->bytes, t->first->count, piece);
  }
  output_block *given = t->first;
  t->first = given->next;
  if (t->first == NULL) {
    t->first = given; // kept for a caller that calls again
    return CCODECS_DONE;
  }
  ccodecs_free(t->budget, given);
  return ccodecs_piece_give(t->first->bytes, t->first->count, piece);
}

// MARK: Life

static void create_step(jpeg_rotator *t) {
  jpeg_create_decompress(&t->in);
  jpeg_create_compress(&t->out);
  t->in.src = &t->source;
  t->out.dest = &t->destination;
}

static void destroy(ccodecs_transform *base) {
  jpeg_rotator *t = (jpeg_rotator *)base;
  ccodecs_budget *budget = t->budget;
  free_in(t);
  if (t->is_created) {
    jpeg_destroy_compress(&t->out);
  }
  ccodecs_budget_refund(budget, t->charged_out);
  ccodecs_bytes_free(&t->carry, budget);
  ccodecs_bytes_free(&t->metadata, budget);
  while (t->first != NULL) {
    output_block *next = t->first->next;
    ccodecs_free(budget, t->first);
    t->first = next;
  }
}

ccodecs_status ccodecs_jpeg_transform_create(
    const ccodecs_jpeg_frame *frame, const ccodecs_rewrite_options *options, ccodecs_budget *budget,
    ccodecs_transform **transform) {
  static const ccodecs_transform_methods methods = {.push = push, .finish = finish, .read = read, .destroy = destroy};
  const uint64_t coefficients = coefficient_bytes(frame);
  jpeg_rotator *t = ccodecs_allocate(budget, sizeof *t);
  if (t == NULL) {
    return CCODECS_NO_MEMORY;
  }
  *transform = &t->base;
  memset(t, 0, sizeof *t);
  t->base.methods = &methods;
  t->budget = budget;
  t->orientation = options->orientation;
  if (coefficients > SIZE_MAX / 4 || !ccodecs_budget_charge(budget, coefficients)) {
    return CCODECS_NO_MEMORY;
  }
  t->charged_in = coefficients;
  if (!ccodecs_budget_charge(budget, coefficients + library_bytes)) {
    return CCODECS_NO_MEMORY;
  }
  t->charged_out = coefficients + library_bytes;
  if (!ccodecs_jpeg_append_metadata(&options->metadata, &t->metadata, budget)) {
    return CCODECS_NO_MEMORY;
  }
  t->in.err = t->out.err = jpeg_std_error(&t->errors);
  t->errors.error_exit = on_error;
  t->errors.emit_message = on_message;
  t->errors.output_message = on_output;
  t->source.init_source = on_source;
  t->source.fill_input_buffer = on_source_empty;
  t->source.skip_input_data = on_skip;
  t->source.resync_to_restart = jpeg_resync_to_restart;
  t->source.term_source = on_source;
  t->destination.init_destination = on_destination;
  t->destination.empty_output_buffer = on_full;
  t->destination.term_destination = on_end;
  t->in.client_data = t->out.client_data = t;
  t->is_created = true;
  return run(t, create_step) == CCODECS_OK ? CCODECS_OK : CCODECS_NO_MEMORY;
}
