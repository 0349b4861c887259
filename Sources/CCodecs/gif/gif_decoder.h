// The GIF decoder's state, shared by the reader of blocks (gif_decoder.c) and the compositor of frames
// (gif_animation.c). Private to CCodecs. Source: GIF89a.

#pragma once

#include "../core/decoder.h"
#include "gif_codes.h"

/// The change of the canvas after a frame.
typedef enum gif_disposal {
  GIF_DISPOSAL_KEEP,
  GIF_DISPOSAL_CLEAR,   ///< The frame's rectangle becomes transparent, as in browsers.
  GIF_DISPOSAL_RESTORE, ///< The canvas becomes what it was before the frame.
} gif_disposal;

typedef enum gif_state {
  STATE_SCREEN, ///< Signature and logical screen descriptor.
  STATE_GLOBAL_TABLE,
  STATE_BLOCK,     ///< The byte with a block's type.
  STATE_LABEL,     ///< The byte with an extension's label.
  STATE_SKIP_SIZE, ///< The size of a sub-block to skip.
  STATE_SKIP,
  STATE_CONTROL,     ///< The sub-block of a graphic control extension.
  STATE_APPLICATION, ///< The identifier of an application extension.
  STATE_LOOP,        ///< The number of repeats.
  STATE_DESCRIPTOR,
  STATE_LOCAL_TABLE,
  STATE_CODE_SIZE,
  STATE_DATA_SIZE, ///< The size of a sub-block of codes.
  STATE_DATA,
  STATE_END,
} gif_state;

typedef struct gif_decoder {
  ccodecs_decoder base;
  gif_state state;
  uint8_t token[768]; ///< A partially read element, such as a header or a table.
  size_t token_count;
  uint64_t block_left; ///< Remaining bytes of the sub-block, or number of colors in the table.
  bool is_after;       ///< The last frame is complete; blocks are read to find another frame.
  bool has_more;       ///< There is another frame behind the last one.
  bool is_loop;        ///< The sub-blocks are those of the extension that specifies the number of repeats.

  uint32_t left, top, width, height; ///< Position and size of the frame on the canvas.
  bool is_interlaced;
  int transparent; ///< Index of the transparent color, or -1.
  uint32_t delay;  ///< Hundredths of a second.
  gif_disposal disposal;
  uint32_t channels;
  uint8_t palette[256][4];        ///< The colors of the frame.
  uint8_t global_palette[256][4]; ///< The colors of frames without a table of their own.

  gif_codes codes;
  uint8_t *indices; ///< Decoded indices that are not yet returned; for an interlaced frame, all of them.
  size_t index_count;
  uint64_t index_left; ///< Number of the frame's indices that are not yet decoded.
  uint8_t *strip;
  size_t row_bytes;
  uint32_t strip_rows;
  uint32_t given; ///< Rows of the canvas that were returned, or composed and not returned.

  // Frames other than the first: see gif_animation.c.
  bool is_animation;   ///< Others than the first frame are selected.
  uint8_t *canvas;     ///< RGBA, as the next frame finds it.
  uint8_t *interlaced; ///< The visible indices of an interlaced frame, in rows of the canvas' width; NULL before one.
  uint32_t placed;     ///< Rows of an interlaced frame that were decoded.
  uint32_t composed;   ///< Rows in `strip`.
  bool is_between;     ///< All rows of a frame were composed; blocks are read to find the next one.
  bool has_control;    ///< A control extension for the next frame has begun.
} gif_decoder;

// gif_decoder.c

/// Runs one step of the state machine for blocks outside the frame data. Returns CCODECS_NEEDS_INPUT once the window is
/// consumed. After STATE_END there is no further step; STATE_DATA_SIZE is the beginning of a frame's data.
ccodecs_status ccodecs_gif_step(gif_decoder *d, ccodecs_input *input);

/// Decodes until there are `wanted` indices or the window is consumed.
ccodecs_status ccodecs_gif_fill(gif_decoder *d, ccodecs_input *input, size_t wanted);

/// Skips the rest of a frame's data in the next steps.
void ccodecs_gif_leave_frame(gif_decoder *d);

// gif_animation.c

/// Returns an upper bound of the bytes that ccodecs_gif_start_animation charges.
uint64_t ccodecs_gif_animation_estimate(const gif_decoder *d);

/// Allocates the canvas and begins the first frame.
ccodecs_status ccodecs_gif_start_animation(gif_decoder *d);

/// As ccodecs_decoder_read_rows, for frames other than the first.
ccodecs_status ccodecs_gif_read_animation(gif_decoder *d, ccodecs_input *input, ccodecs_rows *rows);

/// Ends the animation after its last complete frame. Returns CCODECS_DONE, or records that no frame was selected.
ccodecs_status ccodecs_gif_end_animation(gif_decoder *d);

/// As ccodecs_gif_end_animation, for a file that ends behind a frame. Records a failure if it ends in the next one.
ccodecs_status ccodecs_gif_interrupt_animation(gif_decoder *d);
