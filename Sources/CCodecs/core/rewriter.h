// The base of every rewriter in this module. Private to CCodecs.

#pragma once

#include "decoder.h"

/// Sets *piece. Returns CCODECS_BYTES_READY.
static inline ccodecs_status ccodecs_piece_give(const uint8_t *bytes, size_t count, ccodecs_piece *piece) {
  *piece = (ccodecs_piece){.bytes = bytes, .count = count};
  return CCODECS_BYTES_READY;
}

/// A lossless transform of a compressed image: a rotation or a flip, or another coding of its coefficients.
typedef struct ccodecs_transform ccodecs_transform;

/// The functions of a concrete transform. None is called after a failure.
typedef struct ccodecs_transform_methods {
  /// Consumes the next bytes of the copied file.
  ccodecs_status (*push)(ccodecs_transform *transform, const uint8_t *bytes, size_t count);
  /// Ends the input, then transforms and compresses the image.
  ccodecs_status (*finish)(ccodecs_transform *transform);
  /// Returns CCODECS_BYTES_READY with the next bytes of the result in `piece`, valid until the next call, CCODECS_DONE,
  /// or the failure.
  ccodecs_status (*read)(ccodecs_transform *transform, ccodecs_piece *piece);
  void (*destroy)(ccodecs_transform *transform); ///< Frees what the concrete transform holds.
} ccodecs_transform_methods;

/// The first member of every concrete transform.
struct ccodecs_transform {
  const ccodecs_transform_methods *methods;
  char message[200]; ///< The reason for the failure.
};

/// A concrete rewriter. rewriter.c calls none of its functions after a failure.
typedef struct ccodecs_rewriter_methods {
  size_t byte_count;                        ///< Size of the rewriter, which is zeroed except its base.
  void (*init)(ccodecs_rewriter *rewriter); ///< Sets what does not begin as zero; NULL for nothing.
  bool has_long_head;                       ///< Only the budget limits the size of a buffered header.
  /// Consumes some bytes of the window. Returns CCODECS_OK to be called again, CCODECS_NEEDS_INPUT once the window is
  /// consumed, CCODECS_BYTES_READY, CCODECS_DONE, or the failure.
  ccodecs_status (*step)(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece);
  /// Returns in `piece` the end that a truncated file lacks, if nothing else is known to be missing; otherwise false.
  /// `step` continues after it. NULL for a format of which no end is known.
  bool (*end)(ccodecs_rewriter *rewriter, ccodecs_piece *piece);
  /// Fills `survey`, which is zeroed. Called only if no step failed.
  void (*survey)(const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, ccodecs_survey *survey);
  /// Appends to `opening` the bytes that precede `head`; NULL if there are none.
  ccodecs_status (*start)(
      ccodecs_rewriter *rewriter, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options,
      ccodecs_bytes *opening);
  /// Returns the bytes that start allocates in addition to the opening; NULL without start.
  uint64_t (*start_bytes)(const ccodecs_rewriter *rewriter, const ccodecs_rewrite_options *options);
  /// Returns an upper bound of the bytes that a transform charges; NULL for a format without transforms.
  uint64_t (*transform_bytes)(
      const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options);
  /// Creates the transform that processes the copy. Returns CCODECS_OK or CCODECS_NO_MEMORY; the caller destroys
  /// `transform` in both cases.
  ccodecs_status (*create_transform)(
      ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options,
      ccodecs_transform **transform);
  void (*destroy)(ccodecs_rewriter *rewriter); ///< Frees what the concrete rewriter holds; NULL for nothing.
} ccodecs_rewriter_methods;

/// The first member of every concrete rewriter.
struct ccodecs_rewriter {
  const ccodecs_rewriter_methods *methods;
  ccodecs_budget *budget;
  ccodecs_limits limits;
  ccodecs_bytes head;           ///< Built from the image's header; the first bytes of the result.
  ccodecs_transform *transform; ///< The transform of the copy; NULL if the copy is the result.
  bool is_started;
  bool may_lack_end;
  bool has_given_head;
  bool is_copied; ///< The last byte of the copy was emitted.
  ccodecs_interrupt interrupt;
  uint32_t warnings;
  ccodecs_status failure; ///< CCODECS_OK until the rewriter fails.
  char message[200];      ///< The reason for the failure.
  ccodecs_excess excess;  ///< The limit that caused the failure CCODECS_LIMIT.
};

/// Allocates a concrete rewriter. Returns NULL if the budget is exhausted.
ccodecs_rewriter *ccodecs_rewriter_allocate(
    const ccodecs_rewriter_methods *methods, const ccodecs_limits *limits, ccodecs_budget *budget);

/// Records the failure and its printf-style reason. Returns `status`, for the caller to return.
ccodecs_status ccodecs_rewriter_fail(ccodecs_rewriter *rewriter, ccodecs_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Records that the budget is exhausted. Returns CCODECS_NO_MEMORY.
ccodecs_status ccodecs_rewriter_fail_for_room(ccodecs_rewriter *rewriter);
