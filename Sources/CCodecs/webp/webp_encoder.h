// The WebP encoder's state, shared by its source files. Private to them.

#pragma once

#include "../core/animation.h"
#include "webp_chunks.h"

#include <webp/encode.h>

typedef struct webp_encoder {
  ccodecs_encoder base;
  WebPPicture image;
  WebPConfig config;
  size_t charged;
  uint32_t written;
  ccodecs_bytes before; ///< The chunks of metadata that precede the image.
  ccodecs_bytes after;  ///< The chunks of metadata that follow it.
  uint8_t flags;        ///< Those of the metadata.

  // Planes: see webp_planes.c.
  uint8_t *pair; ///< Two rows of RGB; NULL if the library converts its image to planes, if at all.
  bool has_half; ///< The first row of `pair` waits for the second.

  // Animations: see webp_animation.c. The output is the file of the pending frame alone.
  ccodecs_canvases canvases;
  bool is_pending_blended;        ///< Its transparent pixels show the frame before it.
  ccodecs_rectangle pending_part; ///< The part of the canvas that it replaces.
  double excess;                  ///< Milliseconds by which the frames so far are too short in the file.
} webp_encoder;

// webp_encoder.c

/// Converts rows of samples to the library's pixels, from row `first` of its image on.
void ccodecs_webp_import(webp_encoder *e, const uint8_t *rows, size_t row_stride, uint32_t first, uint32_t row_count);

/// Compresses the library's image and appends its file to the output. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_webp_compress(webp_encoder *e);

// webp_planes.c

/// Returns whether rows are converted to planes when they are written.
bool ccodecs_webp_has_planes(const ccodecs_encode_options *options);

/// Returns the size of `pair`, 0 if rows are not converted.
size_t ccodecs_webp_pair_bytes(const ccodecs_encode_options *options);

/// Converts rows of RGB to planes. Returns CCODECS_OK or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_webp_write_planes(webp_encoder *e, const uint8_t *rows, size_t row_stride, uint32_t row_count);

// webp_animation.c

/// Returns an upper bound of the bytes that an animation charges in addition to a still image.
uint64_t ccodecs_webp_animation_estimate(const ccodecs_encode_options *options);

/// Compresses the part of the frame that differs from the one before.
ccodecs_status ccodecs_webp_end_frame(webp_encoder *e);

/// Writes the beginning of the file, and ends the spool of its frames. An animation of one frame is a still image.
ccodecs_status ccodecs_webp_finish_animation(webp_encoder *e);
