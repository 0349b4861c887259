// The color space of a JPEG XL. Private to CCodecs.

#pragma once

#include "../core/decoder.h"

#ifdef CCODECS_JXL

#include <jxl/decode.h>

/// Returns whether the image's color space is named, and returns it in *encoding. Otherwise requests sRGB where libjxl
/// would return linear light.
bool ccodecs_jxl_request_colors(
    JxlDecoder *library, const JxlPixelFormat *format, bool has_own_colors, JxlColorEncoding *encoding);

/// Keeps the profile of the output; sRGB needs none. libjxl's profiles of PQ and HLG assume no display, so that nearly
/// everything would be black. Call it when libjxl knows the colors. `has_own_colors` is true if they are stored in
/// the space of the image's profile; otherwise libjxl converts them. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_jxl_settle_colors(
    ccodecs_decoder *base, JxlDecoder *library, const JxlPixelFormat *format, bool has_own_colors);

#endif
