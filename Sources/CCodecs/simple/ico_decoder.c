// ICO decoder for one image of a file: a PNG, or a bitmap without a file header and with a mask.
//
// Images are counted from the largest to the smallest; the largest is the default. They can be anywhere in the file,
// and a bitmap's mask follows its pixels, so the file is buffered up to the end of the largest image; as a whole if
// another one is selected. The end is computed from the image's own header, because the sizes in some directories are
// too small. The buffer stays small, as a directory describes images of at most 256 by 256 pixels.
//
// Source: Microsoft, "Icons" (Win32 Resource File Formats, ICONDIR and ICONIMAGE); PNG since Windows Vista.

#include "../core/decoder.h"
#include "../formats.h"
#include "../memory/bytes.h"

enum { DIRECTORY_BYTES = 6, ENTRY_BYTES = 16, BITMAP_HEADER_BYTES = 40, PROFILED_HEADER_BYTES = 124 };
enum { BIT_FIELDS = 3 };

static const uint32_t strip_row_count = 64;

typedef struct ico_decoder {
  ccodecs_decoder base;
  ccodecs_bytes file;
  size_t entry; ///< Offset of the chosen image.
  size_t entry_bytes;
  uint32_t chosen; ///< Number of images that are larger than the chosen one.
  bool is_chosen;
  bool is_whole; ///< The whole file is buffered.
  ccodecs_decoder *png;
  ccodecs_input
      left; ///< Unread buffered bytes of the PNG. If the directory's size is too small, the rest comes from the input.

  uint32_t bits;
  uint32_t palette_count;
  const uint8_t *palette; ///< The bitmap's palette: blue, green, red, unused.
  const uint8_t *pixels;  ///< The bitmap's bottom row.
  const uint8_t *mask;    ///< The mask's bottom row; NULL without a mask.
  size_t row_stride;
  size_t mask_stride;
  bool has_alpha_bytes;
  uint8_t *strip;
  uint32_t given;
} ico_decoder;

static ccodecs_status corrupt(ico_decoder *d, const char *reason) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "ICO data: %s", reason);
}

// MARK: Directory

/// Buffers the first `wanted` bytes of the file. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or CCODECS_DONE if the file
/// is shorter.
static ccodecs_status hold(ico_decoder *d, ccodecs_input *input, size_t wanted) {
  if (!ccodecs_bytes_gather(&d->file, input, wanted, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the ICO file");
  }
  return d->file.count >= wanted ? CCODECS_OK : input->is_last ? CCODECS_DONE : CCODECS_NEEDS_INPUT;
}

static const uint8_t *entry_at(const ico_decoder *d, uint32_t index) {
  return ccodecs_bytes_start(&d->file) + DIRECTORY_BYTES + (size_t)index * ENTRY_BYTES;
}

/// Returns the place of an entry among all, as a number that falls: by pixels, bit depth, and position.
static uint64_t rank_of(const ico_decoder *d, uint32_t index) {
  const uint8_t *p = entry_at(d, index);
  const uint64_t width = p[0] == 0 ? 256 : p[0];
  const uint64_t height = p[1] == 0 ? 256 : p[1];
  return (width * height) << 32 | (uint64_t)ccodecs_le16(p + 6) << 16 | (UINT16_MAX - index);
}

/// Chooses the entry that `place` others precede. The cost does not depend on `place`.
static void choose(ico_decoder *d, uint32_t place) {
  const uint32_t count = d->base.header.frame_count;
  uint64_t low = 0;
  uint64_t high = UINT64_MAX >> 8; // above every rank
  while (high - low > 1) {         // at least place + 1 entries have a rank of `low` or more
    const uint64_t middle = low + (high - low) / 2;
    uint32_t above = 0;
    for (uint32_t i = 0; i < count; i++) {
      above += rank_of(d, i) >= middle ? 1 : 0;
    }
    *(above > place ? &low : &high) = middle;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (rank_of(d, i) == low) {
      d->entry_bytes = ccodecs_le32(entry_at(d, i) + 8);
      d->entry = ccodecs_le32(entry_at(d, i) + 12);
    }
  }
  d->is_chosen = true;
}

static ccodecs_status read_directory(ico_decoder *d, ccodecs_input *input) {
  CCODECS_TRY(hold(d, input, DIRECTORY_BYTES));
  const uint32_t count = ccodecs_le16(ccodecs_bytes_start(&d->file) + 4);
  if (count == 0) {
    return corrupt(d, "it contains no image");
  }
  const size_t end = DIRECTORY_BYTES + (size_t)count * ENTRY_BYTES;
  CCODECS_TRY(hold(d, input, end));
  d->base.header.frame_count = count;
  choose(d, d->chosen);
  return d->entry < end ? corrupt(d, "an image overlaps the directory") : CCODECS_OK;
}

// MARK: Bitmaps

/// Returns the offset of a bitmap's palette or pixels: three masks of channels follow a header of the first version.
static uint64_t header_bytes(const uint8_t *bytes) {
  const uint32_t count = ccodecs_le32(bytes);
  return (uint64_t)count + (count == BITMAP_HEADER_BYTES && ccodecs_le32(bytes + 16) == BIT_FIELDS ? 12 : 0);
}

/// Returns the size in bytes of a bitmap with its mask, from its complete header.
static uint64_t bitmap_bytes(const uint8_t *bytes) {
  const uint64_t width = ccodecs_le32(bytes + 4);
  const uint64_t rows = ccodecs_le32(bytes + 8) / 2;
  const uint32_t bits = ccodecs_le16(bytes + 14);
  const uint64_t palette = bits <= 8 ? (uint64_t)4 << bits : 0;
  return width > INT32_MAX || rows > INT32_MAX || bits > 32
             ? 0
             : header_bytes(bytes) + palette + ((width * bits + 31) / 32 + (width + 31) / 32) * 4 * rows;
}

/// Locates the palette, pixels and mask of a bitmap of `count` bytes. The mask may be missing if the pixels have alpha.
static ccodecs_status place_bitmap(ico_decoder *d, const uint8_t *bytes, size_t count) {
  ccodecs_header *header = &d->base.header;
  const uint64_t palette_end = header_bytes(bytes) + (uint64_t)d->palette_count * 4;
  const uint64_t row = ((uint64_t)header->width * d->bits + 31) / 32 * 4;
  const uint64_t mask_row = ((uint64_t)header->width + 31) / 32 * 4;
  if (ccodecs_le32(bytes) < BITMAP_HEADER_BYTES || palette_end + row * header->height > count) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the ICO data ends before the image");
  }
  d->row_stride = (size_t)row;
  d->mask_stride = (size_t)mask_row;
  d->palette = bytes + ccodecs_le32(bytes);
  d->pixels = bytes + (size_t)palette_end;
  const uint64_t mask = palette_end + row * header->height;
  const uint64_t mask_end = mask + mask_row * header->height;
  // A header of this version has the offset of a profile. A profile in the place of the mask means that there is no
  // mask.
  const bool has_profile = ccodecs_le32(bytes) >= PROFILED_HEADER_BYTES && ccodecs_le32(bytes + 112) != 0 &&
                           ccodecs_le32(bytes + 112) < mask_end;
  d->mask = mask_end <= count && !has_profile ? bytes + (size_t)mask : NULL;
  if (d->mask == NULL && d->bits < 32 && !has_profile && count != mask) { // some icons end with their pixels
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the ICO data ends before the image's mask");
  }
  return CCODECS_OK;
}

static ccodecs_status read_bitmap(ico_decoder *d, const uint8_t *bytes, size_t count) {
  ccodecs_header *header = &d->base.header;
  if (count < BITMAP_HEADER_BYTES) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the ICO data ends before the image");
  }
  header->width = ccodecs_le32(bytes + 4);
  header->height = ccodecs_le32(bytes + 8) / 2; // the height of pixels and mask together
  d->bits = ccodecs_le16(bytes + 14);
  if (header->width == 0 || header->width > INT32_MAX || header->height == 0 || header->height > INT32_MAX / 2) {
    return corrupt(d, "an image's width or height is zero or negative");
  }
  if (ccodecs_le32(bytes + 16) != 0 && !(ccodecs_le32(bytes + 16) == BIT_FIELDS && d->bits == 32)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "ICO data: compressed bitmaps are not supported");
  }
  if (d->bits == 16) {
    return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "ICO data: bitmaps of 16 bits are not supported");
  }
  if (d->bits != 1 && d->bits != 4 && d->bits != 8 && d->bits != 24 && d->bits != 32) {
    return corrupt(d, "an image's number of bits per pixel is invalid");
  }
  const uint32_t maximum = d->bits <= 8 ? 1u << d->bits : 0;
  const uint32_t said = ccodecs_le32(bytes + 32);
  d->palette_count = said == 0 || said > maximum ? maximum : said;
  header->bit_depth = d->bits < 8 ? (uint8_t)d->bits : 8;
  header->color_space = CCODECS_COLOR_RGB;
  header->has_alpha = true;
  const ccodecs_status status = place_bitmap(d, bytes, count);
  for (size_t i = 0; status == CCODECS_OK && d->bits == 32 && i < d->row_stride * header->height; i += 4) {
    d->has_alpha_bytes = d->has_alpha_bytes || d->pixels[i + 3] != 0;
  }
  return status;
}

static void put_row(const ico_decoder *d, uint32_t y, uint8_t *out) {
  const uint32_t width = d->base.header.width;
  const size_t from_below = d->base.header.height - 1 - y;
  const uint8_t *row = d->pixels + from_below * d->row_stride;
  const uint8_t *mask = d->mask == NULL || d->has_alpha_bytes ? NULL : d->mask + from_below * d->mask_stride;
  for (uint32_t x = 0; x < width; x++, out += 4) {
    static const uint8_t black[4] = {0};
    const uint8_t *color = row + (size_t)x * (d->bits / 8);
    if (d->bits <= 8) {
      const size_t at = (size_t)x * d->bits;
      const uint32_t index = (row[at / 8] >> (8 - d->bits - at % 8)) & ((1u << d->bits) - 1);
      color = index < d->palette_count ? d->palette + 4 * (size_t)index : black;
    }
    out[0] = color[2];
    out[1] = color[1];
    out[2] = color[0];
    const bool is_masked = mask != NULL && (mask[x / 8] >> (7 - x % 8) & 1) != 0;
    out[3] = d->has_alpha_bytes ? color[3] : is_masked ? 0 : 255;
  }
}

// MARK: Methods

/// Records a failure of the PNG decoder as this decoder's own.
static ccodecs_status pass_on(ico_decoder *d, ccodecs_status status) {
  d->base.excess = d->png->excess;
  return status < CCODECS_CORRUPT
             ? status
             : ccodecs_decoder_fail(&d->base, status, "ICO data: %s", ccodecs_decoder_message(d->png));
}

/// Creates the decoder for a PNG of which `count` bytes are buffered.
static ccodecs_status begin_png(ico_decoder *d, const ccodecs_input *input, const uint8_t *bytes, size_t count) {
  d->png = ccodecs_decoder_allocate(&ccodecs_png_decoder, CCODECS_FORMAT_PNG, &d->base.limits, d->base.budget);
  d->left = (ccodecs_input){.bytes = bytes, .count = count, .is_last = input->is_last && input->count == 0};
  return d->png == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

static ccodecs_status read_png_header(ico_decoder *d, ccodecs_input *input) {
  ccodecs_header *header = &d->base.header;
  ccodecs_status status = ccodecs_decoder_read_header(d->png, d->left.count > 0 ? &d->left : input);
  if (status == CCODECS_NEEDS_INPUT && (input->count > 0 || input->is_last)) {
    status = ccodecs_decoder_read_header(d->png, input);
  }
  if (status != CCODECS_OK) {
    return pass_on(d, status);
  }
  const uint32_t pictures = header->frame_count;
  *header = *ccodecs_decoder_header(d->png);
  header->format = CCODECS_FORMAT_ICO;
  header->frame_count = pictures;
  header->has_frames = false;
  header->has_profile = false;
  header->buffers_input = true;
  // Icons are sRGB by convention; profiles are ignored.
  return CCODECS_OK;
}

/// Reads the header of the chosen image, or of the largest one.
static ccodecs_status read_image(ico_decoder *d, ccodecs_input *input) {
  ccodecs_decoder *base = &d->base;
  if (d->png != NULL) {
    return read_png_header(d, input);
  }
  ccodecs_status status = d->is_chosen ? CCODECS_OK : read_directory(d, input);
  const size_t claimed = d->entry_bytes < BITMAP_HEADER_BYTES ? BITMAP_HEADER_BYTES : d->entry_bytes;
  status = status == CCODECS_OK ? hold(d, input, d->entry + claimed) : status;
  if (status == CCODECS_OK) {
    const uint8_t *bytes = ccodecs_bytes_start(&d->file) + d->entry;
    const uint64_t needed = bytes[0] == 0x89 ? 0 : bitmap_bytes(bytes);
    status = needed > claimed && needed < SIZE_MAX - d->entry ? hold(d, input, d->entry + (size_t)needed) : status;
  }
  if (status == CCODECS_NEEDS_INPUT || status >= CCODECS_CORRUPT) {
    return status;
  }
  if (!d->is_chosen || d->file.count <= d->entry) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the ICO data ends before the image");
  }
  const uint8_t *bytes = ccodecs_bytes_start(&d->file) + d->entry;
  const size_t count = d->file.count - d->entry;
  base->header.buffers_input = true;
  if (count < 8 || memcmp(bytes, "\x89PNG\r\n\x1A\n", 8) != 0) {
    return read_bitmap(d, bytes, count);
  }
  status = begin_png(d, input, bytes, count);
  return status == CCODECS_OK ? read_png_header(d, input) : status;
}

static void leave_image(ico_decoder *d) {
  ccodecs_decoder_destroy(d->png);
  d->png = NULL;
  d->left = (ccodecs_input){0};
  d->is_chosen = d->has_alpha_bytes = false;
  // The header of a PNG has more fields than that of a bitmap.
  d->base.header = (ccodecs_header){
      .format = CCODECS_FORMAT_ICO,
      .orientation = 1,
      .bit_depth = 8,
      .frame_count = d->base.header.frame_count,
      .play_count = 1};
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  ico_decoder *d = (ico_decoder *)base;
  if (base->must_buffer_input && !d->is_whole) {
    const ccodecs_status status = hold(d, input, SIZE_MAX);
    if (status != CCODECS_DONE) {
      return status;
    }
    d->is_whole = true;
    leave_image(d);
  }
  CCODECS_TRY(read_image(d, input));
  ccodecs_header *header = &base->header;
  // What a PNG has read of the input is not buffered.
  const bool is_buffered = d->png == NULL || d->left.count > 0;
  header->can_buffer_input = header->frame_count > 1 && is_buffered && !d->is_whole;
  header->has_pages = header->can_buffer_input || (header->frame_count > 1 && d->is_whole);
  return CCODECS_OK;
}

static ccodecs_status select_image(ccodecs_decoder *base, int64_t first, uint32_t count) {
  ico_decoder *d = (ico_decoder *)base;
  (void)count; // images have sizes of their own, so that one is returned
  const uint32_t chosen = d->chosen;
  ccodecs_status status = ccodecs_decoder_choose_page(base, first);
  if (status != CCODECS_OK || base->first_frame == chosen) {
    return status;
  }
  if (!d->is_whole) {
    return ccodecs_decoder_fail(
        base, CCODECS_UNSUPPORTED, "a smaller image of an ICO is decoded only if the whole file is buffered");
  }
  leave_image(d);
  d->chosen = base->first_frame;
  ccodecs_input none = {.is_last = true};
  status = read_header(base, &none);
  return status == CCODECS_NEEDS_INPUT
             ? ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the ICO data ends before the image")
             : status;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const ico_decoder *d = (const ico_decoder *)base;
  if (d->png != NULL) {
    const ccodecs_status status = d->png->methods->estimate(d->png, options, byte_count);
    return status;
  }
  *byte_count = (uint64_t)base->header.width * 4 * strip_row_count + 128;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  ico_decoder *d = (ico_decoder *)base;
  if (d->png != NULL) {
    const ccodecs_decode_options whole = {.scale_eighths = 8, .tolerates_damage = options->tolerates_damage};
    return pass_on(d, ccodecs_decoder_start(d->png, &whole, layout));
  }
  ccodecs_decoder_describe_packed(base, 4, layout);
  d->strip = ccodecs_allocate(base->budget, (size_t)base->header.width * 4 * strip_row_count);
  return d->strip == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  ico_decoder *d = (ico_decoder *)base;
  if (d->png != NULL) {
    ccodecs_status status = ccodecs_decoder_read_rows(d->png, d->left.count > 0 ? &d->left : input, rows);
    if (status == CCODECS_NEEDS_INPUT && (input->count > 0 || input->is_last)) {
      status = ccodecs_decoder_read_rows(d->png, input, rows);
    }
    base->header.warnings |= ccodecs_decoder_header(d->png)->warnings;
    base->header.damaged_row = ccodecs_decoder_header(d->png)->damaged_row;
    return pass_on(d, status);
  }
  const uint32_t left = base->header.height - d->given;
  const uint32_t count = left < strip_row_count ? left : strip_row_count;
  const size_t stride = (size_t)base->header.width * 4;
  for (uint32_t i = 0; i < count; i++) {
    put_row(d, d->given + i, d->strip + i * stride);
  }
  d->given += count;
  rows->planes[0] = d->strip;
  rows->row_strides[0] = stride;
  rows->row_counts[0] = count;
  return count > 0 ? CCODECS_ROWS_READY : CCODECS_DONE;
}

static void destroy(ccodecs_decoder *base) {
  ico_decoder *d = (ico_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_decoder_destroy(d->png);
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_free(budget, d->strip);
}

const ccodecs_decoder_methods ccodecs_ico_decoder = {
    .byte_count = sizeof(ico_decoder),
    .read_header = read_header,
    .select_frames = select_image,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};
