// What every rewriter of this room is built from. Private to CCodecs.

#ifndef CCODECS_REWRITER_H
#define CCODECS_REWRITER_H

#include "decoder.h"

typedef struct ccodecs_turn ccodecs_turn;

/// A turn's functions. None is called after a failure.
typedef struct ccodecs_transform_methods {
  /// Takes the next bytes of a copy.
  ccodecs_status (*push)(ccodecs_turn *turn, const uint8_t *bytes, size_t count);
  /// No byte follows: turns the image and compresses it.
  ccodecs_status (*finish)(ccodecs_turn *turn);
  /// The next bytes of the result, valid until the next call; false when there are none.
  bool (*read)(ccodecs_turn *turn, ccodecs_piece *piece);
  const char *(*message)(const ccodecs_turn *turn); ///< Why it failed.
  void (*destroy)(ccodecs_turn *turn);              ///< Frees everything, the turn itself included.
} ccodecs_transform_methods;

/// The first member of what turns a format's images.
struct ccodecs_turn {
  const ccodecs_transform_methods *methods;
};

/// One format's functions. None is called after a failure: rewriter.c sees to it.
typedef struct ccodecs_rewriter_methods {
  /// Takes some bytes of the window: CCODECS_OK to be called again, CCODECS_NEEDS_INPUT when the window is consumed,
  /// CCODECS_BYTES_READY, CCODECS_DONE, or the failure.
  ccodecs_status (*step)(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece);
  /// No byte follows, and more were needed: gives the end marker, where the file lacks nothing else that can be told.
  /// False otherwise; NULL for a format that has none.
  bool (*end)(ccodecs_rewriter *rewriter, ccodecs_piece *piece);
  /// Called when no step failed; `survey` is zeroed.
  void (*survey)(const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, ccodecs_survey *survey);
  /// Appends to `opening` what comes before `head`.
  ccodecs_status (*start)(
      ccodecs_rewriter *rewriter, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options,
      ccodecs_bytes *opening);
  /// What start allocates besides the opening.
  uint64_t (*start_bytes)(const ccodecs_rewriter *rewriter, const ccodecs_rewrite_options *options);
  /// What turning charges, as an upper bound; NULL for a format that is not turned.
  uint64_t (*turn_bytes)(const ccodecs_rewriter *rewriter, const ccodecs_rewrite_options *options);
  /// Charges and prepares what the copy goes through: CCODECS_OK, or CCODECS_NO_MEMORY, when `turn` is destroyed
  /// likewise.
  ccodecs_status (*create_turn)(
      const ccodecs_rewriter *rewriter, const ccodecs_rewrite_options *options, ccodecs_turn **turn);
  void (*destroy)(ccodecs_rewriter *rewriter); ///< Frees everything, the rewriter itself included.
} ccodecs_rewriter_methods;

/// The first member of every concrete rewriter.
struct ccodecs_rewriter {
  const ccodecs_rewriter_methods *methods;
  ccodecs_budget *budget;
  ccodecs_limits limits;
  ccodecs_bytes head; ///< Made of the image's header, to be given first.
  ccodecs_turn *turn; ///< What the copy goes through; NULL when it is the result.
  bool is_started;
  bool may_lack_end;
  bool has_given_head;
  bool is_copied; ///< The last byte of the copy was given.
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

#endif
