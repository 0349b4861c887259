// ccodecs: one push decoder and one encoder interface over the image codec libraries, in C11.
//
// # Decoding
//
//   ccodecs_budget budget = {.limit = 24u << 20};
//   ccodecs_decoder *decoder = NULL;
//   ccodecs_status status = ccodecs_decoder_create(format, &limits, &budget, &decoder);
//
//   // 1. Header. Repeat with more input while the answer is CCODECS_NEEDS_INPUT.
//   status = ccodecs_decoder_read_header(decoder, &input);
//   const ccodecs_header *header = ccodecs_decoder_header(decoder);
//
//   // 2. Choose a scale and learn how the rows will lie in memory.
//   ccodecs_layout layout;
//   status = ccodecs_decoder_start(decoder, &(ccodecs_decode_options){.scale_eighths = 4}, &layout);
//
//   // 3. Rows. CCODECS_ROWS_READY: take them, call again. CCODECS_NEEDS_INPUT: bring the next bytes.
//   ccodecs_rows rows;
//   while ((status = ccodecs_decoder_read_rows(decoder, &input, &rows)) == CCODECS_ROWS_READY) use(&rows);
//
//   ccodecs_decoder_destroy(decoder);
//
// The legal order of calls is create, read_header until CCODECS_OK, start, read_rows until CCODECS_DONE, destroy;
// destroy is legal at any point, header after read_header said CCODECS_OK. Any other order gives CCODECS_MISUSE.
//
// Input is a window that each call moves forward: `bytes` and `count` are advanced past what was consumed. A decoder
// never blocks and keeps no pointer into the window after the call; what it can't finish yet it copies.
// CCODECS_NEEDS_INPUT means the window is consumed; it is never returned while `is_last` is set: then the answer is
// CCODECS_TRUNCATED. Where the input is cut into windows never changes the pixels.
//
// # Encoding
//
//   ccodecs_encoder *encoder = NULL;
//   status = ccodecs_encoder_create(&options, &budget, &encoder);
//   for each strip: status = ccodecs_encoder_write(encoder, &rows);
//   status = ccodecs_encoder_finish(encoder);
//   after any of these: while ((n = ccodecs_encoder_read(encoder, buffer, capacity)) > 0) send(buffer, n);
//   ccodecs_encoder_destroy(encoder);
//
// # Memory
//
// Every block that grows with the image is charged to the ccodecs_budget before it exists; blocks that a library
// allocates without a hook are charged by the library's documented size. A budget is not synchronised: it belongs to
// one image, and one image is worked on by one thread at a time. It must outlive what was created with it.
//
// # Errors
//
// Everything at or above CCODECS_CORRUPT is an error. It is sticky: every later call returns it again.
// ccodecs_decoder_message and ccodecs_encoder_message then tell the reason as one English clause, without bytes or
// metadata of the image. The functions never print, exit or jump out.

#ifndef CCODECS_H
#define CCODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ccodecs_status {
  CCODECS_OK = 0,
  CCODECS_NEEDS_INPUT = 1, ///< The window is consumed; call again with the bytes that follow.
  CCODECS_ROWS_READY = 2,  ///< `rows` is filled and valid until the next call on this decoder.
  CCODECS_DONE = 3,        ///< Every row, or of a rewriter every byte, was given.
  CCODECS_BYTES_READY = 4, ///< `piece` is filled and valid until the next call on this rewriter.

  CCODECS_CORRUPT = 16,     ///< The bytes contradict their format.
  CCODECS_TRUNCATED = 17,   ///< The input ended before the image did.
  CCODECS_UNSUPPORTED = 18, ///< A valid image of a kind that is not decoded here.
  CCODECS_LIMIT = 19,       ///< The image exceeds a ccodecs_limits field; nothing was allocated for it.
  CCODECS_NO_MEMORY = 20,   ///< The budget, or the system's memory, is exhausted.
  CCODECS_MISUSE = 21,      ///< Calls out of order or an argument out of range: a bug of the caller.
} ccodecs_status;

/// What formats.c has a row for.
typedef enum ccodecs_format {
  CCODECS_FORMAT_UNKNOWN,
  CCODECS_FORMAT_JPEG,
  CCODECS_FORMAT_PNG,
  CCODECS_FORMAT_WEBP,
  CCODECS_FORMAT_GIF,
  CCODECS_FORMAT_BMP,
  CCODECS_FORMAT_TGA,
  CCODECS_FORMAT_PSD,
  CCODECS_FORMAT_PNM,
  CCODECS_FORMAT_HDR,
  CCODECS_FORMAT_ICO,
  // Decoded where they were built in: CCODECS_TIFF, CCODECS_HEIF (AVIF and HEIC), CCODECS_JXL.
  CCODECS_FORMAT_TIFF,
  CCODECS_FORMAT_AVIF,
  CCODECS_FORMAT_HEIC,
  CCODECS_FORMAT_JXL,
  // Recognised by their first bytes so that a refusal can name them; there is no decoder.
  CCODECS_FORMAT_JPEG2000,
  CCODECS_FORMAT_QOI,
  CCODECS_FORMAT_END, ///< Not a format: how many there are.
} ccodecs_format;

/// How many first bytes settle every format.
#define CCODECS_SNIFF_BYTES 32

/// The format of an image from its first bytes. Give CCODECS_SNIFF_BYTES of them, or all there are.
ccodecs_format ccodecs_sniff(const uint8_t *bytes, size_t count);

/// The short lower-case name of a format: "jpeg", "png", ...; "unknown" for CCODECS_FORMAT_UNKNOWN. Static storage.
const char *ccodecs_format_name(ccodecs_format format);

/// Whether ccodecs_decoder_create knows the format in this build.
bool ccodecs_format_can_decode(ccodecs_format format);

/// Whether ccodecs_encoder_create knows the format in this build.
bool ccodecs_format_can_encode(ccodecs_format format);

/// Whether ccodecs_rewriter_create knows the format.
bool ccodecs_format_can_rewrite(ccodecs_format format);

// MARK: Budget

/// What one image may hold, holds, and held at most, in bytes.
typedef struct ccodecs_budget {
  size_t limit;
  size_t used;
  size_t peak;
  bool has_machine_failed; ///< Memory or disk was not there, or failed: CCODECS_NO_MEMORY is then not the image's
                           ///< fault.
} ccodecs_budget;

/// Charges `byte_count`; false, and nothing charged, when that would exceed the limit.
bool ccodecs_budget_charge(ccodecs_budget *budget, size_t byte_count);

/// Gives back what ccodecs_budget_charge took.
void ccodecs_budget_refund(ccodecs_budget *budget, size_t byte_count);

/// A charged block aligned to 64 bytes, or NULL when the budget or the system has no room. Not zeroed.
void *ccodecs_allocate(ccodecs_budget *budget, size_t byte_count);

/// Frees and refunds a block from ccodecs_allocate made with the same budget; NULL is ignored.
void ccodecs_free(ccodecs_budget *budget, void *block);

// MARK: Decoder

/// Limits checked against the header, before anything is allocated for the image. Zero means no limit.
typedef struct ccodecs_limits {
  uint64_t max_pixels;             ///< width x height of images that stream.
  uint64_t max_whole_input_pixels; ///< width x height of images whose decoder holds the whole bitmap.
  uint32_t max_scans;              ///< Scans of a progressive JPEG; a file with more is refused with CCODECS_LIMIT.
  bool can_spill;                  ///< Whether there is a spill_directory.
  /// The descriptor of a directory for files without a name. A progressive JPEG's bytes or coefficients, or a
  /// non-interleaved one's planes, go there instead of memory, once the image holds CCODECS_SPILL_BYTES. It must stay
  /// open as long as the decoder.
  int spill_directory;
} ccodecs_limits;

/// What an image holds at most before blocks go to limits.spill_directory.
#define CCODECS_SPILL_BYTES (12u << 20)

/// A descriptor of the directory at `path` for ccodecs_limits.spill_directory; -1 when no file can be made in it.
int ccodecs_spill_open(const char *path);

/// Closes what ccodecs_spill_open gave.
void ccodecs_spill_close(int directory);

/// The next bytes of the image. Borrowed for one call, which advances `bytes` and `count`.
typedef struct ccodecs_input {
  const uint8_t *bytes;
  size_t count;
  bool is_last; ///< No byte follows this window.
} ccodecs_input;

typedef enum ccodecs_color_space {
  CCODECS_COLOR_GRAY = 0,
  CCODECS_COLOR_YCBCR = 1, ///< Full-range BT.601, as JFIF has it.
  CCODECS_COLOR_RGB = 2,
  CCODECS_COLOR_CMYK = 3,
  CCODECS_COLOR_YCCK = 4,
} ccodecs_color_space;

/// Things a caller may want to know of an image that decodes all the same: bits of ccodecs_header.warnings.
enum {
  CCODECS_WARNING_BAD_EXIF = 1u << 0,    ///< EXIF was there but broken, and ignored.
  CCODECS_WARNING_FIRST_FRAME = 1u << 1, ///< Animated or multi-image: only the first image is decoded.
  CCODECS_WARNING_DAMAGED = 1u << 2,     ///< The library met damage that it could repair or skip.
  CCODECS_WARNING_BAD_PROFILE = 1u << 3, ///< The colour profile is of no use; colours were taken for sRGB.
  CCODECS_WARNING_TRUNCATED = 1u << 4,   ///< The file ends early, and what is missing was made gray.
  CCODECS_WARNING_NO_END = 1u << 6,      ///< Of a rewriter: the file lacks its end marker, which was written.
  CCODECS_WARNING_TOLERATED = 1u << 5,   ///< Damage was tolerated, from header.damaged_row on.
};

typedef struct ccodecs_header {
  ccodecs_format format;
  uint32_t width;        ///< As stored, before orientation, in pixels.
  uint32_t height;       ///< As stored, before orientation, in pixels.
  uint8_t orientation;   ///< EXIF 1 to 8; 1 when the image says nothing valid.
  bool is_storage_order; ///< The orientation is the format's order of rows and columns, not that of a camera.
  uint8_t bit_depth;     ///< Bits per sample as stored.
  bool is_16bit;         ///< Rows have 16 bits a sample: GRAY16, RGB16 or RGBA16.
  bool has_alpha;
  bool is_progressive; ///< Progressive JPEG or interlaced PNG: no row is final before the last scan or pass.
  bool buffers_input;  ///< The decoder holds the whole compressed file before the first row.
  bool buffers_bitmap; ///< The decoder holds the whole decoded image before the first row.
  ccodecs_color_space color_space;
  uint8_t chroma_across; ///< Luma samples for each chroma sample of planes to come; 0 where it can't be told.
  uint8_t chroma_down;   ///< Rows of luma for each of chroma; 0 likewise.
  bool has_profile;      ///< Colours are not sRGB's: see ccodecs_decoder_profile.
  uint32_t frame_count;  ///< 0 when the bytes read so far don't tell.
  uint32_t warnings;     ///< Bits of CCODECS_WARNING_*; may grow until CCODECS_DONE.
  bool is_damaged;       ///< start fails with CCODECS_CORRUPT unless damage is tolerated.
  uint32_t damaged_row;  ///< With CCODECS_WARNING_TOLERATED: the first row, as stored, that damage may have changed.
} ccodecs_header;

/// How samples lie in rows. Those of 16 bits are in the machine's byte order, in rows aligned to two bytes, 65535 for
/// what 255 is of those of 8.
typedef enum ccodecs_pixels {
  CCODECS_PIXELS_GRAY8 = 0,  ///< One plane, one channel.
  CCODECS_PIXELS_RGB8 = 1,   ///< One plane, three interleaved channels.
  CCODECS_PIXELS_RGBA8 = 2,  ///< One plane, four interleaved channels, alpha not premultiplied.
  CCODECS_PIXELS_YCC8 = 3,   ///< Three planes of one channel: Y, Cb, Cr, full-range BT.601, each of its own size.
  CCODECS_PIXELS_CMYK8 = 4,  ///< One plane, four interleaved channels of ink, 255 for none.
  CCODECS_PIXELS_GRAY16 = 5, ///< As GRAY8, 16 bits a sample.
  CCODECS_PIXELS_RGB16 = 6,  ///< As RGB8, 16 bits a sample.
  CCODECS_PIXELS_RGBA16 = 7, ///< As RGBA8, 16 bits a sample.
} ccodecs_pixels;

#define CCODECS_MAX_PLANES 3

/// One plane of a decoded or encoded image.
///
/// An image pixel edge at x (0 to the image's width) lies at x * horizontal_scale in this plane's samples: 0.5 for
/// a chroma plane of 4:2:0, N/8 for a luma plane decoded at N/8. The plane's size is rounded up; the scale is exact.
typedef struct ccodecs_plane {
  uint32_t width;   ///< Samples in a row.
  uint32_t height;  ///< Rows.
  uint8_t channels; ///< Interleaved samples at one place.
  double horizontal_scale;
  double vertical_scale;
} ccodecs_plane;

typedef struct ccodecs_layout {
  ccodecs_pixels pixels;
  uint32_t plane_count;
  ccodecs_plane planes[CCODECS_MAX_PLANES];
} ccodecs_layout;

/// Some rows of every plane, top to bottom. `row_counts` may differ between planes, and be 0.
typedef struct ccodecs_rows {
  const uint8_t *planes[CCODECS_MAX_PLANES]; ///< First byte of the first row.
  size_t row_strides[CCODECS_MAX_PLANES];    ///< Bytes from one row to the next.
  uint32_t row_counts[CCODECS_MAX_PLANES];   ///< Rows in this strip.
} ccodecs_rows;

typedef struct ccodecs_decode_options {
  /// 1 to 8: decode at N/8 of the stored size. Use one that ccodecs_decoder_scales offers; 8 always works.
  uint8_t scale_eighths;
  /// CMYK and YCCK are given as CCODECS_PIXELS_CMYK8, to be converted by their profile; else as CCODECS_PIXELS_RGB8,
  /// converted without one. Other images are given as ever.
  bool keeps_cmyk;
  /// A file that ends after some rows, but before the last, is given with gray for what is missing and
  /// CCODECS_WARNING_TRUNCATED; else it ends in CCODECS_TRUNCATED. A progressive JPEG counts as having rows once its
  /// first scan began, and is given as far as it was refined. Interlaced PNG and formats whose decoder holds the file
  /// are not given in part.
  bool tolerates_truncation;
  /// Damaged data is given as far as it can be decoded, with gray for the rest and CCODECS_WARNING_TOLERATED; else, and
  /// where no row can be decoded, it ends in CCODECS_CORRUPT. A JPEG goes on at the next restart marker of a scan; one
  /// that is progressive lacks the rest of a damaged scan. A PNG chunk with a wrong CRC is used all the same. Other
  /// formats, and other damage of PNG: the rows before the damage, where rows come before the end of the file.
  bool tolerates_damage;
  /// The rows will be made so much smaller, a quarter at the most, that what smooths the edges of blocks may be left
  /// out: lossy WebP's loop filter, which no other block depends on. Without effect on other formats.
  bool may_skip_smoothing;
} ccodecs_decode_options;

typedef struct ccodecs_decoder ccodecs_decoder;

/// A decoder for `format`. CCODECS_UNSUPPORTED for a format without one, CCODECS_NO_MEMORY without room.
/// `limits` is copied; `budget` is borrowed until destroy.
ccodecs_status ccodecs_decoder_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget, ccodecs_decoder **decoder);

/// Reads up to the first row's bytes. CCODECS_OK when ccodecs_decoder_header may be asked.
ccodecs_status ccodecs_decoder_read_header(ccodecs_decoder *decoder, ccodecs_input *input);

/// What read_header found. Valid until destroy.
const ccodecs_header *ccodecs_decoder_header(const ccodecs_decoder *decoder);

/// The image's colour profile (ICC.1), where its colours are not sRGB's; *count is 0 for an image that has none, or
/// one that says sRGB or is of no use (CCODECS_WARNING_BAD_PROFILE). Borrowed from the decoder, valid until
/// start. Legal after read_header.
void ccodecs_decoder_profile(const ccodecs_decoder *decoder, const uint8_t **bytes, size_t *count);

/// The most bytes of what ccodecs_decoder_trailing_metadata writes.
#define CCODECS_MAX_COPYRIGHT_BYTES 8320

/// Writes who made the image and whose it is as an EXIF block (TIFF) of nothing else: Artist and Copyright, from the
/// image's EXIF, or from what a PNG says in tEXt and iTXt chunks as Author and Copyright. Each is cut to 4 KiB. The
/// block's size; 0 when the image says neither. Legal after read_header; of a PNG there may be more after the last
/// row.
size_t ccodecs_decoder_trailing_metadata(const ccodecs_decoder *decoder, uint8_t block[CCODECS_MAX_COPYRIGHT_BYTES]);

/// The scales that start takes: bit N-1 set means N/8. Legal after read_header.
uint8_t ccodecs_decoder_scales(const ccodecs_decoder *decoder);

/// The bytes that start and read_rows will charge for this image at `options`, as an upper bound, without charging
/// them. Legal after read_header, before start.
ccodecs_status ccodecs_decoder_estimate(
    const ccodecs_decoder *decoder, const ccodecs_decode_options *options, uint64_t *byte_count);

/// Fixes scale and layout, and allocates what the rows need. The profile's bytes are given back.
ccodecs_status ccodecs_decoder_start(
    ccodecs_decoder *decoder, const ccodecs_decode_options *options, ccodecs_layout *layout);

/// Decodes until rows are ready, input is needed, or the image is done. `rows` is borrowed from the decoder and
/// valid until the next call on it. Bytes after the image's end are left in the window.
ccodecs_status ccodecs_decoder_read_rows(ccodecs_decoder *decoder, ccodecs_input *input, ccodecs_rows *rows);

/// Why the decoder failed, or "" when it did not. Valid until destroy.
const char *ccodecs_decoder_message(const ccodecs_decoder *decoder);

/// Frees the decoder and refunds its budget; NULL is ignored.
void ccodecs_decoder_destroy(ccodecs_decoder *decoder);

// MARK: Colour

/// A conversion of an image's colours to sRGB, relative colorimetric.
typedef struct ccodecs_conversion ccodecs_conversion;

/// The bytes that a conversion made of this profile will charge, as an upper bound.
size_t ccodecs_conversion_estimate(const uint8_t *profile, size_t profile_count);

/// Makes a conversion of the decoder's profile. Legal before start, any number of times. `source` is any but YCC8;
/// CMYK8 becomes RGB8, samples of 16 bits become those of 8, others stay what they are. *conversion is NULL without a
/// profile, and where the profile turns out to be of no use, which the header's warnings then tell. CCODECS_OK or
/// CCODECS_NO_MEMORY.
ccodecs_status ccodecs_decoder_create_conversion(
    ccodecs_decoder *decoder, ccodecs_pixels source, ccodecs_conversion **conversion);

/// Converts `pixel_count` pixels; samples of 16 bits are aligned to two bytes. `source` and `destination` may be the
/// same where the pixels stay what they are.
void ccodecs_conversion_convert(
    const ccodecs_conversion *conversion, const uint8_t *source, uint8_t *destination, size_t pixel_count);

/// Frees the conversion and refunds its budget, which must be there still; NULL is ignored.
void ccodecs_conversion_destroy(ccodecs_conversion *conversion);

// MARK: Encoder

typedef enum ccodecs_subsampling {
  CCODECS_SUBSAMPLING_444 = 0, ///< Chroma planes as large as luma.
  CCODECS_SUBSAMPLING_420 = 1, ///< Chroma planes of half the width and height, rounded up.
  CCODECS_SUBSAMPLING_422 = 2, ///< Chroma planes of half the width, rounded up. JPEG only.
} ccodecs_subsampling;

/// How a row of PNG is told by its neighbours (PNG specification, section 9).
typedef enum ccodecs_png_filter {
  CCODECS_PNG_FILTER_NONE = 0,
  CCODECS_PNG_FILTER_SUB = 1,
  CCODECS_PNG_FILTER_UP = 2,
  CCODECS_PNG_FILTER_AVERAGE = 3,
  CCODECS_PNG_FILTER_PAETH = 4,
  CCODECS_PNG_FILTER_ADAPTIVE = 5, ///< For each row the one with the smallest sum of absolute differences.
} ccodecs_png_filter;

typedef struct ccodecs_jpeg_options {
  bool is_progressive;        ///< Implies tables of its own. The coefficients are held: two bytes a sample.
  bool has_optimal_tables;    ///< Huffman tables made for the image. The coefficients are held likewise.
  uint16_t restart_row_count; ///< Rows of MCUs between restart markers; 0 for none.
} ccodecs_jpeg_options;

typedef struct ccodecs_png_options {
  uint8_t compression_level; ///< 0 to 9, of deflate.
  ccodecs_png_filter filter;
  bool is_interlaced;     ///< By Adam7; the image is held.
  uint16_t palette_count; ///< 2 to 256 colours of a palette, where it was built in; 0 for none. The image is held.
} ccodecs_png_options;

typedef struct ccodecs_webp_options {
  bool is_lossless;
  uint8_t near_lossless; ///< 0 to 100, of a lossless file: how little is changed to make it smaller; 100 for nothing.
  uint8_t method;        ///< 0 (fastest) to 6 (smallest).
  bool saves_memory;     ///< Of a lossy file: takes half as long again, and a third to a half of the memory.
} ccodecs_webp_options;

typedef struct ccodecs_encode_options {
  ccodecs_format format; ///< CCODECS_FORMAT_JPEG, _PNG, _WEBP, or _AVIF where it was built in.
  uint32_t width;        ///< 1 to 65500 (JPEG), 2^31 - 1 (PNG), 16383 (WebP), 65535 (AVIF).
  uint32_t height;
  ccodecs_pixels pixels;           ///< JPEG: GRAY8, RGB8, YCC8. PNG: GRAY8, RGB8, RGBA8. WebP, AVIF: RGB8, RGBA8.
  ccodecs_subsampling subsampling; ///< JPEG, AVIF; and the size of the planes given with YCC8.
  uint8_t quality;                 ///< 1 to 100; JPEG, lossy WebP and AVIF.
  ccodecs_jpeg_options jpeg;       ///< Each heeded for its own format alone.
  ccodecs_png_options png;
  ccodecs_webp_options webp;
  const uint8_t *exif; ///< A TIFF block that the result is to carry, borrowed for create; or NULL.
  size_t exif_count;   ///< Its bytes, at most 65527; 0 for none.
} ccodecs_encode_options;

/// Whether PNG can be written with a palette.
bool ccodecs_png_has_palettes(void);

/// Whether an encoder of the format, if one was built in, takes these pixels.
bool ccodecs_format_takes(ccodecs_format format, ccodecs_pixels pixels);

typedef struct ccodecs_encoder ccodecs_encoder;

/// An encoder. CCODECS_UNSUPPORTED for a format or pixels not listed above, CCODECS_LIMIT for a size that the format
/// can't hold, CCODECS_MISUSE for an option out of range.
ccodecs_status ccodecs_encoder_create(
    const ccodecs_encode_options *options, ccodecs_budget *budget, ccodecs_encoder **encoder);

/// The bytes that an encoder for `options` will charge, as an upper bound, if its output is read after every 16 rows.
ccodecs_status ccodecs_encoder_estimate(const ccodecs_encode_options *options, uint64_t *byte_count);

/// The bytes of the largest file that `options` can give, as an upper bound; 0 for a format that is not encoded.
uint64_t ccodecs_encoder_max_bytes(const ccodecs_encode_options *options);

/// Takes rows, top to bottom; `rows` is borrowed for the call. Planes may come with different counts in one call.
ccodecs_status ccodecs_encoder_write(ccodecs_encoder *encoder, const ccodecs_rows *rows);

/// Gives the result an EXIF block after its last row, before it is finished: at most 65527 bytes, borrowed for the
/// call. CCODECS_UNSUPPORTED, and no failure, where it would have to stand before what was written, as in all formats
/// but PNG, or where the options had one.
ccodecs_status ccodecs_encoder_append_exif(ccodecs_encoder *encoder, const uint8_t *exif, size_t count);

/// Ends the image. CCODECS_MISUSE when rows are missing.
ccodecs_status ccodecs_encoder_finish(ccodecs_encoder *encoder);

/// The compressed bytes that wait to be read.
size_t ccodecs_encoder_pending(const ccodecs_encoder *encoder);

/// Moves at most `capacity` compressed bytes into `buffer`; returns how many.
size_t ccodecs_encoder_read(ccodecs_encoder *encoder, uint8_t *buffer, size_t capacity);

/// Why the encoder failed, or "" when it did not. Valid until destroy.
const char *ccodecs_encoder_message(const ccodecs_encoder *encoder);

/// Frees the encoder and refunds its budget; NULL is ignored.
void ccodecs_encoder_destroy(ccodecs_encoder *encoder);

// MARK: Rewriter

/// An image's file made into one without metadata, without being decoded: markers, chunks and compressed data are
/// checked for their structure and passed on as they come. What is kept is what a decoder needs: of a JPEG tables,
/// frame, scans and a JFIF segment of its own; of a PNG IHDR, PLTE, tRNS, IDAT and IEND; of a WebP the image and its
/// alpha. Bytes behind the image are not read. Compressed data are not looked into: damage inside goes unnoticed
/// where a PNG's CRCs, or the restart markers of a JPEG, do not tell.
///
/// The legal order of calls is create; note, with all bytes that a decoder of the image consumed until its header
/// was complete; survey; start, with that decoder; read until CCODECS_DONE; destroy. Destroy is legal at any point. A
/// rewriter that does not understand what it is told of is no error: its survey then says that nothing can be done.
typedef struct ccodecs_rewriter ccodecs_rewriter;

/// What can be done with an image, and how it is compressed.
typedef struct ccodecs_survey {
  bool can_copy;        ///< It is of a kind that can be passed on.
  bool is_lossless;     ///< PNG and lossless WebP.
  bool has_fine_chroma; ///< JPEG whose chroma planes have more than half of luma's columns or rows.
  /// 1 to 100: the least quality at which an encoder of this header would quantise no more coarsely. Of a JPEG by the
  /// sums of its tables, of a WebP by the mean quantizer of its segments.
  uint8_t quality;
  /// JPEG: bit N is set when the image can be turned by EXIF orientation N in whole blocks.
  uint16_t turns;
} ccodecs_survey;

typedef struct ccodecs_rewrite_options {
  /// 1 passes the image on. 2 to 8 turn a JPEG as that EXIF orientation asks, block by block: its coefficients are
  /// decoded and held, and nothing is lost.
  uint8_t orientation;
  const uint8_t *exif; ///< A TIFF block that the result is to carry, borrowed for start; or NULL.
  size_t exif_count;   ///< Its bytes, at most 65527; 0 for none.
  /// A JPEG may end before its end marker, which is then the last piece and CCODECS_WARNING_NO_END. Whether its last
  /// scan is whole is not known: the caller is to decode what comes before that piece.
  bool may_lack_end;
} ccodecs_rewrite_options;

/// Some bytes of a result.
typedef struct ccodecs_piece {
  const uint8_t *bytes;
  size_t count;
} ccodecs_piece;

/// A rewriter for JPEG, PNG or WebP; else CCODECS_UNSUPPORTED. CCODECS_NO_MEMORY without room. `limits` is copied;
/// `budget` is borrowed until destroy.
ccodecs_status ccodecs_rewriter_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget, ccodecs_rewriter **rewriter);

/// Tells of the next bytes of the image's header. Legal before start.
void ccodecs_rewriter_note(ccodecs_rewriter *rewriter, const uint8_t *bytes, size_t count);

/// What can be done with the image whose header `decoder` has read. Legal before start.
void ccodecs_rewriter_survey(const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, ccodecs_survey *survey);

/// The bytes that start and read will charge, as an upper bound, with what rewriter and decoder hold already.
uint64_t ccodecs_rewriter_estimate(
    const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options);

/// Fixes what is done, which the survey must allow, and takes over what the decoder holds of the file: it can only be
/// destroyed then.
ccodecs_status ccodecs_rewriter_start(
    ccodecs_rewriter *rewriter, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options);

/// Reads on, from where the decoder stopped: CCODECS_BYTES_READY with the next bytes of the result, which may be in the
/// window, CCODECS_NEEDS_INPUT, CCODECS_DONE, or the failure.
ccodecs_status ccodecs_rewriter_read(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece);

/// Bits of CCODECS_WARNING_*; may grow until CCODECS_DONE.
uint32_t ccodecs_rewriter_warnings(const ccodecs_rewriter *rewriter);

/// Why the rewriter failed, or "" when it did not. Valid until destroy.
const char *ccodecs_rewriter_message(const ccodecs_rewriter *rewriter);

/// Frees the rewriter and refunds its budget; NULL is ignored.
void ccodecs_rewriter_destroy(ccodecs_rewriter *rewriter);

#ifdef __cplusplus
}
#endif

#endif
