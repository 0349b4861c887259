// Checks of a TIFF's blocks before libtiff decodes any: how often they share bytes, how large they are compared with
// the image, and how much memory their codecs need. Sources: TIFF 6.0, its Technical Note 2 (JPEG); RFC 8878 (Zstandard
// frames).

#include "../memory/bytes.h"
#include "tiff_decoder.h"

#ifdef CCODECS_TIFF

enum { MAX_SAMPLES = 64, COMPRESSION_OF_ZSTD = 50000 };

/// Maximum total size of the blocks' bytes: this multiple of the file size, plus the allowance. Blocks may share bytes.
static const uint64_t data_multiple = 8;
static const uint64_t data_allowance = 1u << 20;
/// Maximum total pixels of the blocks, counted once per scan of a JPEG: this multiple of the image's, plus the
/// allowance.
static const uint64_t work_multiple = 16;
static const uint64_t work_allowance = 16u << 20;
/// libtiff refuses a JPEG with several scans that needs more memory than this in libjpeg.
static const uint64_t max_scans_bytes = 10u << 20;

/// Returns whether the memory of a compression is bounded by the charge. That of LZMA is not, because the file chooses
/// it. LERC, JBIG and WebP decode blocks differently, and are rarely used.
static bool is_allowed(uint16_t compression) {
  switch (compression) {
  case COMPRESSION_NONE:
  case COMPRESSION_CCITTRLE:
  case COMPRESSION_CCITTRLEW:
  case COMPRESSION_CCITTFAX3:
  case COMPRESSION_CCITTFAX4:
  case COMPRESSION_LZW:
  case COMPRESSION_OJPEG:
  case COMPRESSION_JPEG:
  case COMPRESSION_ADOBE_DEFLATE:
  case COMPRESSION_DEFLATE:
  case COMPRESSION_PACKBITS:
  case COMPRESSION_NEXT:
  case COMPRESSION_THUNDERSCAN:
  case COMPRESSION_PIXARLOG:
  case COMPRESSION_SGILOG:
  case COMPRESSION_SGILOG24:
  case COMPRESSION_OF_ZSTD:
    return true;
  default:
    return false;
  }
}

ccodecs_status ccodecs_tiff_check_kind(tiff_decoder *d) {
  uint16_t compression = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
  if (!is_allowed(compression)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_UNSUPPORTED, "TIFF data: compression scheme %u is not supported", compression);
  }
  return d->samples <= MAX_SAMPLES
             ? CCODECS_OK
             : ccodecs_decoder_exceed(
                   &d->base, "samples per pixel", (ccodecs_excess){"max_samples_per_pixel", MAX_SAMPLES, d->samples});
}

/// Returns the bytes of a block that are in the file.
static ccodecs_input block_at(const tiff_decoder *d, uint32_t index) {
  const uint64_t file_bytes = d->file.bytes.count;
  const uint64_t offset = TIFFGetStrileOffset(d->tiff, index);
  const uint64_t stated = TIFFGetStrileByteCount(d->tiff, index);
  const uint64_t start = offset < file_bytes ? offset : file_bytes;
  const uint64_t left = file_bytes - start;
  return (ccodecs_input){
      .bytes = ccodecs_bytes_start(&d->file.bytes) + start, .count = (size_t)(stated < left ? stated : left)};
}

/// Returns the number of scans of a JPEG: the number of SOS markers, without parsing the bytes after them.
static uint64_t count_scans(ccodecs_input block) {
  uint64_t scans = 0;
  for (const uint8_t *next = block.bytes, *end = next + block.count; next != NULL && end - next >= 2;) {
    next = memchr(next, 0xFF, (size_t)(end - next) - 1);
    if (next != NULL) {
      scans += next[1] == 0xDA ? 1 : 0;
      next += 1;
    }
  }
  return scans;
}

/// Returns the window size of a Zstandard frame in bytes: the output that decoding must keep.
static uint64_t window_bytes(ccodecs_input block) {
  static const uint8_t magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
  static const uint8_t dictionary_bytes[4] = {0, 1, 2, 4};
  const uint8_t *bytes = block.bytes;
  if (block.count < 18 || memcmp(bytes, magic, sizeof magic) != 0) {
    return 0;
  }
  const uint8_t head = bytes[4];
  const bool is_single = (head & 0x20) != 0;
  if (!is_single) {
    const uint64_t base = UINT64_C(1) << (10 + (bytes[5] >> 3));
    return base + base / 8 * (bytes[5] & 7);
  }
  const uint8_t *size = bytes + 5 + dictionary_bytes[head & 3];
  switch (head >> 6) {
  case 0:
    return size[0];
  case 1:
    return 256u + ccodecs_le16(size);
  case 2:
    return ccodecs_le32(size);
  default:
    return ccodecs_le32(size + 4) > 0 ? UINT64_MAX : ccodecs_le32(size);
  }
}

typedef struct sums {
  uint64_t data_bytes;
  uint64_t blocks; ///< Counted once per scan.
  bool has_scans;  ///< At least one block has several scans.
  uint64_t window_bytes;
} sums;

static sums add_blocks(const tiff_decoder *d, uint16_t compression, uint32_t count) {
  const uint64_t file_bytes = d->file.bytes.count;
  sums s = {0};
  for (uint32_t i = 0; i < count; i++) {
    const ccodecs_input block = block_at(d, i);
    s.data_bytes += block.count;
    if (s.data_bytes > file_bytes * data_multiple + data_allowance) {
      break; // over the limit, so the rest is irrelevant
    }
    const uint64_t scans = compression == COMPRESSION_JPEG ? count_scans(block) : 1;
    const uint64_t window = compression == COMPRESSION_OF_ZSTD ? window_bytes(block) : 0;
    // A JPEG with one scan for each component is common, so it counts as one.
    s.has_scans = s.has_scans || scans > 1;
    s.blocks += scans <= 4 ? 1 : scans;
    s.window_bytes = window > s.window_bytes ? window : s.window_bytes;
  }
  return s;
}

ccodecs_status ccodecs_tiff_check_blocks(tiff_decoder *d) {
  const ccodecs_header *header = &d->base.header;
  uint16_t compression = COMPRESSION_NONE;
  uint32_t rows = 0;
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
  const bool is_tiled = TIFFIsTiled(d->tiff);
  TIFFGetFieldDefaulted(d->tiff, is_tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &rows);
  rows = !is_tiled && rows > header->height ? header->height : rows;
  const uint32_t count = is_tiled ? TIFFNumberOfTiles(d->tiff) : TIFFNumberOfStrips(d->tiff);
  const sums s = add_blocks(d, compression, count);
  const uint64_t data_limit = d->file.bytes.count * data_multiple + data_allowance;
  if (s.data_bytes > data_limit) {
    return ccodecs_decoder_exceed(
        &d->base, "bytes in its blocks", (ccodecs_excess){"max_block_bytes", data_limit, s.data_bytes});
  }
  const uint64_t own = (uint64_t)header->width * header->height * (d->is_separate ? d->samples : 1);
  const uint64_t work_limit = own * work_multiple + work_allowance;
  uint64_t work;
  if (__builtin_mul_overflow((uint64_t)d->block_width * rows, s.blocks, &work)) {
    work = UINT64_MAX;
  }
  if (work > work_limit) {
    return ccodecs_decoder_exceed(
        &d->base, "pixels in its blocks' scans", (ccodecs_excess){"max_block_pixels", work_limit, work});
  }
  const uint64_t strip_bytes = is_tiled ? TIFFTileSize64(d->tiff) : TIFFStripSize64(d->tiff);
  const uint64_t scans_bytes = strip_bytes * 3 < max_scans_bytes ? strip_bytes * 3 : max_scans_bytes;
  const uint64_t codec_bytes =
      (s.has_scans ? scans_bytes : 0) + s.window_bytes + (compression == COMPRESSION_PIXARLOG ? strip_bytes * 2 : 0);
  if (s.window_bytes > SIZE_MAX / 4 || !ccodecs_budget_charge(d->base.budget, (size_t)codec_bytes)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_NO_MEMORY, "TIFF data: decoding the blocks needs %llu bytes of memory",
        (unsigned long long)codec_bytes);
  }
  d->base.charged += (size_t)codec_bytes;
  return CCODECS_OK;
}

/// Returns whether a packet of one of the first `rows` rows of a strip crosses their end. `bits` reverses the bits of a
/// byte if the file does.
static bool has_crossing_packet(ccodecs_input strip, const uint8_t *bits, uint64_t row_bytes, uint32_t rows) {
  uint64_t column = 0;
  while (strip.count > 0 && rows > 0) {
    const uint8_t head = bits[strip.bytes[0]];
    const size_t length = head < 128 ? head + 1u : head > 128 ? 257u - head : 0;
    const size_t stored = 1 + (head < 128 ? length : head > 128 ? 1 : 0);
    ccodecs_input_advance(&strip, stored < strip.count ? stored : strip.count);
    column += length;
    if (column > row_bytes) {
      return true;
    }
    rows -= column == row_bytes ? 1 : 0;
    column = column == row_bytes ? 0 : column;
  }
  return false;
}

bool ccodecs_tiff_crosses_rows(const tiff_decoder *d) {
  uint16_t compression = COMPRESSION_NONE;
  uint16_t fill_order = FILLORDER_MSB2LSB;
  uint32_t rows = 0;
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_FILLORDER, &fill_order);
  TIFFGetFieldDefaulted(d->tiff, TIFFTAG_ROWSPERSTRIP, &rows);
  if (d->mode != MODE_SCANLINES || compression != COMPRESSION_PACKBITS) {
    return false;
  }
  const uint8_t *bits = TIFFGetBitRevTable(fill_order == FILLORDER_LSB2MSB);
  bool crosses = false;
  for (uint32_t i = 0; i < TIFFNumberOfStrips(d->tiff) && !crosses; i++) {
    crosses = has_crossing_packet(block_at(d, i), bits, TIFFScanlineSize64(d->tiff), rows);
  }
  return crosses;
}

#endif
