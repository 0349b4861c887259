// WebP decoding with libwebp's incremental decoder.
//
// libwebp writes rows into buffers of the whole image, but never reads them back. Those buffers are address space of
// which only a window is backed by memory (row_space.h), whatever the size of the image. A lossy image without alpha is
// returned as its component planes, converted from BT.601's limited range (VP8, RFC 6386, section 9.2) to full range.
// Lossless images are buffered by libwebp itself, with four bytes per pixel. The orientation of a WebP is stored after
// the image, so a file whose header announces EXIF is buffered until it is complete. An animation is read frame by
// frame: see webp_frames.c.

#include "webp_decoder.h"

#include "../color/profile.h"
#include "../formats.h"

#include <string.h>

/// Bytes of libwebp's state without rows: probabilities, bit readers, and its copy of the last input.
static const size_t library_bytes = 512 * 1024;
/// Bytes of rows of macroblocks, filter and upsampling state, per pixel of width.
static const size_t library_bytes_per_column = 160;
static const uint32_t strip_row_count = 64;
/// Expected maximum number of rows that were decoded but not used yet.
static const uint32_t window_row_count = 128;
/// Minimum number of bytes of a lossy image that libwebp receives at a time.
static const size_t min_slice_bytes = 64;
/// Minimum number of bytes of a lossless image that libwebp receives at a time, except at its end. Whenever libwebp
/// runs out of bytes, it returns to its last saved state, and it copies what it has for each slice: slices of one size
/// would be work that grows with the square of the file size.
static const size_t lossless_slice_bytes = 4096;
/// The same of these first bytes if damage is tolerated, as libwebp gives no row of a slice with damage.
static const size_t first_slice_bytes = 256;
static const size_t max_slice_bytes = 16384;
/// The divisor of the bytes that libwebp has, for the next slice of a lossless image.
static const size_t lossless_slice_divisor = 16;

// MARK: The container

/// Reads the orientation and the copyright metadata. Returns false when the budget has no room.
static bool read_exif(webp_decoder *d) {
  uint32_t count;
  const uint8_t *exif =
      ccodecs_riff_find(ccodecs_bytes_start(&d->file), d->file.count, RIFF_HEADER_BYTES, "EXIF", &count);
  if (exif == NULL) {
    return true;
  }
  if (count >= 6 && memcmp(exif, "Exif\0", 5) == 0) { // some writers keep JPEG's prefix
    exif += 6;
    count -= 6;
  }
  bool is_broken;
  d->base.header.orientation = ccodecs_exif_orientation(exif, count, &is_broken);
  d->base.header.warnings |= is_broken ? CCODECS_WARNING_BAD_EXIF : 0;
  return ccodecs_exif_keep_copyright(&d->base, exif, count);
}

/// Keeps XMP, and looks for content credentials. Returns false when the budget has no room.
static bool read_other_metadata(webp_decoder *d) {
  uint32_t count;
  const uint8_t *file = ccodecs_bytes_start(&d->file);
  if (!d->base.limits.keeps_metadata) {
    return true;
  }
  d->base.header.has_credentials = ccodecs_riff_find(file, d->file.count, RIFF_HEADER_BYTES, "C2PA", &count) != NULL;
  const uint8_t *xmp = ccodecs_riff_find(file, d->file.count, RIFF_HEADER_BYTES, "XMP ", &count);
  return xmp == NULL || ccodecs_decoder_keep_block(&d->base, &d->base.xmp, xmp, count);
}

/// Reads the color profile, which precedes the image. Returns false when the budget has no room.
static bool read_profile(webp_decoder *d) {
  uint32_t count;
  const uint8_t *profile =
      ccodecs_riff_find(ccodecs_bytes_start(&d->file), d->file.count, RIFF_HEADER_BYTES, "ICCP", &count);
  if (profile == NULL || count > CCODECS_MAX_PROFILE_BYTES) {
    d->base.header.warnings |= CCODECS_WARNING_BAD_PROFILE;
    return true;
  }
  return ccodecs_bytes_append(&d->base.profile, profile, count, d->base.budget);
}

/// Returns whether the start of the file is available: the RIFF header, and the first chunk with its flags.
static bool has_beginning(webp_decoder *d) {
  const size_t first_bytes = RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES;
  const uint8_t *bytes = ccodecs_bytes_start(&d->file);
  if (d->file.count < first_bytes ||
      (memcmp(bytes + RIFF_HEADER_BYTES, "VP8X", 4) == 0 && d->file.count < first_bytes + 10)) {
    return false;
  }
  d->file_bytes = (uint64_t)ccodecs_le32(bytes + 4) + 8;
  d->is_extended = memcmp(bytes + RIFF_HEADER_BYTES, "VP8X", 4) == 0;
  d->flags = d->is_extended ? bytes[RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES] : 0;
  d->is_animated = (d->flags & FLAG_ANIMATION) != 0;
  const bool keeps_metadata = d->base.limits.keeps_metadata;
  const uint32_t trailing = FLAG_EXIF | (keeps_metadata ? FLAG_ANIMATION | FLAG_XMP : 0);
  d->base.header.buffers_input = (d->flags & trailing) != 0 || d->base.must_buffer_input;
  return true;
}

// MARK: Header

ccodecs_status ccodecs_webp_fail(webp_decoder *d, VP8StatusCode status) {
  switch (status) {
  case VP8_STATUS_OUT_OF_MEMORY:
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "libwebp is out of memory");
  case VP8_STATUS_UNSUPPORTED_FEATURE:
    return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "libwebp does not support a feature of the file");
  case VP8_STATUS_SUSPENDED:
  case VP8_STATUS_NOT_ENOUGH_DATA:
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the WebP data ends before the image");
  default:
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the WebP bitstream is corrupt");
  }
}

static ccodecs_status describe(webp_decoder *d, const WebPBitstreamFeatures *features) {
  ccodecs_header *header = &d->base.header;
  header->width = (uint32_t)features->width;
  header->height = (uint32_t)features->height;
  header->has_alpha = features->has_alpha != 0 || d->is_animated;
  d->is_lossless = features->format == 2;
  d->plane_count = header->has_alpha || d->is_lossless ? 1 : 3;
  header->color_space = d->plane_count == 3 ? CCODECS_COLOR_YCBCR : CCODECS_COLOR_RGB;
  header->chroma_across = header->chroma_down = d->plane_count == 3 ? 2 : 0;
  header->buffers_bitmap = d->is_lossless || d->is_animated;
  d->channels = header->has_alpha ? 4 : 3;
  d->row_bytes = (size_t)header->width * d->channels; // at most 16384 x 4
  const bool has_room = read_other_metadata(d) && ((d->flags & FLAG_EXIF) == 0 || read_exif(d)) &&
                        ((d->flags & FLAG_PROFILE) == 0 || read_profile(d));
  if (!has_room) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for the WebP's metadata");
  }
  if (d->is_animated) {
    // A window may have contained more bytes than the file.
    d->file.count = d->file_bytes < d->file.count ? (size_t)d->file_bytes : d->file.count;
    ccodecs_webp_describe_frames(d);
  }
  return CCODECS_OK;
}

static ccodecs_status append(webp_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_bytes_append(&d->file, input->bytes, count, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the WebP file");
  }
  ccodecs_input_advance(input, count);
  return CCODECS_OK;
}

/// Returns libwebp's result for the header once everything that it reads is available. libwebp walks through all chunks
/// before the image on each call, so it is called only if there are none, or if all of them are available.
static VP8StatusCode get_features(webp_decoder *d, bool is_end, WebPBitstreamFeatures *features) {
  if (!has_beginning(d)) {
    return VP8_STATUS_NOT_ENOUGH_DATA;
  }
  const uint8_t *bytes = ccodecs_bytes_start(&d->file);
  const bool has_start = d->is_animated ? ccodecs_webp_has_frames(d)
                                        : ccodecs_webp_find_image(bytes, d->file.count, &d->image_at) || is_end;
  const bool is_buffered = d->base.header.buffers_input;
  const bool is_there = is_buffered ? d->file.count >= d->file_bytes : has_start;
  if (!is_there && (is_buffered || d->is_extended)) {
    return VP8_STATUS_NOT_ENOUGH_DATA;
  }
  const VP8StatusCode found = WebPGetFeatures(bytes, d->file.count, features);
  return found == VP8_STATUS_OK && !is_there ? VP8_STATUS_NOT_ENOUGH_DATA : found;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  webp_decoder *d = (webp_decoder *)base;
  while (true) {
    WebPBitstreamFeatures features;
    const VP8StatusCode found = get_features(d, input->count == 0 && input->is_last, &features);
    if (found == VP8_STATUS_OK) {
      return describe(d, &features);
    }
    if (found != VP8_STATUS_NOT_ENOUGH_DATA) {
      return ccodecs_webp_fail(d, found);
    }
    if (input->count == 0) {
      return input->is_last ? ccodecs_webp_fail(d, found) : CCODECS_NEEDS_INPUT;
    }
    size_t count = input->count;
    const bool may_buffer = base->header.buffers_input || d->is_animated;
    if (may_buffer && d->file_bytes > d->file.count && count > d->file_bytes - d->file.count) {
      count = (size_t)(d->file_bytes - d->file.count);
    } else if (may_buffer && d->file_bytes <= d->file.count) {
      return ccodecs_webp_fail(d, VP8_STATUS_NOT_ENOUGH_DATA);
    }
    CCODECS_TRY(append(d, input, count));
  }
}

// MARK: Memory

/// Returns the rows of a lossless image that may wait. libwebp decodes nothing before it has an eighth of the bytes,
/// which often are more of the rows.
static uint32_t first_rows(const webp_decoder *d) {
  return d->base.header.height / 8 * 3 / 2;
}

/// Returns the number of bytes to pass to libwebp at a time. libwebp decodes every row that it can, and all of them
/// wait in memory. About one row of macroblocks at a time keeps that window small in images that compress evenly.
static size_t slice_bytes(const webp_decoder *d) {
  if (d->is_lossless && d->base.tolerates_damage && d->passed_bytes < lossless_slice_bytes) {
    return first_slice_bytes;
  }
  const uint64_t rows = d->base.header.height / 16 + 1;
  const uint64_t even = d->file_bytes / rows / 2;
  const size_t minimum = d->is_lossless ? lossless_slice_bytes : min_slice_bytes;
  const size_t slice = even < minimum ? minimum : even > max_slice_bytes ? max_slice_bytes : (size_t)even;
  // Where few bytes have many rows, more of them would wait than the estimate says.
  const bool may_grow = d->is_lossless && d->max_waiting <= first_rows(d);
  const size_t grown = may_grow ? d->passed_bytes / lossless_slice_divisor : 0;
  return slice > grown ? slice : grown;
}

static void measure_plane(const webp_decoder *d, uint32_t index, size_t *row_bytes, uint32_t *height) {
  const ccodecs_header *header = &d->base.header;
  *row_bytes = d->plane_count == 1 ? d->row_bytes : index == 0 ? header->width : (header->width + 1) / 2;
  *height = index == 0 ? header->height : (header->height + 1) / 2;
}

/// Returns the bytes that the planes allocate in addition to their windows of rows.
static uint64_t plane_slack(const webp_decoder *d) {
  uint64_t slack = 0;
  for (uint32_t i = 0; i < d->plane_count; i++) {
    size_t row_bytes;
    uint32_t height;
    measure_plane(d, i, &row_bytes, &height);
    const size_t maximum = ccodecs_row_space_slack(row_bytes * height);
    slack += maximum < row_bytes * height ? maximum : row_bytes * height;
  }
  return slack;
}

/// Returns the bytes to charge for libwebp's allocations and the window of rows.
static uint64_t library_charge(const webp_decoder *d) {
  const uint64_t pixels = (uint64_t)d->base.header.width * d->base.header.height;
  const uint64_t buffered = d->is_lossless ? 4 * pixels : d->base.header.has_alpha ? 2 * pixels : 0;
  const uint64_t columns = (uint64_t)d->base.header.width * library_bytes_per_column;
  const uint32_t rows = d->base.header.height < window_row_count ? d->base.header.height : window_row_count;
  const uint64_t window = d->is_animated ? 4 * pixels : rows * (uint64_t)d->row_bytes + plane_slack(d);
  return library_bytes + buffered + columns + window + (d->base.header.can_buffer_input ? 0 : d->file_bytes);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const webp_decoder *d = (const webp_decoder *)base;
  // The canvas, and a frame that is blended with it.
  const uint64_t canvas =
      d->is_animated ? (uint64_t)base->header.width * base->header.height * 4 + ccodecs_webp_frames_estimate(d) : 0;
  // If the image is close to a single color, the smallest slice of bytes contains more rows than a window has room for.
  const uint64_t macroblock_rows = base->header.height / 16 + 1;
  const uint64_t slice = d->is_lossless ? lossless_slice_bytes : min_slice_bytes;
  const uint64_t slice_rows = d->file_bytes == 0 ? 0 : slice * 2 * 16 * macroblock_rows / d->file_bytes;
  const uint64_t height = base->header.height;
  uint64_t waiting = slice_rows <= 16 ? 0 : slice_rows < height ? slice_rows : height;
  const uint64_t first = d->is_lossless ? first_rows(d) : 0;
  waiting = waiting < first ? first : waiting;
  const uint64_t more = waiting > window_row_count ? (waiting - window_row_count) * d->row_bytes : 0;
  const uint64_t largest = d->file_bytes / lossless_slice_divisor + lossless_slice_bytes;
  const uint64_t last_slice = slice_bytes(d) > largest ? slice_bytes(d) : largest;
  *byte_count = library_charge(d) + canvas + more + (d->is_lossless ? 2 * last_slice + 128 : 0);
  return CCODECS_OK;
}

// MARK: Rows

static ccodecs_status map_planes(webp_decoder *d) {
  for (uint32_t i = 0; i < d->plane_count; i++) {
    webp_plane *plane = &d->planes[i];
    measure_plane(d, i, &plane->row_bytes, &plane->height);
    if (!ccodecs_row_space_create(&plane->space, plane->row_bytes * plane->height)) {
      return CCODECS_NO_MEMORY;
    }
  }
  return CCODECS_OK;
}

static ccodecs_status start_incremental(webp_decoder *d, bool may_skip_smoothing) {
  if (map_planes(d) != CCODECS_OK) {
    return CCODECS_NO_MEMORY;
  }
  if (!WebPInitDecoderConfig(&d->config)) {
    return CCODECS_UNSUPPORTED;
  }
  d->config.options.bypass_filtering = may_skip_smoothing;
  WebPDecBuffer *output = &d->config.output;
  const webp_plane *planes = d->planes;
  output->is_external_memory = 1;
  if (d->plane_count == 1) {
    output->colorspace = d->channels == 4 ? MODE_RGBA : MODE_RGB;
    output->u.RGBA = (WebPRGBABuffer){
        .rgba = planes[0].space.base,
        .stride = (int)planes[0].row_bytes,
        .size = planes[0].row_bytes * planes[0].height};
  } else {
    output->colorspace = MODE_YUV;
    output->u.YUVA = (WebPYUVABuffer){
        .y = planes[0].space.base,
        .u = planes[1].space.base,
        .v = planes[2].space.base,
        .y_stride = (int)planes[0].row_bytes,
        .u_stride = (int)planes[1].row_bytes,
        .v_stride = (int)planes[2].row_bytes,
        .y_size = planes[0].row_bytes * planes[0].height,
        .u_size = planes[1].row_bytes * planes[1].height,
        .v_size = planes[2].row_bytes * planes[2].height,
    };
  }
  d->incremental = WebPIDecode(NULL, 0, &d->config);
  return d->incremental == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

static void describe_planes(const webp_decoder *d, ccodecs_layout *layout) {
  const ccodecs_header *header = &d->base.header;
  const bool is_planar = d->plane_count == 3;
  layout->pixels = is_planar ? CCODECS_PIXELS_YCC8 : d->channels == 4 ? CCODECS_PIXELS_RGBA8 : CCODECS_PIXELS_RGB8;
  layout->plane_count = d->plane_count;
  for (uint32_t i = 0; i < d->plane_count; i++) {
    layout->planes[i] = (ccodecs_plane){
        .width = i == 0 ? header->width : (header->width + 1) / 2,
        .height = i == 0 ? header->height : (header->height + 1) / 2,
        .channels = is_planar ? 1 : (uint8_t)d->channels,
        .horizontal_scale = i == 0 ? 1 : 0.5,
        .vertical_scale = i == 0 ? 1 : 0.5,
    };
  }
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  webp_decoder *d = (webp_decoder *)base;
  d->plane_count = options->returns_rgb ? 1 : d->plane_count;
  describe_planes(d, layout);
  const ccodecs_status status = ccodecs_decoder_charge(&d->base, library_charge(d));
  if (status != CCODECS_OK || !d->is_animated) {
    return status != CCODECS_OK ? status : start_incremental(d, options->may_skip_smoothing);
  }
  d->canvas = ccodecs_allocate(base->budget, d->row_bytes * base->header.height);
  d->planes[0] = (webp_plane){.row_bytes = d->row_bytes, .height = base->header.height};
  if (d->canvas == NULL) {
    return CCODECS_NO_MEMORY;
  }
  ccodecs_webp_start_frames(d);
  return CCODECS_OK;
}

/// Charges for decoded rows that exceed the window already charged.
static ccodecs_status charge_waiting(webp_decoder *d) {
  const uint32_t waiting = d->decoded - d->given;
  d->max_waiting = waiting > d->max_waiting ? waiting : d->max_waiting;
  if (waiting <= window_row_count) {
    return CCODECS_OK;
  }
  const uint64_t needed = library_charge(d) + (uint64_t)(waiting - window_row_count) * d->row_bytes;
  return needed <= d->base.charged ? CCODECS_OK : ccodecs_decoder_charge(&d->base, needed - d->base.charged);
}

static ccodecs_status decode(webp_decoder *d, const uint8_t *bytes, size_t count) {
  const VP8StatusCode status = WebPIAppend(d->incremental, bytes, count);
  if (status != VP8_STATUS_OK && status != VP8_STATUS_SUSPENDED) {
    const ccodecs_status failure = ccodecs_webp_fail(d, status);
    if (failure != CCODECS_CORRUPT || !d->base.tolerates_damage) {
      return failure;
    }
    d->base.failure = CCODECS_OK;
    d->is_lost = true;
  }
  d->is_complete = status == VP8_STATUS_OK;
  int last = 0;
  const uint8_t *rows = d->plane_count == 1 ? WebPIDecGetRGB(d->incremental, &last, NULL, NULL, NULL)
                                            : WebPIDecGetYUV(d->incremental, &last, NULL, NULL, NULL, NULL, NULL, NULL);
  if (rows != NULL && last > 0) {
    d->decoded = (uint32_t)last;
  }
  return charge_waiting(d);
}

/// Buffers bytes of a lossless image until there is a slice of them, so that slices do not depend on the windows.
/// Returns CCODECS_OK when there is, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status gather(webp_decoder *d, ccodecs_input *input, size_t slice) {
  if (!d->is_lossless || (d->file.count == 0 && input->count >= slice)) {
    return CCODECS_OK;
  }
  if (d->file.count < slice) {
    const size_t missing = slice - d->file.count;
    CCODECS_TRY(append(d, input, input->count < missing ? input->count : missing));
  }
  return d->file.count >= slice || input->is_last ? CCODECS_OK : CCODECS_NEEDS_INPUT;
}

/// Passes a slice of the buffered bytes, or of the window, to libwebp.
static ccodecs_status feed(webp_decoder *d, ccodecs_input *input) {
  // Everything before the image is passed at once, because libwebp walks through it again for each slice.
  const size_t slice = d->image_at + slice_bytes(d);
  CCODECS_TRY(gather(d, input, slice));
  d->passed_bytes += slice - d->image_at;
  d->image_at = 0;
  if (d->file.count > 0) {
    const size_t count = d->file.count < slice ? d->file.count : slice;
    const ccodecs_status status = decode(d, ccodecs_bytes_start(&d->file), count);
    ccodecs_bytes_take(&d->file, count);
    if (d->file.count == 0) {
      ccodecs_bytes_free(&d->file, d->base.budget);
    }
    return status;
  }
  const size_t count = input->count < slice ? input->count : slice;
  const ccodecs_status status = decode(d, input->bytes, count);
  ccodecs_input_advance(input, count);
  return status;
}

/// Releases the rows that were used.
static void pass_used_rows(webp_decoder *d) {
  for (uint32_t i = 0; i < d->plane_count; i++) {
    webp_plane *plane = &d->planes[i];
    // libwebp may have started rows that it has not reported, in the next two rows of macroblocks.
    const size_t begun = (size_t)d->decoded / (i == 0 ? 1 : 2) + 32;
    ccodecs_row_space_pass(&plane->space, plane->given * plane->row_bytes, begun * plane->row_bytes);
  }
}

/// Expands 16 to 235 to 0 to 255.
static void widen_luma(uint8_t *samples, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint16_t above = samples[i] < 16 ? 0 : (uint16_t)(samples[i] - 16);
    const uint16_t wide = (uint16_t)(above * 149 + 64) >> 7; // 149 / 128 is 255 / 219
    samples[i] = wide > 255 ? 255 : (uint8_t)wide;
  }
}

/// Expands 16 to 240 to 0 to 255, with 128 unchanged.
static void widen_chroma(uint8_t *samples, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const int16_t centered = (int16_t)(samples[i] - 128);
    const int16_t wide = (int16_t)(samples[i] + ((centered * 71 + 256) >> 9)); // 1 + 71 / 512 is 255 / 224
    samples[i] = wide < 0 ? 0 : wide > 255 ? 255 : (uint8_t)wide;
  }
}

/// Describes up to `count` rows of a plane, and expands them to full range.
static void give_rows(webp_decoder *d, uint32_t index, uint32_t count, ccodecs_rows *rows) {
  webp_plane *plane = &d->planes[index];
  uint8_t *base = d->is_animated ? d->canvas : plane->space.base;
  uint8_t *first = base + (size_t)plane->given * plane->row_bytes;
  if (d->plane_count == 3 && index == 0) {
    widen_luma(first, count * plane->row_bytes);
  } else if (d->plane_count == 3) {
    widen_chroma(first, count * plane->row_bytes);
  }
  rows->planes[index] = first;
  rows->row_strides[index] = plane->row_bytes;
  rows->row_counts[index] = count;
  plane->given += count;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  webp_decoder *d = (webp_decoder *)base;
  if (d->is_animated && !d->is_complete) {
    CCODECS_TRY(ccodecs_webp_next_frame(d, input));
  }
  pass_used_rows(d);
  while (d->given == d->decoded) {
    if (d->given == base->header.height) {
      return d->is_animated ? ccodecs_webp_end_frame_rows(d, input) : CCODECS_DONE;
    }
    if (d->is_complete || d->is_lost) {
      return ccodecs_webp_fail(d, VP8_STATUS_BITSTREAM_ERROR);
    }
    if (d->file.count == 0 && input->count == 0) {
      return input->is_last ? ccodecs_webp_fail(d, VP8_STATUS_NOT_ENOUGH_DATA) : CCODECS_NEEDS_INPUT;
    }
    CCODECS_TRY(feed(d, input));
  }
  const uint32_t left = d->decoded - d->given;
  d->given += left < strip_row_count ? left : strip_row_count;
  give_rows(d, 0, d->given - d->planes[0].given, rows);
  for (uint32_t i = 1; i < d->plane_count; i++) {
    // A row of chroma is complete with the second of its two rows of luma.
    const uint32_t whole = d->given == base->header.height ? (d->given + 1) / 2 : d->given / 2;
    give_rows(d, i, whole - d->planes[i].given, rows);
  }
  return CCODECS_ROWS_READY;
}

static ccodecs_bytes *buffered(ccodecs_decoder *base) {
  return &((webp_decoder *)base)->file;
}

static void destroy(ccodecs_decoder *base) {
  webp_decoder *d = (webp_decoder *)base;
  ccodecs_budget *budget = base->budget;
  WebPIDelete(d->incremental);
  for (uint32_t i = 0; i < CCODECS_MAX_PLANES; i++) {
    ccodecs_row_space_destroy(&d->planes[i].space);
  }
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_free(budget, d->canvas);
}

static void init(ccodecs_decoder *decoder) {
  webp_decoder *d = (webp_decoder *)decoder;
  d->image_at = d->survey_at = RIFF_HEADER_BYTES;
}

const ccodecs_decoder_methods ccodecs_webp_decoder = {
    .byte_count = sizeof(webp_decoder),
    .init = init,
    .read_header = read_header,
    .select_frames = ccodecs_webp_select_frames,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
    .buffered = buffered,
};
