// The TIFF decoder's state, shared by the code for files and blocks (tiff_decoder.c) and for samples (tiff_samples.c).
// Private to CCodecs.

#pragma once

#include "../core/decoder.h"

#ifdef CCODECS_TIFF

#include "../color/linear.h"
#include "tiff_file.h"

typedef enum tiff_mode {
  MODE_SCANLINES, ///< Strips of interleaved samples.
  MODE_BLOCKS,    ///< Tiles, or strips that are not decoded row by row.
  MODE_RGBA,      ///< Converted by libtiff.
} tiff_mode;

typedef struct tiff_decoder {
  ccodecs_decoder base;
  ccodecs_tiff_file file;
  TIFF *tiff;    ///< The open `file`.
  uint32_t page; ///< Index of the page that is described.

  tiff_mode mode;
  uint16_t bits;
  uint16_t samples; ///< Samples per pixel in the file.
  uint16_t photometric;
  uint16_t sample_format;
  bool is_separate;
  bool is_sized;   ///< The sizes and places of blocks are known.
  uint32_t colors; ///< Number of color samples: 1, 3 or 4.
  uint32_t alpha;  ///< Index of the alpha sample, or 0.
  bool is_premultiplied;
  uint32_t kept;     ///< Samples per pixel in the band.
  uint32_t channels; ///< Samples per output pixel.
  bool keeps_cmyk;   ///< The rows are CMYK, not RGB.
  uint8_t palette[256][3];
  bool is_lab;             ///< The colors are CIELAB with 8 or 16 bits per sample.
  bool has_signed_lab;     ///< a and b are signed, not offset by 128.
  bool has_linear_profile; ///< Floating-point samples are in the profile's space, which is linear light.
  ccodecs_linear linear;
  TIFFRGBAImage rgba;
  bool has_rgba;

  uint32_t block_width; ///< Width of a tile; for strips, of the image.
  uint32_t band_rows;
  size_t block_bytes;
  uint8_t *block; ///< A scanline, tile or strip as read from libtiff.
  void *band;     ///< Interleaved output samples.
  uint32_t band_first;
  uint32_t band_count;
  uint8_t *strip;
  uint32_t strip_rows;
  uint32_t given;
} tiff_decoder;

/// Returns the size of an output sample in bytes.
static inline size_t ccodecs_tiff_sample_bytes(const tiff_decoder *d) {
  return d->base.header.is_16bit ? 2 : 1;
}

/// Returns the size of an output row in bytes.
static inline size_t ccodecs_tiff_row_bytes(const tiff_decoder *d) {
  return (size_t)d->base.header.width * d->channels * ccodecs_tiff_sample_bytes(d);
}

/// Returns the size of a row of the band in bytes.
static inline size_t ccodecs_tiff_kept_bytes(const tiff_decoder *d) {
  return (size_t)d->base.header.width * d->kept * ccodecs_tiff_sample_bytes(d);
}

// tiff_blocks.c

/// Refuses unsupported compressions and sample counts. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_tiff_check_kind(tiff_decoder *d);

/// Refuses blocks whose decoding costs too much, and charges their codec's memory. Returns CCODECS_OK or the failure.
///
/// Call it when the sizes of blocks are known.
ccodecs_status ccodecs_tiff_check_blocks(tiff_decoder *d);

/// Returns whether packets of PackBits cross rows, which TIFF 6.0 forbids. libtiff then decodes only whole strips.
///
/// Call it when the blocks are checked.
bool ccodecs_tiff_crosses_rows(const tiff_decoder *d);

// tiff_metadata.c

/// Keeps EXIF, XMP and IPTC of the page that libtiff reads, and Artist and Copyright. EXIF is a block with copies of
/// the values of at most 4 KiB. Returns false if the budget is exhausted.
bool ccodecs_tiff_keep_metadata(tiff_decoder *d);

// tiff_samples.c

/// Stores `count` pixels of a row read from libtiff in a row of the band, from column `first_x` on.
///
/// It stores all samples, or only `sample` if the samples are separate.
void ccodecs_tiff_keep_row(
    const tiff_decoder *d, uint32_t band_row, uint32_t first_x, const uint8_t *row, uint32_t count, uint32_t sample);

/// Converts a row of the band to an output row.
void ccodecs_tiff_put_row(const tiff_decoder *d, uint8_t *out, const uint8_t *kept);

#endif
