// Colour profiles: how they are gathered, and what they are found to be. Private to CCodecs.

#ifndef CCODECS_PROFILE_H
#define CCODECS_PROFILE_H

#include "../memory/bytes.h"

/// The largest profile that is read. The largest in use, of seven inks, have about 3 MiB.
#define CCODECS_MAX_PROFILE_BYTES (4u << 20)

/// What a profile is to an image.
typedef enum ccodecs_profile_kind {
  CCODECS_PROFILE_SRGB = 0,     ///< There is nothing to convert.
  CCODECS_PROFILE_OTHER = 1,    ///< Its colours are to be converted.
  CCODECS_PROFILE_UNUSABLE = 2, ///< Broken, or of another colour space than the image.
} ccodecs_profile_kind;

/// What `profile` is to an image of `color_space`. False when the budget has no room to find out.
///
/// Whether it is sRGB is told by its primaries and its curves, not by its name.
bool ccodecs_profile_classify(
    const ccodecs_bytes *profile, ccodecs_color_space color_space, ccodecs_budget *budget, ccodecs_profile_kind *kind);

/// A PNG's cHRM (white, red, green, blue: x and y, times 100000), and its gAMA (times 100000, 0 for sRGB's curve), as a
/// profile. Leaves `profile` empty when the numbers are no colour space. False when the budget has no room.
bool ccodecs_profile_from_primaries(
    const uint32_t chromaticities[8], uint32_t gamma, ccodecs_bytes *profile, ccodecs_budget *budget);

/// Inflates `count` bytes of zlib data that hold a profile. Leaves `profile` empty when they do not, or when it is too
/// large. False when the budget has no room.
bool ccodecs_profile_inflate(const uint8_t *bytes, size_t count, ccodecs_bytes *profile, ccodecs_budget *budget);

/// A conversion to sRGB; NULL when the profile turns out to be of no use, or, then *has_room is false, when the budget
/// has no room. Changes the profile's bytes.
ccodecs_conversion *ccodecs_conversion_create(
    ccodecs_bytes *profile, ccodecs_pixels source, ccodecs_budget *budget, bool *has_room);

/// Whether a profile's red curve is that of linear light.
bool ccodecs_profile_is_linear(const uint8_t *bytes, size_t count);

#endif
