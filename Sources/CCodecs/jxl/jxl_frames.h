// The frames of a JPEG XL codestream up to the first that is shown, by their headers. Private to CCodecs.
//
// libjxl allocates and decodes whatever a frame's header asks for, and all frames without a duration in one call. So
// headers are read here first.

#ifndef CCODECS_JXL_FRAMES_H
#define CCODECS_JXL_FRAMES_H

#include "ccodecs.h"

/// What libjxl told of the image, which frame headers depend on.
typedef struct ccodecs_jxl_image {
  uint32_t width;
  uint32_t height;
  uint32_t preview_width; ///< 0 without a preview, which is the first frame then.
  uint32_t preview_height;
  uint32_t extra_channels;
  bool is_xyb;
  bool has_animation;
  bool has_timecodes;
} ccodecs_jxl_image;

typedef struct ccodecs_jxl_frames {
  size_t at;            ///< Where the next frame begins.
  uint32_t count;       ///< Frames read.
  uint64_t pixels;      ///< Of all of them.
  uint64_t max_pixels;  ///< Of the largest.
  uint64_t kept_pixels; ///< Of those that are kept for others to refer to.
  bool is_complete;     ///< The frame that is shown was found.
} ccodecs_jxl_frames;

/// Reads on in the codestream, of which there are `count` bytes. CCODECS_OK when the frame that is shown was found,
/// CCODECS_NEEDS_INPUT, CCODECS_CORRUPT, CCODECS_LIMIT, or CCODECS_UNSUPPORTED for a layer whose sections are out of
/// order.
ccodecs_status ccodecs_jxl_frames_read(
    ccodecs_jxl_frames *frames, const ccodecs_jxl_image *image, const uint8_t *bytes, size_t count);

/// The bytes of a codestream in a file, bare or in boxes.
typedef struct ccodecs_jxl_boxes {
  uint8_t head[16]; ///< Of a box, as far as it came.
  size_t head_count;
  uint64_t left;      ///< Bytes to come of the box.
  uint32_t skip_left; ///< Of those, bytes that are not the codestream's.
  bool has_start;     ///< Bare and boxed files were told from each other.
  bool is_bare;
  bool is_codestream; ///< The box is one of the codestream.
} ccodecs_jxl_boxes;

/// Moves the window past bytes of the file; some of the codestream's are given, until there are none in the window.
bool ccodecs_jxl_boxes_next(ccodecs_jxl_boxes *boxes, ccodecs_input *window, const uint8_t **bytes, size_t *count);

#endif
