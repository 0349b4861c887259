// Creation and classification of color profiles. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

/// The effect of a profile on an image.
typedef enum ccodecs_profile_kind {
  CCODECS_PROFILE_SRGB = 0,     ///< No conversion is needed.
  CCODECS_PROFILE_OTHER = 1,    ///< The colors need a conversion.
  CCODECS_PROFILE_UNUSABLE = 2, ///< Malformed, or for a color space other than the image's.
  CCODECS_PROFILE_P3 = 3,       ///< Display P3.
} ccodecs_profile_kind;

/// Returns whether a profile has an accepted size, and says so itself.
bool ccodecs_profile_has_size(const ccodecs_bytes *profile);

/// Classifies `profile` for an image of `color_space`. Returns false if the budget is exhausted.
///
/// A profile is recognized as sRGB or Display P3 by its primaries and curves, not by its name.
bool ccodecs_profile_classify(
    const ccodecs_bytes *profile, ccodecs_color_space color_space, ccodecs_budget *budget, ccodecs_profile_kind *kind);

/// Creates a profile from a PNG's cHRM (x and y of white, red, green and blue, times 100000; gray has no use for them)
/// and gAMA (times 100000 and from 10000 to 500000; 0 for the sRGB curve). Leaves `profile` empty if the values do not
/// define a color space. Returns false if the budget is exhausted.
bool ccodecs_profile_from_primaries(
    const uint32_t chromaticities[8], uint32_t gamma, ccodecs_color_space color_space, ccodecs_bytes *profile,
    ccodecs_budget *budget);

/// Returns whether code points are those of PQ or HLG.
bool ccodecs_color_codes_are_hdr(ccodecs_color_codes codes);

/// The code point for a value that is not specified; sRGB's is then assumed.
enum { CCODECS_CODE_UNSPECIFIED = 2 };

/// Creates a profile from code points. PQ and HLG include a tone curve, so that the profile describes the colors as an
/// SDR display shows them. Leaves `profile` empty for sRGB, and for code points that are not supported; only in the
/// latter case *is_supported is false. Returns false if the budget is exhausted.
bool ccodecs_profile_from_codes(
    ccodecs_color_codes codes, ccodecs_color_space color_space, ccodecs_bytes *profile, ccodecs_budget *budget,
    bool *is_supported);

/// Inflates a profile from `count` bytes of zlib data. Leaves `profile` empty if the data is invalid or the profile is
/// too large. Returns false if the budget is exhausted.
bool ccodecs_profile_inflate(const uint8_t *bytes, size_t count, ccodecs_bytes *profile, ccodecs_budget *budget);

/// The input and output of a conversion.
typedef struct ccodecs_conversion_options {
  ccodecs_pixels source;
  ccodecs_color_target target;
  bool keeps_depth; ///< Samples of 16 bits stay such.
} ccodecs_conversion_options;

/// Creates a conversion. Returns NULL if the profile is unusable, or if the budget is exhausted; only in the latter
/// case *has_room is false. Changes the profile's bytes.
ccodecs_conversion *ccodecs_conversion_create(
    ccodecs_bytes *profile, ccodecs_conversion_options options, ccodecs_budget *budget, bool *has_room);

/// Returns whether the profile's red curve is linear.
bool ccodecs_profile_is_linear(const uint8_t *bytes, size_t count);
