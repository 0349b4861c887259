// The frames of a JPEG XL codestream up to the first displayed one, according to their headers. Private to CCodecs.
//
// libjxl allocates and decodes whatever a frame's header requests, and decodes all frames without a duration in one
// call. So the headers are checked here first.

#pragma once

#include "ccodecs.h"

/// Properties of the image reported by libjxl, on which the format of frame headers depends.
typedef struct ccodecs_jxl_image {
  uint32_t width;
  uint32_t height;
  uint32_t preview_width; ///< 0 without a preview; with one, the first frame is the preview.
  uint32_t preview_height;
  uint32_t extra_channels;
  bool is_xyb;
  bool has_animation;
  bool has_timecodes;
  bool has_reduced_channels; ///< At least one extra channel has fewer samples than the colors in every frame.
} ccodecs_jxl_image;

typedef struct ccodecs_jxl_frames {
  size_t at;            ///< Offset of the next frame.
  uint32_t count;       ///< Number of frames read.
  uint64_t pixels;      ///< Total of all frames.
  uint64_t max_pixels;  ///< Of the largest frame.
  uint64_t kept_pixels; ///< Total of the frames kept for reference by others.
  bool is_complete;     ///< The displayed frame was found.
  uint32_t small_slots; ///< Bit i: the frame kept in slot i is smaller than the image.
  size_t tried_count;   ///< Bytes of the next frame that did not suffice for its sections.
  // Of the last frame:
  bool has_coefficients;    ///< It consists of the coefficients of all the image's pixels.
  bool is_ycbcr;            ///< Its colors are those of a usual JPEG.
  uint32_t samples_of_four; ///< Samples of its color channels for each four pixels.
} ccodecs_jxl_frames;

/// Continues to read the codestream, of which `count` bytes are available; `is_last` if all are.
///
/// Returns CCODECS_OK when the displayed frame was found, CCODECS_NEEDS_INPUT, CCODECS_CORRUPT, CCODECS_LIMIT, or
/// CCODECS_UNSUPPORTED for a layer whose sections are out of order, or a frame with which libjxl would leave its
/// planes.
ccodecs_status ccodecs_jxl_frames_read(
    ccodecs_jxl_frames *frames, const ccodecs_jxl_image *image, const uint8_t *bytes, size_t count, bool is_last);

/// A reader of the codestream in a file, bare or in boxes.
typedef struct ccodecs_jxl_boxes {
  bool gives_metadata; ///< Set by the caller: return also the contents of boxes with EXIF or XMP, compressed or not.
  uint8_t head[16];    ///< The part of a box's header that has arrived.
  size_t head_count;
  uint64_t left;      ///< Bytes of the box that have not arrived.
  uint32_t skip_left; ///< Bytes of `left` that precede the codestream.
  bool has_start;     ///< Whether the file is bare or boxed has been determined.
  bool is_bare;
  bool is_codestream; ///< The box contains codestream bytes.
  bool is_returned;   ///< The caller wants the box's contents.
  uint8_t type[4];    ///< Of the box.
  uint32_t number;    ///< Counts the boxes.
} ccodecs_jxl_boxes;

/// Advances the window and returns the next bytes of the codestream in it, or of metadata if the caller wants it; false
/// when there are none.
bool ccodecs_jxl_boxes_next(ccodecs_jxl_boxes *boxes, ccodecs_input *window, const uint8_t **bytes, size_t *count);
