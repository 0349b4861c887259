// HEIC and AVIF decoding with libheif: the primary image of a file. The whole file is buffered.
//
// libheif rotates, mirrors and crops as the file specifies, and returns RGB with eight bits or with the file's bit
// depth. It allocates the planes that the codec decodes, its conversions, and the result. All of it is charged before
// decoding, by the size of the image.

#include "../color/profile.h"
#include "../core/decoder.h"
#include "../core/quiet.h"
#include "../memory/bytes.h"
#include "heif_alpha.h"
#include "heif_format.h"
#include "heif_graph.h"

#ifdef CCODECS_HEIF

#include <libheif/heif.h>

/// Bytes of libheif's boxes and the codecs' states.
static const size_t library_bytes = (size_t)4 << 20;
/// libheif has one limit for both width and height.
static const int max_side = 65535;

typedef struct heif_decoder {
  ccodecs_decoder base;
  ccodecs_bytes file;
  struct heif_context *context;
  struct heif_image_handle *handle;
  struct heif_image *image;
  const uint8_t *pixels;
  size_t row_stride;
  uint8_t *strip;   ///< Rows scaled to 16 bits.
  uint32_t largest; ///< Maximum value of libheif's samples of more than 8 bits.
  bool is_premultiplied;
  uint32_t channels;
  bool is_monochrome;
  bool is_limited_gray;
  bool has_full_chroma;
  bool is_composed;
  uint64_t coded_pixels; ///< Pixels of the largest frame, before cropping.
  size_t charged;
} heif_decoder;

static ccodecs_status fail(heif_decoder *d, struct heif_error error) {
  const char *format = d->base.header.format == CCODECS_FORMAT_AVIF ? "avif" : "heic";
  switch (error.code) {
  case heif_error_Unsupported_feature:
  case heif_error_Unsupported_filetype:
    return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "%s data: %s", format, error.message);
  case heif_error_Memory_allocation_error:
    return error.subcode == heif_suberror_Security_limit_exceeded
               ? ccodecs_decoder_fail(&d->base, CCODECS_LIMIT, "%s data: a limit of libheif is exceeded", format)
               : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "%s data: libheif is out of memory", format);
  default:
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "%s data: %s", format, error.message);
  }
}

static bool is_error(struct heif_error error) {
  return error.code != heif_error_Ok;
}

// MARK: Header

static ccodecs_status charge(heif_decoder *d, uint64_t byte_count) {
  if (byte_count > SIZE_MAX || !ccodecs_budget_charge(d->base.budget, (size_t)byte_count)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_NO_MEMORY, "decoding needs %llu bytes of memory", (unsigned long long)byte_count);
  }
  d->charged += (size_t)byte_count;
  return CCODECS_OK;
}

/// Reads the color profile if the file has an ICC profile. libheif handles colors described by code points only (nclx).
static ccodecs_status read_profile(heif_decoder *d) {
  const size_t count = heif_image_handle_get_raw_color_profile_size(d->handle);
  const enum heif_color_profile_type type = heif_image_handle_get_color_profile_type(d->handle);
  if (count == 0 || (type != heif_color_profile_type_prof && type != heif_color_profile_type_rICC)) {
    return CCODECS_OK;
  }
  if (count > CCODECS_MAX_PROFILE_BYTES) {
    return ccodecs_decoder_keep_profile(&d->base, NULL, count);
  }
  uint8_t *profile = ccodecs_allocate(d->base.budget, count);
  if (profile == NULL) {
    return CCODECS_NO_MEMORY;
  }
  const bool is_read = !is_error(heif_image_handle_get_raw_color_profile(d->handle, profile));
  const ccodecs_status status = is_read ? ccodecs_decoder_keep_profile(&d->base, profile, count) : CCODECS_OK;
  ccodecs_free(d->base.budget, profile);
  return status;
}

static ccodecs_status describe(heif_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const int width = heif_image_handle_get_width(d->handle);
  const int height = heif_image_handle_get_height(d->handle);
  const int depth = heif_image_handle_get_luma_bits_per_pixel(d->handle);
  const int coded_width = heif_image_handle_get_ispe_width(d->handle);
  const int coded_height = heif_image_handle_get_ispe_height(d->handle);
  if (width <= 0 || height <= 0 || coded_width <= 0 || coded_height <= 0) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the width or height is zero or missing");
  }
  const uint64_t coded = (uint64_t)coded_width * (uint64_t)coded_height;
  d->coded_pixels = d->coded_pixels < coded ? coded : d->coded_pixels;
  const uint64_t limit = d->base.limits.max_whole_input_pixels;
  if (limit != 0 && d->coded_pixels > limit) {
    return ccodecs_decoder_exceed(
        &d->base, "pixels in a frame", (ccodecs_excess){"max_buffered_pixels", limit, d->coded_pixels});
  }
  // A grid's tiles must not claim a larger size. libheif refuses sizes from the limit on, not above it.
  heif_context_set_maximum_image_size_limit(d->context, (coded_width > coded_height ? coded_width : coded_height) + 1);
  header->width = (uint32_t)width;
  header->height = (uint32_t)height;
  header->bit_depth = depth > 0 && depth <= 16 ? (uint8_t)depth : 8;
  header->is_16bit = header->bit_depth > 8;
  header->has_alpha = heif_image_handle_has_alpha_channel(d->handle) != 0;
  header->color_space = CCODECS_COLOR_RGB;
  header->buffers_bitmap = true;
  const int images = heif_context_get_number_of_top_level_images(d->context);
  const bool is_sequence = memcmp(ccodecs_bytes_start(&d->file) + 8, "avis", 4) == 0;
  header->frame_count = is_sequence ? 0 : images > 0 ? (uint32_t)images : 1;
  header->warnings |= images > 1 || is_sequence ? CCODECS_WARNING_FIRST_FRAME : 0;
  d->channels = header->has_alpha ? 4 : 3;
  return read_profile(d);
}

/// Writes the size of a last box that has none because it extends to the end of the file, which libheif would treat as
/// empty.
static void complete_last_box(heif_decoder *d) {
  uint8_t *bytes = ccodecs_bytes_start(&d->file);
  size_t at = 0;
  while (d->file.count - at >= 8) {
    const size_t left = d->file.count - at;
    const uint32_t size = ccodecs_be32(bytes + at);
    if (size == 0 && left <= UINT32_MAX) {
      for (int i = 0; i < 4; i++) {
        bytes[at + (size_t)i] = (uint8_t)(left >> (24 - 8 * i));
      }
    }
    if (size < 8 || size > left) {
      return;
    }
    at += size;
  }
}

/// Refuses files whose decoding costs too much, before libheif sees them.
static ccodecs_status check_items(heif_decoder *d) {
  const ccodecs_heif_graph graph =
      ccodecs_heif_graph_read(ccodecs_bytes_start(&d->file), d->file.count, d->base.budget);
  d->coded_pixels = graph.max_frame_pixels;
  d->base.work_pixels = graph.work;
  d->is_monochrome = graph.is_monochrome;
  d->has_full_chroma = graph.has_full_chroma;
  d->is_composed = graph.is_composed;
  if (graph.status == CCODECS_LIMIT) {
    return ccodecs_decoder_exceed(&d->base, graph.things, graph.excess);
  }
  return graph.status == CCODECS_OK
             ? CCODECS_OK
             : ccodecs_decoder_fail(
                   &d->base, graph.status, "%s data: %s", ccodecs_format_name(d->base.header.format), graph.message);
}

static ccodecs_status open_file(heif_decoder *d) {
  complete_last_box(d);
  if (!ccodecs_heif_align_alpha(&d->file, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the file");
  }
  ccodecs_status status = check_items(d);
  status = status == CCODECS_OK ? charge(d, library_bytes) : status;
  if (status != CCODECS_OK) {
    return status;
  }
  d->context = heif_context_alloc();
  if (d->context == NULL) {
    return CCODECS_NO_MEMORY;
  }
  heif_context_set_max_decoding_threads(d->context, 0);
  heif_context_set_maximum_image_size_limit(d->context, max_side);
  struct heif_error error =
      heif_context_read_from_memory_without_copy(d->context, ccodecs_bytes_start(&d->file), d->file.count, NULL);
  if (!is_error(error)) {
    error = heif_context_get_primary_image_handle(d->context, &d->handle);
  }
  return is_error(error) ? fail(d, error) : describe(d);
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  heif_decoder *d = (heif_decoder *)base;
  base->header.buffers_input = true;
  if (!ccodecs_bytes_append(&d->file, input->bytes, input->count, base->budget)) {
    return ccodecs_decoder_fail(base, CCODECS_NO_MEMORY, "no room to buffer the file");
  }
  ccodecs_input_advance(input, input->count);
  return input->is_last ? open_file(d) : CCODECS_NEEDS_INPUT;
}

/// Returns the bytes per pixel that libheif, the codec and the result allocate at a time: the codec's frames, and
/// planes before and after conversion. Measured: HEVC 5.9 at 4:2:0, 6.3 at 4:4:4, 9.1 with alpha, 17.7 with ten bits;
/// AV1 7.3 at 4:2:0, 13.6 at 4:4:4, 12.2 and 13.6 with alpha. Composed images also need canvases.
static uint64_t bytes_per_pixel(const heif_decoder *d) {
  const bool has_alpha = d->channels == 4;
  const bool is_16bit = d->base.header.is_16bit;
  if (d->is_composed) {
    return (uint64_t)d->channels * (is_16bit ? 12 : 6);
  }
  if (d->base.header.format == CCODECS_FORMAT_HEIC) {
    return is_16bit ? has_alpha ? 24 : 18 : has_alpha ? 10 : 7;
  }
  return is_16bit ? has_alpha ? 32 : 24 : d->has_full_chroma ? 15 : has_alpha ? 13 : 8;
}

static uint64_t decoding_bytes(const heif_decoder *d) {
  return d->coded_pixels * bytes_per_pixel(d);
}

static size_t strip_bytes(const heif_decoder *d) {
  return d->base.header.is_16bit
             ? (size_t)d->base.header.width * d->channels * sizeof(uint16_t) * CCODECS_BITMAP_STRIP_ROWS
             : 0;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const heif_decoder *d = (const heif_decoder *)base;
  *byte_count = decoding_bytes(d) + strip_bytes(d) + 128;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  heif_decoder *d = (heif_decoder *)base;
  ccodecs_decoder_describe_packed(base, d->channels, layout);
  const ccodecs_status status = charge(d, decoding_bytes(d));
  if (status != CCODECS_OK || strip_bytes(d) == 0) {
    return status;
  }
  d->strip = ccodecs_allocate(base->budget, strip_bytes(d));
  return d->strip == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Rows

/// Converts premultiplied colors to straight alpha.
static void divide_alpha(uint8_t *pixels, size_t row_stride, uint32_t width, uint32_t height) {
  for (uint32_t y = 0; y < height; y++) {
    uint8_t *p = pixels + y * row_stride;
    for (uint32_t x = 0; x < width; x++, p += 4) {
      for (int i = 0; i < 3 && p[3] > 0; i++) {
        const uint32_t quotient = (p[i] * 255u + p[3] / 2u) / p[3];
        p[i] = quotient > 255 ? 255 : (uint8_t)quotient;
      }
    }
  }
}

/// Returns whether the image is gray with a luma range of 16 to 235. libheif expands that range in images with chroma,
/// but leaves it unchanged in gray images.
static bool is_limited_gray(const heif_decoder *d) {
  struct heif_color_profile_nclx *nclx = NULL;
  if (!d->is_monochrome) {
    return false;
  }
  if (is_error(heif_image_handle_get_nclx_color_profile(d->handle, &nclx)) || nclx == NULL) {
    heif_nclx_color_profile_free(nclx); // a profile with values unknown to libheif
    nclx = NULL;
    heif_image_get_nclx_color_profile(d->image, &nclx);
  }
  const bool is_limited = nclx != NULL && !nclx->full_range_flag;
  heif_nclx_color_profile_free(nclx);
  return is_limited;
}

/// Expands a sample of limited range to full range; both have a maximum of `largest`.
static uint32_t expand_range(uint32_t sample, uint32_t largest) {
  const uint32_t unit = (largest + 1) / 256;
  const uint32_t above = sample > 16 * unit ? sample - 16 * unit : 0;
  const uint32_t full = (uint32_t)(((uint64_t)above * largest + 219 * unit / 2) / (219 * unit));
  return full > largest ? largest : full;
}

static void expand_rows(const heif_decoder *d, uint8_t *pixels) {
  const uint32_t width = d->base.header.width;
  for (uint32_t y = 0; y < d->base.header.height; y++) {
    uint8_t *p = pixels + y * d->row_stride;
    for (uint32_t x = 0; x < width; x++, p += d->channels) {
      p[0] = p[1] = p[2] = (uint8_t)expand_range(p[0], 255);
    }
  }
}

static ccodecs_status decode(heif_decoder *d) {
  struct heif_decoding_options *options = heif_decoding_options_alloc();
  if (options == NULL) {
    return CCODECS_NO_MEMORY;
  }
  const bool is_16bit = d->base.header.is_16bit;
  options->convert_hdr_to_8bit = !is_16bit;
  const enum heif_chroma chroma = d->channels == 4
                                      ? is_16bit ? heif_chroma_interleaved_RRGGBBAA_LE : heif_chroma_interleaved_RGBA
                                  : is_16bit ? heif_chroma_interleaved_RRGGBB_LE
                                             : heif_chroma_interleaved_RGB;
  ccodecs_quiet_begin();
  const struct heif_error error = heif_decode_image(d->handle, &d->image, heif_colorspace_RGB, chroma, options);
  ccodecs_quiet_end();
  heif_decoding_options_free(options);
  if (is_error(error)) {
    return fail(d, error);
  }
  int stride = 0;
  uint8_t *pixels = heif_image_get_plane(d->image, heif_channel_interleaved, &stride);
  const int width = heif_image_get_width(d->image, heif_channel_interleaved);
  const int height = heif_image_get_height(d->image, heif_channel_interleaved);
  if (pixels == NULL || width < 0 || height < 0 || (uint32_t)width != d->base.header.width ||
      (uint32_t)height != d->base.header.height || (size_t)stride < (size_t)width * d->channels * (is_16bit ? 2 : 1)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the image's size differs from its header");
  }
  d->pixels = pixels;
  d->row_stride = (size_t)stride;
  d->is_premultiplied = d->channels == 4 && heif_image_handle_is_premultiplied_alpha(d->handle);
  d->is_limited_gray = is_limited_gray(d);
  if (!is_16bit) {
    if (d->is_limited_gray) {
      expand_rows(d, pixels);
    }
    if (d->is_premultiplied) {
      divide_alpha(pixels, d->row_stride, d->base.header.width, d->base.header.height);
    }
    return CCODECS_OK;
  }
  const int bits = heif_image_get_bits_per_pixel_range(d->image, heif_channel_interleaved);
  d->largest = bits > 0 && bits <= 16 ? (1u << bits) - 1 : 65535;
  return CCODECS_OK;
}

/// Scales a row of samples of more than 8 bits, which libheif stores in the low bits, to 16 bits.
static void put_16bit_row(const heif_decoder *d, const uint8_t *source, uint16_t *out) {
  const size_t count = (size_t)d->base.header.width * d->channels;
  for (size_t i = 0; i < count; i++) {
    uint32_t sample = ccodecs_le16(source + 2 * i);
    if (d->is_limited_gray && (d->channels == 3 || i % 4 < 3)) {
      sample = expand_range(sample, d->largest);
    }
    out[i] = sample >= d->largest ? 65535 : (uint16_t)((sample * 65535u + d->largest / 2) / d->largest);
  }
  for (size_t i = 0; d->is_premultiplied && i < count; i += 4) {
    const uint32_t alpha = out[i + 3];
    for (size_t c = 0; c < 3 && alpha > 0; c++) {
      const uint32_t quotient = (out[i + c] * 65535u + alpha / 2) / alpha;
      out[i + c] = quotient > 65535 ? 65535 : (uint16_t)quotient;
    }
  }
}

static void emit_16bit_rows(heif_decoder *d, ccodecs_rows *rows) {
  const size_t stride = (size_t)d->base.header.width * d->channels * sizeof(uint16_t);
  for (uint32_t i = 0; i < rows->row_counts[0]; i++) {
    put_16bit_row(d, rows->planes[0] + i * d->row_stride, (uint16_t *)(void *)(d->strip + i * stride));
  }
  rows->planes[0] = d->strip;
  rows->row_strides[0] = stride;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  (void)input;
  heif_decoder *d = (heif_decoder *)base;
  if (d->image == NULL) {
    const ccodecs_status status = decode(d);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  const ccodecs_status status = ccodecs_decoder_give_bitmap(base, d->pixels, d->row_stride, rows);
  if (base->header.is_16bit) {
    emit_16bit_rows(d, rows);
  }
  return status;
}

static void destroy(ccodecs_decoder *base) {
  heif_decoder *d = (heif_decoder *)base;
  ccodecs_budget *budget = base->budget;
  heif_image_release(d->image);
  heif_image_handle_release(d->handle);
  if (d->context != NULL) {
    heif_context_free(d->context);
  }
  ccodecs_budget_refund(budget, d->charged);
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_free(budget, d->strip);
  ccodecs_free(budget, d);
}

static ccodecs_decoder *create(ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget) {
  static const ccodecs_decoder_methods methods = {
      .read_header = read_header,
      .estimate = estimate,
      .start = start,
      .read_rows = read_rows,
      .destroy = destroy,
  };
  heif_decoder *d = ccodecs_decoder_allocate(sizeof *d, &methods, format, limits, budget);
  if (d == NULL) {
    return NULL;
  }
  return &d->base;
}

ccodecs_decoder *ccodecs_heic_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  return create(CCODECS_FORMAT_HEIC, limits, budget);
}

ccodecs_decoder *ccodecs_avif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  return create(CCODECS_FORMAT_AVIF, limits, budget);
}

#endif
