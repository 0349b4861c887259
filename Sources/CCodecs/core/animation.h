// The frames of an animation that is encoded: the rectangle that changed, and the spool of compressed frames. Private
// to CCodecs.
//
// Two canvases are buffered: the frame that is written, and the one before it. Compressed frames are spooled, because
// the beginning of the file depends on its end: a WebP starts with its size, an APNG with the number of its frames.
//
// A frame is pending until the next one is known to differ from it. Its duration grows by that of an equal frame,
// unless one of them is shown for at most 10 ms: viewers show such frames for longer, so that the sum would change the
// timing. If all frames are equal, the result is an animation of one frame, which has the duration of all.

#pragma once

#include "encoder.h"

/// A part of the canvas in pixels.
typedef struct ccodecs_rectangle {
  uint32_t left, top, width, height;
} ccodecs_rectangle;

/// The canvases of an encoder. A zeroed one is valid.
typedef struct ccodecs_canvases {
  uint8_t *current;  ///< The frame that is written.
  uint8_t *previous; ///< The frame before it.
  uint8_t *given;    ///< That frame as it was written, if `previous` may differ from it; else NULL.
  size_t pixel_bytes;
  size_t row_bytes;
  uint32_t written;   ///< Rows of `current`.
  uint32_t dependent; ///< Frames since the last key frame.
} ccodecs_canvases;

/// Returns the bytes that the canvases of an animation charge.
uint64_t ccodecs_canvases_estimate(const ccodecs_encode_options *options);

/// Returns the bytes that the canvases and the spool of an animation charge.
uint64_t ccodecs_animation_estimate(const ccodecs_encode_options *options);

/// Allocates the canvases. Returns false if the budget is exhausted.
bool ccodecs_canvases_create(ccodecs_canvases *canvases, ccodecs_encoder *encoder);

/// Copies rows of the frame to the current canvas; without a plane, those of the frame before.
void ccodecs_canvases_write(ccodecs_canvases *canvases, const ccodecs_rows *rows);

/// Returns the smallest rectangle that contains every pixel in which the current frame differs from the previous one;
/// its width is 0 if there is none.
ccodecs_rectangle ccodecs_canvases_changes(const ccodecs_canvases *canvases, const ccodecs_encode_options *options);

/// Returns whether the current frame is a key frame: it has the whole canvas, so that a viewer that seeks begins there.
bool ccodecs_canvases_need_key(const ccodecs_canvases *canvases);

/// Returns how long a frame is shown, in units of which a second has `per_second`. `*excess` is what rounding left
/// of earlier frames, so that the errors do not add up.
uint64_t ccodecs_frame_delay(const ccodecs_frame *frame, double per_second, double *excess);

/// Makes the current frame the previous one. `is_key` says whether it was stored as a key frame.
void ccodecs_canvases_advance(ccodecs_canvases *canvases, bool is_key);

/// Frees the canvases and refunds the budget.
void ccodecs_canvases_destroy(ccodecs_canvases *canvases, ccodecs_budget *budget);

/// Begins to spool the result: ccodecs_encoder_read returns nothing before ccodecs_encoder_end_spool.
void ccodecs_encoder_begin_spool(ccodecs_encoder *encoder);

/// Appends compressed bytes to the spool of the encoder. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_encoder_spool(ccodecs_encoder *encoder, const uint8_t *bytes, size_t count);

/// Ends the spool, whose bytes ccodecs_encoder_read returns behind `encoder.output`. Returns CCODECS_OK or records the
/// failure.
ccodecs_status ccodecs_encoder_end_spool(ccodecs_encoder *encoder);
