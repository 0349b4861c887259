// The segments of a JPEG that contain metadata. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

/// Returns the size of the segments in bytes.
size_t ccodecs_jpeg_metadata_bytes(const ccodecs_metadata *metadata);

/// Appends the segments, which follow the JFIF segment. Returns false if the budget is exhausted.
bool ccodecs_jpeg_append_metadata(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget);
