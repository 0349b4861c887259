// The parts of a frame that an animated WebP need not store. Private to the WebP encoder.

#ifndef CCODECS_WEBP_KEPT_H
#define CCODECS_WEBP_KEPT_H

#include "webp_encoder.h"

/// Returns whether the current frame can be stored with a part that is blended with the previous frame, and whether
/// enough pixels of the part are the same to make that worthwhile.
bool ccodecs_webp_can_keep(const webp_encoder *e, ccodecs_rectangle part);

/// Makes pixels of the imported part transparent that need not be stored, and restores the previous ones in the current
/// canvas.
void ccodecs_webp_keep(webp_encoder *e, ccodecs_rectangle part);

#endif
