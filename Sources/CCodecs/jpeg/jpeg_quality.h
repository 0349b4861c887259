// Estimation of the quality that a JPEG was compressed with (jpeg_quality.c). Private to CCodecs.

#pragma once

#include <stdint.h>

/// Returns the minimum quality at which libjpeg's tables are no coarser than tables with these sums.
///
/// `chroma_sum` is UINT32_MAX if there is no chroma table.
uint8_t ccodecs_jpeg_quality(uint32_t luma_sum, uint32_t chroma_sum);
