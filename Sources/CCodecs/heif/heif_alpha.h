// Alpha of an HEIC or AVIF file, brought to the form in which libheif finds it. Private to CCodecs.

#ifndef CCODECS_HEIF_ALPHA_H
#define CCODECS_HEIF_ALPHA_H

#include "../memory/bytes.h"

/// Gives the alpha of the primary image the image's own transforms, and its size where it has none, in a copy of the
/// box of items that is appended to the file. A file without such an alpha, or that is not understood, stays as it is.
/// False without room.
bool ccodecs_heif_align_alpha(ccodecs_bytes *file, ccodecs_budget *budget);

#endif
