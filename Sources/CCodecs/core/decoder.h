// What every decoder of this room is built from. Private to CCodecs.

#ifndef CCODECS_DECODER_H
#define CCODECS_DECODER_H

#include "../memory/bytes.h"

/// One decoder's functions. Each is called only in the legal order, never after a failure: decoder.c sees to both.
typedef struct ccodecs_decoder_methods {
  ccodecs_status (*read_header)(ccodecs_decoder *decoder, ccodecs_input *input);
  uint8_t (*scales)(const ccodecs_decoder *decoder); ///< NULL where there is nothing but 8/8.
  /// The fewest bytes behind the header that hold its image, or fewer; NULL where few bytes may stand for any number
  /// of pixels. Legal after read_header.
  uint64_t (*least_bytes)(const ccodecs_decoder *decoder);
  ccodecs_status (*estimate)(
      const ccodecs_decoder *decoder, const ccodecs_decode_options *options, uint64_t *byte_count);
  ccodecs_status (*start)(ccodecs_decoder *decoder, const ccodecs_decode_options *options, ccodecs_layout *layout);
  ccodecs_status (*read_rows)(ccodecs_decoder *decoder, ccodecs_input *input, ccodecs_rows *rows);
  void (*destroy)(ccodecs_decoder *decoder); ///< Frees everything, the decoder itself included.
  /// What is held of the file, from its first byte on, before start: for a rewriter, which may take it away. NULL where
  /// nothing is held.
  ccodecs_bytes *(*buffered)(ccodecs_decoder *decoder);
} ccodecs_decoder_methods;

typedef enum ccodecs_decoder_state {
  CCODECS_STATE_HEADER = 0, ///< Reading the header.
  CCODECS_STATE_READY = 1,  ///< Header known, not started.
  CCODECS_STATE_ROWS = 2,   ///< Giving rows.
  CCODECS_STATE_DONE = 3,
} ccodecs_decoder_state;

/// The first member of every concrete decoder.
struct ccodecs_decoder {
  const ccodecs_decoder_methods *methods;
  ccodecs_budget *budget;
  ccodecs_limits limits;
  ccodecs_header header;
  ccodecs_bytes profile; ///< As it came. After the header only a profile that is not sRGB is left.
  ccodecs_bytes artist;  ///< As CCODECS_MAX_COPYRIGHT_TEXT says, without a zero at the end.
  ccodecs_bytes copyright;
  bool tolerates_truncation;
  bool tolerates_damage;
  uint64_t taken_bytes; ///< Of the file, so far.
  uint64_t work_pixels; ///< What decoding means, where that is more than the image's pixels; else 0.
  bool is_whole;        ///< When the header was read, the file's end was in the window, and
  size_t rest_bytes;    ///< this many bytes stood before it.
  bool is_filling;      ///< The input ended, or is damaged; gray is given for what is missing.
  ccodecs_layout layout;
  uint32_t rows_left[CCODECS_MAX_PLANES];
  uint8_t *fill; ///< A gray row.
  ccodecs_decoder_state state;
  ccodecs_status failure; ///< CCODECS_OK until the decoder failed.
  char message[200];      ///< Why it failed.
};

/// Notes why the decoder fails, and returns `status` to be returned. printf-style.
ccodecs_status ccodecs_decoder_fail(ccodecs_decoder *decoder, ccodecs_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// After a failure: whether it is damage, and tolerated. Then the failure is forgotten, and the damaged row noted,
/// which counts rows as stored.
bool ccodecs_decoder_tolerate(ccodecs_decoder *decoder, ccodecs_status failure, uint32_t row);

/// Notes that the header is damaged, which is a failure of start unless that tolerates damage.
void ccodecs_decoder_note_damaged_header(ccodecs_decoder *decoder, const char *reason);

/// Checks header.width x header.height against the limits, by header.buffers_bitmap.
/// CCODECS_OK, or the failure noted with limit and value.
ccodecs_status ccodecs_decoder_check_limits(ccodecs_decoder *decoder);

/// Whether so many pixels may come of so many bytes of a file.
bool ccodecs_decoder_is_in_proportion(uint64_t pixels, uint64_t bytes);

/// A concrete decoder of `byte_count` bytes, zeroed but for its base, which is filled; NULL when there is no room.
void *ccodecs_decoder_allocate(
    size_t byte_count, const ccodecs_decoder_methods *methods, ccodecs_format format, const ccodecs_limits *limits,
    ccodecs_budget *budget);

/// The layout of an image that is given at its full size, as one plane of 1 (gray), 3 (RGB) or 4 channels (RGBA), of 8
/// bits, or of 16 where header.is_16bit.
void ccodecs_decoder_describe_packed(const ccodecs_decoder *decoder, uint32_t channels, ccodecs_layout *layout);

/// How many rows of so many bytes go into a strip: as many as fit into 64 KiB, at least one and at most 64.
uint32_t ccodecs_decoder_strip_rows(size_t row_bytes);

/// Gives the next rows of an image that was decoded whole. CCODECS_ROWS_READY, or CCODECS_DONE behind the last.
ccodecs_status ccodecs_decoder_give_bitmap(
    const ccodecs_decoder *decoder, const uint8_t *bitmap, size_t row_stride, ccodecs_rows *rows);

/// The most rows that it gives at once.
#define CCODECS_BITMAP_STRIP_ROWS 64

/// Keeps a colour profile as it came; one that is too large gives CCODECS_WARNING_BAD_PROFILE. CCODECS_OK, or the
/// failure noted.
ccodecs_status ccodecs_decoder_keep_profile(ccodecs_decoder *decoder, const uint8_t *profile, size_t count);

/// EXIF orientation (1 to 8) from a TIFF block (the bytes after "Exif\0\0" in JPEG, the eXIf chunk of PNG, the EXIF
/// chunk of WebP). 1 when it has none; *is_broken is set when the block is not well formed up to that tag.
/// Source: CIPA DC-008 (Exif 2.32), section 4.6.2; tag 0x0112 of IFD0.
uint8_t ccodecs_exif_orientation(const uint8_t *bytes, size_t count, bool *is_broken);

/// What is kept of an artist's or a copyright's text.
#define CCODECS_MAX_COPYRIGHT_TEXT 4095

/// Keeps Artist (0x013B) and Copyright (0x8298) of such a block's IFD0. False without room.
bool ccodecs_exif_keep_copyright(ccodecs_decoder *decoder, const uint8_t *bytes, size_t count);

/// Keeps a text in place of what was there: without zeros and spaces at its end, and cut. False without room.
bool ccodecs_decoder_keep_text(ccodecs_decoder *decoder, ccodecs_bytes *kept, const uint8_t *text, size_t count);

#endif
