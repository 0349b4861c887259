// PNG through libpng, row by row.

#include "encoder.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

/// deflate's state at its largest, and libpng's own.
static const size_t library_bytes = 400 * 1024;

typedef struct png_encoder {
  ccodecs_encoder base;
  png_structp png;
  png_infop info;
  bool is_out_of_room;
  const ccodecs_rows *rows; ///< Of the write that is under way.
} png_encoder;

static void on_error(png_structp png, png_const_charp message) {
  png_encoder *e = png_get_error_ptr(png);
  snprintf(e->base.message, sizeof e->base.message, "%s", message);
  png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
  (void)png;
  (void)message;
}

static png_voidp on_allocate(png_structp png, png_alloc_size_t size) {
  png_encoder *e = png_get_mem_ptr(png);
  void *block = ccodecs_allocate(e->base.budget, size);
  e->is_out_of_room = e->is_out_of_room || block == NULL;
  return block;
}

static void on_free(png_structp png, png_voidp block) {
  png_encoder *e = png_get_mem_ptr(png);
  ccodecs_free(e->base.budget, block);
}

static void on_write(png_structp png, png_bytep bytes, size_t count) {
  png_encoder *e = png_get_io_ptr(png);
  if (!ccodecs_bytes_append(&e->base.output, bytes, count, e->base.budget)) {
    e->is_out_of_room = true;
    png_error(png, "no room for compressed bytes");
  }
}

static void on_flush(png_structp png) {
  (void)png;
}

/// A step of libpng, run with its errors caught. The only function with a setjmp.
static ccodecs_status run(png_encoder *e, void (*step)(png_encoder *e)) {
  if (setjmp(png_jmpbuf(e->png)) != 0) {
    e->base.failure = e->is_out_of_room ? CCODECS_NO_MEMORY : CCODECS_UNSUPPORTED;
    return e->base.failure;
  }
  step(e);
  return CCODECS_OK;
}

static void begin_step(png_encoder *e) {
  static const int color_types[] = {
      [CCODECS_PIXELS_GRAY8] = PNG_COLOR_TYPE_GRAY,
      [CCODECS_PIXELS_RGB8] = PNG_COLOR_TYPE_RGB,
      [CCODECS_PIXELS_RGBA8] = PNG_COLOR_TYPE_RGB_ALPHA,
  };
  const ccodecs_encode_options *options = &e->base.options;
  png_set_user_limits(e->png, 0x7FFFFFFF, 0x7FFFFFFF);
  png_set_write_fn(e->png, e, on_write, on_flush);
  png_set_compression_level(e->png, options->compression_level);
  png_set_IHDR(
      e->png, e->info, options->width, options->height, 8, color_types[options->pixels], PNG_INTERLACE_NONE,
      PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(e->png, e->info);
}

static void rows_step(png_encoder *e) {
  for (uint32_t row = 0; row < e->rows->row_counts[0]; row++) {
    png_write_row(e->png, e->rows->planes[0] + row * e->rows->row_strides[0]);
  }
}

static void end_step(png_encoder *e) {
  png_write_end(e->png, NULL);
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  png_encoder *e = (png_encoder *)base;
  e->rows = rows;
  return run(e, rows_step);
}

static ccodecs_status finish(ccodecs_encoder *base) {
  return run((png_encoder *)base, end_step);
}

static void destroy(ccodecs_encoder *base) {
  png_encoder *e = (png_encoder *)base;
  ccodecs_budget *budget = base->budget;
  if (e->png != NULL) {
    png_destroy_write_struct(&e->png, &e->info);
  }
  ccodecs_bytes_free(&base->output, budget);
  ccodecs_free(budget, e);
}

uint64_t ccodecs_png_encoder_estimate(const ccodecs_encode_options *options) {
  // libpng holds the row, the one before, and one for each of two filters that it tries.
  const uint64_t row = (uint64_t)options->width * ccodecs_encoder_channels(options) + 64;
  return sizeof(png_encoder) + library_bytes + 5 * row + 3 * 65536;
}

ccodecs_encoder *ccodecs_png_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget) {
  static const ccodecs_encoder_methods methods = {.write = write, .finish = finish, .destroy = destroy};
  png_encoder *e = ccodecs_allocate(budget, sizeof *e);
  if (e == NULL) {
    return NULL;
  }
  memset(e, 0, sizeof *e);
  ccodecs_encoder_init(&e->base, &methods, options, budget);
  e->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, e, on_error, on_warning, e, on_allocate, on_free);
  e->info = e->png == NULL ? NULL : png_create_info_struct(e->png);
  if (e->info != NULL && run(e, begin_step) == CCODECS_OK) {
    return &e->base;
  }
  destroy(&e->base);
  return NULL;
}
