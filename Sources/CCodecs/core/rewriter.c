// The common part of all rewriters: order of calls, sticky failures, and the sequence of output pieces.

#include "rewriter.h"

#include "encoder.h"

#include <stdarg.h>
#include <stdio.h>

/// The maximum size in bytes of a buffered header, ten times what the largest tables need. Images with a larger header
/// are decoded instead.
static const size_t max_head = 64 * 1024;

ccodecs_rewriter *ccodecs_rewriter_allocate(
    const ccodecs_rewriter_methods *methods, const ccodecs_limits *limits, ccodecs_budget *budget) {
  ccodecs_rewriter *rewriter = ccodecs_allocate(budget, methods->byte_count);
  if (rewriter == NULL) {
    return NULL;
  }
  memset(rewriter, 0, methods->byte_count);
  rewriter->methods = methods;
  rewriter->budget = budget;
  rewriter->limits = *limits;
  if (methods->init != NULL) {
    methods->init(rewriter);
  }
  return rewriter;
}

ccodecs_status ccodecs_rewriter_fail(ccodecs_rewriter *rewriter, ccodecs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(rewriter->message, sizeof rewriter->message, format, arguments);
  va_end(arguments);
  rewriter->failure = status;
  return status;
}

ccodecs_status ccodecs_rewriter_fail_for_room(ccodecs_rewriter *rewriter) {
  return ccodecs_rewriter_fail(rewriter, CCODECS_NO_MEMORY, "no room for the image's header");
}

/// Runs steps until one returns something other than CCODECS_OK.
static ccodecs_status run(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece) {
  ccodecs_status status;
  do {
    status = rewriter->methods->step(rewriter, input, piece);
  } while (status == CCODECS_OK);
  return status;
}

/// Buffers a piece of the header. Returns false if it exceeds max_head or the budget.
static bool keep(ccodecs_rewriter *rewriter, const ccodecs_piece *piece) {
  return (rewriter->methods->has_long_head || rewriter->head.count + piece->count <= max_head) &&
         ccodecs_bytes_append(&rewriter->head, piece->bytes, piece->count, rewriter->budget);
}

void ccodecs_rewriter_note(ccodecs_rewriter *rewriter, const uint8_t *bytes, size_t count) {
  ccodecs_input input = {.bytes = bytes, .count = count, .is_last = false};
  ccodecs_piece piece;
  ccodecs_status status = rewriter->failure;
  while (status < CCODECS_CORRUPT && input.count > 0) {
    status = run(rewriter, &input, &piece);
    if (status == CCODECS_DONE) { // the decoder reports the reason
      status = ccodecs_rewriter_fail(rewriter, CCODECS_CORRUPT, "the image ends in its header");
    } else if (status == CCODECS_BYTES_READY && !keep(rewriter, &piece)) {
      status = ccodecs_rewriter_fail_for_room(rewriter);
    }
  }
  if (status >= CCODECS_CORRUPT) {
    ccodecs_bytes_free(&rewriter->head, rewriter->budget);
  }
}

void ccodecs_rewriter_survey(const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, ccodecs_survey *survey) {
  memset(survey, 0, sizeof *survey);
  if (rewriter->failure == CCODECS_OK && !rewriter->is_started) {
    rewriter->methods->survey(rewriter, decoder, survey);
  }
}

/// Returns an upper bound of the size of the first piece: the head and what formats put before it. A profile in a JPEG
/// is divided into segments.
static size_t opening_bytes(const ccodecs_rewriter *rewriter, const ccodecs_rewrite_options *options) {
  const size_t metadata = ccodecs_metadata_bytes(&options->metadata);
  return rewriter->head.count + metadata + metadata / 1024 + 128;
}

/// Returns whether the copy is transformed.
static bool is_transform(const ccodecs_rewrite_options *options) {
  return options->orientation != 1 || options->jxl_effort > 0 || options->reconstruction != CCODECS_RECONSTRUCTION_NONE;
}

uint64_t ccodecs_rewriter_estimate(
    const ccodecs_rewriter *rewriter, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options) {
  static const uint64_t alignment = 4 * 128; // of the budget's blocks
  const bool is_transformed = is_transform(options) && rewriter->methods->transform_bytes != NULL;
  const uint64_t transform = is_transformed ? rewriter->methods->transform_bytes(rewriter, decoder, options) : 0;
  const uint64_t start = rewriter->methods->start_bytes == NULL ? 0 : rewriter->methods->start_bytes(rewriter, options);
  const uint64_t needed = rewriter->budget->used + opening_bytes(rewriter, options) + start + alignment + transform;
  return needed > rewriter->budget->peak ? needed : rewriter->budget->peak; // the header may have needed more
}

/// Returns whether the survey allows what is requested.
static bool can_go(const ccodecs_survey *survey, const ccodecs_rewrite_options *options) {
  switch (options->reconstruction) {
  case CCODECS_RECONSTRUCTION_STRIPPED:
    return survey->can_reconstruct && options->orientation == 1;
  case CCODECS_RECONSTRUCTION_WHOLE:
    return survey->can_reconstruct_whole && options->orientation == 1;
  case CCODECS_RECONSTRUCTION_NONE:
    break;
  }
  const bool is_turn = options->orientation >= 2 && options->orientation <= 8;
  return options->jxl_effort > 0 ? survey->can_recompress && options->orientation == 1
         : is_turn               ? (survey->rotations >> options->orientation & 1) != 0
                                 : survey->can_copy && options->orientation == 1;
}

ccodecs_status ccodecs_rewriter_start(
    ccodecs_rewriter *rewriter, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options) {
  CCODECS_TRY(rewriter->failure);
  ccodecs_survey survey;
  ccodecs_rewriter_survey(rewriter, decoder, &survey);
  if (!can_go(&survey, options)) {
    return ccodecs_rewriter_fail(rewriter, CCODECS_MISUSE, "an image was rewritten that must be decoded");
  }
  ccodecs_bytes opening = {0};
  ccodecs_status status = !ccodecs_bytes_reserve(&opening, opening_bytes(rewriter, options), rewriter->budget)
                              ? ccodecs_rewriter_fail_for_room(rewriter)
                          : rewriter->methods->start == NULL
                              ? CCODECS_OK
                              : rewriter->methods->start(rewriter, decoder, options, &opening);
  if (status == CCODECS_OK &&
      !ccodecs_bytes_append(&opening, ccodecs_bytes_start(&rewriter->head), rewriter->head.count, rewriter->budget)) {
    status = ccodecs_rewriter_fail_for_room(rewriter);
  }
  ccodecs_bytes_free(&rewriter->head, rewriter->budget);
  rewriter->head = opening;
  rewriter->is_started = true;
  rewriter->may_lack_end = options->may_lack_end;
  if (status == CCODECS_OK && is_transform(options)) {
    status = rewriter->methods->create_transform(rewriter, decoder, options, &rewriter->transform);
    status = status == CCODECS_OK ? status : ccodecs_rewriter_fail_for_room(rewriter);
  }
  return status;
}

/// Returns the next piece of the copy.
static ccodecs_status copy(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece) {
  if (!rewriter->has_given_head) {
    rewriter->has_given_head = true;
    return ccodecs_piece_give(ccodecs_bytes_start(&rewriter->head), rewriter->head.count, piece);
  }
  ccodecs_bytes_free(&rewriter->head, rewriter->budget);
  if (rewriter->is_copied) {
    return CCODECS_DONE;
  }
  const ccodecs_status status = run(rewriter, input, piece);
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    if (rewriter->may_lack_end && rewriter->methods->end != NULL && rewriter->methods->end(rewriter, piece)) {
      rewriter->warnings |= CCODECS_WARNING_NO_END;
      return CCODECS_BYTES_READY;
    }
    return ccodecs_rewriter_fail(rewriter, CCODECS_TRUNCATED, "the file ends before the image");
  }
  rewriter->is_copied = status == CCODECS_DONE;
  return status;
}

ccodecs_status ccodecs_rewriter_read(ccodecs_rewriter *rewriter, ccodecs_input *input, ccodecs_piece *piece) {
  *piece = (ccodecs_piece){0};
  CCODECS_TRY(rewriter->failure);
  if (!rewriter->is_started) {
    return ccodecs_rewriter_fail(rewriter, CCODECS_MISUSE, "a rewriter was read before it was started");
  }
  if (rewriter->transform == NULL) {
    return copy(rewriter, input, piece);
  }
  while (!rewriter->is_copied) {
    ccodecs_status status = copy(rewriter, input, piece);
    const ccodecs_piece taken = *piece;
    *piece = (ccodecs_piece){0};
    if (status == CCODECS_BYTES_READY) {
      status = rewriter->transform->methods->push(rewriter->transform, taken.bytes, taken.count);
    } else if (status == CCODECS_DONE) {
      status = rewriter->transform->methods->finish(rewriter->transform);
    } else {
      return status;
    }
    if (status != CCODECS_OK) {
      const bool is_cut = status == CCODECS_CORRUPT && (rewriter->warnings & CCODECS_WARNING_NO_END) != 0;
      return ccodecs_rewriter_fail(rewriter, is_cut ? CCODECS_TRUNCATED : status, "%s", rewriter->transform->message);
    }
  }
  const ccodecs_status status = rewriter->transform->methods->read(rewriter->transform, piece);
  return status == CCODECS_BYTES_READY || status == CCODECS_DONE
             ? status
             : ccodecs_rewriter_fail(rewriter, status, "%s", rewriter->transform->message);
}

void ccodecs_rewriter_set_interrupt(ccodecs_rewriter *rewriter, ccodecs_interrupt interrupt) {
  rewriter->interrupt = interrupt;
}

uint32_t ccodecs_rewriter_warnings(const ccodecs_rewriter *rewriter) {
  return rewriter->warnings;
}

const char *ccodecs_rewriter_message(const ccodecs_rewriter *rewriter) {
  return rewriter->message;
}

ccodecs_excess ccodecs_rewriter_excess(const ccodecs_rewriter *rewriter) {
  return rewriter->excess;
}

void ccodecs_rewriter_destroy(ccodecs_rewriter *rewriter) {
  if (rewriter != NULL) {
    if (rewriter->transform != NULL) {
      rewriter->transform->methods->destroy(rewriter->transform);
      ccodecs_free(rewriter->budget, rewriter->transform);
    }
    ccodecs_bytes_free(&rewriter->head, rewriter->budget);
    if (rewriter->methods->destroy != NULL) {
      rewriter->methods->destroy(rewriter);
    }
    ccodecs_free(rewriter->budget, rewriter);
  }
}
