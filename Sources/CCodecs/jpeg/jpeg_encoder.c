// JPEG encoding with libjpeg, from component planes without conversion or from RGB rows.
//
// libjpeg takes planes one row of MCUs at a time, padded to whole MCUs, but the rows of different planes arrive at
// different times. So each plane has a queue of padded rows, and a row of MCUs is encoded when all planes have their
// rows.

#include "../core/encoder.h"
#include "jpeg_format.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/// Bytes of output space that libjpeg receives at a time.
static const size_t output_step = 16 * 1024;
/// Bytes that libjpeg allocates in addition to row buffers.
static const size_t library_bytes = 192 * 1024;
/// Bytes of the row buffers of the color converter and the downsampler, per pixel of width.
static const size_t library_bytes_per_column = 64;
/// Initial capacity of a queue, in rows of MCUs.
static const uint32_t queued_mcu_rows = 3;

typedef struct plane_queue {
  ccodecs_bytes rows;
  size_t width;      ///< Bytes of an input row.
  size_t stride;     ///< Bytes of a row padded to whole MCUs.
  uint32_t mcu_rows; ///< Rows in a row of MCUs.
} plane_queue;

typedef struct jpeg_encoder {
  ccodecs_encoder base;
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_destination_mgr destination;
  jmp_buf escape;
  bool is_created;
  bool is_out_of_room;
  size_t charged;
  plane_queue planes[CCODECS_MAX_PLANES];
  const ccodecs_rows *rows; ///< Input of the current write.
} jpeg_encoder;

// MARK: Callbacks of the library

static void on_error(j_common_ptr info) {
  jpeg_encoder *e = (jpeg_encoder *)info->client_data;
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  snprintf(e->base.message, sizeof e->base.message, "%s", message);
  longjmp(e->escape, 1);
}

static void on_message(j_common_ptr info, int level) {
  (void)info;
  (void)level;
}

static void on_output(j_common_ptr info) {
  (void)info;
}

static void on_destination(j_compress_ptr info) {
  (void)info;
}

/// Gives libjpeg room for at least `wanted` bytes after the pending ones.
static bool offer_room(jpeg_encoder *e, size_t wanted) {
  ccodecs_bytes *output = &e->base.output;
  if (!ccodecs_bytes_reserve(output, wanted, e->base.budget)) {
    return false;
  }
  e->destination.next_output_byte = ccodecs_bytes_start(output) + output->count;
  e->destination.free_in_buffer = output->capacity - output->first - output->count;
  return true;
}

static void take_output(jpeg_encoder *e) {
  e->base.output.count = (size_t)(e->destination.next_output_byte - ccodecs_bytes_start(&e->base.output));
}

static boolean on_full(j_compress_ptr info) {
  jpeg_encoder *e = (jpeg_encoder *)info->client_data;
  // libjpeg calls this when the room is used up, whatever the value of next_output_byte.
  e->base.output.count = e->base.output.capacity - e->base.output.first;
  // The output of a buffered file grows once, to its maximum size.
  const uint64_t largest = e->base.is_finished ? ccodecs_encoder_max_lossy_bytes(&e->base.options) : 0;
  const uint64_t missing = largest > e->base.output.count ? largest - e->base.output.count : 0;
  if (!offer_room(e, missing > output_step ? (size_t)missing : output_step)) {
    e->is_out_of_room = true;
    longjmp(e->escape, 1);
  }
  return TRUE;
}

// MARK: Steps

/// Runs a step of libjpeg with room for its output, and catches its errors. The only function with a setjmp.
static ccodecs_status run(jpeg_encoder *e, void (*step)(jpeg_encoder *e)) {
  if (!offer_room(e, output_step)) {
    return CCODECS_NO_MEMORY;
  }
  if (setjmp(e->escape) != 0) {
    e->base.failure = e->is_out_of_room ? CCODECS_NO_MEMORY : CCODECS_UNSUPPORTED;
    return e->base.failure;
  }
  step(e);
  take_output(e);
  return CCODECS_OK;
}

static void create_step(jpeg_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  jpeg_create_compress(&e->info);
  e->is_created = true;
  e->info.client_data = e;
  e->info.dest = &e->destination;
  e->info.image_width = options->width;
  e->info.image_height = options->height;
  e->info.input_components = options->pixels == CCODECS_PIXELS_GRAY8 ? 1 : 3;
  e->info.in_color_space = options->pixels == CCODECS_PIXELS_GRAY8  ? JCS_GRAYSCALE
                           : options->pixels == CCODECS_PIXELS_YCC8 ? JCS_YCbCr
                                                                    : JCS_RGB;
  jpeg_set_defaults(&e->info);
  jpeg_set_quality(&e->info, options->quality, TRUE);
  e->info.dct_method = JDCT_ISLOW;
  e->info.raw_data_in = options->pixels != CCODECS_PIXELS_RGB8;
#if JPEG_LIB_VERSION >= 70
  e->info.do_fancy_downsampling = FALSE;
#endif
  const bool has_chroma = e->info.num_components == 3;
  const int across = has_chroma && options->subsampling != CCODECS_SUBSAMPLING_444 ? 2 : 1;
  const int down = has_chroma && options->subsampling == CCODECS_SUBSAMPLING_420 ? 2 : 1;
  for (int i = 0; i < e->info.num_components; i++) {
    e->info.comp_info[i].h_samp_factor = i == 0 ? across : 1;
    e->info.comp_info[i].v_samp_factor = i == 0 ? down : 1;
  }
  e->info.optimize_coding = options->jpeg.has_optimal_tables;
  e->info.restart_in_rows = options->jpeg.restart_row_count;
  if (options->jpeg.is_progressive) {
    jpeg_simple_progression(&e->info);
  }
  jpeg_start_compress(&e->info, TRUE);
  if (options->exif_count > 0) {
    static const uint8_t name[6] = "Exif\0";
    jpeg_write_m_header(&e->info, JPEG_APP0 + 1, (unsigned int)(sizeof name + options->exif_count));
    for (size_t i = 0; i < sizeof name; i++) {
      jpeg_write_m_byte(&e->info, name[i]);
    }
    for (size_t i = 0; i < options->exif_count; i++) {
      jpeg_write_m_byte(&e->info, options->exif[i]);
    }
  }
}

static void scanlines_step(jpeg_encoder *e) {
  for (uint32_t row = 0; row < e->rows->row_counts[0]; row++) {
    JSAMPROW line = (JSAMPROW)(uintptr_t)(e->rows->planes[0] + row * e->rows->row_strides[0]);
    jpeg_write_scanlines(&e->info, &line, 1);
  }
}

/// Encodes one row of MCUs from the front of every queue.
static void mcu_row_step(jpeg_encoder *e) {
  JSAMPROW rows[CCODECS_MAX_PLANES][2 * DCTSIZE];
  JSAMPARRAY planes[CCODECS_MAX_PLANES];
  for (int i = 0; i < e->info.num_components; i++) {
    plane_queue *queue = &e->planes[i];
    for (uint32_t row = 0; row < queue->mcu_rows; row++) {
      rows[i][row] = ccodecs_bytes_start(&queue->rows) + row * queue->stride;
    }
    planes[i] = rows[i];
  }
  jpeg_write_raw_data(&e->info, planes, (JDIMENSION)(e->info.max_v_samp_factor * DCTSIZE));
}

/// If the coefficients are buffered, all compressed output is produced in this step.
static void finish_step(jpeg_encoder *e) {
  jpeg_finish_compress(&e->info);
}

// MARK: Planes

static bool append_padded(jpeg_encoder *e, plane_queue *queue, const uint8_t *row) {
  if (!ccodecs_bytes_reserve(&queue->rows, queue->stride, e->base.budget)) {
    return false;
  }
  uint8_t *end = ccodecs_bytes_start(&queue->rows) + queue->rows.count;
  memcpy(end, row, queue->width);
  memset(end + queue->width, row[queue->width - 1], queue->stride - queue->width);
  queue->rows.count += queue->stride;
  return true;
}

static bool has_mcu_row(const jpeg_encoder *e) {
  for (int i = 0; i < e->info.num_components; i++) {
    if (e->planes[i].rows.count < e->planes[i].mcu_rows * e->planes[i].stride) {
      return false;
    }
  }
  return true;
}

static ccodecs_status encode_queued(jpeg_encoder *e) {
  while (has_mcu_row(e)) {
    const ccodecs_status status = run(e, mcu_row_step);
    if (status != CCODECS_OK) {
      return status;
    }
    for (int i = 0; i < e->info.num_components; i++) {
      ccodecs_bytes_take(&e->planes[i].rows, e->planes[i].mcu_rows * e->planes[i].stride);
    }
  }
  return CCODECS_OK;
}

static ccodecs_status write_planes(jpeg_encoder *e, const ccodecs_rows *rows) {
  for (int i = 0; i < e->info.num_components; i++) {
    for (uint32_t row = 0; row < rows->row_counts[i]; row++) {
      if (!append_padded(e, &e->planes[i], rows->planes[i] + row * rows->row_strides[i])) {
        return CCODECS_NO_MEMORY;
      }
    }
  }
  return encode_queued(e);
}

/// Repeats the last row of each plane until the last row of MCUs is complete.
static ccodecs_status pad_planes(jpeg_encoder *e) {
  if (e->info.next_scanline >= e->info.image_height) {
    return CCODECS_OK;
  }
  for (int i = 0; i < e->info.num_components; i++) {
    plane_queue *queue = &e->planes[i];
    while (queue->rows.count < queue->mcu_rows * queue->stride) {
      if (!ccodecs_bytes_reserve(&queue->rows, queue->stride, e->base.budget)) {
        return CCODECS_NO_MEMORY;
      }
      // Halves are rounded up, so no plane ends a row of MCUs before another: there is always a row to repeat.
      uint8_t *end = ccodecs_bytes_start(&queue->rows) + queue->rows.count;
      memcpy(end, end - queue->stride, queue->stride);
      queue->rows.count += queue->stride;
    }
  }
  return encode_queued(e);
}

static bool prepare_planes(jpeg_encoder *e) {
  for (int i = 0; i < e->info.num_components; i++) {
    const size_t across = (size_t)e->info.comp_info[i].h_samp_factor * DCTSIZE;
    const size_t width = ccodecs_encoder_plane_width(&e->base.options, (uint32_t)i);
    e->planes[i].width = width;
    e->planes[i].stride = (width + across - 1) / across * across;
    e->planes[i].mcu_rows = (uint32_t)e->info.comp_info[i].v_samp_factor * DCTSIZE;
    const size_t bytes = e->planes[i].stride * e->planes[i].mcu_rows * queued_mcu_rows;
    if (!ccodecs_bytes_reserve(&e->planes[i].rows, bytes, e->base.budget)) {
      return false;
    }
  }
  return true;
}

// MARK: Methods

/// Progressive files, and files with optimized Huffman tables, are encoded from the coefficients of the whole image.
static bool buffers_coefficients(const ccodecs_encode_options *options) {
  return options->jpeg.is_progressive || options->jpeg.has_optimal_tables;
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  jpeg_encoder *e = (jpeg_encoder *)base;
  if (base->options.pixels != CCODECS_PIXELS_RGB8) {
    return write_planes(e, rows);
  }
  e->rows = rows;
  return run(e, scanlines_step);
}

static ccodecs_status finish(ccodecs_encoder *base) {
  jpeg_encoder *e = (jpeg_encoder *)base;
  const uint64_t usual = ccodecs_encoder_max_lossy_bytes(&base->options) / 2;
  if (buffers_coefficients(&base->options) && !ccodecs_bytes_reserve(&base->output, (size_t)usual, base->budget)) {
    return CCODECS_NO_MEMORY;
  }
  if (base->options.pixels != CCODECS_PIXELS_RGB8) {
    const ccodecs_status status = pad_planes(e);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  return run(e, finish_step);
}

static void destroy(ccodecs_encoder *base) {
  jpeg_encoder *e = (jpeg_encoder *)base;
  ccodecs_budget *budget = base->budget;
  if (e->is_created) {
    jpeg_destroy_compress(&e->info);
  }
  for (int i = 0; i < CCODECS_MAX_PLANES; i++) {
    ccodecs_bytes_free(&e->planes[i].rows, budget);
  }
  ccodecs_budget_refund(budget, e->charged);
  ccodecs_bytes_free(&base->output, budget);
  ccodecs_free(budget, e);
}

static uint64_t library_charge(const ccodecs_encode_options *options) {
  uint64_t charge =
      library_bytes + (options->pixels == CCODECS_PIXELS_RGB8 ? options->width * library_bytes_per_column : 0);
  if (buffers_coefficients(options)) {
    // Two bytes for each coefficient, in whole MCUs, and pointers to the rows of blocks.
    ccodecs_encode_options planes = *options;
    planes.pixels = options->pixels == CCODECS_PIXELS_GRAY8 ? CCODECS_PIXELS_GRAY8 : CCODECS_PIXELS_YCC8;
    for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&planes); i++) {
      const uint64_t width = ccodecs_encoder_plane_width(&planes, i) + 15;
      const uint64_t height = ccodecs_encoder_plane_height(&planes, i) + 15;
      charge += width * height * sizeof(JCOEF) + height * sizeof(void *);
    }
  }
  return charge;
}

/// Returns the maximum size of the output pending after 16 rows of noise. Measured: 9 bits per sample at the highest
/// quality, 6 with 4:2:0 chroma. The buffer grows by half, and the old block is still allocated while it is copied.
static uint64_t pending_bytes(const ccodecs_encode_options *options) {
  const bool is_halved = options->subsampling == CCODECS_SUBSAMPLING_420 && options->quality < 95;
  const uint64_t bits = options->pixels == CCODECS_PIXELS_GRAY8 ? 9 : is_halved ? 9 : 27;
  return (uint64_t)options->width * 16 * bits / 8 * 5 / 3;
}

uint64_t ccodecs_jpeg_encoder_estimate(const ccodecs_encode_options *options) {
  uint64_t queues = 0;
  for (uint32_t i = 0; options->pixels != CCODECS_PIXELS_RGB8 && i < ccodecs_encoder_plane_count(options); i++) {
    const uint64_t rows = (i == 0 && options->subsampling == CCODECS_SUBSAMPLING_420 ? 16 : 8) * queued_mcu_rows;
    queues += ((uint64_t)ccodecs_encoder_plane_width(options, i) + 16) * rows + 128;
  }
  // The final compression step leaves its whole output pending, in a block that grows once at most.
  const uint64_t pending =
      buffers_coefficients(options) ? ccodecs_encoder_max_lossy_bytes(options) * 3 / 2 : pending_bytes(options);
  return sizeof(jpeg_encoder) + library_charge(options) + queues + pending + 2 * output_step + 1024;
}

ccodecs_encoder *ccodecs_jpeg_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget) {
  static const ccodecs_encoder_methods methods = {.write = write, .finish = finish, .destroy = destroy};
  jpeg_encoder *e = ccodecs_allocate(budget, sizeof *e);
  if (e == NULL) {
    return NULL;
  }
  memset(e, 0, sizeof *e);
  ccodecs_encoder_init(&e->base, &methods, options, budget);
  e->info.err = jpeg_std_error(&e->errors);
  e->errors.error_exit = on_error;
  e->errors.emit_message = on_message;
  e->errors.output_message = on_output;
  e->destination.init_destination = on_destination;
  e->destination.empty_output_buffer = on_full;
  e->destination.term_destination = on_destination;
  const uint64_t charge = library_charge(options);
  if (charge <= SIZE_MAX && ccodecs_budget_charge(budget, (size_t)charge)) {
    e->charged = (size_t)charge;
    if (run(e, create_step) == CCODECS_OK && (options->pixels == CCODECS_PIXELS_RGB8 || prepare_planes(e))) {
      return &e->base;
    }
  }
  destroy(&e->base);
  return NULL;
}
