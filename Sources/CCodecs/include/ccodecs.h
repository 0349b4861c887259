// ccodecs: one push decoder and one encoder interface over the image codec libraries, in C11.
//
// # Decoding
//
//   ccodecs_budget budget = {.limit = 24u << 20};
//   ccodecs_decoder *decoder = NULL;
//   ccodecs_status status = ccodecs_decoder_create(format, &limits, &budget, &decoder);
//
//   // 1. Read the header. Repeat with more input while the status is CCODECS_NEEDS_INPUT.
//   status = ccodecs_decoder_read_header(decoder, &input);
//   const ccodecs_header *header = ccodecs_decoder_header(decoder);
//
//   // 2. Choose a scale and get the memory layout of the rows.
//   ccodecs_layout layout;
//   status = ccodecs_decoder_start(decoder, &(ccodecs_decode_options){.scale_eighths = 4}, &layout);
//
//   // 3. Read rows. On CCODECS_ROWS_READY, consume them and call again. On CCODECS_NEEDS_INPUT, supply the next bytes.
//   ccodecs_rows rows;
//   while ((status = ccodecs_decoder_read_rows(decoder, &input, &rows)) == CCODECS_ROWS_READY) use(&rows);
//
// A still image is an animation of one frame. After the rows of a frame, read_rows returns CCODECS_FRAME_DONE if the
// rows of another frame follow, and CCODECS_DONE after the last frame. Every frame is returned as the whole canvas, on
// which the decoder has composed it. ccodecs_decoder_frame describes the frame of the rows that were returned last.
//
//   ccodecs_decoder_destroy(decoder);
//
// The legal order of calls is create, read_header until CCODECS_OK, start, read_rows until CCODECS_DONE, destroy;
// destroy is legal at any point, and header once read_header returned CCODECS_OK. Any other order returns
// CCODECS_MISUSE.
//
// The input is a window that each call moves forward: `bytes` and `count` advance past the consumed bytes. A decoder
// never blocks and keeps no pointer into the window after the call; it copies incomplete elements.
// CCODECS_NEEDS_INPUT means that the window is consumed. It is never returned while `is_last` is set; the status is
// then CCODECS_TRUNCATED. The size of the windows never changes the pixels.
//
// # Encoding
//
//   ccodecs_encoder *encoder = NULL;
//   status = ccodecs_encoder_create(&options, &budget, &encoder);
//   for each frame: {
//     status = ccodecs_encoder_begin_frame(encoder, &frame);
//     for each strip: status = ccodecs_encoder_write(encoder, &rows);
//     status = ccodecs_encoder_end_frame(encoder);
//   }
//   status = ccodecs_encoder_finish(encoder);
//   after any of these: while ((n = ccodecs_encoder_read(encoder, buffer, capacity)) > 0) send(buffer, n);
//   ccodecs_encoder_destroy(encoder);
//
// # Memory
//
// Every block that grows with the image is charged to the ccodecs_budget before it is allocated. Blocks that a library
// allocates without an allocator hook are charged at the library's documented size. A budget is not synchronized: it
// belongs to one image, which one thread processes at a time. It must outlive every object created with it.
//
// # Errors
//
// Every status at or above CCODECS_CORRUPT is an error. Errors are sticky: every later call returns the same error.
// ccodecs_decoder_message and ccodecs_encoder_message then return the reason as one English clause, which contains no
// image bytes or metadata. The functions never print, exit or longjmp out of the call.

#ifndef CCODECS_H
#define CCODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The result of a call; values from CCODECS_CORRUPT on are errors.
typedef enum ccodecs_status {
  CCODECS_OK = 0,
  CCODECS_NEEDS_INPUT = 1, ///< The window is consumed; call again with the next bytes.
  CCODECS_ROWS_READY = 2,  ///< `rows` is filled and valid until the next call on this decoder.
  CCODECS_DONE = 3,        ///< Every row (decoder) or byte (rewriter) was returned.
  CCODECS_BYTES_READY = 4, ///< `piece` is filled and valid until the next call on this rewriter.
  CCODECS_FRAME_DONE = 5,  ///< Every row of a frame was returned, and another frame follows.

  CCODECS_CORRUPT = 16,     ///< The bytes violate their format.
  CCODECS_TRUNCATED = 17,   ///< The input ended before the image was complete.
  CCODECS_UNSUPPORTED = 18, ///< A valid image that uses a feature without support here.
  CCODECS_LIMIT = 19,       ///< The image exceeds a limit: see ccodecs_decoder_excess.
  CCODECS_NO_MEMORY = 20,   ///< The budget or the system's memory is exhausted.
  CCODECS_MISUSE = 21,      ///< Calls out of order, or an argument out of range: a bug in the caller.
  CCODECS_NO_FRAME = 23,    ///< The image has fewer frames than ccodecs_decoder_select_frames was asked for.
  CCODECS_INTERRUPTED = 22, ///< A ccodecs_interrupt ended the call.
} ccodecs_status;

/// An image format; formats.c has one row for each.
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
  // Decoded only in builds that define CCODECS_TIFF, CCODECS_HEIF (AVIF and HEIC) or CCODECS_JXL.
  CCODECS_FORMAT_TIFF,
  CCODECS_FORMAT_AVIF,
  CCODECS_FORMAT_HEIC,
  CCODECS_FORMAT_JXL,
  // Recognized only so that an error can name them; there is no decoder.
  CCODECS_FORMAT_JPEG2000,
  CCODECS_FORMAT_QOI,
  // Only written.
  CCODECS_FORMAT_RAW, ///< The samples of a tensor without a header; see ccodecs_raw_options.
  CCODECS_FORMAT_END, ///< Not a format: the number of formats.
} ccodecs_format;

/// The number of leading bytes that suffice to recognize every format.
#define CCODECS_SNIFF_BYTES 32

/// Returns the format of an image from its first CCODECS_SNIFF_BYTES bytes, or from the whole file if it is shorter.
ccodecs_format ccodecs_sniff(const uint8_t *bytes, size_t count);

/// Returns the short lower-case name of a format, such as "jpeg"; "unknown" for CCODECS_FORMAT_UNKNOWN. The string is
/// static.
const char *ccodecs_format_name(ccodecs_format format);

/// Returns whether this build has a decoder for the format.
bool ccodecs_format_can_decode(ccodecs_format format);

/// Returns whether this build has an encoder for the format.
bool ccodecs_format_can_encode(ccodecs_format format);

/// Returns whether there is a rewriter for the format.
bool ccodecs_format_can_rewrite(ccodecs_format format);

// MARK: Budget

/// The memory budget of one image: limit, current use and peak use, in bytes.
typedef struct ccodecs_budget {
  size_t limit;
  size_t used;
  size_t peak;
  size_t wanted;           ///< What `used` would be had the last refused charge succeeded; 0 if none was refused.
  bool has_machine_failed; ///< The system's memory or disk was exhausted or failed, so CCODECS_NO_MEMORY
                           ///< is not due to the image.
} ccodecs_budget;

/// Charges `byte_count` bytes. Returns false and charges nothing if that would exceed the limit.
bool ccodecs_budget_charge(ccodecs_budget *budget, size_t byte_count);

/// Refunds bytes that ccodecs_budget_charge charged.
void ccodecs_budget_refund(ccodecs_budget *budget, size_t byte_count);

/// Allocates and charges a block aligned to 64 bytes, without zeroing it. Returns NULL if the budget or the system's
/// memory is exhausted.
void *ccodecs_allocate(ccodecs_budget *budget, size_t byte_count);

/// Frees and refunds a block that ccodecs_allocate returned for the same budget; NULL is ignored.
void ccodecs_free(ccodecs_budget *budget, void *block);

// MARK: Spooled bytes

typedef struct ccodecs_limits ccodecs_limits;

/// Bytes that are appended and then read once, in memory or in a file.
typedef struct ccodecs_spooled_bytes ccodecs_spooled_bytes;

/// Returns an upper bound of the bytes that `byte_count` spooled bytes charge. With a spill directory, most of them are
/// in a file, and the bound holds for any number of bytes.
uint64_t ccodecs_spooled_bytes_estimate(uint64_t byte_count, const ccodecs_limits *limits);

/// Creates an empty spool. Returns NULL if the budget is exhausted. `limits` is copied; the spill directory must stay
/// open, and `budget` is borrowed, until destroy.
ccodecs_spooled_bytes *ccodecs_spooled_bytes_create(const ccodecs_limits *limits, ccodecs_budget *budget);

/// Appends a copy of `count` bytes. Returns false if the budget, the system's memory or the disk is exhausted.
bool ccodecs_spooled_bytes_append(ccodecs_spooled_bytes *spooled, const uint8_t *bytes, size_t count);

/// Ends the bytes, which can then be read. Returns false if the disk is full.
bool ccodecs_spooled_bytes_end(ccodecs_spooled_bytes *spooled);

/// Sets `bytes` to some bytes at `offset`, valid until the next call, and `count` to their number; 0 at the end.
/// Returns false if the disk fails.
bool ccodecs_spooled_bytes_read(ccodecs_spooled_bytes *spooled, uint64_t offset, const uint8_t **bytes, size_t *count);

/// Frees the spool and refunds its budget; NULL is ignored.
void ccodecs_spooled_bytes_destroy(ccodecs_spooled_bytes *spooled);

// MARK: Frames

/// One frame of an animation.
typedef struct ccodecs_frame {
  uint32_t left; ///< The part of the canvas that the file stores for this frame, in pixels.
  uint32_t top;
  uint32_t width;
  uint32_t height;
  /// How long the frame is shown, in units of 1 / duration_divisor seconds, as stored. A still image has 0 / 0.
  uint32_t duration;
  uint32_t duration_divisor;
  /// How often the animation is played, as far as the file has specified it before this frame; 0 for ever.
  uint32_t play_count;
  /// The number of rows at the top and at the bottom of the canvas that equal those of the frame returned before, as
  /// far as the file shows it without a look at pixels. Rows that are filled with gray instead are not meant.
  uint32_t kept_above, kept_below;
} ccodecs_frame;

// MARK: Metadata

/// A color space by the code points of ITU-T H.273, as in `nclx` of HEIF and cICP of PNG.
typedef struct ccodecs_color_codes {
  uint16_t primaries;
  uint16_t transfer;
} ccodecs_color_codes;

/// The metadata of a file, as an encoder or a rewriter writes it.
typedef struct ccodecs_metadata {
  const uint8_t *exif; ///< EXIF data (a TIFF block), or NULL.
  size_t exif_count;   ///< Size of `exif` in bytes, at most 65527; 0 for none.
  const uint8_t *icc;  ///< An ICC profile for the pixels, or NULL. Ignored by formats that cannot contain one.
  size_t icc_count;    ///< Size of `icc` in bytes, at most CCODECS_MAX_PROFILE_BYTES; 0 for none.
  const uint8_t *xmp;  ///< An XMP packet in UTF-8, or NULL.
  size_t xmp_count;    ///< Size of `xmp` in bytes, at most 65504; 0 for none.
  const uint8_t *iptc; ///< Datasets of IPTC-IIM, or NULL. Only JPEG contains them.
  size_t iptc_count;   ///< Size of `iptc` in bytes, at most 65000; 0 for none.
  /// PQ or HLG, without an ICC profile; 0 for none. Only PNG, AVIF and JPEG XL contain them.
  ccodecs_color_codes color_codes;
} ccodecs_metadata;

// MARK: Decoder

/// A limit that an image exceeds.
typedef struct ccodecs_excess {
  const char *limit_name; ///< A literal, as in "max_buffered_pixels"; NULL if no limit was exceeded or it has no name.
  uint64_t limit;         ///< The value of the limit.
  uint64_t value;         ///< The image's value, at least; counting ends when the limit is exceeded.
} ccodecs_excess;

/// Limits checked against the header before anything is allocated for the image. Zero means no limit.
struct ccodecs_limits {
  uint64_t max_pixels;             ///< Maximum width x height of images that are decoded row by row.
  uint64_t max_whole_input_pixels; ///< Maximum width x height of images whose decoder buffers the whole bitmap.
  uint32_t max_scans;              ///< Maximum number of scans of a progressive JPEG; more return CCODECS_LIMIT.
  uint32_t max_frames;             ///< Maximum number of frames of an animation that are composed.
  uint64_t max_frame_pixels;       ///< Maximum sum of the pixels of these frames, each at least the whole canvas.
  bool can_spill;                  ///< Whether spill_directory is set.
  /// The descriptor of a directory for unnamed temporary files. Once the image uses CCODECS_SPILL_BYTES of memory,
  /// large buffers are spooled there: the bytes or coefficients of a progressive JPEG, the planes of a non-interleaved
  /// JPEG, the pixels of an interlaced PNG, and the channels of a PSD. It must stay open as long as the decoder.
  int spill_directory;
  /// Whether spill_directory is a socket for processes that cannot create files: it answers each size, a uint64_t, with
  /// the descriptor of a new unnamed file of this size.
  bool spill_is_socket;
  /// Not a limit: keep EXIF, XMP and IPTC for ccodecs_decoder_metadata. A WebP with XMP, which follows the image, an
  /// animated WebP, and a JPEG XL in boxes are then buffered.
  bool keeps_metadata;
  /// Not a limit: keep the gain map of an HEIC or AVIF file for ccodecs_decoder_gain_map.
  bool keeps_gain_map;
  /// Not a limit: the image is a gain map. Rows of an HEIC or AVIF without chroma are then gray.
  bool is_gain_map;
};

/// The memory in bytes that an image may use before large blocks are spooled to limits.spill_directory.
#define CCODECS_SPILL_BYTES (12u << 20)

/// Opens the directory at `path` for ccodecs_limits.spill_directory. Returns its descriptor, or -1 if no file can be
/// created in it.
int ccodecs_spill_open(const char *path);

/// Creates an unnamed file with `byte_count` zeros in a directory that ccodecs_spill_open returned, and allocates their
/// disk space. Returns a descriptor for reading and writing, or -1.
int ccodecs_spill_create_file(int directory, uint64_t byte_count);

/// Closes a descriptor that ccodecs_spill_open returned.
void ccodecs_spill_close(int directory);

/// The next bytes of the image. Borrowed for one call, which advances `bytes` and `count`.
typedef struct ccodecs_input {
  const uint8_t *bytes;
  size_t count;
  bool is_last; ///< The image's bytes end with this window.
} ccodecs_input;

/// The color space of an image as stored.
typedef enum ccodecs_color_space {
  CCODECS_COLOR_GRAY = 0,
  CCODECS_COLOR_YCBCR = 1, ///< Full-range BT.601, as in JFIF.
  CCODECS_COLOR_RGB = 2,
  CCODECS_COLOR_CMYK = 3,
  CCODECS_COLOR_YCCK = 4,
} ccodecs_color_space;

/// Bits of ccodecs_header.warnings: conditions that do not prevent decoding.
enum {
  CCODECS_WARNING_BAD_EXIF = 1u << 0,    ///< The EXIF block is malformed and was ignored.
  CCODECS_WARNING_FIRST_FRAME = 1u << 1, ///< Others than the first image, which a viewer would miss.
  CCODECS_WARNING_DAMAGED = 1u << 2,     ///< The decoder repaired or skipped damaged data.
  CCODECS_WARNING_BAD_PROFILE = 1u << 3, ///< The color profile is unusable; colors are treated as sRGB.
  CCODECS_WARNING_TRUNCATED = 1u << 4,   ///< The file is truncated; the missing part is filled with gray.
  CCODECS_WARNING_NO_END = 1u << 6,      ///< Rewriters only: the file lacked its end, which was added.
  CCODECS_WARNING_TOLERATED = 1u << 5,   ///< Damage was tolerated, from header.damaged_row on.
  CCODECS_WARNING_NO_LOSS = 1u << 7,     ///< Damage was tolerated that cost no row, such as a wrong checksum.
  CCODECS_WARNING_LATE_EXIF = 1u << 8,   ///< The orientation follows the rows, and is ignored.
};

/// The colors that the samples of an image define.
typedef enum ccodecs_gamut {
  CCODECS_GAMUT_SRGB = 0,        ///< sRGB, as the image does not specify a color space, or an unusable one.
  CCODECS_GAMUT_TAGGED_SRGB = 1, ///< sRGB, as a profile specifies.
  CCODECS_GAMUT_DISPLAY_P3 = 2,
  CCODECS_GAMUT_OTHER = 3, ///< Those of any other profile.
  CCODECS_GAMUT_HDR = 4,   ///< PQ or HLG, for which the profile contains a tone curve.
} ccodecs_gamut;

/// Properties of an image, from its header.
typedef struct ccodecs_header {
  ccodecs_format format;
  uint32_t width;        ///< As stored, before orientation, in pixels.
  uint32_t height;       ///< As stored, before orientation, in pixels.
  uint8_t orientation;   ///< EXIF orientation, 1 to 8; 1 when the image has no valid one.
  bool is_storage_order; ///< The orientation describes the format's order of rows and columns, not a camera's position.
  uint8_t bit_depth;     ///< Bits per sample as stored.
  bool is_16bit;         ///< Rows have 16 bits per sample: GRAY16, RGB16 or RGBA16.
  bool has_alpha;
  bool is_progressive;   ///< Progressive JPEG or interlaced PNG: no row is final before the last scan or pass.
  bool buffers_input;    ///< The decoder buffers the whole compressed file before the first row.
  bool buffers_bitmap;   ///< The decoder buffers the whole decoded image before the first row.
  bool can_buffer_input; ///< Only a part of the file is buffered, unless ccodecs_decoder_buffer_input is called.
  ccodecs_color_space color_space;
  uint8_t chroma_across; ///< Luma columns per chroma column of the decoded planes, or of JPEG in TIFF; 0 if unknown.
  uint8_t chroma_down;   ///< Luma rows per chroma row; 0 if unknown.
  bool has_profile;      ///< The colors are not sRGB: see ccodecs_decoder_profile.
  ccodecs_gamut gamut;
  ccodecs_color_codes color_codes; ///< With CCODECS_GAMUT_HDR, what the samples are; else 0.
  uint32_t frame_count;            ///< Number of frames; 0 if the bytes read so far do not specify it.
  uint32_t play_count;             ///< How often an animation is played, as far as it is known; 0 for ever.
  bool has_frames;                 ///< ccodecs_decoder_select_frames can select others than the first.
  bool has_pages; ///< It can select any one of frame_count pages or pictures, which differ in their properties.
  /// The image that is decoded without ccodecs_decoder_select_frames is none of the frames (APNG).
  bool has_default_image;
  uint32_t warnings; ///< Bits of CCODECS_WARNING_*; more may be set until CCODECS_DONE.
  /// There are content credentials (C2PA), which no result of this image satisfies. Only set if limits.keeps_metadata.
  bool has_credentials;
  bool is_damaged;      ///< The header is damaged: start fails with CCODECS_CORRUPT unless damage is tolerated.
  uint32_t damaged_row; ///< With CCODECS_WARNING_TOLERATED: the first stored row that damage may affect.
} ccodecs_header;

/// The layout of samples in rows. 16-bit samples are in native byte order, in rows aligned to two bytes; 65535
/// corresponds to 255 in 8-bit samples.
typedef enum ccodecs_pixels {
  CCODECS_PIXELS_GRAY8 = 0,  ///< One plane, one channel.
  CCODECS_PIXELS_RGB8 = 1,   ///< One plane, three interleaved channels.
  CCODECS_PIXELS_RGBA8 = 2,  ///< One plane, four interleaved channels, alpha not premultiplied.
  CCODECS_PIXELS_YCC8 = 3,   ///< Three planes of one channel: Y, Cb, Cr, full-range BT.601, each with its own size.
  CCODECS_PIXELS_CMYK8 = 4,  ///< One plane, four interleaved inverted channels: 255 means no ink.
  CCODECS_PIXELS_GRAY16 = 5, ///< Like GRAY8, with 16 bits per sample.
  CCODECS_PIXELS_RGB16 = 6,  ///< Like RGB8, with 16 bits per sample.
  CCODECS_PIXELS_RGBA16 = 7, ///< Like RGBA8, with 16 bits per sample.
} ccodecs_pixels;

/// The maximum number of planes of an image.
#define CCODECS_MAX_PLANES 3

/// One plane of a decoded or encoded image.
///
/// A pixel edge at x in the image (0 to its width) is at x * horizontal_scale in the plane. The scale is 0.5 for a
/// 4:2:0 chroma plane, and N/8 for a luma plane decoded at N/8. It is exact, while the plane's size is rounded up.
typedef struct ccodecs_plane {
  uint32_t width;   ///< Width in pixels of this plane.
  uint32_t height;  ///< Height in rows.
  uint8_t channels; ///< Interleaved samples per pixel.
  double horizontal_scale;
  double vertical_scale;
} ccodecs_plane;

/// The sample layout and planes of the rows that a decoder returns.
typedef struct ccodecs_layout {
  ccodecs_pixels pixels;
  uint32_t plane_count;
  ccodecs_plane planes[CCODECS_MAX_PLANES];
} ccodecs_layout;

/// A strip of rows, top to bottom. The row counts may differ between planes, and may be 0.
typedef struct ccodecs_rows {
  const uint8_t *planes[CCODECS_MAX_PLANES]; ///< First byte of the first row.
  size_t row_strides[CCODECS_MAX_PLANES];    ///< Bytes from one row to the next.
  uint32_t row_counts[CCODECS_MAX_PLANES];   ///< Rows in this strip.
} ccodecs_rows;

/// Options for ccodecs_decoder_start.
typedef struct ccodecs_decode_options {
  /// Decode at N/8 of the stored size, 1 to 8. Must be a scale in ccodecs_decoder_scales; 8 is always supported.
  uint8_t scale_eighths;
  /// Return CMYK and YCCK images as CCODECS_PIXELS_CMYK8, for a conversion with their profile. Otherwise they are
  /// converted to CCODECS_PIXELS_RGB8 without a profile. Ignored for other images.
  bool keeps_cmyk;
  /// Decode a file that is truncated after its first row: missing rows are filled with gray, and
  /// CCODECS_WARNING_TRUNCATED is set. Otherwise decoding ends with CCODECS_TRUNCATED. A progressive JPEG counts as
  /// having rows once its first scan has begun, and is returned as far as it was refined. Interlaced PNG and formats
  /// whose decoder buffers the file, except TIFF, are not decoded in part.
  bool tolerates_truncation;
  /// Decode damaged data as far as possible: the rest is filled with gray, and CCODECS_WARNING_TOLERATED is set.
  /// Otherwise, and when no row can be decoded, decoding ends with CCODECS_CORRUPT. A JPEG resumes at the next restart
  /// marker of the scan; a progressive JPEG loses the rest of a damaged scan. A PNG chunk with a wrong CRC is used
  /// anyway. For other formats and other PNG damage, the rows before the damage are returned if the decoder returns
  /// rows before the end of the file.
  bool tolerates_damage;
  /// Allow skipping the loop filter of lossy WebP, on which no other block depends. Intended for rows that will be
  /// scaled down to a quarter or less. Ignored for other formats.
  bool may_skip_smoothing;
  /// Return lossy WebP as CCODECS_PIXELS_RGB8, converted by libwebp, as viewers show it. Planes lose up to one level
  /// when they are expanded to full range. Ignored for other formats.
  bool returns_rgb;
} ccodecs_decode_options;

/// A push decoder for one image.
typedef struct ccodecs_decoder ccodecs_decoder;

/// Creates a decoder for `format`. Returns CCODECS_UNSUPPORTED if the build has no decoder for it, CCODECS_NO_MEMORY if
/// the budget is exhausted. `limits` is copied; `budget` is borrowed until destroy.
ccodecs_status ccodecs_decoder_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget, ccodecs_decoder **decoder);

/// Reads the header, up to the bytes of the first row. Returns CCODECS_OK once ccodecs_decoder_header is available.
ccodecs_status ccodecs_decoder_read_header(ccodecs_decoder *decoder, ccodecs_input *input);

/// Returns the header that read_header parsed. Valid until destroy.
const ccodecs_header *ccodecs_decoder_header(const ccodecs_decoder *decoder);

/// Selects the frames that are returned: `count` frames, or all with 0, from the one at index `first` on; a negative
/// index counts from the end. The default is the first frame alone, for which a decoder needs the least memory. The
/// properties of other frames may differ from those of the first, so this updates the header. With header.has_pages,
/// one page is returned whatever `count` is. A selection of other frames returns CCODECS_UNSUPPORTED if both has_frames
/// and has_pages are false, unless the image has only one; CCODECS_NO_FRAME, here or later, if there is no frame at
/// `first`. Fewer than `count` frames are no error. Legal after read_header and before start, any number of times.
ccodecs_status ccodecs_decoder_select_frames(ccodecs_decoder *decoder, int64_t first, uint32_t count);

/// Makes a decoder with header.can_buffer_input buffer the whole file, as a frame counted from the end, a picture and a
/// rewriter need it: read_header continues until it is complete, and counts the frames. Forgets the selected frames.
/// Legal after read_header and before start.
ccodecs_status ccodecs_decoder_buffer_input(ccodecs_decoder *decoder);

/// Sets the orientation in the header to one that the caller has found behind the rows of a PNG. The decoder and the
/// rewriter, which meet it too late, then do not warn. Ignored unless it is 1 to 8. Legal after read_header and before
/// start.
void ccodecs_decoder_set_orientation(ccodecs_decoder *decoder, uint8_t orientation);

/// Returns the image's ICC color profile (ICC.1) if its colors are not sRGB. *count is 0 if the image has no profile,
/// or if the profile is sRGB or unusable (CCODECS_WARNING_BAD_PROFILE). The bytes belong to the decoder and are valid
/// until start. Legal after read_header.
void ccodecs_decoder_profile(const ccodecs_decoder *decoder, const uint8_t **bytes, size_t *count);

/// The maximum size in bytes of the block that ccodecs_decoder_trailing_metadata writes.
#define CCODECS_MAX_COPYRIGHT_BYTES 8320

/// Writes the copyright metadata as an EXIF block (TIFF) that contains only Artist and Copyright. Returns the block's
/// size in bytes; 0 if the image has neither. The sources are the image's EXIF block, the directory of a TIFF, and the
/// Author and Copyright keywords in tEXt and iTXt chunks of a PNG. Each text is truncated to 4 KiB. Legal after
/// read_header; a PNG may have more copyright metadata after the last row.
size_t ccodecs_decoder_trailing_metadata(const ccodecs_decoder *decoder, uint8_t block[CCODECS_MAX_COPYRIGHT_BYTES]);

/// Sets EXIF, XMP and IPTC to those of the image as stored, if limits.keeps_metadata. Each has at most 64 KiB; larger
/// ones are left out. The bytes belong to the decoder and are valid until start. Legal after read_header. Sources are
/// JPEG, PNG (before the image data), WebP, AVIF, HEIC, JPEG XL and TIFF, and EXIF of PSD.
void ccodecs_decoder_metadata(const ccodecs_decoder *decoder, ccodecs_metadata *metadata);

/// The way in which a gain map is described.
typedef enum ccodecs_gain_map_kind {
  CCODECS_GAIN_MAP_NONE = 0,  ///< There is no gain map.
  CCODECS_GAIN_MAP_ISO = 1,   ///< As ISO 21496-1 specifies.
  CCODECS_GAIN_MAP_APPLE = 2, ///< In XMP of the map, and in the camera's note of its image.
} ccodecs_gain_map_kind;

/// The HDR gain map of an HEIC or AVIF file.
typedef struct ccodecs_gain_map {
  ccodecs_gain_map_kind kind;
  uint32_t width;             ///< As stored, in pixels; nothing is decoded yet.
  uint32_t height;            ///< As stored, in pixels.
  const uint8_t *file;        ///< An HEIC or AVIF file that contains the map alone, in the orientation of its image.
  size_t file_count;          ///< Size of `file` in bytes; 0 if the map is damaged, too large for the budget, or has
                              ///< more than 65535 columns or rows.
  const uint8_t *description; ///< The metadata of ISO 21496-1 (annex C, from the versions on), or an XMP packet.
  size_t description_count;   ///< Size of `description` in bytes, at most 64 KiB; 0 without one.
} ccodecs_gain_map;

/// Sets *map to the gain map of the image, if limits.keeps_gain_map. The bytes belong to the decoder and are valid
/// until start. Legal after read_header.
void ccodecs_decoder_gain_map(const ccodecs_decoder *decoder, ccodecs_gain_map *map);

/// Returns the scales that start accepts: bit N-1 set means N/8. Legal after read_header.
uint8_t ccodecs_decoder_scales(const ccodecs_decoder *decoder);

/// Computes an upper bound of the budget's use in bytes while this image is decoded with `options`, including the bytes
/// already charged. Charges nothing. Legal after read_header, before start.
ccodecs_status ccodecs_decoder_estimate(
    const ccodecs_decoder *decoder, const ccodecs_decode_options *options, uint64_t *byte_count);

/// Fixes the scale and the layout, and allocates the row buffers. Releases the profile's bytes.
ccodecs_status ccodecs_decoder_start(
    ccodecs_decoder *decoder, const ccodecs_decode_options *options, ccodecs_layout *layout);

/// Decodes until rows are ready, a frame is done, input is needed, or the image is complete. `rows` points into the
/// decoder and is valid until the next call on it. Bytes after the end of the image stay in the window.
ccodecs_status ccodecs_decoder_read_rows(ccodecs_decoder *decoder, ccodecs_input *input, ccodecs_rows *rows);

/// Returns the frame of the rows that read_rows returned last. Legal after start; valid until destroy.
const ccodecs_frame *ccodecs_decoder_frame(const ccodecs_decoder *decoder);

/// Returns the reason for the failure, or "" if the decoder has not failed. Valid until destroy.
const char *ccodecs_decoder_message(const ccodecs_decoder *decoder);

/// Returns the limit that caused the failure CCODECS_LIMIT.
ccodecs_excess ccodecs_decoder_excess(const ccodecs_decoder *decoder);

/// Frees the decoder and refunds its budget; NULL is ignored.
void ccodecs_decoder_destroy(ccodecs_decoder *decoder);

// MARK: Color

/// The maximum size of a profile in bytes. The largest profiles in use, for seven inks, have about 3 MiB.
#define CCODECS_MAX_PROFILE_BYTES (4u << 20)

/// A conversion of an image's colors with relative colorimetric intent.
typedef struct ccodecs_conversion ccodecs_conversion;

/// The color space to which a conversion converts.
typedef enum ccodecs_color_target {
  CCODECS_TARGET_SRGB = 0,
  CCODECS_TARGET_DISPLAY_P3 = 1, ///< The primaries of DCI-P3 with the white and the curve of sRGB.
} ccodecs_color_target;

/// The maximum size in bytes of a compact profile.
enum { CCODECS_COMPACT_PROFILE_BYTES = 492 };

/// Writes an ICC profile (version 4) of sRGB or Display P3 that contains only what the format requires. Returns its
/// size in bytes.
size_t ccodecs_compact_profile(ccodecs_color_target space, uint8_t profile[CCODECS_COMPACT_PROFILE_BYTES]);

/// Returns whether this build converts colors: with littlecms. Otherwise profiles are kept or ignored, and there are no
/// conversions.
bool ccodecs_converts_colors(void);

/// Returns an upper bound of the bytes that a conversion from this profile charges; 0 without a profile.
size_t ccodecs_conversion_estimate(const uint8_t *profile, size_t profile_count);

/// Returns an upper bound of the bytes that a conversion from sRGB charges.
size_t ccodecs_conversion_estimate_from_srgb(void);

/// Creates a conversion from the decoder's profile, or from sRGB if it has none. Returns CCODECS_OK or
/// CCODECS_NO_MEMORY. Legal before start, any number of times. `source` is any layout except YCC8. CMYK8 is converted
/// to RGB8, and 16-bit samples to 8-bit samples unless `keeps_depth`; other layouts are kept. *conversion is NULL if
/// there is nothing to convert or if the profile is unusable; in the latter case the header's warnings include
/// CCODECS_WARNING_BAD_PROFILE.
ccodecs_status ccodecs_decoder_create_conversion(
    ccodecs_decoder *decoder, ccodecs_pixels source, ccodecs_color_target target, bool keeps_depth,
    ccodecs_conversion **conversion);

/// Returns the sRGB level as which the profiles of PQ and HLG show light that is `level` of the reference white, 203
/// cd/m2: 229 for 255.
uint8_t ccodecs_profile_hdr_level(uint8_t level);

/// Converts pixels of red, green, blue and alpha from sRGB to the colors of a profile. Alpha is kept for RGB; gray has
/// the same value three times; CMYK takes all four samples, as CCODECS_PIXELS_CMYK8. Returns false, and leaves the
/// pixels as they are, if the profile does not define this direction, or if the budget is exhausted. Frees all memory
/// before it returns.
bool ccodecs_profile_convert(
    const uint8_t *icc, size_t icc_count, uint8_t *pixels, size_t pixel_count, ccodecs_budget *budget);

/// Converts `pixel_count` pixels. 16-bit samples must be aligned to two bytes. `source` and `destination` may be the
/// same if the conversion keeps the sample layout.
void ccodecs_conversion_convert(
    const ccodecs_conversion *conversion, const uint8_t *source, uint8_t *destination, size_t pixel_count);

/// Frees the conversion and refunds its budget, which must still be valid; NULL is ignored.
void ccodecs_conversion_destroy(ccodecs_conversion *conversion);

// MARK: Encoder

/// The chroma subsampling of an encoded image.
typedef enum ccodecs_subsampling {
  CCODECS_SUBSAMPLING_444 = 0, ///< Chroma planes have the size of the luma plane.
  CCODECS_SUBSAMPLING_420 = 1, ///< Chroma planes have half the width and height, rounded up.
  CCODECS_SUBSAMPLING_422 = 2, ///< Chroma planes have half the width, rounded up. JPEG only.
} ccodecs_subsampling;

/// PNG row filter (PNG specification, section 9).
typedef enum ccodecs_png_filter {
  CCODECS_PNG_FILTER_NONE = 0,
  CCODECS_PNG_FILTER_SUB = 1,
  CCODECS_PNG_FILTER_UP = 2,
  CCODECS_PNG_FILTER_AVERAGE = 3,
  CCODECS_PNG_FILTER_PAETH = 4,
  CCODECS_PNG_FILTER_ADAPTIVE = 5, ///< For each row, the filter with the smallest sum of absolute differences.
} ccodecs_png_filter;

/// Options of the JPEG encoder.
typedef struct ccodecs_jpeg_options {
  bool is_progressive;     ///< Buffers the coefficients: up to two bytes per sample.
  bool has_optimal_tables; ///< Huffman tables of the whole image, not of its first 250,000 symbols. Buffers likewise.
  uint16_t restart_row_count; ///< Number of MCU rows between restart markers; 0 for no markers.
  uint8_t quality_64ths;      ///< 64ths of a quality step to add to a quality below 100: 0 to 63.
} ccodecs_jpeg_options;

/// Options of the PNG encoder.
typedef struct ccodecs_png_options {
  uint8_t compression_level; ///< Deflate level, 0 to 9.
  ccodecs_png_filter filter;
  bool is_interlaced;     ///< Adam7 interlacing. Buffers the image.
  uint16_t palette_count; ///< Palette size, 2 to 256, if built in; 0 for no palette. Buffers the image.
} ccodecs_png_options;

/// Options of the WebP encoder.
typedef struct ccodecs_webp_options {
  bool is_lossless;
  uint8_t near_lossless; ///< Near-lossless level of a lossless file, from 0 (smallest) to 100 (exact).
  uint8_t method;        ///< Effort, from 0 (fastest) to 6 (smallest).
  bool sharp_chroma; ///< Lossy only: converts to 4:2:0 so that edges of strong colors stay sharp, which takes longer.
  bool saves_memory; ///< Lossy only: takes 1.5 times as long, with a third to a half of the memory.
} ccodecs_webp_options;

/// Options of the AVIF encoder.
typedef struct ccodecs_avif_options {
  uint8_t effort; ///< From 0 (fastest) to 9 (smallest).
} ccodecs_avif_options;

/// Options of the JPEG XL encoder.
typedef struct ccodecs_jxl_options {
  bool is_lossless;
  uint8_t effort; ///< From 1 (fastest) to 9 (smallest).
} ccodecs_jxl_options;

/// Options of the GIF encoder.
typedef struct ccodecs_gif_options {
  uint16_t color_count; ///< Maximum number of colors of a palette, 2 to 256; 0 for 256. One may be transparent.
  bool is_spooled;      ///< Write nothing before finish, as APNG and WebP do. Only with has_frames.
} ccodecs_gif_options;

/// The type of an element of a raw result; all of them are little-endian.
typedef enum ccodecs_raw_element {
  CCODECS_RAW_U8 = 0,
  CCODECS_RAW_F16 = 1,  ///< IEEE 754 binary16.
  CCODECS_RAW_BF16 = 2, ///< The upper half of IEEE 754 binary32.
  CCODECS_RAW_F32 = 3,  ///< IEEE 754 binary32.
} ccodecs_raw_element;

/// The channels of a raw result.
typedef enum ccodecs_raw_channels {
  CCODECS_RAW_RGB = 0,
  CCODECS_RAW_BGR = 1,
  CCODECS_RAW_GRAY = 2, ///< (19595 red + 38470 green + 7471 blue + 32768) / 65536, rounded down.
} ccodecs_raw_channels;

/// Options of raw results.
///
/// An element is sample * scales[c] + offsets[c] for the result's channel c: in single precision, where the product is
/// rounded before the sum, and then rounded to the nearest value of its type, or to the even one of two. An element of
/// 8 bits is the sample.
typedef struct ccodecs_raw_options {
  ccodecs_raw_element element;
  ccodecs_raw_channels channels;
  bool is_planar; ///< One plane after another, not one pixel. Buffers the result if it has several channels.
  float scales[3];
  float offsets[3];
} ccodecs_raw_options;

/// Options for ccodecs_encoder_create.
typedef struct ccodecs_encode_options {
  ccodecs_format format;           ///< CCODECS_FORMAT_JPEG, _PNG, _WEBP, _GIF, _RAW, or _AVIF and _JXL if built in.
  uint32_t width;                  ///< In pixels, from 1 to the maximum of the format.
  uint32_t height;                 ///< In pixels, with the same limits.
  ccodecs_pixels pixels;           ///< See ccodecs_format_takes.
  ccodecs_subsampling subsampling; ///< JPEG and AVIF; also sets the plane sizes for YCC8 input.
  uint8_t quality;                 ///< 1 to 100; ignored for lossless results.
  ccodecs_jpeg_options jpeg;       ///< Each format's options are ignored for other formats.
  ccodecs_png_options png;
  ccodecs_webp_options webp;
  ccodecs_avif_options avif;
  ccodecs_jxl_options jxl;
  ccodecs_gif_options gif;
  ccodecs_raw_options raw;
  ccodecs_metadata metadata; ///< To embed; borrowed for create.
  /// Allow any number of frames; PNG, WebP and GIF only. A PNG or WebP is then not written before finish, and
  /// compressed frames are spooled as `spill` specifies. A result for which one frame began is a still image all the
  /// same.
  bool has_frames;
  ccodecs_limits spill; ///< Only the fields for spooled data are used; the directory must stay open.
} ccodecs_encode_options;

/// Returns whether the encoder of `format`, if built in, accepts this sample layout.
bool ccodecs_format_takes(ccodecs_format format, ccodecs_pixels pixels);

/// Returns the maximum width and height in pixels of images that are encoded.
uint32_t ccodecs_format_max_side(ccodecs_format format);

/// An encoder for one image.
typedef struct ccodecs_encoder ccodecs_encoder;

/// Creates an encoder. Returns CCODECS_UNSUPPORTED for a format or sample layout not listed above, CCODECS_LIMIT for a
/// size that exceeds the format's maximum, CCODECS_MISUSE for an option out of range. `budget` is borrowed until
/// destroy.
ccodecs_status ccodecs_encoder_create(
    const ccodecs_encode_options *options, ccodecs_budget *budget, ccodecs_encoder **encoder);

/// Computes an upper bound of the bytes that an encoder for `options` charges if its output is read after every 16
/// rows.
ccodecs_status ccodecs_encoder_estimate(const ccodecs_encode_options *options, uint64_t *byte_count);

/// Returns an upper bound of the encoded file's size in bytes; 0 for a format that this build cannot encode.
uint64_t ccodecs_encoder_max_bytes(const ccodecs_encode_options *options);

/// Begins a frame with the size of the options. A still image is one frame, which the first write begins if this was
/// not called. Returns CCODECS_UNSUPPORTED for a second frame, unless the options allow several.
ccodecs_status ccodecs_encoder_begin_frame(ccodecs_encoder *encoder, const ccodecs_frame *frame);

/// Encodes the next rows of the frame, top to bottom. `rows` is borrowed for the call. Row counts may differ between
/// planes.
ccodecs_status ccodecs_encoder_write(ccodecs_encoder *encoder, const ccodecs_rows *rows);

/// Writes the next rows of a frame: those that the frame before it has there. Returns CCODECS_MISUSE for the first
/// frame, and unless the options allow several.
ccodecs_status ccodecs_encoder_repeat(ccodecs_encoder *encoder, uint32_t row_count);

/// Ends a frame. Returns CCODECS_MISUSE if rows are missing.
ccodecs_status ccodecs_encoder_end_frame(ccodecs_encoder *encoder);

/// Lets the frame that ended last be shown for the duration of `frame` longer, instead of encoding `frame`. Returns
/// whether it is: not before the first frame, for another duration_divisor, or if one of them is shown for at most 10
/// ms.
bool ccodecs_encoder_extend_frame(ccodecs_encoder *encoder, const ccodecs_frame *frame);

/// Lets the result be an animation, with the duration of its frame, even if only one frame begins. Ignored unless the
/// options allow several frames. Legal before finish.
void ccodecs_encoder_keep_animation(ccodecs_encoder *encoder);

/// Appends an EXIF block of at most 65527 bytes after the last row, before finish. `exif` is borrowed for the call.
/// Returns CCODECS_UNSUPPORTED, without failing the encoder, if the options already contained one or if the format
/// stores EXIF before the rows, as all formats except PNG do.
ccodecs_status ccodecs_encoder_append_exif(ccodecs_encoder *encoder, const uint8_t *exif, size_t count);

/// Ends the image, and its frame if end_frame was not called. Returns CCODECS_MISUSE if rows are missing.
ccodecs_status ccodecs_encoder_finish(ccodecs_encoder *encoder);

/// Returns the number of compressed bytes that are ready to be read.
size_t ccodecs_encoder_pending(const ccodecs_encoder *encoder);

/// Moves up to `capacity` compressed bytes into `buffer`. Returns their number; 0 if there are none, or if the encoder
/// has failed.
size_t ccodecs_encoder_read(ccodecs_encoder *encoder, uint8_t *buffer, size_t capacity);

/// Moves as ccodecs_encoder_read, but does not copy: *bytes are valid until the next call with this encoder. More may
/// be left, unless there are none.
size_t ccodecs_encoder_take(ccodecs_encoder *encoder, size_t capacity, const uint8_t **bytes);

/// Lets the functions above return the result of an encoder that spools it from its beginning. Legal after finish.
void ccodecs_encoder_rewind(ccodecs_encoder *encoder);

/// Asked from time to time during a long call whether it may go on.
typedef struct ccodecs_interrupt {
  bool (*may_continue)(void *owner); ///< NULL to go on always.
  void *owner;
} ccodecs_interrupt;

/// Sets the interrupt of ccodecs_encoder_end_frame and _finish, which then may return CCODECS_INTERRUPTED. Only
/// encoders that compress a whole frame at once use it: WebP, and PNG with a palette.
void ccodecs_encoder_set_interrupt(ccodecs_encoder *encoder, ccodecs_interrupt interrupt);

/// Returns the failure of the encoder, or CCODECS_OK.
ccodecs_status ccodecs_encoder_failure(const ccodecs_encoder *encoder);

/// Returns the number of frames that the finished result contains. Equal frames in sequence are stored as one.
uint32_t ccodecs_encoder_stored_frames(const ccodecs_encoder *encoder);

/// Returns whether the encoder of `format`, if built in, can store several frames.
bool ccodecs_format_has_frames(ccodecs_format format);

/// Returns the reason for the failure, or "" if the encoder has not failed. Valid until destroy.
const char *ccodecs_encoder_message(const ccodecs_encoder *encoder);

/// Frees the encoder and refunds its budget; NULL is ignored.
void ccodecs_encoder_destroy(ccodecs_encoder *encoder);

/// A part of an image's blocks, from which the size of its JPEG at any quality is estimated.
typedef struct ccodecs_jpeg_sample ccodecs_jpeg_sample;

/// Computes an upper bound of the bytes that a sample charges.
uint64_t ccodecs_jpeg_sample_byte_count(const ccodecs_encode_options *options);

/// Creates a sample of an image.
/// - `options`: Those of the encoder, valid for it; the quality is ignored.
/// - `rows`: All rows of the image, borrowed for the call.
/// Returns CCODECS_NO_MEMORY if `budget`, which is borrowed until destroy, is exhausted.
ccodecs_status ccodecs_jpeg_sample_create(
    const ccodecs_encode_options *options, const ccodecs_rows *rows, ccodecs_budget *budget,
    ccodecs_jpeg_sample **sample);

/// Returns the estimated size in bytes of a baseline file at a quality of 1 to 100. The ratio of two estimates is
/// within one or two percent of the ratio of the sizes, progressive files included. It takes the time of about 2048
/// blocks at most.
double ccodecs_jpeg_sample_estimate(const ccodecs_jpeg_sample *sample, uint8_t quality, uint8_t quality_64ths);

/// Frees the sample and refunds its budget; NULL is ignored.
void ccodecs_jpeg_sample_destroy(ccodecs_jpeg_sample *sample);

// MARK: Rewriter

/// A rewriter, which removes the metadata of an image file without decoding the image.
///
/// The rewriter checks the structure of markers, chunks and compressed data, and copies what a decoder needs. From a
/// JPEG it keeps tables, frame and scans, and writes its own JFIF segment; from a PNG it keeps IHDR, PLTE, tRNS, IDAT
/// and IEND; from a WebP the image and its alpha; if all frames of an animation are selected, also what stores and
/// times them, from a GIF as well. It does not read bytes after the image. It does not parse compressed data: damage
/// inside is detected only by a PNG's CRCs or a JPEG's restart markers. A caller that delivers the result decodes it at
/// the same time.
///
/// The legal order of calls is create; note, with all bytes that the image's decoder consumed until its header was
/// complete; survey; start, with that decoder; read until CCODECS_DONE; destroy. Destroy is legal at any point. A
/// header that the rewriter does not understand is not an error: survey then reports that neither copying nor rotation
/// is possible.
typedef struct ccodecs_rewriter ccodecs_rewriter;

/// The operations that a rewriter supports for an image, and properties of its compression.
typedef struct ccodecs_survey {
  bool can_copy;        ///< The image can be copied.
  bool may_copy_whole;  ///< It may be copied once ccodecs_decoder_buffer_input has buffered the whole file.
  bool is_lossless;     ///< The image is a PNG, a GIF or a lossless WebP.
  bool has_fine_chroma; ///< JPEG whose chroma planes have more than half of the luma plane's columns or rows.
  /// The minimum quality, 1 to 100, at which this module's encoder would quantise no more coarsely. It is derived from
  /// the sums of a JPEG's quantisation tables, or from the mean quantiser of a WebP's segments.
  uint8_t quality;
  /// JPEG: bit N is set if EXIF orientation N can be applied losslessly, in whole blocks.
  uint16_t rotations;
  bool can_recompress;        ///< JPEG: it can be recompressed as JPEG XL, in builds that define CCODECS_JXL.
  bool can_reconstruct;       ///< JPEG XL: the JPEG that it was recompressed from can be reconstructed.
  bool can_reconstruct_whole; ///< So can its metadata.
} ccodecs_survey;

/// The reconstruction of the JPEG that a JPEG XL was recompressed from.
typedef enum ccodecs_reconstruction {
  CCODECS_RECONSTRUCTION_NONE = 0,
  CCODECS_RECONSTRUCTION_STRIPPED = 1, ///< Rewritten, as a JPEG is copied: without its metadata.
  CCODECS_RECONSTRUCTION_WHOLE = 2,    ///< The file itself, byte by byte.
} ccodecs_reconstruction;

/// Options for ccodecs_rewriter_start.
typedef struct ccodecs_rewrite_options {
  /// The EXIF orientation to apply. 1 copies the image. 2 to 8 transform a JPEG losslessly, block by block; its
  /// coefficients are decoded and buffered.
  uint8_t orientation;
  ccodecs_metadata metadata; ///< To embed; borrowed for start.
  /// Accept a file that lacks only its end: a JPEG's end marker, a PNG's IEND chunk, or the last 4096 bytes of a WebP
  /// image. The rewriter sets CCODECS_WARNING_NO_END and emits the missing bytes. Rows of a copy may be missing too, so
  /// the caller must decode the bytes before the warning.
  bool may_lack_end;
  /// 1 to 9: recompress a JPEG as JPEG XL with this effort. The result contains the coefficients, which libjxl reads
  /// from the whole file. Needs orientation 1 and no metadata. 0 keeps the format.
  uint8_t jxl_effort;
  /// Reconstruct a JPEG from its JPEG XL, which is buffered as a whole. Needs orientation 1, and a whole one no
  /// metadata.
  ccodecs_reconstruction reconstruction;
} ccodecs_rewrite_options;

/// A piece of the rewritten file.
typedef struct ccodecs_piece {
  const uint8_t *bytes;
  size_t count;
} ccodecs_piece;

/// Creates a rewriter for JPEG, PNG, WebP, GIF or JPEG XL. Returns CCODECS_UNSUPPORTED for other formats,
/// CCODECS_NO_MEMORY if the budget is exhausted. `limits` is copied; `budget` is borrowed until destroy.
ccodecs_status ccodecs_rewriter_create(
    ccodecs_format format, const ccodecs_limits *limits, ccodecs_budget *budget, ccodecs_rewriter **rewriter);

/// Supplies the next bytes of the image's header. Legal before start.
void ccodecs_rewriter_note(ccodecs_rewriter *rewriter, const uint8_t *bytes, size_t count);

/// Fills `survey` for the image whose header `decoder` has read. Legal before start.
void ccodecs_rewriter_survey(const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, ccodecs_survey *survey);

/// Returns an upper bound of the bytes that start and read charge, including what rewriter and decoder already use.
uint64_t ccodecs_rewriter_estimate(
    const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options);

/// Starts the operation in `options`, which the survey must allow, and takes over the bytes that the decoder has
/// buffered. After that, the decoder can only be destroyed.
ccodecs_status ccodecs_rewriter_start(
    ccodecs_rewriter *rewriter, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options);

/// Sets the interrupt of ccodecs_rewriter_read, which then may return CCODECS_INTERRUPTED while it recompresses a JPEG
/// or reconstructs one.
void ccodecs_rewriter_set_interrupt(ccodecs_rewriter *rewriter, ccodecs_interrupt interrupt);

/// Reads on from where the decoder stopped. Returns CCODECS_BYTES_READY with the next bytes of the result, which may
/// point into the window, CCODECS_NEEDS_INPUT, CCODECS_DONE, or the failure.
ccodecs_status ccodecs_rewriter_read(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece);

/// Returns bits of CCODECS_WARNING_*; more may be set until CCODECS_DONE.
uint32_t ccodecs_rewriter_warnings(const ccodecs_rewriter *rewriter);

/// Returns the reason for the failure, or "" if the rewriter has not failed. Valid until destroy.
const char *ccodecs_rewriter_message(const ccodecs_rewriter *rewriter);

/// Returns the limit that caused the failure CCODECS_LIMIT.
ccodecs_excess ccodecs_rewriter_excess(const ccodecs_rewriter *rewriter);

/// Frees the rewriter and refunds its budget; NULL is ignored.
void ccodecs_rewriter_destroy(ccodecs_rewriter *rewriter);

/// Lets libjxl appear to fail at the slice with this number, counted from 1, of the next JPEG XL that the calling
/// thread decodes; 0 for none. For tests of decoding once more as a whole: no file is known for which libjxl itself
/// fails.
void ccodecs_jxl_fail_slice(uint32_t number);

/// A library that the codecs are linked with, and its version.
typedef struct ccodecs_library {
  const char *name;
  uint32_t major, minor, patch;
} ccodecs_library;

/// Fills `library` with the library at `index`, counted from 0. Returns false behind the last one.
bool ccodecs_linked_library(size_t index, ccodecs_library *library);

#ifdef __cplusplus
}
#endif

#endif
