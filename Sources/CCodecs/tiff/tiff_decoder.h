// The TIFF decoder's state, shared by the reading of files and blocks (tiff_decoder.c) and that of samples
// (tiff_samples.c). Private to CCodecs.

#ifndef CCODECS_TIFF_H
#define CCODECS_TIFF_H

#include "../core/decoder.h"

#ifdef CCODECS_TIFF

#include "../color/linear.h"
#include "tiff_file.h"

typedef enum tiff_mode {
  MODE_SCANLINES, ///< Strips of interleaved samples.
  MODE_BLOCKS,    ///< Tiles, or strips of one sample each.
  MODE_RGBA,      ///< libtiff converts.
} tiff_mode;

typedef struct tiff_decoder {
  ccodecs_decoder base;
  ccodecs_tiff_file file;
  TIFF *tiff; ///< Of `file`.

  tiff_mode mode;
  uint16_t bits;
  uint16_t samples; ///< Of a pixel in the file.
  uint16_t photometric;
  uint16_t sample_format;
  bool is_separate;
  uint32_t colors; ///< Samples that are colours, 1, 3 or 4.
  uint32_t alpha;  ///< Index of the sample that is alpha, or 0.
  bool is_premultiplied;
  uint32_t kept;     ///< Samples of a pixel in the band.
  uint32_t channels; ///< Of a pixel that is given.
  bool keeps_cmyk;   ///< Rows of CMYK, not of RGB.
  uint8_t palette[256][3];
  bool is_lab;             ///< Colours are CIELAB of eight bits a sample.
  bool has_signed_lab;     ///< Its a and b are signed, not 128 for neither.
  bool has_linear_profile; ///< Samples in floating point are as the profile has them, and it has them in linear light.
  ccodecs_linear linear;
  TIFFRGBAImage rgba;
  bool has_rgba;

  uint32_t block_width; ///< Of a tile; the image's for strips.
  uint32_t band_rows;
  size_t block_bytes;
  size_t charged; ///< For libtiff.
  uint8_t *block; ///< A scanline, tile or strip as libtiff gives it.
  void *band;     ///< Samples as they are given, interleaved.
  uint32_t band_first;
  uint32_t band_count;
  uint8_t *strip;
  uint32_t strip_rows;
  uint32_t given;
} tiff_decoder;

static inline size_t ccodecs_tiff_sample_bytes(const tiff_decoder *d) {
  return d->base.header.is_16bit ? 2 : 1;
}

/// Of a row that is given.
static inline size_t ccodecs_tiff_row_bytes(const tiff_decoder *d) {
  return (size_t)d->base.header.width * d->channels * ccodecs_tiff_sample_bytes(d);
}

/// Of a row of the band.
static inline size_t ccodecs_tiff_kept_bytes(const tiff_decoder *d) {
  return (size_t)d->base.header.width * d->kept * ccodecs_tiff_sample_bytes(d);
}

// tiff_blocks.c

/// Refuses compressions and numbers of samples that are not decoded.
ccodecs_status ccodecs_tiff_check_kind(tiff_decoder *d);

/// Refuses blocks that would be too much, and charges what their codec holds. The sizes of blocks are known.
ccodecs_status ccodecs_tiff_check_blocks(tiff_decoder *d);

// tiff_samples.c

/// Keeps `count` pixels of a row that libtiff gave, from place `first_x` of a row of the band on: all samples, or the
/// one named where they come apart.
void ccodecs_tiff_keep_row(
    const tiff_decoder *d, uint32_t band_row, uint32_t first_x, const uint8_t *row, uint32_t count, uint32_t sample);

/// Makes a row that is given of one of the band.
void ccodecs_tiff_put_row(const tiff_decoder *d, uint8_t *out, const uint8_t *kept);

#endif

#endif
