// The reconstruction of the JPEG that a JPEG XL was recompressed from. Private to the JPEG XL codec.

#pragma once

#include "../core/rewriter.h"
#include "jxl_jpeg.h"

/// The parts of a JPEG XL that a JPEG is reconstructed from.
typedef struct jxl_source {
  const uint8_t *box; ///< The contents of the box with the JPEG's other bytes; borrowed.
  size_t box_bytes;
  uint64_t decompression_bytes; ///< What decompressing a box with metadata allocates at most.
  jxl_jpeg jpeg;
  uint64_t pixel_count;
  uint64_t sample_count; ///< Of all components, in whole blocks.
} jxl_source;

/// Creates the transform, to which the whole file is pushed. `interrupt` is borrowed. Returns CCODECS_OK or
/// CCODECS_NO_MEMORY.
ccodecs_status ccodecs_jxl_reconstruct_create(
    const jxl_source *source, const ccodecs_rewrite_options *options, const ccodecs_limits *limits,
    ccodecs_interrupt *interrupt, ccodecs_budget *budget, ccodecs_transform **transform);

/// Returns an upper bound of the bytes that the transform charges.
uint64_t ccodecs_jxl_reconstruct_estimate(const jxl_source *source, const ccodecs_rewrite_options *options);
