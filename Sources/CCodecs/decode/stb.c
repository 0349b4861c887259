// PSD through stb_image.
//
// stb_image wants the whole file and gives the whole bitmap. Both are charged to the budget, and the number of pixels
// is limited more tightly than that of formats that stream.

#include "../bytes.h"
#include "decoder.h"

#include <limits.h>
#include <string.h>

/// The budget that stb_image's allocations are charged to. stb_image passes no context to its allocator, so the budget
/// is set for the length of one call, on the thread that makes it.
static _Thread_local ccodecs_budget *current_budget;
/// Whether an allocation failed in that call: stb_image itself may then say that it knows no such format.
static _Thread_local bool is_out_of_memory;

static void *allocate(size_t byte_count) {
  void *block = ccodecs_allocate(current_budget, byte_count);
  is_out_of_memory = is_out_of_memory || block == NULL;
  return block;
}

static void release(void *block) {
  ccodecs_free(current_budget, block);
}

#define STBI_MALLOC allocate
#define STBI_FREE release
#define STBI_REALLOC(block, new_count) NULL // only its PNG and GIF decoders, left out below, grow blocks
#define STBI_NO_STDIO
#define STBI_NO_JPEG
#define STBI_NO_PNG
#define STBI_NO_PIC
#define STBI_NO_GIF
#define STBI_NO_BMP
#define STBI_NO_TGA
#define STBI_NO_PNM
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_ASSERT(condition) ((void)0)
#define STBI_MAX_DIMENSIONS (1 << 24)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-parameter"
#pragma clang diagnostic ignored "-Wsign-compare"
#pragma clang diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image.h>
#pragma clang diagnostic pop

static const size_t first_probe = 4096;
static const uint32_t strip_row_count = 64;
/// stb_image's decoder states and palettes.
static const size_t library_bytes = 256 * 1024;

typedef struct stb_decoder {
  ccodecs_decoder base;
  ccodecs_bytes file;
  size_t next_probe; ///< Bytes to have before the header is looked for again.
  int channels;      ///< Of the bitmap that is asked for.
  uint8_t *bitmap;
  size_t position;   ///< Of stb_image in the file.
  bool ran_out;      ///< stb_image asked for bytes after the last.
  uint32_t given;
} stb_decoder;

// MARK: The file as stb_image reads it

/// stb_image reads 128 bytes ahead, and more at once where it wants all of them. So it lacks bytes when it gets none, or
/// fewer than a larger number.
static int on_read(void *context, char *destination, int count) {
  stb_decoder *d = context;
  const size_t left = d->file.count - d->position;
  const size_t given = (size_t)count < left ? (size_t)count : left;
  d->ran_out = d->ran_out || given == 0 || (count > 128 && given < (size_t)count);
  memcpy(destination, ccodecs_bytes_start(&d->file) + d->position, given);
  d->position += given;
  return (int)given;
}

static void on_skip(void *context, int count) {
  stb_decoder *d = context;
  const size_t left = d->file.count - d->position;
  if (count >= 0 && (size_t)count > left) {
    d->ran_out = true;
  }
  d->position += count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
}

static int on_end(void *context) {
  stb_decoder *d = context;
  return d->position == d->file.count;
}

static const stbi_io_callbacks callbacks = {.read = on_read, .skip = on_skip, .eof = on_end};

// MARK: Header

static bool probe(stb_decoder *d, int *width, int *height, int *channels) {
  d->position = 0;
  current_budget = d->base.budget;
  is_out_of_memory = false;
  const int found = stbi_info_from_callbacks(&callbacks, d, width, height, channels);
  current_budget = NULL;
  return found != 0;
}

static bool says(const char *reason, const char *word) {
  return strstr(reason, word) != NULL;
}

static ccodecs_status fail_with_reason(stb_decoder *d) {
  const char *reason = stbi_failure_reason();
  reason = reason == NULL ? "unreadable" : reason;
  ccodecs_status status = CCODECS_CORRUPT;
  if (is_out_of_memory || says(reason, "outofmem")) {
    status = CCODECS_NO_MEMORY;
  } else if (says(reason, "unsupported") || says(reason, "unknown") || says(reason, "not RGB") ||
             says(reason, "wrong channel")) {
    status = CCODECS_UNSUPPORTED;
  }
  return ccodecs_decoder_fail(&d->base, status, "%s data: %s", ccodecs_format_name(d->base.header.format), reason);
}

static void describe(stb_decoder *d, int width, int height, int channels) {
  ccodecs_header *header = &d->base.header;
  header->width = (uint32_t)width;
  header->height = (uint32_t)height;
  header->has_alpha = channels == 2 || channels == 4;
  header->holds_input = true;
  header->holds_bitmap = true;
  header->color_space = channels <= 2 ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  d->channels = header->has_alpha ? 4 : channels == 1 ? 1 : 3;
}

static ccodecs_status take_all(stb_decoder *d, ccodecs_input *input) {
  if (!ccodecs_bytes_append(&d->file, input->bytes, input->count, d->base.budget)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_NO_MEMORY, "the file is held whole, and the budget has no room for it");
  }
  input->bytes += input->count;
  input->count = 0;
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  stb_decoder *d = (stb_decoder *)base;
  const ccodecs_status status = take_all(d, input);
  if (status != CCODECS_OK) {
    return status;
  }
  if (d->file.count < d->next_probe && !input->is_last) {
    return CCODECS_NEEDS_INPUT;
  }
  int width = 0;
  int height = 0;
  int channels = 0;
  if (probe(d, &width, &height, &channels) && width > 0 && height > 0) {
    describe(d, width, height, channels);
    return CCODECS_OK;
  }
  if (input->is_last) {
    return fail_with_reason(d);
  }
  d->next_probe = d->file.count * 2;
  return CCODECS_NEEDS_INPUT;
}

// MARK: Rows

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const uint64_t pixels = (uint64_t)base->header.width * base->header.height;
  *byte_count = pixels * 12 + library_bytes; // four channels, of up to 16 bits, and the result
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  const stb_decoder *d = (const stb_decoder *)base;
  ccodecs_decoder_describe_packed(base, d->channels, layout);
  return CCODECS_OK;
}

static ccodecs_status load(stb_decoder *d) {
  int width;
  int height;
  int channels;
  d->position = 0;
  d->ran_out = false;
  current_budget = d->base.budget;
  is_out_of_memory = false;
  d->bitmap = stbi_load_from_callbacks(&callbacks, d, &width, &height, &channels, d->channels);
  current_budget = NULL;
  if (d->ran_out) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_TRUNCATED, "%s data: the file ends early", ccodecs_format_name(d->base.header.format));
  }
  if (d->bitmap == NULL) {
    return fail_with_reason(d);
  }
  if ((uint32_t)width != d->base.header.width || (uint32_t)height != d->base.header.height) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the bitmap has another size than the header says");
  }
  ccodecs_bytes_free(&d->file, d->base.budget);
  return CCODECS_OK;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  stb_decoder *d = (stb_decoder *)base;
  if (d->bitmap == NULL) {
    ccodecs_status status = take_all(d, input);
    if (status == CCODECS_OK && !input->is_last) {
      return CCODECS_NEEDS_INPUT;
    }
    status = status == CCODECS_OK ? load(d) : status;
    if (status != CCODECS_OK) {
      return status;
    }
  }
  const uint32_t left = base->header.height - d->given;
  if (left == 0) {
    return CCODECS_DONE;
  }
  const uint32_t count = left < strip_row_count ? left : strip_row_count;
  rows->row_strides[0] = (size_t)base->header.width * (size_t)d->channels;
  rows->planes[0] = d->bitmap + d->given * rows->row_strides[0];
  rows->row_counts[0] = count;
  d->given += count;
  return CCODECS_ROWS_READY;
}

static void destroy(ccodecs_decoder *base) {
  stb_decoder *d = (stb_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_free(budget, d->bitmap);
  ccodecs_free(budget, d);
}

ccodecs_decoder *ccodecs_stb_decoder_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget) {
  static const ccodecs_decoder_methods methods = {
      .read_header = read_header,
      .estimate = estimate,
      .start = start,
      .read_rows = read_rows,
      .destroy = destroy,
  };
  stb_decoder *d = ccodecs_decoder_allocate(sizeof *d, &methods, format, limits, budget);
  if (d == NULL) {
    return NULL;
  }
  d->next_probe = first_probe;
  return &d->base;
}
