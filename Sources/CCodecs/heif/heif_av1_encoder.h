// Encodes AV1 with 10 bits per sample for libheif. Private to CCodecs.
//
// libheif 1.15 asks libaom for a profile that has no 4:2:0 nor 4:4:4, which ends the process.

#pragma once

#include <libheif/heif.h>

/// Returns the encoder for samples of 10 bits, which takes the parameters "chroma" ("420" or "444") and "speed" (0 to
/// 9); NULL if there is no memory, or if it was built without libaom.
struct heif_encoder *heif_av1_encoder_create(struct heif_context *context);
