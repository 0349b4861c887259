// HEIC and AVIF decoding with libheif: the primary image of a file. The whole file is buffered.
//
// A grid of tiles is decoded by rows of tiles, every other image as a whole. libheif returns planes of RGB; rotation
// and mirroring become the orientation of the rows, and crops are applied here. It allocates the planes that the codec
// decodes, its conversions, and the result. All of it is charged before decoding, by the size of the image or a tile.

#include "../color/profile.h"
#include "../core/decoder.h"
#include "../core/quiet.h"
#include "../formats.h"
#include "../memory/bytes.h"
#include "heif_alpha.h"
#include "heif_av1.h"
#include "heif_boxes.h"
#include "heif_gain_map.h"
#include "heif_graph.h"
#include "heif_samples.h"

#ifdef CCODECS_HEIF

#include <libheif/heif.h>
#include <pthread.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/// Bytes of libheif's boxes and the codecs' states.
static const size_t library_bytes = (size_t)4 << 20;
/// libheif has one limit for both width and height.
static const int max_side = 65535;
/// Maximum size of a block of metadata in bytes.
static const size_t max_metadata = 65536;
/// Maximum number of tiles that are decoded separately, as libheif searches each among all images.
enum { MAX_TILES = 1024 };

typedef struct heif_decoder {
  ccodecs_decoder base;
  ccodecs_bytes file;
  struct heif_context *context;
  struct heif_image_handle *handle;
  struct heif_image *image; ///< The whole image, if it has no separate tiles.
  heif_planes planes;       ///< Of `image`.
  heif_samples samples;
  bool is_gray; ///< Rows have one channel.
  ccodecs_heif_graph graph;
  heif_view view;
  uint32_t tile_width; ///< Of separate tiles; 0 without them.
  uint32_t tile_height;
  uint64_t coded_pixels; ///< Pixels of the largest frame that is decoded at a time, before cropping.
  uint8_t *band;         ///< Rows that were not returned yet.
  uint32_t band_first;
  uint32_t band_count;
  uint32_t given;
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

/// Reads the ICC profile, which takes precedence, or creates one for the color's code points.
static ccodecs_status read_profile(heif_decoder *d) {
  const heif_color *color = &d->graph.color;
  const size_t count = heif_image_handle_get_raw_color_profile_size(d->handle);
  const enum heif_color_profile_type type = heif_image_handle_get_color_profile_type(d->handle);
  if (count == 0 || (type != heif_color_profile_type_prof && type != heif_color_profile_type_rICC)) {
    return color->is_known ? ccodecs_decoder_use_color_codes(&d->base, color->codes) : CCODECS_OK;
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

/// Reads a block of metadata. Returns false if the budget is exhausted.
static bool read_block(heif_decoder *d, heif_item_id item, ccodecs_bytes *block) {
  const size_t count = heif_image_handle_get_metadata_size(d->handle, item);
  if (count == 0 || count > max_metadata) {
    return true;
  }
  if (!ccodecs_bytes_reserve(block, count, d->base.budget)) {
    return false;
  }
  if (!is_error(heif_image_handle_get_metadata(d->handle, item, ccodecs_bytes_start(block)))) {
    block->count = count;
  }
  return true;
}

/// Keeps EXIF with its copyright, or XMP. The TIFF block of EXIF begins at an offset behind the four bytes that state
/// it. Returns false if the budget is exhausted.
static bool keep_block(heif_decoder *d, const ccodecs_bytes *block, bool is_exif) {
  enum { OFFSET_BYTES = 4 };
  if (block->count <= OFFSET_BYTES) {
    return true;
  }
  const uint8_t *bytes = ccodecs_bytes_start(block);
  if (!is_exif) {
    return ccodecs_decoder_keep_block(&d->base, &d->base.xmp, bytes, block->count);
  }
  const uint64_t first = OFFSET_BYTES + (uint64_t)ccodecs_be32(bytes);
  return first >= block->count || ccodecs_exif_keep_copyright(&d->base, bytes + first, block->count - (size_t)first);
}

static bool keep_item(heif_decoder *d, heif_item_id item, bool is_exif) {
  ccodecs_bytes block = {0};
  const bool has_room = read_block(d, item, &block) && keep_block(d, &block, is_exif);
  ccodecs_bytes_free(&block, d->base.budget);
  return has_room;
}

/// Keeps metadata that libheif does not return. Returns false if the budget is exhausted.
static bool keep_shared_metadata(heif_decoder *d) {
  const heif_span file = {ccodecs_bytes_start(&d->file), d->file.count};
  bool has_room = true;
  for (int exif = d->base.limits.keeps_metadata ? 0 : 1; exif < 2 && has_room; exif++) {
    ccodecs_bytes block = {0};
    has_room = heif_shared_metadata_read(file, exif == 1, d->base.budget, &block) && keep_block(d, &block, exif == 1);
    ccodecs_bytes_free(&block, d->base.budget);
  }
  return has_room;
}

/// Keeps EXIF, its copyright, and XMP. Returns false if the budget is exhausted.
static bool read_metadata(heif_decoder *d) {
  enum { MAX_ITEMS = 16 };
  heif_item_id items[MAX_ITEMS];
  const int count = heif_image_handle_get_list_of_metadata_block_IDs(d->handle, NULL, items, MAX_ITEMS);
  bool has_room = true;
  for (int i = 0; i < count && has_room; i++) {
    const char *kind = heif_image_handle_get_metadata_type(d->handle, items[i]);
    const char *content = heif_image_handle_get_metadata_content_type(d->handle, items[i]);
    const bool is_exif = kind != NULL && strcmp(kind, "Exif") == 0;
    const bool is_xmp = content != NULL && strcmp(content, "application/rdf+xml") == 0;
    if (is_exif || (is_xmp && d->base.limits.keeps_metadata)) {
      has_room = keep_item(d, items[i], is_exif);
    }
  }
  return has_room && keep_shared_metadata(d);
}

/// Returns whether the file has content credentials: a box of C2PA at its top level.
static bool has_credentials(const heif_decoder *d) {
  static const uint8_t identifier[16] = {0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C,
                                         0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81};
  enum { HEAD_BYTES = 8 };
  const uint8_t *bytes = ccodecs_bytes_start(&d->file);
  size_t at = 0;
  while (d->file.count - at >= HEAD_BYTES + sizeof identifier) {
    const uint32_t size = ccodecs_be32(bytes + at);
    if (memcmp(bytes + at + 4, "uuid", 4) == 0 && memcmp(bytes + at + HEAD_BYTES, identifier, sizeof identifier) == 0) {
      return true;
    }
    if (size < HEAD_BYTES || size > d->file.count - at) {
      return false;
    }
    at += size;
  }
  return false;
}

/// Returns whether a tile can be decoded separately, and has the same size as those before.
static bool is_plain_tile(heif_decoder *d, uint32_t identifier) {
  struct heif_image_handle *tile = NULL;
  if (is_error(heif_context_get_image_handle(d->context, identifier, &tile))) {
    return false;
  }
  const int width = heif_image_handle_get_width(tile);
  const int height = heif_image_handle_get_height(tile);
  if (d->tile_width == 0 && width > 0 && height > 0) {
    d->tile_width = (uint32_t)width;
    d->tile_height = (uint32_t)height;
  }
  const bool is_plain = width > 0 && (uint32_t)width == d->tile_width && (uint32_t)height == d->tile_height &&
                        heif_image_handle_has_alpha_channel(tile) == 0 &&
                        heif_image_handle_get_luma_bits_per_pixel(tile) == d->base.header.bit_depth;
  heif_image_handle_release(tile);
  return is_plain;
}

/// Finds the size of the tiles if they can be decoded separately. Returns false if the grid has parts without a tile.
static bool find_tiles(heif_decoder *d, uint32_t width, uint32_t height) {
  const ccodecs_heif_graph *graph = &d->graph;
  const heif_grid *grid = &graph->grid;
  bool is_tiled = grid->rows > 0 && graph->tile_count == grid->rows * grid->columns && graph->tile_count <= MAX_TILES &&
                  grid->width == width && grid->height == height && !d->base.header.has_alpha && !graph->is_composed;
  for (uint32_t i = 0; i < graph->tile_count && is_tiled; i++) {
    const bool is_known = i > 0 && graph->tiles[i] == graph->tiles[i - 1];
    is_tiled = is_known || is_plain_tile(d, graph->tiles[i]);
  }
  const bool is_covered =
      (uint64_t)d->tile_width * grid->columns >= width && (uint64_t)d->tile_height * grid->rows >= height;
  d->tile_width = is_tiled ? d->tile_width : 0;
  return is_covered || !is_tiled;
}

/// Keeps the gain map in a file of its own, unless it is cropped in another way than its image, or larger than what
/// libheif decodes. Without room for it the file stays empty.
static void keep_gain_map(heif_decoder *d, bool is_cropped) {
  if (!d->base.limits.keeps_gain_map) {
    return;
  }
  heif_gain_map map;
  const heif_span file = {ccodecs_bytes_start(&d->file), d->file.count};
  const bool has_room = heif_gain_map_read(file, d->base.budget, &map);
  const bool is_too_large = map.width > (uint32_t)max_side || map.height > (uint32_t)max_side;
  if (!has_room || map.is_cropped != is_cropped || is_too_large) {
    ccodecs_bytes_free(&map.file, d->base.budget);
  }
  d->base.gain_map = (ccodecs_gain_map){.kind = map.kind, .width = map.width, .height = map.height};
  d->base.gain_map_file = map.file;
  d->base.gain_map_description = map.description;
}

/// Checks the largest frame that is decoded at a time against the limit, and against that of libheif and the codecs,
/// which compute positions of up to two bytes per pixel as int.
static ccodecs_status check_frame(heif_decoder *d, uint64_t own_pixels) {
  static const uint64_t most_pixels = (uint64_t)1 << 29;
  d->coded_pixels = d->coded_pixels < own_pixels ? own_pixels : d->coded_pixels;
  const uint64_t wanted = d->base.limits.max_whole_input_pixels;
  const uint64_t limit = wanted == 0 || wanted > most_pixels ? most_pixels : wanted;
  return d->coded_pixels <= limit
             ? CCODECS_OK
             : ccodecs_decoder_exceed(
                   &d->base, "pixels in a frame", (ccodecs_excess){"max_buffered_pixels", limit, d->coded_pixels});
}

static ccodecs_status describe(heif_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const int width = heif_image_handle_get_width(d->handle);
  const int height = heif_image_handle_get_height(d->handle);
  const int depth = heif_image_handle_get_luma_bits_per_pixel(d->handle);
  const ccodecs_heif_graph *graph = &d->graph;
  if (width <= 0 || height <= 0) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the width or height is zero or missing");
  }
  if (!heif_view_compose(graph->transforms, graph->transform_count, (uint32_t)width, (uint32_t)height, &d->view)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the image is cropped to a part outside it");
  }
  header->width = d->view.width;
  header->height = d->view.height;
  header->orientation = d->view.orientation;
  header->bit_depth = depth > 0 && depth <= 16 ? (uint8_t)depth : 8;
  header->is_16bit = header->bit_depth > 8;
  header->has_alpha = heif_image_handle_has_alpha_channel(d->handle) != 0;
  d->is_gray = d->base.limits.is_gain_map && graph->is_monochrome && !graph->has_chroma && !header->has_alpha &&
               !graph->is_composed;
  header->color_space = d->is_gray ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  if (!find_tiles(d, (uint32_t)width, (uint32_t)height)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the tiles of the grid do not cover the image");
  }
  const bool is_tiled = d->tile_width > 0;
  header->buffers_bitmap = !is_tiled;
  // The canvases of parts, and one that differs from the stated size, are filled before libheif's result is compared.
  const uint64_t whole = (uint64_t)width * (uint64_t)height;
  const uint64_t canvas = graph->max_canvas > whole ? graph->max_canvas : whole;
  CCODECS_TRY(check_frame(d, is_tiled ? (uint64_t)d->tile_width * d->tile_height : canvas));
  // A grid's tiles must not claim a larger size. libheif refuses sizes from the limit on, not above it.
  heif_context_set_maximum_image_size_limit(d->context, (width > height ? width : height) + 1);
  const int images = heif_context_get_number_of_top_level_images(d->context) - (int)graph->tile_item_count;
  const bool is_sequence = memcmp(ccodecs_bytes_start(&d->file) + 8, "avis", 4) == 0;
  header->frame_count = is_sequence ? 0 : images > 0 ? (uint32_t)images : 1;
  header->warnings |= images > 1 || is_sequence ? CCODECS_WARNING_FIRST_FRAME : 0;
  d->samples = (heif_samples){
      .channels = d->is_gray          ? 1
                  : header->has_alpha ? 4
                                      : 3,
      .is_16bit = header->is_16bit,
      .is_premultiplied = header->has_alpha && heif_image_handle_is_premultiplied_alpha(d->handle) != 0,
      // libheif expands the range of images with chroma, but not that of gray ones.
      .is_limited_gray = graph->is_monochrome && graph->color.is_known && !graph->color.has_full_range,
  };
  header->has_credentials = d->base.limits.keeps_metadata && has_credentials(d);
  keep_gain_map(d, d->view.width != (uint32_t)width || d->view.height != (uint32_t)height);
  return read_metadata(d) ? read_profile(d) : CCODECS_NO_MEMORY;
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
  d->graph = ccodecs_heif_graph_read(ccodecs_bytes_start(&d->file), d->file.count, d->base.budget);
  const ccodecs_heif_graph *graph = &d->graph;
  d->coded_pixels = graph->max_frame_pixels;
  d->base.work_pixels = graph->work;
  if (graph->status == CCODECS_LIMIT) {
    return ccodecs_decoder_exceed(&d->base, graph->things, graph->excess);
  }
  return graph->status == CCODECS_OK
             ? CCODECS_OK
             : ccodecs_decoder_fail(
                   &d->base, graph->status, "%s data: %s", ccodecs_format_name(d->base.header.format), graph->message);
}

static ccodecs_status open_file(heif_decoder *d) {
  complete_last_box(d);
  if (heif_is_truncated((heif_span){ccodecs_bytes_start(&d->file), d->file.count})) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_TRUNCATED, "the %s data ends before the image", ccodecs_format_name(d->base.header.format));
  }
  if (!ccodecs_heif_size_alpha(&d->file, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the file");
  }
  CCODECS_TRY(check_items(d));
  CCODECS_TRY(ccodecs_decoder_charge(&d->base, library_bytes));
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
  if (!ccodecs_bytes_gather(&d->file, input, SIZE_MAX, base->budget)) {
    return ccodecs_decoder_fail(base, CCODECS_NO_MEMORY, "no room to buffer the file");
  }
  return input->is_last ? open_file(d) : CCODECS_NEEDS_INPUT;
}

/// Returns the bytes per pixel that libheif and the codec allocate at a time: the codec's frames, and planes before and
/// after conversion. Measured peaks, at 4:2:0, 4:2:2 and 4:4:4: HEVC 6.3, -, 7.3, with ten bits 9.1, 10.2, 13.3; with
/// alpha at 4:2:0 7.7. AV1 on one thread 4.5, 5.0, 6.6, with ten bits 9.0, 10.0, 12.7; by libheif on several threads
/// 7.2, 9.4, 13.3, with ten bits 13.4, 17.4, 25.4. Gray alone 3.6. Alpha is decoded while three planes of samples are
/// kept. Composed images also need canvases.
static uint64_t bytes_per_pixel(const heif_decoder *d) {
  static const uint8_t hevc[2][2][3] = {{{7, 8, 8}, {10, 10, 10}}, {{11, 11, 14}, {18, 20, 20}}}; // [16-bit][alpha]
#ifdef CCODECS_DAV1D
  static const uint8_t av1[2][2][3] = {{{5, 6, 7}, {7, 8, 10}}, {{10, 11, 14}, {13, 15, 19}}};
  static const uint8_t gray[2] = {4, 8};
#else
  static const uint8_t av1[2][2][3] = {{{8, 10, 15}, {13, 15, 15}}, {{14, 18, 26}, {20, 32, 32}}};
  static const uint8_t gray[2] = {8, 14};
#endif
  const bool has_alpha = d->samples.channels == 4;
  const bool is_16bit = d->base.header.is_16bit || d->graph.is_deep;
  if (d->is_gray) {
    return is_16bit ? gray[1] : gray[0];
  }
  if (d->graph.is_composed) {
    return (uint64_t)d->samples.channels * (is_16bit ? 12 : 6);
  }
  const uint8_t max_hevc = d->graph.has_hevc ? hevc[is_16bit][has_alpha][d->graph.chroma] : 0;
  const uint8_t max_av1 = d->graph.has_av1 || max_hevc == 0 ? av1[is_16bit][has_alpha][d->graph.chroma] : 0;
  return max_hevc > max_av1 ? max_hevc : max_av1;
}

/// Returns the bytes that libheif and the codec allocate to decode a frame. Both have a copy of its compressed data.
static uint64_t decoding_bytes(const heif_decoder *d) {
  return d->coded_pixels * bytes_per_pixel(d) + 2 * (uint64_t)d->file.count;
}

static size_t row_bytes(const heif_decoder *d) {
  return (size_t)d->base.header.width * d->samples.channels * (d->samples.is_16bit ? 2 : 1);
}

static size_t band_bytes(const heif_decoder *d) {
  return row_bytes(d) * (d->tile_width > 0 ? d->tile_height : CCODECS_BITMAP_STRIP_ROWS);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const heif_decoder *d = (const heif_decoder *)base;
  *byte_count = decoding_bytes(d) + band_bytes(d) + 128;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  heif_decoder *d = (heif_decoder *)base;
  ccodecs_decoder_describe_packed(base, d->samples.channels, layout);
  CCODECS_TRY(ccodecs_decoder_charge(&d->base, decoding_bytes(d)));
  d->band = ccodecs_allocate(base->budget, band_bytes(d));
  return d->band == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Rows

static ccodecs_status fail_size(heif_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the image's size differs from its header");
}

/// Adds `change` to the number of images for which malloc clears memory. libde265 leaves the blocks that a damaged
/// slice lacks as they were allocated, and libheif what no tile of a grid covers; neither reports an error.
static void clear_memory(int change) {
#if defined(__GLIBC__) && defined(M_PERTURB)
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static int images;
  pthread_mutex_lock(&lock);
  images += change;
  mallopt(M_PERTURB, images > 0 ? 0xFF : 0); // the inverse of what new blocks contain
  pthread_mutex_unlock(&lock);
#else
  (void)change;
#endif
}

/// Decodes an image of at least the given size to planes, which belong to *image. The caller releases it in any case.
static ccodecs_status decode(
    heif_decoder *d, const struct heif_image_handle *handle, uint32_t width, uint32_t height, struct heif_image **image,
    heif_planes *planes) {
  ccodecs_quiet_begin();
  clear_memory(1);
  const struct heif_error error = heif_decode_image(
      handle, image, d->is_gray ? heif_colorspace_monochrome : heif_colorspace_RGB,
      d->is_gray ? heif_chroma_monochrome : heif_chroma_444, NULL);
  clear_memory(-1);
  ccodecs_quiet_end();
  if (is_error(error)) {
    return fail(d, error);
  }
  return heif_planes_open(*image, d->is_gray, width, height, planes) ? CCODECS_OK : fail_size(d);
}

/// Fills the next band from the whole image.
static ccodecs_status read_image_band(heif_decoder *d) {
  if (d->image == NULL) {
    const uint32_t width = (uint32_t)heif_image_handle_get_width(d->handle);
    const uint32_t height = (uint32_t)heif_image_handle_get_height(d->handle);
    CCODECS_TRY(decode(d, d->handle, width, height, &d->image, &d->planes));
    const enum heif_channel channel = d->is_gray ? heif_channel_Y : heif_channel_R;
    if (heif_image_get_width(d->image, channel) != (int)width ||
        heif_image_get_height(d->image, channel) != (int)height) {
      return fail_size(d);
    }
  }
  const uint32_t left = d->view.height - d->given;
  d->band_count = left < CCODECS_BITMAP_STRIP_ROWS ? left : CCODECS_BITMAP_STRIP_ROWS;
  for (uint32_t i = 0; i < d->band_count; i++) {
    heif_planes_put(
        &d->planes, &d->samples, d->view.x, d->view.y + d->given + i, d->view.width, d->band + i * row_bytes(d));
  }
  return CCODECS_OK;
}

/// Writes the displayed part of a tile to the band, whose first row is row `top` of the tiles' row.
static void put_tile(heif_decoder *d, const heif_planes *planes, uint32_t tile_x, uint32_t top) {
  const uint32_t first = tile_x < d->view.x ? d->view.x : tile_x;
  const uint32_t view_end = d->view.x + d->view.width;
  const uint32_t end = tile_x + d->tile_width < view_end ? tile_x + d->tile_width : view_end;
  const size_t pixel_bytes = row_bytes(d) / d->view.width;
  uint8_t *out = d->band + (first - d->view.x) * pixel_bytes;
  for (uint32_t i = 0; i < d->band_count; i++) {
    heif_planes_put(planes, &d->samples, first - tile_x, top + i, end - first, out + i * row_bytes(d));
  }
}

/// Fills the next band from a row of tiles.
static ccodecs_status read_tile_band(heif_decoder *d) {
  const uint32_t y = d->view.y + d->given;
  const uint32_t top = y % d->tile_height;
  const uint32_t left = d->view.height - d->given;
  const uint32_t *tiles = d->graph.tiles + (size_t)(y / d->tile_height) * d->graph.grid.columns;
  d->band_count = left < d->tile_height - top ? left : d->tile_height - top;
  ccodecs_status status = CCODECS_OK;
  for (uint32_t column = d->view.x / d->tile_width;
       status == CCODECS_OK && column * d->tile_width < d->view.x + d->view.width; column++) {
    struct heif_image_handle *tile = NULL;
    struct heif_image *image = NULL;
    heif_planes planes;
    const struct heif_error error = heif_context_get_image_handle(d->context, tiles[column], &tile);
    status = is_error(error) ? fail(d, error) : decode(d, tile, d->tile_width, d->tile_height, &image, &planes);
    if (status == CCODECS_OK) {
      put_tile(d, &planes, column * d->tile_width, top);
    }
    heif_image_release(image);
    heif_image_handle_release(tile);
  }
  return status;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  (void)input;
  heif_decoder *d = (heif_decoder *)base;
  if (d->given == base->header.height) {
    return CCODECS_DONE;
  }
  if (d->given == d->band_first + d->band_count) {
    d->band_first = d->given;
    CCODECS_TRY(d->tile_width > 0 ? read_tile_band(d) : read_image_band(d));
  }
  const uint32_t left = d->band_first + d->band_count - d->given;
  rows->planes[0] = d->band + (d->given - d->band_first) * row_bytes(d);
  rows->row_strides[0] = row_bytes(d);
  rows->row_counts[0] = left < CCODECS_BITMAP_STRIP_ROWS ? left : CCODECS_BITMAP_STRIP_ROWS;
  d->given += rows->row_counts[0];
  return CCODECS_ROWS_READY;
}

static void destroy(ccodecs_decoder *base) {
  heif_decoder *d = (heif_decoder *)base;
  ccodecs_budget *budget = base->budget;
  heif_image_release(d->image);
  heif_image_handle_release(d->handle);
  if (d->context != NULL) {
    heif_context_free(d->context);
  }
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_free(budget, d->graph.tiles);
  ccodecs_free(budget, d->band);
}

static void init(ccodecs_decoder *decoder) {
  (void)decoder;
  heif_av1_register();
}

const ccodecs_decoder_methods ccodecs_heif_decoder = {
    .byte_count = sizeof(heif_decoder),
    .init = init,
    .read_header = read_header,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};

#endif
