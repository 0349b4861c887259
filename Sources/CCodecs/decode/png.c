// PNG through libpng's progressive reader.
//
// That reader calls back for each row and can't pause inside the data it was given. So it is given small slices, and
// the rows that a slice completes are queued: deflate expands by at most 1032, which bounds the queue. It also holds
// every chunk but IDAT whole before it looks at it. So the chunks are told apart here, and those whose contents are not
// used never reach it, however large they claim to be.

#include "../bytes.h"
#include "decoder.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

/// Bytes given to libpng at a time.
static const size_t slice_bytes = 1024;
/// The most that deflate expands. Source: zlib's technical details, "Maximum Expansion Factor".
static const size_t largest_expansion = 1032;
/// What libpng and zlib allocate beside rows: their states, a window of 32 KiB, a chunk of metadata.
static const size_t library_bytes = 512 * 1024;
/// The largest metadata chunk that is read; larger ones are skipped.
static const uint32_t largest_metadata = 65536;
static const uint32_t strip_row_count = 64;

typedef struct png_decoder {
  ccodecs_decoder base;
  png_structp png;
  png_infop info;
  ccodecs_status escape_status;
  size_t row_bytes;
  uint32_t channels;
  uint8_t chunk_header[8]; ///< Length and type of the chunk that is being read.
  size_t header_count;     ///< Bytes of it that have come.
  uint64_t body_left;      ///< Bytes of the chunk still to come, its CRC included.
  bool has_signature;
  bool is_past_data;       ///< A chunk other than IDAT came after the first IDAT.
  bool is_fed;             ///< The chunk goes to libpng.
  bool has_header;         ///< The first IDAT was met: its header waits for the rows to have somewhere to go.
  bool has_end;            ///< libpng has read IEND.
  uint8_t *held;           ///< The whole picture, when it is interlaced.
  uint8_t *queue;          ///< Rows that were not given yet, when it is not.
  uint32_t queue_capacity;
  uint32_t queued;
  uint32_t received;       ///< Rows that libpng has completed.
  uint32_t given;
} png_decoder;

// MARK: Callbacks of the library

static void on_error(png_structp png, png_const_charp message) {
  png_decoder *d = png_get_error_ptr(png);
  if (d->base.message[0] == 0) {
    snprintf(d->base.message, sizeof d->base.message, "%s", message);
  }
  png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
  (void)message;
  png_decoder *d = png_get_error_ptr(png);
  d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
}

static png_voidp on_allocate(png_structp png, png_alloc_size_t size) {
  png_decoder *d = png_get_mem_ptr(png);
  void *block = ccodecs_allocate(d->base.budget, size);
  if (block == NULL) {
    d->escape_status = CCODECS_NO_MEMORY;
  }
  return block;
}

static void on_free(png_structp png, png_voidp block) {
  png_decoder *d = png_get_mem_ptr(png);
  ccodecs_free(d->base.budget, block);
}

/// Takes the two chunks that libpng's progressive reader does not know: frames of an animation, and EXIF.
static int on_chunk(png_structp png, png_unknown_chunkp chunk) {
  png_decoder *d = png_get_user_chunk_ptr(png);
  ccodecs_header *header = &d->base.header;
  if (memcmp(chunk->name, "acTL", 4) == 0 && chunk->size >= 4) {
    header->frame_count = ccodecs_be32(chunk->data);
    header->warnings |= header->frame_count > 1 ? CCODECS_WARNING_FIRST_FRAME : 0;
  } else if (memcmp(chunk->name, "eXIf", 4) == 0 && !d->has_header) {
    bool is_broken;
    header->orientation = ccodecs_exif_orientation(chunk->data, chunk->size, &is_broken);
    header->warnings |= is_broken ? CCODECS_WARNING_BAD_EXIF : 0;
  }
  return 1;
}

/// Called when libpng meets the first IDAT, which is given to it by `start`: fixes what rows will be.
static void on_info(png_structp png, png_infop info) {
  png_decoder *d = png_get_progressive_ptr(png);
  png_set_expand(png);
  png_set_scale_16(png);
  if (d->channels >= 3 && d->base.header.color_space == CCODECS_COLOR_GRAY) {
    png_set_gray_to_rgb(png);
  }
  if (d->base.header.is_progressive) {
    png_set_interlace_handling(png);
  }
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != d->row_bytes) {
    d->escape_status = CCODECS_UNSUPPORTED;
    png_error(png, "rows of this kind are not known");
  }
}

static void on_row(png_structp png, png_bytep row, png_uint_32 number, int pass) {
  (void)pass;
  png_decoder *d = png_get_progressive_ptr(png);
  if (number >= d->base.header.height) {
    return;
  }
  if (d->held != NULL) {
    if (row != NULL) {
      png_progressive_combine_row(png, d->held + (size_t)number * d->row_bytes, row);
    }
    return;
  }
  if (row == NULL || d->queued == d->queue_capacity) {
    d->escape_status = CCODECS_CORRUPT;
    png_error(png, "a slice holds more rows than it can");
  }
  memcpy(d->queue + (size_t)d->queued * d->row_bytes, row, d->row_bytes);
  d->queued++;
  d->received++;
}

static void on_end(png_structp png, png_infop info) {
  (void)info;
  png_decoder *d = png_get_progressive_ptr(png);
  d->has_end = true;
}

// MARK: Input

static ccodecs_status fail(png_decoder *d) {
  d->base.failure = d->escape_status == CCODECS_OK ? CCODECS_CORRUPT : d->escape_status;
  return d->base.failure;
}

/// Gives libpng some bytes. With create_library, the only function with a setjmp.
static ccodecs_status process(png_decoder *d, const uint8_t *bytes, size_t count) {
  if (setjmp(png_jmpbuf(d->png)) != 0) {
    return fail(d);
  }
  // libpng does not write to the bytes; its signature is older than const.
  png_process_data(d->png, d->info, (png_bytep)(uintptr_t)bytes, count);
  return CCODECS_OK;
}

/// Whether libpng shall see a chunk: all critical ones, and the few ancillary ones that are used.
static bool wants(const uint8_t *type, uint32_t length) {
  const bool is_critical = (type[0] & 0x20) == 0;
  const bool is_used = memcmp(type, "tRNS", 4) == 0 || memcmp(type, "eXIf", 4) == 0 || memcmp(type, "acTL", 4) == 0;
  return is_critical || (is_used && length <= largest_metadata);
}

/// The eight bytes of a signature or of a chunk's header are here.
static ccodecs_status begin_chunk(png_decoder *d) {
  d->header_count = 0;
  if (!d->has_signature) {
    d->has_signature = true;
    return process(d, d->chunk_header, sizeof d->chunk_header);
  }
  const uint32_t length = ccodecs_be32(d->chunk_header);
  const uint8_t *type = d->chunk_header + 4;
  if (length > 0x7FFFFFFF) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a PNG chunk is longer than PNG allows");
  }
  const bool is_data = memcmp(type, "IDAT", 4) == 0;
  if (is_data && d->is_past_data) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's IDAT chunks are not consecutive");
  }
  d->is_past_data = d->has_header && !is_data;
  d->body_left = (uint64_t)length + 4;
  d->is_fed = wants(type, length);
  if (!d->has_header && is_data) {
    d->has_header = true; // start gives it to libpng
    return CCODECS_OK;
  }
  return d->is_fed ? process(d, d->chunk_header, sizeof d->chunk_header) : CCODECS_OK;
}

/// Takes some bytes of the window, which has some: those of a chunk's header, or a slice of its body.
static ccodecs_status feed(png_decoder *d, ccodecs_input *input) {
  if (d->body_left == 0) {
    const size_t missing = sizeof d->chunk_header - d->header_count;
    const size_t count = input->count < missing ? input->count : missing;
    memcpy(d->chunk_header + d->header_count, input->bytes, count);
    d->header_count += count;
    ccodecs_input_advance(input, count);
    return d->header_count == sizeof d->chunk_header ? begin_chunk(d) : CCODECS_OK;
  }
  size_t count = input->count < d->body_left ? input->count : (size_t)d->body_left;
  count = d->is_fed && count > slice_bytes ? slice_bytes : count;
  const ccodecs_status status = d->is_fed ? process(d, input->bytes, count) : CCODECS_OK;
  d->body_left -= count;
  ccodecs_input_advance(input, count);
  return status;
}

// MARK: Header

static ccodecs_status describe(png_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const int color = png_get_color_type(d->png, d->info);
  const bool has_transparency = png_get_valid(d->png, d->info, PNG_INFO_tRNS) != 0;
  header->width = png_get_image_width(d->png, d->info);
  header->height = png_get_image_height(d->png, d->info);
  header->bit_depth = png_get_bit_depth(d->png, d->info);
  header->has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0 || has_transparency;
  header->is_progressive = png_get_interlace_type(d->png, d->info) != PNG_INTERLACE_NONE;
  header->holds_bitmap = header->is_progressive;
  header->color_space = (color & PNG_COLOR_MASK_COLOR) != 0 ? CCODECS_COLOR_RGB : CCODECS_COLOR_GRAY;
  d->channels = header->has_alpha ? 4 : header->color_space == CCODECS_COLOR_GRAY ? 1 : 3;
  if (header->width == 0 || header->height == 0) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG data has no IHDR chunk before its first IDAT chunk");
  }
  if (__builtin_mul_overflow((size_t)header->width, d->channels, &d->row_bytes)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_LIMIT, "a row of %u pixels is too wide", header->width);
  }
  return CCODECS_OK;
}

static ccodecs_status create_library(png_decoder *d) {
  d->png = png_create_read_struct_2(
      PNG_LIBPNG_VER_STRING, d, on_error, on_warning, d, on_allocate, on_free);
  if (d->png == NULL) {
    return CCODECS_NO_MEMORY;
  }
  if (setjmp(png_jmpbuf(d->png)) != 0) {
    return fail(d);
  }
  d->info = png_create_info_struct(d->png);
  if (d->info == NULL) {
    return CCODECS_NO_MEMORY;
  }
  png_set_user_limits(d->png, 0x7FFFFFFF, 0x7FFFFFFF);
  png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_ALWAYS, (const png_byte *)"acTL\0eXIf", 2);
  png_set_read_user_chunk_fn(d->png, d, on_chunk);
  png_set_progressive_read_fn(d->png, d, on_info, on_row, on_end);
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  png_decoder *d = (png_decoder *)base;
  if (d->info == NULL) {
    const ccodecs_status status = create_library(d);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  while (input->count > 0 && !d->has_header) {
    const ccodecs_status status = feed(d, input);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  if (d->has_header) {
    return describe(d);
  }
  if (input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PNG data ends before its first IDAT chunk");
  }
  return CCODECS_NEEDS_INPUT;
}

// MARK: Rows

static uint8_t scales(const ccodecs_decoder *base) {
  (void)base;
  return 1u << 7;
}

static uint64_t queue_rows(const png_decoder *d) {
  // Filtered rows are at least as short as the rows given: a bit a pixel and a filter byte.
  const uint64_t stored = ((uint64_t)d->base.header.width * png_get_bit_depth(d->png, d->info) *
                               png_get_channels(d->png, d->info) + 7) / 8 + 1;
  const uint64_t rows = slice_bytes * largest_expansion / stored + 2;
  return rows < d->base.header.height ? rows : d->base.header.height;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const png_decoder *d = (const png_decoder *)base;
  const uint64_t rows = base->header.is_progressive ? base->header.height : queue_rows(d);
  // libpng holds two rows with up to eight bytes a pixel.
  *byte_count = rows * d->row_bytes + library_bytes + (uint64_t)base->header.width * 8 * 3;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  png_decoder *d = (png_decoder *)base;
  size_t bytes;
  if (base->header.is_progressive) {
    if (__builtin_mul_overflow(d->row_bytes, (size_t)base->header.height, &bytes)) {
      return CCODECS_NO_MEMORY;
    }
    d->held = ccodecs_allocate(base->budget, bytes);
  } else {
    d->queue_capacity = (uint32_t)queue_rows(d);
    d->queue = ccodecs_allocate(base->budget, d->queue_capacity * d->row_bytes);
  }
  if (d->held == NULL && d->queue == NULL) {
    return CCODECS_NO_MEMORY;
  }
  layout->pixels = d->channels == 1   ? CCODECS_PIXELS_GRAY8
                   : d->channels == 3 ? CCODECS_PIXELS_RGB8
                                      : CCODECS_PIXELS_RGBA8;
  layout->plane_count = 1;
  layout->planes[0] = (ccodecs_plane){
      .width = base->header.width,
      .height = base->header.height,
      .channels = (uint8_t)d->channels,
      .horizontal_scale = 1,
      .vertical_scale = 1,
  };
  return process(d, d->chunk_header, sizeof d->chunk_header);
}

static ccodecs_status give(png_decoder *d, ccodecs_rows *rows, const uint8_t *first, uint32_t count) {
  rows->planes[0] = first;
  rows->row_strides[0] = d->row_bytes;
  rows->row_counts[0] = count;
  d->given += count;
  return CCODECS_ROWS_READY;
}

static ccodecs_status give_held(png_decoder *d, ccodecs_rows *rows) {
  const uint32_t left = d->base.header.height - d->given;
  const uint32_t count = left < strip_row_count ? left : strip_row_count;
  return give(d, rows, d->held + (size_t)d->given * d->row_bytes, count);
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  png_decoder *d = (png_decoder *)base;
  d->queued = 0; // the rows of the last call were used
  while (d->queued == 0) {
    if (d->has_end) {
      if (d->given == base->header.height) {
        return CCODECS_DONE;
      }
      return d->held != NULL ? give_held(d, rows)
                             : ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PNG data has too few rows");
    }
    if (input->count == 0) {
      return input->is_last ? ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PNG data ends before its IEND chunk")
                            : CCODECS_NEEDS_INPUT;
    }
    const ccodecs_status status = feed(d, input);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  return give(d, rows, d->queue, d->queued);
}

static void destroy(ccodecs_decoder *base) {
  png_decoder *d = (png_decoder *)base;
  ccodecs_budget *budget = base->budget;
  if (d->png != NULL) {
    png_destroy_read_struct(&d->png, &d->info, NULL);
  }
  ccodecs_free(budget, d->held);
  ccodecs_free(budget, d->queue);
  ccodecs_free(budget, d);
}

ccodecs_decoder *ccodecs_png_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  static const ccodecs_decoder_methods methods = {
      .read_header = read_header,
      .scales = scales,
      .estimate = estimate,
      .start = start,
      .read_rows = read_rows,
      .destroy = destroy,
  };
  png_decoder *d = ccodecs_allocate(budget, sizeof *d);
  if (d == NULL) {
    return NULL;
  }
  memset(d, 0, sizeof *d);
  ccodecs_decoder_init(&d->base, &methods, CCODECS_FORMAT_PNG, limits, budget);
  return &d->base;
}
