// Conversion of rows from a profile's colors to sRGB or Display P3, with relative colorimetric intent: the image's
// white maps to white.

#ifdef CCODECS_LCMS

#include "context.h"
#include "linear.h"
#include "profile.h"
#include "shaper.h"

#include <string.h>

bool ccodecs_converts_colors(void) {
  return true;
}

enum {
  PROFILE_SPACE = 16,
  PROFILE_TABLE = 128,
  PROFILE_ENTRY_BYTES = 12,
  LEVEL_COUNT = 256,
  DEEP_LEVEL_COUNT = 65536,
};

struct ccodecs_conversion {
  color_allowance allowance;
  ccodecs_pixels source;
  ccodecs_color_target target;
  bool keeps_depth;
  cmsContext context;
  cmsHTRANSFORM transform; ///< Used for rows only without levels; NULL with a shaper.
  color_shaper *shaper;    ///< For 16-bit RGB, if the profile consists of curves and a matrix.
  uint8_t *levels;         ///< For a gray profile: the level of the target for each 8-bit or 16-bit level.
  uint16_t *deep_levels;   ///< The same in 16 bits, instead of `levels`, if the depth is kept.
};

/// Returns the size in bytes of the largest A2B table; 0 for a profile that consists of curves, with or without a
/// matrix.
static size_t table_bytes(const uint8_t *profile, size_t count) {
  if (count < PROFILE_TABLE + 4) {
    return 0;
  }
  const size_t room = (count - PROFILE_TABLE - 4) / PROFILE_ENTRY_BYTES;
  const size_t claimed = ccodecs_be32(profile + PROFILE_TABLE);
  size_t largest = 0;
  for (size_t i = 0; i < (claimed < room ? claimed : room); i++) {
    const uint8_t *entry = profile + PROFILE_TABLE + 4 + i * PROFILE_ENTRY_BYTES;
    const size_t size = ccodecs_be32(entry + 8);
    if (memcmp(entry, "A2B", 3) == 0 && size > largest) {
      largest = size < count ? size : count;
    }
  }
  return largest;
}

/// Returns the maximum number of bytes that littlecms may allocate for a conversion. It depends on the kind of profile
/// and includes a margin over the measured minimum: gray 94 KB, a matrix with curves 319 KB and without them 150 KB,
/// RGB tables 332 KB, CMYK tables 610 KB, plus the profile and its table. Curves are stored as read, sampled and
/// copied; a table is read, widened, copied, and finally resampled into a grid.
static size_t allowance_bytes(const uint8_t *profile, size_t count) {
  const size_t table = table_bytes(profile, count);
  if (table == 0) {
    const bool is_gray = memcmp(profile + PROFILE_SPACE, "GRAY", 4) == 0;
    return (is_gray ? 128 << 10 : ccodecs_profile_is_linear(profile, count) ? 192 << 10 : 384 << 10) + 8 * count;
  }
  return (memcmp(profile + PROFILE_SPACE, "CMYK", 4) == 0 ? 704 << 10 : 448 << 10) + count + 8 * table;
}

size_t ccodecs_conversion_estimate(const uint8_t *profile, size_t profile_count) {
  return profile_count == 0 ? 0 : sizeof(ccodecs_conversion) + 128 + allowance_bytes(profile, profile_count);
}

size_t ccodecs_conversion_estimate_from_srgb(void) {
  uint8_t compact[CCODECS_COMPACT_PROFILE_BYTES];
  return ccodecs_conversion_estimate(compact, ccodecs_compact_profile(CCODECS_TARGET_SRGB, compact));
}

/// Hides the tags with multi-process elements (D2Bx, B2Dx) from littlecms. A profile may refer to the same element any
/// number of times, so a small profile could demand hours of work. Nothing is lost, because a profile with these tags
/// also has the common tables (ICC.1, 8.2).
static void hide_elements(ccodecs_bytes *profile) {
  uint8_t *bytes = ccodecs_bytes_start(profile);
  const size_t room = (profile->count - PROFILE_TABLE - 4) / PROFILE_ENTRY_BYTES;
  const size_t claimed = ccodecs_be32(bytes + PROFILE_TABLE);
  for (size_t i = 0; i < (claimed < room ? claimed : room); i++) {
    uint8_t *entry = bytes + PROFILE_TABLE + 4 + i * PROFILE_ENTRY_BYTES;
    if (memcmp(entry, "D2B", 3) == 0 || memcmp(entry, "B2D", 3) == 0) {
      entry[0] = 'd';
    }
  }
}

static bool is_16bit(const ccodecs_conversion *c) {
  return c->source >= CCODECS_PIXELS_GRAY16;
}

static bool has_alpha(const ccodecs_conversion *c) {
  return c->source == CCODECS_PIXELS_RGBA8 || c->source == CCODECS_PIXELS_RGBA16;
}

/// Creates the littlecms transform. For a gray profile, it converts gray to RGB and is only used to fill `levels`.
static cmsHTRANSFORM create_transform(ccodecs_conversion *c, cmsHPROFILE profile, cmsHPROFILE target) {
  const bool is_gray = cmsGetColorSpace(profile) == cmsSigGrayData;
  const bool keeps_alpha = !is_gray && has_alpha(c);
  cmsUInt32Number input;
  if (is_gray) {
    input = is_16bit(c) ? TYPE_GRAY_16 : TYPE_GRAY_8;
  } else if (c->source == CCODECS_PIXELS_CMYK8) {
    input = TYPE_CMYK_8_REV;
  } else if (keeps_alpha) {
    input = is_16bit(c) ? TYPE_RGBA_16 : TYPE_RGBA_8;
  } else {
    input = is_16bit(c) ? TYPE_RGB_16 : TYPE_RGB_8;
  }
  // Otherwise littlecms converts through a grid of its own, and gray by a table, which is off by up to 10 levels where
  // a curve is steep.
  const cmsUInt32Number exactly = is_gray || c->keeps_depth ? cmsFLAGS_NOOPTIMIZE : 0;
  const cmsUInt32Number output = c->keeps_depth ? (keeps_alpha ? TYPE_RGBA_16 : TYPE_RGB_16)
                                 : keeps_alpha  ? TYPE_RGBA_8
                                                : TYPE_RGB_8;
  return cmsCreateTransformTHR(
      c->context, profile, input, target, output, INTENT_RELATIVE_COLORIMETRIC,
      exactly | (keeps_alpha ? cmsFLAGS_COPY_ALPHA : 0));
}

/// Fills `levels`: as a gray profile maps gray to gray, a table suffices. Returns false if the budget is exhausted.
static bool fill_levels(ccodecs_conversion *c) {
  const uint32_t count = is_16bit(c) ? DEEP_LEVEL_COUNT : LEVEL_COUNT;
  uint16_t deep[LEVEL_COUNT];
  uint8_t gray[LEVEL_COUNT];
  uint8_t rgb[LEVEL_COUNT][3];
  c->levels = ccodecs_allocate(c->allowance.budget, count);
  if (c->levels == NULL) {
    c->allowance.is_exhausted = true;
    return false;
  }
  for (uint32_t first = 0; first < count; first += LEVEL_COUNT) {
    for (uint32_t i = 0; i < LEVEL_COUNT; i++) {
      deep[i] = (uint16_t)(first + i);
      gray[i] = (uint8_t)i;
    }
    cmsDoTransform(c->transform, is_16bit(c) ? (const void *)deep : gray, rgb, LEVEL_COUNT);
    for (uint32_t i = 0; i < LEVEL_COUNT; i++) {
      c->levels[first + i] = rgb[i][1];
    }
  }
  return true;
}

/// Fills `deep_levels` likewise.
static bool fill_deep_levels(ccodecs_conversion *c) {
  uint16_t gray[LEVEL_COUNT];
  uint16_t rgb[LEVEL_COUNT][3];
  c->deep_levels = ccodecs_allocate(c->allowance.budget, DEEP_LEVEL_COUNT * sizeof *c->deep_levels);
  if (c->deep_levels == NULL) {
    c->allowance.is_exhausted = true;
    return false;
  }
  for (uint32_t first = 0; first < DEEP_LEVEL_COUNT; first += LEVEL_COUNT) {
    for (uint32_t i = 0; i < LEVEL_COUNT; i++) {
      gray[i] = (uint16_t)(first + i);
    }
    cmsDoTransform(c->transform, gray, rgb, LEVEL_COUNT);
    for (uint32_t i = 0; i < LEVEL_COUNT; i++) {
      c->deep_levels[first + i] = rgb[i][1];
    }
  }
  return true;
}

static cmsHPROFILE open_target(const ccodecs_conversion *c) {
  if (c->target == CCODECS_TARGET_SRGB) {
    return cmsCreate_sRGBProfileTHR(c->context);
  }
  uint8_t compact[CCODECS_COMPACT_PROFILE_BYTES];
  const size_t count = ccodecs_compact_profile(c->target, compact);
  return cmsOpenProfileFromMemTHR(c->context, compact, (cmsUInt32Number)count);
}

/// Creates what converts between opened profiles. Returns false if there is none, or without memory.
static bool open_conversion(ccodecs_conversion *c, cmsHPROFILE profile, cmsHPROFILE target, bool has_table) {
  if (!has_table && (c->source == CCODECS_PIXELS_RGB16 || c->source == CCODECS_PIXELS_RGBA16)) {
    c->shaper = ccodecs_shaper_create(profile, target, &c->allowance);
    if (c->shaper != NULL || c->allowance.is_exhausted) {
      return c->shaper != NULL;
    }
  }
  c->transform = create_transform(c, profile, target);
  const bool is_gray = cmsGetColorSpace(profile) == cmsSigGrayData;
  return c->transform != NULL && (!is_gray || (c->keeps_depth ? fill_deep_levels(c) : fill_levels(c)));
}

static bool open_transform(ccodecs_conversion *c, ccodecs_bytes *profile) {
  c->context = ccodecs_color_context(&c->allowance);
  if (c->context == NULL) {
    return false;
  }
  hide_elements(profile);
  cmsHPROFILE opened =
      cmsOpenProfileFromMemTHR(c->context, ccodecs_bytes_start(profile), (cmsUInt32Number)profile->count);
  cmsHPROFILE target = open_target(c);
  const bool has_table = table_bytes(ccodecs_bytes_start(profile), profile->count) > 0;
  const bool is_ready = opened != NULL && target != NULL && open_conversion(c, opened, target, has_table);
  cmsCloseProfile(opened);
  cmsCloseProfile(target);
  return is_ready;
}

ccodecs_conversion *ccodecs_conversion_create(
    ccodecs_bytes *profile, ccodecs_conversion_options options, ccodecs_budget *budget, bool *has_room) {
  ccodecs_conversion *c = ccodecs_allocate(budget, sizeof *c);
  *has_room = c != NULL;
  if (c == NULL) {
    return NULL;
  }
  memset(c, 0, sizeof *c);
  c->source = options.source;
  c->target = options.target;
  c->keeps_depth = options.keeps_depth;
  c->allowance =
      (color_allowance){.budget = budget, .left = allowance_bytes(ccodecs_bytes_start(profile), profile->count)};
  if (open_transform(c, profile)) {
    return c;
  }
  *has_room = !c->allowance.is_exhausted;
  ccodecs_conversion_destroy(c);
  return NULL;
}

static void convert_levels(const ccodecs_conversion *c, const uint8_t *source, uint8_t *destination, size_t count) {
  const bool is_gray = c->source == CCODECS_PIXELS_GRAY8 || c->source == CCODECS_PIXELS_GRAY16;
  const size_t samples = count * (is_gray ? 1 : has_alpha(c) ? 4 : 3);
  const uint16_t *deep = (const uint16_t *)(const void *)source;
  for (size_t i = 0; i < samples; i++) {
    const uint32_t sample = is_16bit(c) ? deep[i] : source[i];
    const bool is_alpha = has_alpha(c) && (i & 3) == 3;
    destination[i] = !is_alpha ? c->levels[sample] : is_16bit(c) ? ccodecs_narrow(sample) : (uint8_t)sample;
  }
}

static void convert_deep_levels(
    const ccodecs_conversion *c, const uint16_t *source, uint16_t *destination, size_t count) {
  const size_t samples = count * (c->source == CCODECS_PIXELS_GRAY16 ? 1 : has_alpha(c) ? 4 : 3);
  for (size_t i = 0; i < samples; i++) {
    const bool is_alpha = has_alpha(c) && (i & 3) == 3;
    destination[i] = is_alpha ? source[i] : c->deep_levels[source[i]];
  }
}

void ccodecs_conversion_convert(
    const ccodecs_conversion *conversion, const uint8_t *source, uint8_t *destination, size_t pixel_count) {
  if (conversion->levels != NULL) {
    convert_levels(conversion, source, destination, pixel_count);
  } else if (conversion->deep_levels != NULL) {
    convert_deep_levels(
        conversion, (const uint16_t *)(const void *)source, (uint16_t *)(void *)destination, pixel_count);
  } else if (conversion->shaper != NULL) {
    ccodecs_shaper_convert(
        conversion->shaper, (const uint16_t *)(const void *)source, destination, pixel_count, has_alpha(conversion),
        conversion->keeps_depth);
  } else {
    cmsDoTransform(conversion->transform, source, destination, (cmsUInt32Number)pixel_count);
  }
}

void ccodecs_conversion_destroy(ccodecs_conversion *conversion) {
  if (conversion == NULL) {
    return;
  }
  if (conversion->transform != NULL) {
    cmsDeleteTransform(conversion->transform);
  }
  if (conversion->context != NULL) {
    ccodecs_color_close(conversion->context, &conversion->allowance);
  }
  ccodecs_free(conversion->allowance.budget, conversion->shaper);
  ccodecs_free(conversion->allowance.budget, conversion->levels);
  ccodecs_free(conversion->allowance.budget, conversion->deep_levels);
  ccodecs_free(conversion->allowance.budget, conversion);
}

// MARK: From sRGB

/// The number of pixels that are converted in one call of the library.
enum { CONVERTED_PIXELS = 1 << 16 };

/// Creates what converts from sRGB to the space of a profile; NULL if the profile does not define it.
static cmsHTRANSFORM transform_from_srgb(cmsContext context, cmsHPROFILE srgb, cmsHPROFILE profile) {
  if (srgb == NULL || profile == NULL) {
    return NULL;
  }
  const cmsColorSpaceSignature space = cmsGetColorSpace(profile);
  const cmsUInt32Number exactly = cmsFLAGS_NOOPTIMIZE | (space == cmsSigRgbData ? cmsFLAGS_COPY_ALPHA : 0);
  const cmsUInt32Number output = space == cmsSigRgbData    ? TYPE_RGBA_8
                                 : space == cmsSigGrayData ? TYPE_GRAY_8 | EXTRA_SH(3)
                                 : space == cmsSigCmykData ? TYPE_CMYK_8_REV
                                                           : 0;
  return output == 0 ? NULL
                     : cmsCreateTransformTHR(
                           context, srgb, TYPE_RGBA_8, profile, output, INTENT_RELATIVE_COLORIMETRIC, exactly);
}

/// Converts RGBA from sRGB to the space of a profile. Returns false if the profile does not define it.
static bool convert_from_srgb(cmsContext context, const ccodecs_bytes *profile, uint8_t *pixels, size_t pixel_count) {
  cmsHPROFILE opened = cmsOpenProfileFromMemTHR(context, ccodecs_bytes_start(profile), (cmsUInt32Number)profile->count);
  cmsHPROFILE srgb = cmsCreate_sRGBProfileTHR(context);
  cmsHTRANSFORM transform = transform_from_srgb(context, srgb, opened);
  const bool is_defined = transform != NULL;
  if (is_defined) {
    for (size_t i = 0; i < pixel_count; i += CONVERTED_PIXELS) {
      const size_t left = pixel_count - i;
      uint8_t *samples = pixels + 4 * i;
      cmsDoTransform(transform, samples, samples, (cmsUInt32Number)(left < CONVERTED_PIXELS ? left : CONVERTED_PIXELS));
    }
    if (cmsGetColorSpace(opened) == cmsSigGrayData) { // which is in the first of four samples
      for (size_t i = 0; i < pixel_count; i++) {
        memset(pixels + 4 * i + 1, pixels[4 * i], 2);
      }
    }
    cmsDeleteTransform(transform);
  }
  cmsCloseProfile(opened);
  cmsCloseProfile(srgb);
  return is_defined;
}

bool ccodecs_profile_convert(
    const uint8_t *icc, size_t icc_count, uint8_t *pixels, size_t pixel_count, ccodecs_budget *budget) {
  ccodecs_bytes copy = {0};
  color_allowance allowance = {.budget = budget, .left = ccodecs_color_allowance(icc_count)};
  if (icc_count < PROFILE_TABLE + 4 || !ccodecs_bytes_append(&copy, icc, icc_count, budget)) {
    return false;
  }
  hide_elements(&copy);
  cmsContext context = ccodecs_color_context(&allowance);
  const bool is_converted = context != NULL && convert_from_srgb(context, &copy, pixels, pixel_count);
  if (context != NULL) {
    ccodecs_color_close(context, &allowance);
  }
  ccodecs_bytes_free(&copy, budget);
  return is_converted;
}

#endif
