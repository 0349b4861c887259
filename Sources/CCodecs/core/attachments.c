// What a decoder keeps of an image in addition to its rows: the color profile, metadata and the gain map.

#include "decoder.h"

/// The maximum size of EXIF, XMP and IPTC in bytes.
enum { MAX_BLOCK_BYTES = 65536 };

ccodecs_status ccodecs_decoder_keep_profile(ccodecs_decoder *decoder, const uint8_t *profile, size_t count) {
  if (count > CCODECS_MAX_PROFILE_BYTES) {
    decoder->header.warnings |= CCODECS_WARNING_BAD_PROFILE;
    return CCODECS_OK;
  }
  return ccodecs_bytes_append(&decoder->profile, profile, count, decoder->budget)
             ? CCODECS_OK
             : ccodecs_decoder_fail(decoder, CCODECS_NO_MEMORY, "no room for the color profile");
}

bool ccodecs_decoder_keep_block(ccodecs_decoder *decoder, ccodecs_bytes *kept, const uint8_t *bytes, size_t count) {
  const bool is_wanted = decoder->limits.keeps_metadata && decoder->state < CCODECS_STATE_ROWS && kept->count == 0;
  return !is_wanted || count > MAX_BLOCK_BYTES || ccodecs_bytes_append(kept, bytes, count, decoder->budget);
}

void ccodecs_decoder_metadata(const ccodecs_decoder *decoder, ccodecs_metadata *metadata) {
  *metadata = (ccodecs_metadata){
      .exif = decoder->exif.count == 0 ? NULL : ccodecs_bytes_start(&decoder->exif),
      .exif_count = decoder->exif.count,
      .xmp = decoder->xmp.count == 0 ? NULL : ccodecs_bytes_start(&decoder->xmp),
      .xmp_count = decoder->xmp.count,
      .iptc = decoder->iptc.count == 0 ? NULL : ccodecs_bytes_start(&decoder->iptc),
      .iptc_count = decoder->iptc.count,
  };
}

void ccodecs_decoder_gain_map(const ccodecs_decoder *decoder, ccodecs_gain_map *map) {
  *map = decoder->gain_map;
  map->file_count = decoder->gain_map_file.count;
  map->file = map->file_count == 0 ? NULL : ccodecs_bytes_start(&decoder->gain_map_file);
  map->description_count = decoder->gain_map_description.count;
  map->description = map->description_count == 0 ? NULL : ccodecs_bytes_start(&decoder->gain_map_description);
}

void ccodecs_decoder_free_metadata(ccodecs_decoder *decoder) {
  ccodecs_bytes_free(&decoder->gain_map_file, decoder->budget);
  ccodecs_bytes_free(&decoder->gain_map_description, decoder->budget);
  ccodecs_bytes_free(&decoder->exif, decoder->budget);
  ccodecs_bytes_free(&decoder->xmp, decoder->budget);
  ccodecs_bytes_free(&decoder->iptc, decoder->budget);
}

ccodecs_status ccodecs_decoder_use_color_codes(ccodecs_decoder *decoder, ccodecs_color_codes codes) {
  bool is_supported;
  ccodecs_bytes profile = {0};
  if (!ccodecs_profile_from_codes(codes, decoder->header.color_space, &profile, decoder->budget, &is_supported)) {
    return ccodecs_decoder_fail(decoder, CCODECS_NO_MEMORY, "no room for the color profile");
  }
  if (is_supported) {
    ccodecs_bytes_free(&decoder->profile, decoder->budget);
    decoder->profile = profile;
    decoder->is_hdr = ccodecs_color_codes_are_hdr(codes);
    decoder->header.color_codes = decoder->is_hdr ? codes : (ccodecs_color_codes){0};
  }
  decoder->header.warnings |= decoder->profile.count == 0 && !is_supported ? CCODECS_WARNING_BAD_PROFILE : 0u;
  return CCODECS_OK;
}

static ccodecs_gamut gamut_of(const ccodecs_decoder *decoder, ccodecs_profile_kind kind) {
  switch (kind) {
  case CCODECS_PROFILE_SRGB:
    return decoder->profile.count > 0 ? CCODECS_GAMUT_TAGGED_SRGB : CCODECS_GAMUT_SRGB;
  case CCODECS_PROFILE_OTHER:
    return decoder->is_hdr ? CCODECS_GAMUT_HDR : CCODECS_GAMUT_OTHER;
  case CCODECS_PROFILE_UNUSABLE:
    return CCODECS_GAMUT_SRGB;
  case CCODECS_PROFILE_P3:
    return CCODECS_GAMUT_DISPLAY_P3;
  }
  return CCODECS_GAMUT_SRGB;
}

ccodecs_status ccodecs_decoder_settle_profile(ccodecs_decoder *decoder) {
  ccodecs_profile_kind kind = CCODECS_PROFILE_SRGB;
  if (decoder->profile.count > 0 &&
      !ccodecs_profile_classify(&decoder->profile, decoder->header.color_space, decoder->budget, &kind)) {
    return ccodecs_decoder_fail(decoder, CCODECS_NO_MEMORY, "no room for the color profile");
  }
  decoder->header.gamut = gamut_of(decoder, kind);
  decoder->header.has_profile = kind == CCODECS_PROFILE_OTHER || kind == CCODECS_PROFILE_P3;
  decoder->header.warnings |= kind == CCODECS_PROFILE_UNUSABLE ? CCODECS_WARNING_BAD_PROFILE : 0u;
  if (!decoder->header.has_profile) {
    ccodecs_bytes_free(&decoder->profile, decoder->budget);
  }
  return CCODECS_OK;
}

void ccodecs_decoder_profile(const ccodecs_decoder *decoder, const uint8_t **bytes, size_t *count) {
  *bytes = decoder->profile.count == 0 ? NULL : ccodecs_bytes_start(&decoder->profile);
  *count = decoder->profile.count;
}

/// Creates a conversion from sRGB.
static ccodecs_conversion *create_from_srgb(
    ccodecs_decoder *decoder, ccodecs_conversion_options options, bool *has_room) {
  uint8_t compact[CCODECS_COMPACT_PROFILE_BYTES];
  const size_t count = ccodecs_compact_profile(CCODECS_TARGET_SRGB, compact);
  ccodecs_bytes profile = {.block = compact, .count = count, .capacity = sizeof compact};
  return ccodecs_conversion_create(&profile, options, decoder->budget, has_room);
}

ccodecs_status ccodecs_decoder_create_conversion(
    ccodecs_decoder *decoder, ccodecs_pixels source, ccodecs_color_target target, bool keeps_depth,
    ccodecs_conversion **conversion) {
  *conversion = NULL;
  const bool has_profile = decoder->profile.count > 0;
  if (!has_profile && target == CCODECS_TARGET_SRGB) {
    return CCODECS_OK;
  }
  bool has_room = true;
  const ccodecs_conversion_options options = {source, target, keeps_depth};
  if (has_profile) {
    *conversion = ccodecs_conversion_create(&decoder->profile, options, decoder->budget, &has_room);
    decoder->header.warnings |= *conversion == NULL && has_room ? CCODECS_WARNING_BAD_PROFILE : 0u;
  }
  // Colors whose profile is unusable are treated as sRGB.
  if (*conversion == NULL && has_room && target != CCODECS_TARGET_SRGB && source != CCODECS_PIXELS_CMYK8) {
    *conversion = create_from_srgb(decoder, options, &has_room);
  }
  return has_room ? CCODECS_OK : ccodecs_decoder_fail(decoder, CCODECS_NO_MEMORY, "no room for the color conversion");
}
