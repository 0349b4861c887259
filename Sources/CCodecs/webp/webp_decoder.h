// The WebP decoder's state, shared by its source files. Private to them.

#pragma once

#include "../core/decoder.h"
#include "row_space.h"
#include "webp_chunks.h"

#include <webp/decode.h>

/// One plane of the whole image.
typedef struct webp_plane {
  ccodecs_row_space space;
  size_t row_bytes;
  uint32_t height;
  uint32_t given; ///< Rows returned to the caller.
} webp_plane;

typedef struct webp_decoder {
  ccodecs_decoder base;
  /// The start of the file, or the whole file if it is buffered. While an animation is decoded, the bytes from
  /// `file_at` on, as far as they are buffered.
  ccodecs_bytes file;
  bool is_extended; ///< There is a VP8X chunk.
  bool is_lossless;
  bool is_animated;
  uint32_t flags;        ///< Flags of the VP8X chunk.
  uint64_t file_bytes;   ///< File size according to the RIFF header.
  size_t image_at;       ///< Offset of the image's chunk, or of where to look for it.
  uint64_t passed_bytes; ///< The image's bytes that libwebp has received.
  uint32_t max_waiting;  ///< Maximum number of rows that were decoded and not yet used.
  uint32_t channels;
  size_t row_bytes;
  WebPDecoderConfig config;
  WebPIDecoder *incremental;
  uint32_t plane_count; ///< 3 for YCbCr 4:2:0, 1 for packed pixels.
  webp_plane planes[CCODECS_MAX_PLANES];

  // Animations: see webp_frames.c.
  uint8_t *canvas;        ///< RGBA; with the frame whose rows are returned.
  size_t survey_at;       ///< Header: offset of the chunk at which to look for the second frame.
  bool has_profile;       ///< Header: a profile precedes the frames.
  bool has_parameters;    ///< Header: the chunk ANIM precedes the frames.
  bool has_first_frame;   ///< Header: `survey_at` lies behind the first frame.
  uint64_t file_at;       ///< Offset in the file of the chunk that is read.
  uint64_t skipped_bytes; ///< Bytes before it that are yet to be skipped.
  size_t part_at;         ///< Offset in the frame's chunk of the part at which to look for its image.
  uint32_t passed_frames; ///< Frames behind the last selected one that were counted.
  bool is_cleared;        ///< This frame's rectangle, which is base.frame, becomes transparent after it.

  bool is_complete; ///< libwebp has decoded the last row.
  bool is_lost;     ///< libwebp found damage after the decoded rows, which is tolerated.
  uint32_t decoded; ///< Decoded rows; with planes, rows of luma.
  uint32_t given;
} webp_decoder;

// webp_decoder.c

/// Records the failure for a status of libwebp, and returns it.
ccodecs_status ccodecs_webp_fail(webp_decoder *d, VP8StatusCode status);

// webp_frames.c

/// Returns whether the file is available up to its second frame, or to its end. Makes it buffered if its chunks do not
/// have the usual order.
bool ccodecs_webp_has_frames(webp_decoder *d);

/// Reads what precedes the frames of an animation, and counts them if the whole file is buffered.
void ccodecs_webp_describe_frames(webp_decoder *d);

/// Resolves the selection of frames.
ccodecs_status ccodecs_webp_select_frames(ccodecs_decoder *base, int64_t first, uint32_t count);

/// Returns an upper bound of the bytes that decoding the selected frames charges, except for the canvas.
uint64_t ccodecs_webp_frames_estimate(const webp_decoder *d);

/// Clears the canvas and begins with the first chunk.
void ccodecs_webp_start_frames(webp_decoder *d);

/// Composes frames up to the next one that is returned. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or records the
/// failure.
ccodecs_status ccodecs_webp_next_frame(webp_decoder *d, ccodecs_input *input);

/// Ends a frame whose rows were returned. Returns CCODECS_FRAME_DONE, CCODECS_DONE after the last frame,
/// CCODECS_NEEDS_INPUT, or records the failure.
ccodecs_status ccodecs_webp_end_frame_rows(webp_decoder *d, ccodecs_input *input);
