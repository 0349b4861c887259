#include "jxl_colors.h"

#ifdef CCODECS_JXL

#include <jxl/version.h>

#if JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
#define PROFILE_OF(library, format) library
#else
#define PROFILE_OF(library, format) library, format
#endif

/// Returns the code points of a named color space, whose enumerations in libjxl are those of ITU-T H.273. P3 has two
/// code points, which differ in their white. Gray has no primaries.
static ccodecs_color_codes codes_of(const JxlColorEncoding *encoding) {
  const bool is_gray = encoding->color_space == JXL_COLOR_SPACE_GRAY;
  const bool is_display_p3 = encoding->primaries == JXL_PRIMARIES_P3 && encoding->white_point == JXL_WHITE_POINT_D65;
  return (ccodecs_color_codes){
      .primaries = (uint16_t)(is_gray         ? JXL_PRIMARIES_SRGB
                              : is_display_p3 ? JXL_PRIMARIES_P3 + 1
                                              : encoding->primaries),
      .transfer = (uint16_t)encoding->transfer_function,
  };
}

bool ccodecs_jxl_request_colors(
    JxlDecoder *library, const JxlPixelFormat *format, bool has_own_colors, JxlColorEncoding *encoding) {
  const bool is_named =
      JxlDecoderGetColorAsEncodedProfile(PROFILE_OF(library, format), JXL_COLOR_PROFILE_TARGET_ORIGINAL, encoding) ==
      JXL_DEC_SUCCESS;
  if (!has_own_colors && !is_named) {
    const JxlColorEncoding srgb = {
        .color_space = format->num_channels == 1 ? JXL_COLOR_SPACE_GRAY : JXL_COLOR_SPACE_RGB,
        .white_point = JXL_WHITE_POINT_D65,
        .primaries = JXL_PRIMARIES_SRGB,
        .transfer_function = JXL_TRANSFER_FUNCTION_SRGB,
        .rendering_intent = JXL_RENDERING_INTENT_RELATIVE,
    };
    JxlDecoderSetPreferredColorProfile(library, &srgb); // the output's profile shows whether libjxl honors it
  }
  return is_named;
}

static bool is_srgb_gray(const JxlColorEncoding *encoding) {
  return encoding->color_space == JXL_COLOR_SPACE_GRAY && encoding->white_point == JXL_WHITE_POINT_D65 &&
         encoding->transfer_function == JXL_TRANSFER_FUNCTION_SRGB;
}

ccodecs_status ccodecs_jxl_settle_colors(
    ccodecs_decoder *base, JxlDecoder *library, const JxlPixelFormat *format, bool has_own_colors) {
  JxlColorEncoding encoding = {0}; // libjxl sets the members that the color space has
  const bool is_named = ccodecs_jxl_request_colors(library, format, has_own_colors, &encoding);
  if (is_named && (encoding.transfer_function == JXL_TRANSFER_FUNCTION_PQ ||
                   encoding.transfer_function == JXL_TRANSFER_FUNCTION_HLG)) {
    return ccodecs_decoder_use_color_codes(base, codes_of(&encoding));
  }
  if (is_named && is_srgb_gray(&encoding)) {
    return CCODECS_OK;
  }
  size_t count = 0;
  if (JxlDecoderGetICCProfileSize(PROFILE_OF(library, format), JXL_COLOR_PROFILE_TARGET_DATA, &count) !=
          JXL_DEC_SUCCESS ||
      count == 0 || count > CCODECS_MAX_PROFILE_BYTES) {
    base->header.warnings |= CCODECS_WARNING_BAD_PROFILE;
    return CCODECS_OK;
  }
  uint8_t *profile = ccodecs_allocate(base->budget, count);
  if (profile == NULL) {
    return CCODECS_NO_MEMORY;
  }
  const bool is_read =
      JxlDecoderGetColorAsICCProfile(PROFILE_OF(library, format), JXL_COLOR_PROFILE_TARGET_DATA, profile, count) ==
      JXL_DEC_SUCCESS;
  const ccodecs_status status = is_read ? ccodecs_decoder_keep_profile(base, profile, count) : CCODECS_OK;
  ccodecs_free(base->budget, profile);
  return status;
}

#endif
