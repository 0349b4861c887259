// What every rewriter of this room is built from. Private to CCodecs.

#ifndef CCODECS_REWRITER_H
#define CCODECS_REWRITER_H

#include "decoder.h"

/// The frame that is turned.
typedef struct ccodecs_turn_frame {
  uint32_t width;
  uint32_t height;
  uint32_t component_count;
  uint8_t horizontal[3]; ///< Sampling factors.
  uint8_t vertical[3];
} ccodecs_turn_frame;

/// One format's functions. None is called after a failure: rewriter.c sees to it.
typedef struct ccodecs_rewriter_methods {
  /// Takes some bytes of the window: CCODECS_OK to be called again, CCODECS_NEEDS_INPUT when the window is consumed,
  /// CCODECS_BYTES_READY, CCODECS_DONE, or the failure.
  ccodecs_status (*step)(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece);
  /// Called when no step failed; `survey` is zeroed.
  void (*survey)(const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, ccodecs_survey *survey);
  /// Appends to `opening` what comes before `head`.
  ccodecs_status (*start)(
      ccodecs_rewriter *rewriter, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options,
      ccodecs_bytes *opening);
  /// What start allocates besides the opening.
  uint64_t (*start_bytes)(const ccodecs_rewriter *rewriter, const ccodecs_rewrite_options *options);
  /// The frame to be turned; NULL for a format that is not turned.
  const ccodecs_turn_frame *(*frame)(const ccodecs_rewriter *rewriter);
  void (*destroy)(ccodecs_rewriter *rewriter); ///< Frees everything, the rewriter itself included.
} ccodecs_rewriter_methods;

typedef struct ccodecs_turn ccodecs_turn;

/// The first member of every concrete rewriter.
struct ccodecs_rewriter {
  const ccodecs_rewriter_methods *methods;
  ccodecs_budget *budget;
  ccodecs_limits limits;
  ccodecs_bytes head; ///< Made of the picture's header, to be given first.
  ccodecs_turn *turn; ///< What the copy goes through; NULL when it is the result.
  bool is_started;
  bool has_given_head;
  bool is_copied;     ///< The last byte of the copy was given.
  uint32_t warnings;
  ccodecs_status failure;
  char message[200];
};

/// Room for a rewriter whose first member is `ccodecs_rewriter`, zeroed; NULL when there is none.
void *ccodecs_rewriter_allocate(
    size_t byte_count, const ccodecs_rewriter_methods *methods, const ccodecs_limits *limits, ccodecs_budget *budget);

/// Notes why the rewriter fails, and returns `status` to be returned. printf-style.
ccodecs_status ccodecs_rewriter_fail(ccodecs_rewriter *rewriter, ccodecs_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Fails for want of room.
ccodecs_status ccodecs_rewriter_fail_for_room(ccodecs_rewriter *rewriter);

// One constructor per file of rewrite/; NULL when there is no room.
ccodecs_rewriter *ccodecs_jpeg_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_png_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_webp_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);

// MARK: Quality (jpeg_quality.c)

/// The least quality at which libjpeg's tables are no coarser than tables with these sums; `chroma_sum` is UINT32_MAX
/// where there is none.
uint8_t ccodecs_jpeg_quality(uint32_t luma_sum, uint32_t chroma_sum);

/// The least quality of libwebp's at which its quantizer index is at most `index`, 0 to 127.
uint8_t ccodecs_webp_quality(uint32_t index);

/// How many first bytes of a VP8 frame tell its quantizers: 10, and 24 for at most 187 bits.
#define CCODECS_VP8_HEADER_BYTES 40

/// The mean quantizer index over the segments of a VP8 frame, from its first bytes (RFC 6386, section 9); -1 when they
/// are too few or are no key frame.
int32_t ccodecs_vp8_quantizer(const uint8_t *bytes, size_t count);

// MARK: Turning (jpeg_turn.c)

/// Whether the turn keeps every block whole.
bool ccodecs_turn_is_perfect(const ccodecs_turn_frame *frame, uint8_t orientation);

/// What a turn charges, as an upper bound.
uint64_t ccodecs_turn_estimate(const ccodecs_turn_frame *frame, const ccodecs_rewrite_options *options);

/// Charges and prepares. CCODECS_OK, or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_turn_create(
    const ccodecs_turn_frame *frame, const ccodecs_rewrite_options *options, ccodecs_budget *budget,
    ccodecs_turn **turn);

/// Takes the next bytes of a JPEG without metadata.
ccodecs_status ccodecs_turn_push(ccodecs_turn *turn, const uint8_t *bytes, size_t count);

/// No byte follows: turns the picture and compresses it.
ccodecs_status ccodecs_turn_finish(ccodecs_turn *turn);

/// The next bytes of the result, valid until the next call; false when there are none.
bool ccodecs_turn_read(ccodecs_turn *turn, ccodecs_piece *piece);

/// Why it failed.
const char *ccodecs_turn_message(const ccodecs_turn *turn);

void ccodecs_turn_destroy(ccodecs_turn *turn);

#endif
