// The base of every decoder in this module. Private to CCodecs.

#pragma once

#include "../color/profile.h"
#include "../memory/bytes.h"
#include "tiff_directory.h"

/// A concrete decoder. decoder.c calls its functions only in the legal order and never after a failure.
typedef struct ccodecs_decoder_methods {
  size_t byte_count;                      ///< Size of the decoder, which is zeroed except its base.
  void (*init)(ccodecs_decoder *decoder); ///< Sets what does not begin as zero; NULL for nothing.
  ccodecs_status (*read_header)(ccodecs_decoder *decoder, ccodecs_input *input);
  /// As ccodecs_decoder_select_frames, which has set first_frame and selected_frames; NULL if a file has one frame, or
  /// if only the first is decoded.
  ccodecs_status (*select_frames)(ccodecs_decoder *decoder, int64_t first, uint32_t count);
  uint8_t (*scales)(const ccodecs_decoder *decoder); ///< NULL if only 8/8 is supported.
  /// Returns a lower bound of the bytes that must follow the header for its image; NULL if a few bytes may encode any
  /// number of pixels. Legal after read_header.
  uint64_t (*min_bytes)(const ccodecs_decoder *decoder);
  ccodecs_status (*estimate)(
      const ccodecs_decoder *decoder, const ccodecs_decode_options *options, uint64_t *byte_count);
  ccodecs_status (*start)(ccodecs_decoder *decoder, const ccodecs_decode_options *options, ccodecs_layout *layout);
  /// As ccodecs_decoder_read_rows. Before the first rows of a frame of an animation it sets decoder.frame.
  ccodecs_status (*read_rows)(ccodecs_decoder *decoder, ccodecs_input *input, ccodecs_rows *rows);
  void (*destroy)(ccodecs_decoder *decoder); ///< Frees what the concrete decoder holds.
  /// Returns the buffered bytes of the file, from its first byte on, which a rewriter may take over before start. NULL
  /// if the decoder buffers none.
  ccodecs_bytes *(*buffered)(ccodecs_decoder *decoder);
} ccodecs_decoder_methods;

/// The position of a decoder in the legal order of calls.
typedef enum ccodecs_decoder_state {
  CCODECS_STATE_HEADER = 0, ///< Reading the header.
  CCODECS_STATE_READY = 1,  ///< Header known, not started.
  CCODECS_STATE_ROWS = 2,   ///< Returning rows.
  CCODECS_STATE_DONE = 3,
} ccodecs_decoder_state;

/// The first member of every concrete decoder.
struct ccodecs_decoder {
  const ccodecs_decoder_methods *methods;
  ccodecs_budget *budget;
  size_t charged; ///< For what a library allocates; refunded when the decoder is destroyed.
  ccodecs_limits limits;
  ccodecs_header header;
  ccodecs_bytes profile; ///< As stored; kept after the header only if it is not sRGB.
  bool is_hdr;           ///< These are of PQ or HLG.
  ccodecs_bytes exif;    ///< As stored, like `xmp` and `iptc`; only if limits.keeps_metadata, and until start.
  ccodecs_bytes xmp;
  ccodecs_bytes iptc;
  ccodecs_gain_map gain_map;   ///< Without its bytes; only if limits.keeps_gain_map.
  ccodecs_bytes gain_map_file; ///< Like `gain_map_description`, kept until start.
  ccodecs_bytes gain_map_description;
  ccodecs_bytes artist;    ///< At most CCODECS_MAX_COPYRIGHT_TEXT bytes, without a terminating zero.
  ccodecs_bytes copyright; ///< Like `artist`.
  bool tolerates_truncation;
  bool tolerates_damage;
  uint64_t taken_bytes;                   ///< Bytes of the file consumed so far.
  uint64_t work_pixels;                   ///< The cost of decoding in pixels if it exceeds the image's pixels; else 0.
  bool is_whole;                          ///< The window that completed the header also contained the end of the file.
  size_t rest_bytes;                      ///< Bytes that were left in that window.
  ccodecs_frame frame;                    ///< The frame of the returned rows.
  uint32_t kept_above, kept_below;        ///< Of that frame: see ccodecs_decoder_note_rows.
  uint32_t disposed_top, disposed_bottom; ///< The rows of the canvas that change when the next frame begins.
  bool must_buffer_input;                 ///< As ccodecs_decoder_buffer_input asks.
  uint32_t first_frame;     ///< Index of the first selected frame; resolved by select_frames if it counts from the end.
  uint32_t selected_frames; ///< Number of selected frames; 0 for all.
  uint32_t frame_index;     ///< Index of the frame whose rows are decoded.
  uint32_t counted_frames;  ///< Frames begun, including those that are composed and not returned.
  uint64_t frame_pixels;    ///< The pixels of these frames.
  uint32_t done_frames;     ///< Frames of which every row was returned.
  bool is_filling;          ///< The input is truncated or damaged; the missing rows are filled with gray.
  ccodecs_layout layout;
  uint32_t rows_left[CCODECS_MAX_PLANES];
  uint8_t *fill; ///< A gray row.
  ccodecs_decoder_state state;
  ccodecs_status failure; ///< CCODECS_OK until the decoder fails.
  char message[200];      ///< The reason for the failure.
  ccodecs_excess excess;  ///< The limit that caused the failure CCODECS_LIMIT.
};

/// Records the failure and its printf-style reason. Returns `status`, for the caller to return.
ccodecs_status ccodecs_decoder_fail(ccodecs_decoder *decoder, ccodecs_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Charges for what a library allocates. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_decoder_charge(ccodecs_decoder *decoder, uint64_t byte_count);

/// Records that the image has more `things`, as in "pixels", than a limit allows. Returns CCODECS_LIMIT.
ccodecs_status ccodecs_decoder_exceed(ccodecs_decoder *decoder, const char *things, ccodecs_excess excess);

/// Returns whether `failure` is damage that the options tolerate. If so, clears the failure and records `row`, an index
/// of stored rows, as damaged.
bool ccodecs_decoder_tolerate(ccodecs_decoder *decoder, ccodecs_status failure, uint32_t row);

/// As ccodecs_decoder_tolerate, for damage that costs no row, such as a wrong checksum.
bool ccodecs_decoder_tolerate_without_loss(ccodecs_decoder *decoder, ccodecs_status failure);

/// Records that the header is damaged. start then fails unless its options tolerate damage.
void ccodecs_decoder_note_damaged_header(ccodecs_decoder *decoder, const char *reason);

/// Checks header.width x header.height against the limit that applies, which depends on header.buffers_bitmap. Returns
/// CCODECS_OK or records a failure that names the limit and the value.
ccodecs_status ccodecs_decoder_check_limits(ccodecs_decoder *decoder);

/// Counts a frame of an animation that is composed, and checks the limits of frames and their pixels. `pixels` are
/// those of the frame; those of the canvas count if they are more. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_decoder_count_frame(ccodecs_decoder *decoder, uint64_t pixels);

/// Notes which rows a frame of an animation changes, before its first row is returned: those that it has, and those
/// that the frame before it, which was noted too, had and did not leave on the canvas. Of the first frame that is
/// returned nothing is known.
void ccodecs_decoder_note_rows(ccodecs_decoder *decoder, uint32_t top, uint32_t height, bool stays);

/// Returns whether the frame whose rows are decoded is one of those that are returned.
static inline bool ccodecs_decoder_is_selected(const ccodecs_decoder *decoder) {
  return decoder->frame_index >= decoder->first_frame;
}

/// Returns whether the selection has no frame after this one.
static inline bool ccodecs_decoder_is_last(const ccodecs_decoder *decoder) {
  const uint64_t end = (uint64_t)decoder->first_frame + decoder->selected_frames;
  return decoder->selected_frames > 0 && (uint64_t)decoder->frame_index + 1 >= end;
}

/// Returns whether all frames of an animation are selected.
bool ccodecs_decoder_selects_all(const ccodecs_decoder *decoder);

/// Sets first_frame to the index of one of `count` frames, which `first` selects. Returns CCODECS_OK or records
/// CCODECS_NO_FRAME.
ccodecs_status ccodecs_decoder_choose_frame(ccodecs_decoder *decoder, int64_t first, int64_t count);

/// As ccodecs_decoder_choose_frame, for one of header.frame_count pages.
ccodecs_status ccodecs_decoder_choose_page(ccodecs_decoder *decoder, int64_t first);

/// Records that only the first image of the file is decoded. Returns CCODECS_UNSUPPORTED.
ccodecs_status ccodecs_decoder_refuse_selection(ccodecs_decoder *decoder);

/// Records that the animation has fewer frames than the selection needs. Returns CCODECS_NO_FRAME.
ccodecs_status ccodecs_decoder_lack_frame(ccodecs_decoder *decoder);

/// Returns whether a file of `bytes` bytes is large enough to be allowed `pixels` pixels.
bool ccodecs_decoder_is_in_proportion(uint64_t pixels, uint64_t bytes);

/// Records max_pixels_per_byte as the limit that `pixels` pixels in `bytes` bytes exceed.
void ccodecs_decoder_note_disproportion(ccodecs_decoder *decoder, uint64_t pixels, uint64_t bytes);

/// Allocates a concrete decoder for `format`. Returns NULL if the budget is exhausted.
ccodecs_decoder *ccodecs_decoder_allocate(
    const ccodecs_decoder_methods *methods, ccodecs_format format, const ccodecs_limits *limits,
    ccodecs_budget *budget);

/// Fills the layout of an image returned at full size as one plane of 1 (gray), 3 (RGB) or 4 (RGBA) channels, with 16
/// bits per sample if header.is_16bit, otherwise 8.
void ccodecs_decoder_describe_packed(const ccodecs_decoder *decoder, uint32_t channels, ccodecs_layout *layout);

/// Returns the number of rows of `row_bytes` bytes in a strip: as many as fit into 64 KiB, at least 1, at most 64.
uint32_t ccodecs_decoder_strip_rows(size_t row_bytes);

/// Returns the next rows of a bitmap that was decoded as a whole: CCODECS_ROWS_READY, or CCODECS_DONE after the last.
ccodecs_status ccodecs_decoder_give_bitmap(
    const ccodecs_decoder *decoder, const uint8_t *bitmap, size_t row_stride, ccodecs_rows *rows);

/// The maximum number of rows that ccodecs_decoder_give_bitmap returns per call.
#define CCODECS_BITMAP_STRIP_ROWS 64

/// Appends bytes to the color profile; if they exceed the maximum size, ignores them and sets
/// CCODECS_WARNING_BAD_PROFILE. Returns CCODECS_OK or records the failure.
ccodecs_status ccodecs_decoder_keep_profile(ccodecs_decoder *decoder, const uint8_t *profile, size_t count);

/// Replaces the color profile with one for code points. If they are not supported, keeps the profile, or sets
/// CCODECS_WARNING_BAD_PROFILE if there is none. Requires header.color_space. Returns CCODECS_OK or records the
/// failure.
ccodecs_status ccodecs_decoder_use_color_codes(ccodecs_decoder *decoder, ccodecs_color_codes codes);

/// Sets header.gamut, and keeps the color profile only if it requires a conversion. Returns CCODECS_OK or records the
/// failure.
ccodecs_status ccodecs_decoder_settle_profile(ccodecs_decoder *decoder);

/// Returns the EXIF orientation (1 to 8) in a TIFF block: the bytes after "Exif\0\0" in JPEG, the eXIf chunk of PNG, or
/// the EXIF chunk of WebP. Returns 1 if the block has none, and sets *is_broken if it is malformed before that tag.
///
/// Source: CIPA DC-008 (Exif 2.32), section 4.6.2; tag 0x0112 of IFD0.
uint8_t ccodecs_exif_orientation(const uint8_t *bytes, size_t count, bool *is_broken);

/// The maximum number of bytes of a multi-picture index that are read, with its identifier: those of 25 images.
enum { CCODECS_MPF_BYTES = 512 };

/// Returns whether a multi-picture index (CIPA DC-007), from its TIFF header on, lists an image that a viewer of the
/// first one alone would miss: another view of a panorama, a stereo pair or a series, or another primary image.
/// Previews, and images without a type, which are gain maps and depth maps, are no such images.
bool ccodecs_mpf_has_more_images(const uint8_t *bytes, size_t count);

/// The maximum size in bytes of a stored Artist or Copyright text; longer texts are truncated.
#define CCODECS_MAX_COPYRIGHT_TEXT 4095

/// Keeps a TIFF block, and stores Artist (0x013B) and Copyright (0x8298) from its IFD0. Returns false if the budget is
/// exhausted.
bool ccodecs_exif_keep_copyright(ccodecs_decoder *decoder, const uint8_t *bytes, size_t count);

/// Stores Artist and Copyright from a directory of a TIFF file or EXIF block. Returns false if the budget is exhausted.
bool ccodecs_exif_keep_texts(
    ccodecs_decoder *decoder, const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory);

/// Frees the metadata and the gain map that were kept.
void ccodecs_decoder_free_metadata(ccodecs_decoder *decoder);

/// Keeps EXIF, XMP or IPTC if limits.keeps_metadata, no row was returned yet, there are no earlier ones in `kept`, and
/// they are not too large. Returns false if the budget is exhausted.
bool ccodecs_decoder_keep_block(ccodecs_decoder *decoder, ccodecs_bytes *kept, const uint8_t *bytes, size_t count);

/// Replaces `kept` with a text, without trailing zeros and spaces, truncated to CCODECS_MAX_COPYRIGHT_TEXT bytes.
/// Returns false if the budget is exhausted.
bool ccodecs_decoder_keep_text(ccodecs_decoder *decoder, ccodecs_bytes *kept, const uint8_t *text, size_t count);
