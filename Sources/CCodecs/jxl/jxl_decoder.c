// JPEG XL through libjxl: the first frame, decoded as its bytes arrive and held whole.
//
// What libjxl holds is charged by the picture's size before decoding begins, with the rows that it gives: its
// memory manager is asked for small blocks only, not for samples.

#include "../color/profile.h"
#include "../core/decoder.h"
#include "../memory/bytes.h"
#include "jxl_format.h"

#ifdef CCODECS_JXL

#include <jxl/decode.h>
#include <jxl/version.h>

/// libjxl's tables, and the state of one thread's groups.
static const size_t library_bytes = (size_t)8 << 20;
/// Bytes that libjxl holds for a sample of a pixel. Measured: 0.5 for lossless pictures, 1.1 for lossy ones,
/// progressive or not, 6.9 for lossy modular ones, whose whole is transformed.
static const size_t library_bytes_per_sample = 8;
/// Compressed bytes that libjxl may leave until more follow.
static const size_t waiting_bytes = 256 * 1024;
static const uint32_t strip_row_count = 64;

typedef struct jxl_decoder {
  ccodecs_decoder base;
  ccodecs_bytes file; ///< Given and not consumed yet.
  JxlDecoder *library;
  JxlPixelFormat format;
  uint32_t samples; ///< Of a pixel, extra channels included.
  bool is_described;
  bool has_own_colors; ///< They are stored as the picture's profile has them; else libjxl converts them.
  size_t row_bytes;
  size_t charged;
  uint8_t *bitmap;
  bool is_decoded;
  uint32_t given;
} jxl_decoder;

static ccodecs_status corrupt(jxl_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the JPEG XL codestream is corrupt");
}

static ccodecs_status charge(jxl_decoder *d, uint64_t byte_count) {
  if (byte_count > SIZE_MAX || !ccodecs_budget_charge(d->base.budget, (size_t)byte_count)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_NO_MEMORY, "decoding needs %llu bytes of memory", (unsigned long long)byte_count);
  }
  d->charged += (size_t)byte_count;
  return CCODECS_OK;
}

// MARK: Header

static ccodecs_status describe(jxl_decoder *d) {
  JxlBasicInfo info;
  if (JxlDecoderGetBasicInfo(d->library, &info) != JXL_DEC_SUCCESS) {
    return corrupt(d);
  }
  ccodecs_header *header = &d->base.header;
  header->width = info.xsize;
  header->height = info.ysize;
  header->orientation = info.orientation >= 1 && info.orientation <= 8 ? (uint8_t)info.orientation : 1;
  header->bit_depth = info.bits_per_sample <= 32 ? (uint8_t)info.bits_per_sample : 8;
  header->is_deep = info.bits_per_sample > 8;
  header->has_alpha = info.alpha_bits > 0;
  header->holds_bitmap = true;
  const bool is_gray = info.num_color_channels == 1 && !header->has_alpha;
  header->color_space = is_gray ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  header->warnings |= info.have_animation ? CCODECS_WARNING_FIRST_FRAME : 0;
  header->frame_count = info.have_animation ? 0 : 1;
  d->has_own_colors = info.uses_original_profile;
  d->is_described = true;
  d->samples = info.num_color_channels + info.num_extra_channels;
  d->format = (JxlPixelFormat){
      .num_channels = header->has_alpha ? 4
                      : is_gray         ? 1
                                        : 3,
      .data_type = header->is_deep ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
      .endianness = JXL_NATIVE_ENDIAN,
  };
  d->row_bytes = (size_t)header->width * d->format.num_channels * (header->is_deep ? 2 : 1);
  return CCODECS_OK;
}

#if JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
#define PROFILE_OF(decoder) (decoder)->library
#else
#define PROFILE_OF(decoder) (decoder)->library, &(decoder)->format
#endif

/// Asks for sRGB where libjxl would give linear light, and keeps the profile of what it gives. PQ and HLG are taken for
/// sRGB's curve, as libvips has it: by their profiles, which know no display, nearly all would be black.
static ccodecs_status settle_colors(jxl_decoder *d) {
  JxlColorEncoding encoding;
  const bool is_named = JxlDecoderGetColorAsEncodedProfile(
                            PROFILE_OF(d), JXL_COLOR_PROFILE_TARGET_ORIGINAL, &encoding) == JXL_DEC_SUCCESS;
  if (is_named && (encoding.transfer_function == JXL_TRANSFER_FUNCTION_PQ ||
                   encoding.transfer_function == JXL_TRANSFER_FUNCTION_HLG)) {
    return CCODECS_OK;
  }
  if (!d->has_own_colors && !is_named) {
    const JxlColorEncoding srgb = {
        .color_space = d->format.num_channels == 1 ? JXL_COLOR_SPACE_GRAY : JXL_COLOR_SPACE_RGB,
        .white_point = JXL_WHITE_POINT_D65,
        .primaries = JXL_PRIMARIES_SRGB,
        .transfer_function = JXL_TRANSFER_FUNCTION_SRGB,
        .rendering_intent = JXL_RENDERING_INTENT_RELATIVE,
    };
    JxlDecoderSetPreferredColorProfile(d->library, &srgb); // what becomes of it, the profile tells
  }
  size_t count = 0;
  if (JxlDecoderGetICCProfileSize(PROFILE_OF(d), JXL_COLOR_PROFILE_TARGET_DATA, &count) != JXL_DEC_SUCCESS ||
      count == 0 || count > CCODECS_PROFILE_BYTES_MOST) {
    d->base.header.warnings |= CCODECS_WARNING_BAD_PROFILE;
    return CCODECS_OK;
  }
  uint8_t *profile = ccodecs_allocate(d->base.budget, count);
  if (profile == NULL) {
    return CCODECS_NO_MEMORY;
  }
  const bool is_read =
      JxlDecoderGetColorAsICCProfile(PROFILE_OF(d), JXL_COLOR_PROFILE_TARGET_DATA, profile, count) == JXL_DEC_SUCCESS;
  const ccodecs_status status = is_read ? ccodecs_decoder_keep_profile(&d->base, profile, count) : CCODECS_OK;
  ccodecs_free(d->base.budget, profile);
  return status;
}

/// Gives libjxl what arrived; what it leaves is kept. The answer is JXL_DEC_NEED_MORE_INPUT when there is no more.
static ccodecs_status process(jxl_decoder *d, ccodecs_input *input, JxlDecoderStatus *answer) {
  if (!ccodecs_bytes_append(&d->file, input->bytes, input->count, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "the budget has no room to hold the JPEG XL data");
  }
  ccodecs_input_advance(input, input->count);
  // Without bytes there is no block: libjxl wants an address all the same.
  const uint8_t nothing = 0;
  const uint8_t *bytes = d->file.count > 0 ? ccodecs_bytes_start(&d->file) : &nothing;
  if (JxlDecoderSetInput(d->library, bytes, d->file.count) != JXL_DEC_SUCCESS) {
    return corrupt(d);
  }
  *answer = JxlDecoderProcessInput(d->library);
  const size_t left = JxlDecoderReleaseInput(d->library);
  ccodecs_bytes_take(&d->file, d->file.count - left);
  if (*answer == JXL_DEC_NEED_MORE_INPUT && input->is_last) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the JPEG XL data ends before the picture does");
  }
  return *answer == JXL_DEC_ERROR ? corrupt(d) : CCODECS_OK;
}

static ccodecs_status begin(jxl_decoder *d) {
  const ccodecs_status status = charge(d, library_bytes);
  if (status != CCODECS_OK) {
    return status;
  }
  d->library = JxlDecoderCreate(NULL);
  return d->library != NULL && JxlDecoderSetKeepOrientation(d->library, JXL_TRUE) == JXL_DEC_SUCCESS &&
                 JxlDecoderSetUnpremultiplyAlpha(d->library, JXL_TRUE) == JXL_DEC_SUCCESS &&
                 JxlDecoderSubscribeEvents(
                     d->library, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE) == JXL_DEC_SUCCESS
             ? CCODECS_OK
             : CCODECS_NO_MEMORY;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  jxl_decoder *d = (jxl_decoder *)base;
  ccodecs_status status = d->library == NULL ? begin(d) : CCODECS_OK;
  while (status == CCODECS_OK) {
    JxlDecoderStatus answer = JXL_DEC_NEED_MORE_INPUT;
    status = process(d, input, &answer);
    if (status != CCODECS_OK) {
      return status;
    }
    switch (answer) {
    case JXL_DEC_NEED_MORE_INPUT:
      return CCODECS_NEEDS_INPUT;
    case JXL_DEC_BASIC_INFO:
      status = describe(d);
      break;
    case JXL_DEC_COLOR_ENCODING:
      return d->is_described ? settle_colors(d) : corrupt(d);
    default:
      return corrupt(d);
    }
  }
  return status;
}

static uint64_t decoding_bytes(const jxl_decoder *d) {
  const uint64_t pixels = (uint64_t)d->base.header.width * d->base.header.height;
  return pixels * d->samples * library_bytes_per_sample;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const jxl_decoder *d = (const jxl_decoder *)base;
  *byte_count = decoding_bytes(d) + (uint64_t)d->row_bytes * base->header.height + waiting_bytes;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  jxl_decoder *d = (jxl_decoder *)base;
  const uint32_t channels = d->format.num_channels;
  ccodecs_decoder_describe_packed(base, channels, layout);
  const ccodecs_status status = charge(d, decoding_bytes(d));
  if (status != CCODECS_OK) {
    return status;
  }
  d->bitmap = ccodecs_allocate(base->budget, d->row_bytes * base->header.height);
  return d->bitmap == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Rows

/// Decodes the frame into `bitmap`.
static ccodecs_status decode(jxl_decoder *d, ccodecs_input *input) {
  while (!d->is_decoded) {
    JxlDecoderStatus answer;
    const ccodecs_status status = process(d, input, &answer);
    if (status != CCODECS_OK) {
      return status;
    }
    size_t needed;
    switch (answer) {
    case JXL_DEC_NEED_MORE_INPUT:
      return CCODECS_NEEDS_INPUT;
    case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
      if (JxlDecoderImageOutBufferSize(d->library, &d->format, &needed) != JXL_DEC_SUCCESS ||
          needed != d->row_bytes * d->base.header.height ||
          JxlDecoderSetImageOutBuffer(d->library, &d->format, d->bitmap, needed) != JXL_DEC_SUCCESS) {
        return corrupt(d);
      }
      break;
    case JXL_DEC_FULL_IMAGE:
      d->is_decoded = true;
      break;
    default: // the end without a frame
      return corrupt(d);
    }
  }
  JxlDecoderDestroy(d->library);
  d->library = NULL;
  ccodecs_bytes_free(&d->file, d->base.budget);
  return CCODECS_OK;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  jxl_decoder *d = (jxl_decoder *)base;
  const ccodecs_status status = d->is_decoded ? CCODECS_OK : decode(d, input);
  if (status != CCODECS_OK) {
    return status;
  }
  const uint32_t left = base->header.height - d->given;
  const uint32_t count = left < strip_row_count ? left : strip_row_count;
  rows->planes[0] = d->bitmap + d->given * d->row_bytes;
  rows->row_strides[0] = d->row_bytes;
  rows->row_counts[0] = count;
  d->given += count;
  return count > 0 ? CCODECS_ROWS_READY : CCODECS_DONE;
}

static void destroy(ccodecs_decoder *base) {
  jxl_decoder *d = (jxl_decoder *)base;
  ccodecs_budget *budget = base->budget;
  if (d->library != NULL) {
    JxlDecoderDestroy(d->library);
  }
  ccodecs_budget_refund(budget, d->charged);
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_free(budget, d->bitmap);
  ccodecs_free(budget, d);
}

ccodecs_decoder *ccodecs_jxl_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  static const ccodecs_decoder_methods methods = {
      .read_header = read_header,
      .estimate = estimate,
      .start = start,
      .read_rows = read_rows,
      .destroy = destroy,
  };
  jxl_decoder *d = ccodecs_decoder_allocate(sizeof *d, &methods, CCODECS_FORMAT_JXL, limits, budget);
  if (d == NULL) {
    return NULL;
  }
  return &d->base;
}

#endif
