// What needs no color management: the sizes of profiles, their compression, linear ones, and the code points of HDR.
//
// Sources: ICC.1:2022 (profile format); ITU-T H.273, table 3 (code points).

#include "profile.h"

#include "../core/inflater.h"

enum {
  PROFILE_HEADER_BYTES = 128,
  PROFILE_MIN_BYTES = PROFILE_HEADER_BYTES + 4,
  DEFLATE_EXPANSION = 1032, ///< Maximum expansion ratio of deflate.
};

/// Returns the size in the profile's header, or 0 if it is outside the accepted range.
static size_t claimed_bytes(const uint8_t *header) {
  const size_t count = ccodecs_be32(header);
  return count < PROFILE_MIN_BYTES || count > CCODECS_MAX_PROFILE_BYTES ? 0 : count;
}

bool ccodecs_profile_has_size(const ccodecs_bytes *profile) {
  return profile->count >= PROFILE_MIN_BYTES && profile->count <= CCODECS_MAX_PROFILE_BYTES &&
         claimed_bytes(ccodecs_bytes_start(profile)) != 0;
}

/// Inflates exactly `count` bytes to `to`. Returns false if there are fewer.
static bool inflate_all(ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count) {
  size_t produced;
  return ccodecs_inflater_run(inflater, input, to, count, &produced) && produced == count;
}

bool ccodecs_profile_inflate(const uint8_t *bytes, size_t count, ccodecs_bytes *profile, ccodecs_budget *budget) {
  ccodecs_inflater *inflater = ccodecs_inflater_create(budget, false);
  if (inflater == NULL) {
    return false;
  }
  ccodecs_input input = {.bytes = bytes, .count = count, .is_last = true};
  uint8_t header[PROFILE_HEADER_BYTES];
  bool has_room = true;
  const size_t claimed = inflate_all(inflater, &input, header, sizeof header) ? claimed_bytes(header) : 0;
  if (claimed != 0 && claimed / DEFLATE_EXPANSION <= count) {
    has_room = ccodecs_bytes_append(profile, header, sizeof header, budget) &&
               ccodecs_bytes_reserve(profile, claimed - sizeof header, budget);
    uint8_t *rest = has_room ? ccodecs_bytes_start(profile) + sizeof header : NULL;
    profile->count = has_room && inflate_all(inflater, &input, rest, claimed - sizeof header) ? claimed : 0;
  }
  ccodecs_inflater_destroy(inflater, budget);
  return has_room;
}

bool ccodecs_profile_is_linear(const uint8_t *bytes, size_t count) {
  enum { TAGS = 132, TAG_BYTES = 12, MAX_TAGS = 100 };
  const uint32_t tags = count >= TAGS ? ccodecs_be32(bytes + TAGS - 4) : 0;
  for (uint32_t i = 0; i < tags && i < MAX_TAGS && TAGS + (i + 1) * TAG_BYTES <= count; i++) {
    const uint8_t *tag = bytes + TAGS + i * TAG_BYTES;
    const uint32_t offset = ccodecs_be32(tag + 4);
    if (memcmp(tag, "rTRC", 4) != 0 || offset > count || count - offset < 16) {
      continue;
    }
    const uint8_t *curve = bytes + offset;
    if (memcmp(curve, "curv", 4) == 0) { // no entries (linear), or one: a gamma in 8.8 fixed point
      const uint32_t entries = ccodecs_be32(curve + 8);
      return entries == 0 || (entries == 1 && ccodecs_be16(curve + 12) == 0x0100);
    }
    return memcmp(curve, "para", 4) == 0 && ccodecs_be16(curve + 8) == 0 && ccodecs_be32(curve + 12) == 0x00010000;
  }
  return false;
}

bool ccodecs_color_codes_are_hdr(ccodecs_color_codes codes) {
  enum { TRANSFER_PQ = 16, TRANSFER_HLG = 18 };
  return codes.transfer == TRANSFER_PQ || codes.transfer == TRANSFER_HLG;
}
