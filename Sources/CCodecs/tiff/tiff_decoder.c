// TIFF decoding with libtiff: the first page of a file, or another one that is selected. The whole file is buffered,
// because its directory may be anywhere.
//
// Blocks are decoded one band at a time: a number of scanlines of strips with interleaved samples, or a row of strips
// or tiles. Gray, RGB, palette and CMYK samples of any depth are unpacked here. Samples that need a special conversion
// (YCbCr that is not JPEG, CIELAB, LogLuv) are left to libtiff's RGBA interface, also band by band. CMYK with a color
// profile is returned as CMYK; with alpha in addition it is converted without the profile. Source: TIFF 6.0, with
// Adobe's Technical Notes and the floating-point formats of Adobe Photoshop.

#include "../memory/bytes.h"

#ifdef CCODECS_TIFF

#include "../color/profile.h"
#include "../formats.h"
#include "tiff_decoder.h"

/// Bytes of libtiff's state, the arrays of a usual directory, and its codecs' tables.
static const size_t library_bytes = 512 * 1024;
/// Bytes of a directory's values that `library_bytes` includes.
static const size_t usual_directory_bytes = 256 * 1024;

/// Returns the end of the image's blocks, which may be shared. Those of old-style JPEG, whose sizes libtiff does not
/// rely on, are ignored.
static uint64_t blocks_end(const tiff_decoder *d) {
  uint16_t compression = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
  const uint32_t count = TIFFIsTiled(d->tiff) ? TIFFNumberOfTiles(d->tiff) : TIFFNumberOfStrips(d->tiff);
  uint64_t end = 0;
  for (uint32_t i = 0; i < count && compression != COMPRESSION_OJPEG; i++) {
    const uint64_t offset = TIFFGetStrileOffset(d->tiff, i);
    const uint64_t bytes = TIFFGetStrileByteCount(d->tiff, i);
    const uint64_t block_end = bytes > UINT64_MAX - offset ? UINT64_MAX : offset + bytes;
    end = block_end > end ? block_end : end;
  }
  return end;
}

static ccodecs_status fail_truncated(tiff_decoder *d) {
  return ccodecs_decoder_fail(
      &d->base, CCODECS_TRUNCATED,
      "the header specifies %ux%u pixels, whose data ends at byte %llu, but the file has %llu bytes",
      d->base.header.width, d->base.header.height, (unsigned long long)blocks_end(d),
      (unsigned long long)d->file.bytes.count);
}

/// Records a failure with libtiff's reason, or the given one without it. Damage of a truncated file is due to that.
static ccodecs_status fail(tiff_decoder *d, const char *otherwise) {
  if (ccodecs_tiff_file_is_truncated(&d->file)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the TIFF data ends before the image's directory does");
  }
  if (d->is_sized && blocks_end(d) > d->file.bytes.count) {
    return fail_truncated(d);
  }
  const char *reason = d->file.reason;
  // libtiff distinguishes unsupported features from damage only in the text of its messages.
  const bool is_unknown = strstr(reason, "not configured") != NULL || strstr(reason, "not implemented") != NULL ||
                          strstr(reason, "scheme") != NULL;
  const bool is_memory = strstr(reason, "emory") != NULL;
  return ccodecs_decoder_fail(
      &d->base,
      is_unknown  ? CCODECS_UNSUPPORTED
      : is_memory ? CCODECS_NO_MEMORY
                  : CCODECS_CORRUPT,
      "TIFF data: %s", d->file.reason[0] != 0 ? d->file.reason : otherwise);
}

static ccodecs_status unsupported(tiff_decoder *d, const char *kind) {
  return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "TIFF data: %s are not supported", kind);
}

/// Charges what libtiff allocates for the directory at `offset`, or for the first one at 0.
static ccodecs_status charge_directory(tiff_decoder *d, uint64_t offset) {
  const uint64_t needed = ccodecs_tiff_file_directory_bytes(&d->file, offset);
  const uint64_t extra = needed > usual_directory_bytes ? needed - usual_directory_bytes : 0;
  if (extra > SIZE_MAX || !ccodecs_budget_charge(d->base.budget, (size_t)extra)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_NO_MEMORY, "no room for the %llu bytes of the TIFF's tags", (unsigned long long)needed);
  }
  d->base.charged += (size_t)extra;
  return CCODECS_OK;
}

static ccodecs_status open_file(tiff_decoder *d) {
  CCODECS_TRY(charge_directory(d, 0));
  if (!ccodecs_tiff_file_open(&d->file)) {
    return CCODECS_NO_MEMORY;
  }
  d->tiff = d->file.tiff;
  if (d->tiff != NULL && d->file.lacks_palette) {
    d->file.reason[0] = 0;
    return fail(d, "the color map cannot be read");
  }
  return d->tiff == NULL ? fail(d, "the directory cannot be read") : CCODECS_OK;
}

// MARK: Header

/// Finds which of the samples after the colors is alpha.
static void find_alpha(tiff_decoder *d) {
  uint16_t count = 0;
  uint16_t *kinds = NULL;
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds);
  for (uint32_t i = 0; i < count && d->colors + i < d->samples && d->alpha == 0; i++) {
    if (kinds[i] == EXTRASAMPLE_ASSOCALPHA || kinds[i] == EXTRASAMPLE_UNASSALPHA) {
      d->alpha = d->colors + i;
      d->is_premultiplied = kinds[i] == EXTRASAMPLE_ASSOCALPHA;
    }
  }
}

static ccodecs_status read_palette(tiff_decoder *d) {
  uint16_t *maps[3];
  if (d->bits > 8 || d->sample_format != SAMPLEFORMAT_UINT) {
    return unsupported(d, "palettes of more than 256 colors");
  }
  if (!TIFFGetField(d->tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2])) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "TIFF data: the color map is missing");
  }
  const uint32_t count = 1u << d->bits;
  bool is_wide = false; // some writers store 8-bit values where 16 bits are required
  for (uint32_t i = 0; i < 3 * count; i++) {
    is_wide = is_wide || maps[i / count][i % count] > 255;
  }
  for (uint32_t i = 0; i < 3 * count; i++) {
    d->palette[i % count][i / count] = (uint8_t)(maps[i / count][i % count] >> (is_wide ? 8 : 0));
  }
  return CCODECS_OK;
}

/// Selects how libtiff's samples are converted to the output samples. Formats that this file does not handle are left
/// to libtiff.
static ccodecs_status choose_mode(tiff_decoder *d) {
  uint16_t compression = COMPRESSION_NONE;
  uint16_t cmyk = INKSET_CMYK;
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_INKSET, &cmyk);
  const bool is_jpeg_ycc = compression == COMPRESSION_JPEG && d->photometric == PHOTOMETRIC_YCBCR && !d->is_separate;
  if (is_jpeg_ycc && TIFFSetField(d->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB)) {
    d->photometric = PHOTOMETRIC_RGB;
  }
  d->base.header.chroma_across = d->base.header.chroma_down = 0;
  if (compression == COMPRESSION_JPEG || compression == COMPRESSION_OJPEG) {
    uint16_t across = 1;
    uint16_t down = 1;
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_YCBCRSUBSAMPLING, &across, &down);
    d->base.header.chroma_across = across > 4 ? 4 : (uint8_t)across;
    d->base.header.chroma_down = down > 4 ? 4 : (uint8_t)down;
  }
  d->mode = TIFFIsTiled(d->tiff) || d->is_separate ? MODE_BLOCKS : MODE_SCANLINES;
  switch (d->photometric) {
  case PHOTOMETRIC_MINISWHITE:
  case PHOTOMETRIC_MINISBLACK:
  case PHOTOMETRIC_PALETTE:
    d->colors = 1;
    break;
  case PHOTOMETRIC_RGB:
    d->colors = 3;
    break;
  case PHOTOMETRIC_SEPARATED:
    d->colors = 4;
    break;
  case PHOTOMETRIC_CIELAB:
  case PHOTOMETRIC_ICCLAB:
    d->is_lab = (d->bits == 8 || d->bits == 16) && d->samples == 3;
    d->has_signed_lab = d->photometric == PHOTOMETRIC_CIELAB;
    d->colors = 3;
    d->mode = d->is_lab ? d->mode : MODE_RGBA;
    break;
  default:
    d->mode = MODE_RGBA;
    d->colors = 3;
    break;
  }
  if (compression == COMPRESSION_OJPEG) {
    d->mode = MODE_RGBA;
  }
  if (d->samples < d->colors || (d->colors == 4 && cmyk != INKSET_CMYK)) {
    return unsupported(d, "images with this number of channels");
  }
  return CCODECS_OK;
}

static ccodecs_status check_samples(tiff_decoder *d) {
  const bool is_float = d->sample_format == SAMPLEFORMAT_IEEEFP;
  const bool is_integer = d->sample_format == SAMPLEFORMAT_UINT || d->sample_format == SAMPLEFORMAT_INT;
  if (is_float ? d->bits != 16 && d->bits != 32 : !is_integer || d->bits < 1 || d->bits > 32) {
    return unsupported(d, "samples of this type");
  }
  if (d->sample_format == SAMPLEFORMAT_INT && d->colors > 1) {
    return unsupported(d, "signed color samples");
  }
  return d->photometric == PHOTOMETRIC_PALETTE ? read_palette(d) : CCODECS_OK;
}

static ccodecs_status begin_rgba(tiff_decoder *d) {
  static const float usual[3] = {0.299f, 0.587f, 0.114f};
  static const float white[2] = {0.3127f, 0.3290f}; // sRGB's
  const float *luma = NULL;
  char reason[1024] = "";
  if (d->photometric == PHOTOMETRIC_YCBCR && TIFFGetField(d->tiff, TIFFTAG_YCBCRCOEFFICIENTS, &luma) && luma[1] == 0) {
    TIFFSetField(d->tiff, TIFFTAG_YCBCRCOEFFICIENTS, usual); // some writers leave zeros
  }
  if (d->photometric == PHOTOMETRIC_CIELAB) {
    TIFFSetField(d->tiff, TIFFTAG_WHITEPOINT, white); // libtiff does not adapt colors to another white point
  }
  if (!TIFFRGBAImageOK(d->tiff, reason) || !TIFFRGBAImageBegin(&d->rgba, d->tiff, 1, reason)) {
    return unsupported(d, "samples of this type");
  }
  d->has_rgba = true;
  d->rgba.req_orientation = d->rgba.orientation; // rows as they are stored
  d->alpha = d->rgba.alpha != 0 ? 3 : 0;
  d->is_premultiplied = true;
  d->kept = 4;
  return CCODECS_OK;
}

/// Computes the size of bands and blocks. A tile may be far larger than the image; its size is charged, and so limited.
static ccodecs_status size_blocks(tiff_decoder *d) {
  const ccodecs_header *header = &d->base.header;
  uint32_t rows = 0;
  d->block_width = header->width;
  uint64_t block_bytes;
  if (TIFFIsTiled(d->tiff)) {
    TIFFGetField(d->tiff, TIFFTAG_TILEWIDTH, &d->block_width);
    TIFFGetField(d->tiff, TIFFTAG_TILELENGTH, &rows);
    block_bytes = TIFFTileSize64(d->tiff);
  } else {
    TIFFGetFieldDefaulted(d->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
    block_bytes = d->mode == MODE_SCANLINES ? TIFFScanlineSize64(d->tiff) : TIFFStripSize64(d->tiff);
  }
  if (d->mode == MODE_SCANLINES) {
    rows = d->strip_rows;
  }
  d->band_rows = rows > header->height ? header->height : rows;
  const uint64_t row_samples = (uint64_t)d->block_width * (d->is_separate ? 1 : d->samples);
  const uint64_t needed = (row_samples * d->bits + 7) / 8 * (d->mode == MODE_SCANLINES ? 1 : d->band_rows);
  const bool is_sound = d->block_width > 0 && d->band_rows > 0 && block_bytes > 0 &&
                        block_bytes <= CCODECS_TIFF_LARGEST_BLOCK && (d->mode == MODE_RGBA || needed <= block_bytes);
  if (!is_sound) {
    return fail(d, "the block size is zero or too large");
  }
  d->block_bytes = (size_t)block_bytes;
  return CCODECS_OK;
}

static void describe_pages(tiff_decoder *d) {
  ccodecs_header *header = &d->base.header;
  uint64_t offset = 0;
  const uint32_t pages = ccodecs_tiff_file_count_pages(&d->file, 0, &offset);
  header->frame_count = pages == UINT32_MAX ? 0 : pages;
  header->has_pages = header->frame_count > 1;
  header->warnings |= pages > 1 ? CCODECS_WARNING_FIRST_FRAME : 0;
}

static ccodecs_status describe(tiff_decoder *d) {
  ccodecs_header *header = &d->base.header;
  uint16_t orientation = 1;
  uint16_t planar = PLANARCONFIG_CONTIG;
  TIFFGetField(d->tiff, TIFFTAG_IMAGEWIDTH, &header->width);
  TIFFGetField(d->tiff, TIFFTAG_IMAGELENGTH, &header->height);
  if (header->width == 0 || header->height == 0) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "TIFF data: the width or height is zero or missing");
  }
  CCODECS_TRY(ccodecs_decoder_check_limits(&d->base));
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_BITSPERSAMPLE, &d->bits);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_SAMPLESPERPIXEL, &d->samples);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_SAMPLEFORMAT, &d->sample_format);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_PLANARCONFIG, &planar);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_ORIENTATION, &orientation);
  d->sample_format = d->sample_format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : d->sample_format;
  d->is_separate = planar == PLANARCONFIG_SEPARATE && d->samples > 1;
  CCODECS_TRY(ccodecs_tiff_check_kind(d));
  if (!TIFFGetField(d->tiff, TIFFTAG_PHOTOMETRIC, &d->photometric)) {
    d->photometric = d->samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  }
  CCODECS_TRY(choose_mode(d));
  if (d->mode == MODE_RGBA) {
    CCODECS_TRY(begin_rgba(d));
  } else {
    find_alpha(d);
    d->kept = d->colors + (d->alpha > 0 ? 1 : 0);
    CCODECS_TRY(check_samples(d));
  }
  header->orientation = orientation >= 1 && orientation <= 8 ? (uint8_t)orientation : 1;
  header->bit_depth = (uint8_t)d->bits;
  header->has_alpha = d->alpha > 0;
  const bool is_gray = d->colors == 1 && d->photometric != PHOTOMETRIC_PALETTE;
  header->color_space = is_gray ? CCODECS_COLOR_GRAY : d->colors == 4 ? CCODECS_COLOR_CMYK : CCODECS_COLOR_RGB;
  header->is_16bit = d->bits > 8 && d->mode != MODE_RGBA;
  d->channels = header->has_alpha ? 4 : is_gray ? 1 : 3;
  d->strip_rows = ccodecs_decoder_strip_rows(ccodecs_tiff_row_bytes(d));
  CCODECS_TRY(size_blocks(d));
  d->is_sized = true;
  CCODECS_TRY(ccodecs_tiff_check_blocks(d));
  if (!ccodecs_tiff_crosses_rows(d)) {
    return CCODECS_OK;
  }
  d->mode = MODE_BLOCKS;
  return size_blocks(d);
}

/// Reads the metadata, and the color profile, which libtiff owns. Oversized profiles are not used.
static ccodecs_status read_attachments(tiff_decoder *d) {
  if (!ccodecs_tiff_keep_metadata(d)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for the metadata");
  }
  uint32_t count = 0;
  void *profile = NULL;
  const bool has_other = d->mode == MODE_RGBA || d->is_lab || (d->colors == 4 && d->alpha > 0);
  if (has_other || !TIFFGetField(d->tiff, TIFFTAG_ICCPROFILE, &count, &profile)) {
    return CCODECS_OK;
  }
  d->has_linear_profile = ccodecs_profile_is_linear(profile, count);
  // CMYK with a profile is returned with 8 bits.
  d->base.header.is_16bit = d->base.header.is_16bit && d->colors != 4;
  return ccodecs_decoder_keep_profile(&d->base, profile, count);
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  tiff_decoder *d = (tiff_decoder *)base;
  base->header.buffers_input = true;
  if (!ccodecs_bytes_gather(&d->file.bytes, input, SIZE_MAX, base->budget)) {
    return ccodecs_decoder_fail(base, CCODECS_NO_MEMORY, "no room to buffer the TIFF file");
  }
  if (!input->is_last) {
    return CCODECS_NEEDS_INPUT;
  }
  if (!ccodecs_budget_charge(base->budget, library_bytes)) {
    return CCODECS_NO_MEMORY;
  }
  d->base.charged = library_bytes;
  CCODECS_TRY(open_file(d));
  describe_pages(d);
  CCODECS_TRY(describe(d));
  return read_attachments(d);
}

/// Forgets the page that was described.
static void leave_page(tiff_decoder *d) {
  if (d->has_rgba) {
    TIFFRGBAImageEnd(&d->rgba);
  }
  ccodecs_budget_refund(d->base.budget, d->base.charged - library_bytes);
  d->base.charged = library_bytes;
  d->has_rgba = d->is_sized = d->is_lab = d->is_premultiplied = d->has_linear_profile = false;
  d->alpha = 0;
  d->file.lacks_palette = false;
  d->file.reason[0] = 0;
  ccodecs_bytes_free(&d->base.profile, d->base.budget);
  ccodecs_bytes_free(&d->base.artist, d->base.budget);
  ccodecs_bytes_free(&d->base.copyright, d->base.budget);
  ccodecs_decoder_free_metadata(&d->base);
}

static ccodecs_status select_page(ccodecs_decoder *base, int64_t first, uint32_t count) {
  tiff_decoder *d = (tiff_decoder *)base;
  (void)count; // pages have sizes of their own, so that one is returned
  if (base->header.frame_count == 0 && first == 0) {
    return CCODECS_OK;
  }
  ccodecs_status status =
      base->header.frame_count == 0 ? ccodecs_decoder_refuse_selection(base) : ccodecs_decoder_choose_page(base, first);
  if (status != CCODECS_OK || base->first_frame == d->page) {
    return status;
  }
  uint64_t offset = 0;
  ccodecs_tiff_file_count_pages(&d->file, base->first_frame, &offset);
  leave_page(d);
  d->page = base->first_frame;
  CCODECS_TRY(charge_directory(d, offset));
  if (TIFFSetSubDirectory(d->tiff, offset) == 0 || d->file.lacks_palette) {
    return fail(d, "the directory of the page cannot be read");
  }
  base->header.warnings &= ~(uint32_t)CCODECS_WARNING_FIRST_FRAME; // it was chosen
  status = describe(d);
  return status == CCODECS_OK ? read_attachments(d) : status;
}

// MARK: Memory

/// Returns the bytes that libtiff allocates for a block in addition to ours: in RGBA mode the block itself, and JPEG's
/// coefficients.
static size_t library_block_bytes(const tiff_decoder *d) {
  return d->block_bytes * 2;
}

/// Returns whether the rows are CMYK, to be converted with their profile.
static bool gives_cmyk(const tiff_decoder *d, const ccodecs_decode_options *options) {
  return options->keeps_cmyk && d->colors == 4 && d->alpha == 0 && !d->base.header.is_16bit;
}

static size_t band_bytes(const tiff_decoder *d) {
  return ccodecs_tiff_kept_bytes(d) * d->band_rows;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const tiff_decoder *d = (const tiff_decoder *)base;
  const uint64_t blocks = (uint64_t)library_block_bytes(d) + d->block_bytes;
  const uint64_t ink_bytes = gives_cmyk(d, options) ? (uint64_t)base->header.width * 4 : 0;
  const uint64_t row_bytes = ink_bytes > 0 ? ink_bytes : ccodecs_tiff_row_bytes(d);
  *byte_count = blocks + band_bytes(d) + row_bytes * d->strip_rows + 6 * 64;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  tiff_decoder *d = (tiff_decoder *)base;
  if (!base->tolerates_truncation && blocks_end(d) > d->file.bytes.count) {
    return fail_truncated(d);
  }
  d->keeps_cmyk = gives_cmyk(d, options);
  d->channels = d->keeps_cmyk ? 4 : d->channels;
  ccodecs_decoder_describe_packed(base, d->channels, layout);
  layout->pixels = d->keeps_cmyk ? CCODECS_PIXELS_CMYK8 : layout->pixels;
  if (!ccodecs_budget_charge(base->budget, library_block_bytes(d))) {
    return CCODECS_NO_MEMORY;
  }
  d->base.charged += library_block_bytes(d);
  d->block = ccodecs_allocate(base->budget, d->block_bytes);
  d->band = ccodecs_allocate(base->budget, band_bytes(d));
  d->strip = ccodecs_allocate(base->budget, ccodecs_tiff_row_bytes(d) * d->strip_rows);
  if (d->sample_format == SAMPLEFORMAT_IEEEFP || d->is_lab) {
    ccodecs_linear_fill(&d->linear);
  }
  if (d->block == NULL || d->band == NULL || d->strip == NULL) {
    return CCODECS_NO_MEMORY;
  }
  // Of a row with several samples per pixel, libtiff's CCITT decoders write only as many bits as there are pixels.
  memset(d->block, 0, d->block_bytes);
  return CCODECS_OK;
}

// MARK: Bands

static bool read_scanlines(tiff_decoder *d) {
  for (uint32_t y = 0; y < d->band_count; y++) {
    if (TIFFReadScanline(d->tiff, d->block, d->band_first + y, 0) != 1) {
      return false;
    }
    ccodecs_tiff_keep_row(d, y, 0, d->block, d->base.header.width, 0);
  }
  return true;
}

/// Reads one block. `sample` is 0 if samples are interleaved.
static bool read_block(tiff_decoder *d, uint32_t x, uint32_t sample) {
  const tmsize_t size = (tmsize_t)d->block_bytes;
  // The missing part of a short block is black.
  memset(d->block, 0, d->block_bytes);
  return TIFFIsTiled(d->tiff)
             ? TIFFReadEncodedTile(
                   d->tiff, TIFFComputeTile(d->tiff, x, d->band_first, 0, (uint16_t)sample), d->block, size) >= 0
             : TIFFReadEncodedStrip(
                   d->tiff, TIFFComputeStrip(d->tiff, d->band_first, (uint16_t)sample), d->block, size) >= 0;
}

static bool read_blocks(tiff_decoder *d) {
  const uint32_t width = d->base.header.width;
  const size_t row_samples = (size_t)d->block_width * (d->is_separate ? 1 : d->samples);
  const size_t block_row_bytes = (row_samples * d->bits + 7) / 8;
  for (uint32_t sample = 0; sample < (d->is_separate ? d->samples : 1u); sample++) {
    if (sample >= d->colors && sample != d->alpha) {
      continue;
    }
    for (uint64_t x = 0; x < width; x += d->block_width) {
      if (!read_block(d, (uint32_t)x, sample)) {
        return false;
      }
      const uint32_t count = width - x < d->block_width ? (uint32_t)(width - x) : d->block_width;
      for (uint32_t y = 0; y < d->band_count; y++) {
        ccodecs_tiff_keep_row(d, y, (uint32_t)x, d->block + y * block_row_bytes, count, sample);
      }
    }
  }
  return true;
}

static bool read_rgba(tiff_decoder *d) {
  const uint32_t width = d->base.header.width;
  d->rgba.row_offset = (int)d->band_first;
  d->rgba.col_offset = 0;
  uint32_t *raster = d->band; // converted to bytes in place
  uint8_t *bytes = d->band;
  if (!TIFFRGBAImageGet(&d->rgba, raster, width, d->band_count)) {
    return false;
  }
  for (size_t i = 0; i < (size_t)width * d->band_count; i++) {
    const uint32_t pixel = raster[i];
    bytes[4 * i] = (uint8_t)TIFFGetR(pixel);
    bytes[4 * i + 1] = (uint8_t)TIFFGetG(pixel);
    bytes[4 * i + 2] = (uint8_t)TIFFGetB(pixel);
    bytes[4 * i + 3] = (uint8_t)TIFFGetA(pixel);
  }
  return true;
}

static ccodecs_status read_band(tiff_decoder *d) {
  const uint32_t left = d->base.header.height - d->given;
  d->band_first = d->given;
  d->band_count = left < d->band_rows ? left : d->band_rows;
  d->file.reason[0] = 0;
  const bool is_read = d->mode == MODE_SCANLINES ? read_scanlines(d)
                       : d->mode == MODE_BLOCKS  ? read_blocks(d)
                                                 : read_rgba(d);
  return is_read ? CCODECS_OK : fail(d, "a block cannot be decoded");
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  (void)input;
  tiff_decoder *d = (tiff_decoder *)base;
  if (d->given == base->header.height) {
    return CCODECS_DONE;
  }
  if (d->given == d->band_first + d->band_count) {
    CCODECS_TRY(read_band(d));
  }
  const uint32_t left = d->band_first + d->band_count - d->given;
  const uint32_t count = left < d->strip_rows ? left : d->strip_rows;
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *kept = (const uint8_t *)d->band + (d->given - d->band_first + i) * ccodecs_tiff_kept_bytes(d);
    ccodecs_tiff_put_row(d, d->strip + i * ccodecs_tiff_row_bytes(d), kept);
  }
  d->given += count;
  rows->planes[0] = d->strip;
  rows->row_strides[0] = ccodecs_tiff_row_bytes(d);
  rows->row_counts[0] = count;
  return CCODECS_ROWS_READY;
}

static void destroy(ccodecs_decoder *base) {
  tiff_decoder *d = (tiff_decoder *)base;
  ccodecs_budget *budget = base->budget;
  if (d->has_rgba) {
    TIFFRGBAImageEnd(&d->rgba);
  }
  if (d->tiff != NULL) {
    TIFFClose(d->tiff);
  }
  ccodecs_bytes_free(&d->file.bytes, budget);
  ccodecs_free(budget, d->block);
  ccodecs_free(budget, d->band);
  ccodecs_free(budget, d->strip);
}

const ccodecs_decoder_methods ccodecs_tiff_decoder = {
    .byte_count = sizeof(tiff_decoder),
    .read_header = read_header,
    .select_frames = select_page,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};

#endif
