// Rewrites the alpha of an HEIC or AVIF file to the form in which libheif finds it. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

/// Gives the alpha of the primary image the image's size if it has none.
///
/// The change is made in a copy of the `meta` box that is appended to the file. A file without such an alpha, or one
/// that cannot be parsed, stays unchanged. Returns false when the budget has no room.
bool ccodecs_heif_size_alpha(ccodecs_bytes *file, ccodecs_budget *budget);
