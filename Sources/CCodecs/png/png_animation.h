// Encoding of animations (APNG). Private to the PNG encoder.

#pragma once

#include "png_encoder.h"

/// Allocates what an animation needs. Returns false if the budget is exhausted.
bool ccodecs_png_begin_animation(png_encoder *e);

/// Returns an upper bound of the bytes that an animation charges in addition to a still image.
uint64_t ccodecs_png_animation_estimate(const ccodecs_encode_options *options);

/// Compresses the part of the frame that differs from the one before.
ccodecs_status ccodecs_png_end_frame(png_encoder *e);

/// Writes the beginning of the file, and ends the spool of its frames. An animation of one frame is a still image.
ccodecs_status ccodecs_png_finish_animation(png_encoder *e);
