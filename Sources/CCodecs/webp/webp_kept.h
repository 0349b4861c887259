// The parts of a frame that an animated WebP need not store. Private to the WebP encoder.

#pragma once

#include "webp_encoder.h"

/// Returns the smallest rectangle that contains every pixel in which the current frame differs from the previous one,
/// by more than is tolerated if it is lossy; its width is 0 if there is none. The pixels outside of it become those of
/// the previous frame.
ccodecs_rectangle ccodecs_webp_changes(webp_encoder *e);

/// Returns the smallest rectangle that contains every pixel of the current frame that is not transparent; the whole one
/// if it is lossless, as it keeps the colors of transparent pixels. Nothing else is needed of the first frame.
ccodecs_rectangle ccodecs_webp_visible(const webp_encoder *e);

/// Returns whether the current frame can be stored with a part that is blended with the previous frame, and whether
/// enough pixels of the part are the same to make that worthwhile.
bool ccodecs_webp_can_keep(const webp_encoder *e, ccodecs_rectangle part);

/// Makes pixels of the imported part transparent that need not be stored, and restores the previous ones in the current
/// canvas.
void ccodecs_webp_keep(webp_encoder *e, ccodecs_rectangle part);
