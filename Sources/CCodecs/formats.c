// The format table: each row has a format's name, signatures, decoder, encoder and rewriter in this build. A format in
// ccodecs.h without a row is a compile error.

#include "formats.h"
#include "core/sniff.h"
#include "simple/row_decoder.h"

/// Leading bytes that identify a format; `count` is 0 for an unused entry.
typedef struct signature {
  uint8_t count;
  const char *bytes;
} signature;

/// A format's encoder, and the options that it accepts.
typedef struct encoder_row {
  const ccodecs_encoder_methods *methods; ///< NULL for none.
  uint32_t pixels;                        ///< Accepted ccodecs_pixels values, as bits.
  uint32_t max_side;                      ///< Maximum width and height in pixels.
  bool halves_columns;                    ///< Accepts CCODECS_SUBSAMPLING_422.
  bool has_frames;                        ///< Stores several frames.
} encoder_row;

/// Everything this module knows about a format.
typedef struct format_row {
  ccodecs_format format;
  const char *name;
  signature signatures[4];
  bool (*sniff)(const uint8_t *bytes, size_t count); ///< NULL if the signatures suffice.
  const ccodecs_decoder_methods *decoder;            ///< NULL for none.
  const ccodecs_rewriter_methods *rewriter;          ///< NULL for none.
  encoder_row encoder;
} format_row;

// MARK: Table

#define SIGNATURE(text)                                                                                                \
  { sizeof(text) - 1, text }
#define PIXELS(name) (1u << CCODECS_PIXELS_##name)

#ifdef CCODECS_TIFF
#define WHEN_TIFF(part) part
#else
#define WHEN_TIFF(part) NULL
#endif
#ifdef CCODECS_HEIF
#define WHEN_HEIF(part) part
#else
#define WHEN_HEIF(part) NULL
#endif
#ifdef CCODECS_JXL
#define WHEN_JXL(part) part
#else
#define WHEN_JXL(part) NULL
#endif

#ifdef CCODECS_AOM
#define AVIF_DEEP_PIXELS (PIXELS(RGB16) | PIXELS(RGBA16))
#else
#define AVIF_DEEP_PIXELS 0u
#endif

/// All formats, in the order in which they are checked: signatures first. Sources: the formats' specifications.
static const format_row rows[] = {
    {
        .format = CCODECS_FORMAT_JPEG,
        .name = "jpeg",
        .signatures = {SIGNATURE("\xFF\xD8\xFF")},
        .decoder = &ccodecs_jpeg_decoder,
        .rewriter = &ccodecs_jpeg_rewriter,
        .encoder =
            {
                .methods = &ccodecs_jpeg_encoder,
                .pixels = PIXELS(GRAY8) | PIXELS(RGB8) | PIXELS(YCC8),
                .max_side = 65500,
                .halves_columns = true,
            },
    },
    {
        .format = CCODECS_FORMAT_PNG,
        .name = "png",
        .signatures = {SIGNATURE("\x89PNG\r\n\x1A\n")},
        .decoder = &ccodecs_png_decoder,
        .rewriter = &ccodecs_png_rewriter,
        .encoder =
            {
                .methods = &ccodecs_png_encoder,
                .pixels =
                    PIXELS(GRAY8) | PIXELS(RGB8) | PIXELS(RGBA8) | PIXELS(GRAY16) | PIXELS(RGB16) | PIXELS(RGBA16),
                .max_side = INT32_MAX,
                .has_frames = true,
            },
    },
    {
        .format = CCODECS_FORMAT_GIF,
        .name = "gif",
        .signatures = {SIGNATURE("GIF87a"), SIGNATURE("GIF89a")},
        .decoder = &ccodecs_gif_decoder,
        .rewriter = &ccodecs_gif_rewriter,
        .encoder =
            {
                .methods = &ccodecs_gif_encoder,
                .pixels = PIXELS(GRAY8) | PIXELS(RGB8) | PIXELS(RGBA8),
                .max_side = 65535,
                .has_frames = true,
            },
    },
    {
        .format = CCODECS_FORMAT_PSD,
        .name = "psd",
        .signatures = {SIGNATURE("8BPS")},
        .decoder = &ccodecs_psd_decoder,
    },
    {
        .format = CCODECS_FORMAT_HDR,
        .name = "hdr",
        .signatures = {SIGNATURE("#?RADIANCE"), SIGNATURE("#?RGBE")},
        .decoder = &ccodecs_hdr_decoder.methods,
    },
    {
        .format = CCODECS_FORMAT_TIFF,
        .name = "tiff",
        .signatures = {SIGNATURE("II*\0"), SIGNATURE("MM\0*"), SIGNATURE("II+\0"), SIGNATURE("MM\0+")},
        .decoder = WHEN_TIFF(&ccodecs_tiff_decoder),
    },
    {
        .format = CCODECS_FORMAT_JXL,
        .name = "jxl",
        .signatures = {SIGNATURE("\xFF\x0A"), SIGNATURE("\0\0\0\x0CJXL \r\n\x87\n")},
        .decoder = WHEN_JXL(&ccodecs_jxl_decoder),
        .rewriter = WHEN_JXL(&ccodecs_jxl_rewriter),
        .encoder =
            {
                .methods = WHEN_JXL(&ccodecs_jxl_encoder),
                .pixels =
                    PIXELS(GRAY8) | PIXELS(RGB8) | PIXELS(RGBA8) | PIXELS(GRAY16) | PIXELS(RGB16) | PIXELS(RGBA16),
                .max_side = 65535,
            },
    },
    {
        .format = CCODECS_FORMAT_JPEG2000,
        .name = "jpeg2000",
        .signatures = {SIGNATURE("\0\0\0\x0CjP  \r\n\x87\n"), SIGNATURE("\xFF\x4F\xFF\x51")},
    },
    {
        .format = CCODECS_FORMAT_QOI,
        .name = "qoi",
        .signatures = {SIGNATURE("qoif")},
    },
    {
        .format = CCODECS_FORMAT_BMP,
        .name = "bmp",
        .signatures = {SIGNATURE("BM")},
        .decoder = &ccodecs_bmp_decoder.methods,
    },
    {
        .format = CCODECS_FORMAT_WEBP,
        .name = "webp",
        .sniff = ccodecs_is_webp,
        .decoder = &ccodecs_webp_decoder,
        .rewriter = &ccodecs_webp_rewriter,
        .encoder =
            {
                .methods = &ccodecs_webp_encoder,
                .pixels = PIXELS(RGB8) | PIXELS(RGBA8),
                .max_side = 16383,
                .has_frames = true,
            },
    },
    {
        .format = CCODECS_FORMAT_AVIF,
        .name = "avif",
        .sniff = ccodecs_is_avif,
        .decoder = WHEN_HEIF(&ccodecs_heif_decoder),
        .encoder =
            {
                .methods = WHEN_HEIF(&ccodecs_avif_encoder),
                .pixels = PIXELS(RGB8) | PIXELS(RGBA8) | AVIF_DEEP_PIXELS,
                .max_side = 65535,
            },
    },
    {
        .format = CCODECS_FORMAT_HEIC,
        .name = "heic",
        .sniff = ccodecs_is_heic,
        .decoder = WHEN_HEIF(&ccodecs_heif_decoder),
    },
    {
        .format = CCODECS_FORMAT_UNKNOWN, // base media files with other brands, such as videos
        .name = "unknown",
        .sniff = ccodecs_is_base_media,
    },
    {
        .format = CCODECS_FORMAT_PNM,
        .name = "pnm",
        .sniff = ccodecs_is_pnm,
        .decoder = &ccodecs_pnm_decoder.methods,
    },
    {
        .format = CCODECS_FORMAT_ICO,
        .name = "ico",
        .sniff = ccodecs_is_ico,
        .decoder = &ccodecs_ico_decoder,
    },
    {
        .format = CCODECS_FORMAT_TGA,
        .name = "tga",
        .sniff = ccodecs_is_tga,
        .decoder = &ccodecs_tga_decoder.methods,
    },
    {
        .format = CCODECS_FORMAT_RAW,
        .name = "raw",
        .encoder =
            {
                .methods = &ccodecs_raw_encoder,
                .pixels = PIXELS(GRAY8) | PIXELS(RGB8),
                .max_side = 65500,
            },
    },
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };
_Static_assert(ROW_COUNT == CCODECS_FORMAT_END, "a format has no row");

// MARK: Lookup

static const format_row *row_of(ccodecs_format format) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (rows[i].format == format) {
      return &rows[i];
    }
  }
  return row_of(CCODECS_FORMAT_UNKNOWN);
}

static bool has_signature(const format_row *row, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < sizeof row->signatures / sizeof *row->signatures && row->signatures[i].count > 0; i++) {
    const signature *signature = &row->signatures[i];
    if (count >= signature->count && memcmp(bytes, signature->bytes, signature->count) == 0) {
      return true;
    }
  }
  return row->sniff != NULL && row->sniff(bytes, count);
}

ccodecs_format ccodecs_sniff(const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (has_signature(&rows[i], bytes, count)) {
      return rows[i].format;
    }
  }
  return CCODECS_FORMAT_UNKNOWN;
}

const char *ccodecs_format_name(ccodecs_format format) {
  return row_of(format)->name;
}

bool ccodecs_format_can_decode(ccodecs_format format) {
  return row_of(format)->decoder != NULL;
}

bool ccodecs_format_can_encode(ccodecs_format format) {
  return row_of(format)->encoder.methods != NULL;
}

bool ccodecs_format_can_rewrite(ccodecs_format format) {
  return row_of(format)->rewriter != NULL;
}

bool ccodecs_format_takes(ccodecs_format format, ccodecs_pixels pixels) {
  return (row_of(format)->encoder.pixels >> pixels & 1) != 0;
}

uint32_t ccodecs_format_max_side(ccodecs_format format) {
  return row_of(format)->encoder.max_side;
}

bool ccodecs_format_has_frames(ccodecs_format format) {
  return row_of(format)->encoder.has_frames;
}

// MARK: Decoders and rewriters

ccodecs_status ccodecs_decoder_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget, ccodecs_decoder **decoder) {
  const format_row *row = row_of(format);
  *decoder = NULL;
  if (row->decoder == NULL) {
    return CCODECS_UNSUPPORTED;
  }
  *decoder = ccodecs_decoder_allocate(row->decoder, format, limits, budget);
  return *decoder == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

ccodecs_status ccodecs_rewriter_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget, ccodecs_rewriter **rewriter) {
  const format_row *row = row_of(format);
  *rewriter = NULL;
  if (row->rewriter == NULL) {
    return CCODECS_UNSUPPORTED;
  }
  *rewriter = ccodecs_rewriter_allocate(row->rewriter, limits, budget);
  return *rewriter == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Encoders

/// Returns whether every option is in its range, including the options of other formats.
static bool are_valid(const ccodecs_encode_options *options) {
  return options->width > 0 && options->height > 0 && options->quality >= 1 && options->quality <= 100 &&
         options->jpeg.quality_64ths < (options->quality < 100 ? 64 : 1) &&
         options->metadata.exif_count <= CCODECS_MAX_EXIF_BYTES &&
         options->metadata.icc_count <= CCODECS_MAX_PROFILE_BYTES &&
         options->metadata.xmp_count <= CCODECS_MAX_XMP_BYTES &&
         options->metadata.iptc_count <= CCODECS_MAX_IPTC_BYTES && ccodecs_png_options_are_valid(&options->png) &&
         ccodecs_webp_options_are_valid(&options->webp) && options->avif.effort <= 9 && options->jxl.effort >= 1 &&
         options->jxl.effort <= 9 && ccodecs_gif_options_are_valid(&options->gif) &&
         ccodecs_raw_options_are_valid(&options->raw);
}

static ccodecs_status check(const encoder_row *encoder, const ccodecs_encode_options *options) {
  if (encoder->methods == NULL || !ccodecs_format_takes(options->format, options->pixels) ||
      (encoder->methods->takes != NULL && !encoder->methods->takes(options)) ||
      (options->has_frames && !encoder->has_frames) ||
      (!encoder->halves_columns && options->subsampling == CCODECS_SUBSAMPLING_422)) {
    return CCODECS_UNSUPPORTED;
  }
  if (options->width > encoder->max_side || options->height > encoder->max_side) {
    return CCODECS_LIMIT;
  }
  return are_valid(options) ? CCODECS_OK : CCODECS_MISUSE;
}

ccodecs_status ccodecs_encoder_create(
    const ccodecs_encode_options *options, ccodecs_budget *budget, ccodecs_encoder **encoder) {
  const encoder_row *row = &row_of(options->format)->encoder;
  *encoder = NULL;
  CCODECS_TRY(check(row, options));
  *encoder = ccodecs_encoder_allocate(row->methods, options, budget);
  if (*encoder == NULL) {
    return CCODECS_NO_MEMORY;
  }
  ccodecs_metadata *metadata = &(*encoder)->options.metadata;
  metadata->exif = metadata->icc = metadata->xmp = metadata->iptc = NULL; // they were borrowed for create only
  return CCODECS_OK;
}

ccodecs_status ccodecs_encoder_estimate(const ccodecs_encode_options *options, uint64_t *byte_count) {
  const encoder_row *row = &row_of(options->format)->encoder;
  const ccodecs_status status = check(row, options);
  // Metadata is copied, and the output buffer grows by half its size.
  *byte_count =
      status == CCODECS_OK ? row->methods->estimate(options) + 4 * ccodecs_metadata_bytes(&options->metadata) : 0;
  return status;
}

uint64_t ccodecs_encoder_max_bytes(const ccodecs_encode_options *options) {
  const ccodecs_encoder_methods *methods = row_of(options->format)->encoder.methods;
  return methods == NULL ? 0 : methods->max_bytes(options);
}
