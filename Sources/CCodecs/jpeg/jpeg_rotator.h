// Lossless JPEG transforms: rotation and mirroring (jpeg_rotator.c). Private to CCodecs.

#pragma once

#include "../core/rewriter.h"

/// The frame of a JPEG to be transformed.
typedef struct ccodecs_jpeg_frame {
  uint32_t width;
  uint32_t height;
  uint32_t component_count;
  uint8_t horizontal[3]; ///< Sampling factors.
  uint8_t vertical[3];
} ccodecs_jpeg_frame;

/// Returns whether the transform maps whole blocks to whole blocks.
bool ccodecs_jpeg_transform_is_perfect(const ccodecs_jpeg_frame *frame, uint8_t orientation);

/// Returns an upper bound of the bytes that a transform charges.
uint64_t ccodecs_jpeg_transform_estimate(const ccodecs_jpeg_frame *frame, const ccodecs_rewrite_options *options);

/// Charges the budget and prepares the transform of a JPEG without metadata. Returns CCODECS_OK or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_jpeg_transform_create(
    const ccodecs_jpeg_frame *frame, const ccodecs_rewrite_options *options, ccodecs_budget *budget,
    ccodecs_transform **transform);
