#include "animation.h"

#include <math.h>
#include <string.h>

/// The compressed bytes of an animation that stay in memory if there is a spill directory.
static const uint64_t max_spooled = 1 << 20;
/// The frames from one key frame to the next, at most.
static const uint32_t key_distance = 100;
/// The maximum number of compressed bytes without a spill directory.
static const uint64_t max_unspilled = 32 << 20;

/// Returns whether the encoder changes canvases: that of a lossy WebP, in which they show what was stored.
static bool alters_canvases(const ccodecs_encode_options *options) {
  return options->format == CCODECS_FORMAT_WEBP && !options->webp.is_lossless;
}

uint64_t ccodecs_canvases_estimate(const ccodecs_encode_options *options) {
  return (alters_canvases(options) ? 3 : 2) *
         ((uint64_t)options->width * options->height * ccodecs_encoder_channels(options) + 128);
}

uint64_t ccodecs_animation_estimate(const ccodecs_encode_options *options) {
  const uint64_t spooled = options->spill.can_spill ? max_spooled : max_unspilled;
  return ccodecs_canvases_estimate(options) + ccodecs_spool_charge(spooled, 0, &options->spill);
}

uint64_t ccodecs_frame_delay(const ccodecs_frame *frame, double per_second, double *excess) {
  if (frame->duration_divisor == 0) {
    return 0;
  }
  const double given = frame->duration * per_second / frame->duration_divisor;
  const double shortest = per_second / 100;
  const double exact = given + *excess;
  const double rounded = fmax(0, round(exact));
  // Viewers show a frame of at most 10 ms for 100 ms.
  if (given > shortest && rounded <= shortest) {
    *excess = 0;
    return (uint64_t)shortest + 1;
  }
  *excess = exact - rounded;
  return (uint64_t)rounded;
}

bool ccodecs_canvases_create(ccodecs_canvases *canvases, ccodecs_encoder *encoder) {
  const ccodecs_encode_options *options = &encoder->options;
  canvases->pixel_bytes = ccodecs_encoder_channels(options);
  canvases->row_bytes = options->width * canvases->pixel_bytes;
  const uint64_t byte_count = (uint64_t)canvases->row_bytes * options->height;
  if (byte_count > SIZE_MAX) {
    return false;
  }
  canvases->current = ccodecs_allocate(encoder->budget, (size_t)byte_count);
  canvases->previous = ccodecs_allocate(encoder->budget, (size_t)byte_count);
  const bool is_altered = alters_canvases(options);
  canvases->given = is_altered ? ccodecs_allocate(encoder->budget, (size_t)byte_count) : NULL;
  return canvases->current != NULL && canvases->previous != NULL && (canvases->given != NULL || !is_altered);
}

void ccodecs_canvases_write(ccodecs_canvases *canvases, const ccodecs_rows *rows) {
  const uint8_t *before = canvases->given != NULL ? canvases->given : canvases->previous;
  for (uint32_t i = 0; i < rows->row_counts[0]; i++, canvases->written++) {
    const size_t offset = canvases->written * canvases->row_bytes;
    const uint8_t *row = rows->planes[0] == NULL ? before + offset : rows->planes[0] + i * rows->row_strides[0];
    memcpy(canvases->current + offset, row, canvases->row_bytes);
    if (canvases->given != NULL && rows->planes[0] != NULL) {
      memcpy(canvases->given + offset, row, canvases->row_bytes);
    }
  }
}

/// Returns the number of equal bytes at the beginning of rows.
static size_t count_equal(const uint8_t *a, const uint8_t *b, size_t count) {
  size_t i = 0;
  uint64_t of_a, of_b;
  while (i + sizeof of_a <= count &&
         (memcpy(&of_a, a + i, sizeof of_a), memcpy(&of_b, b + i, sizeof of_b), of_a == of_b)) {
    i += sizeof of_a;
  }
  while (i < count && a[i] == b[i]) {
    i++;
  }
  return i;
}

/// Returns the number of bytes before the equal ones at the end of rows.
static size_t count_to_equal(const uint8_t *a, const uint8_t *b, size_t count) {
  uint64_t of_a, of_b;
  while (count >= sizeof of_a && (memcpy(&of_a, a + count - sizeof of_a, sizeof of_a),
                                  memcpy(&of_b, b + count - sizeof of_b, sizeof of_b), of_a == of_b)) {
    count -= sizeof of_a;
  }
  while (count > 0 && a[count - 1] == b[count - 1]) {
    count--;
  }
  return count;
}

/// Widens the columns from *first to *end, which contain all differences of the rows above, to those of one row.
static void widen(const uint8_t *a, const uint8_t *b, size_t row_bytes, size_t *first, size_t *end) {
  *first = memcmp(a, b, *first) == 0 ? *first : count_equal(a, b, *first);
  *end += memcmp(a + *end, b + *end, row_bytes - *end) == 0 ? 0 : count_to_equal(a + *end, b + *end, row_bytes - *end);
}

ccodecs_rectangle ccodecs_canvases_changes(const ccodecs_canvases *canvases, const ccodecs_encode_options *options) {
  const size_t row_bytes = canvases->row_bytes;
  uint32_t top = 0;
  uint32_t bottom = options->height;
  while (top < bottom &&
         memcmp(canvases->current + top * row_bytes, canvases->previous + top * row_bytes, row_bytes) == 0) {
    top++;
  }
  while (bottom > top && memcmp(
                             canvases->current + (bottom - 1) * row_bytes,
                             canvases->previous + (bottom - 1) * row_bytes, row_bytes) == 0) {
    bottom--;
  }
  size_t first = row_bytes;
  size_t end = 0;
  for (uint32_t y = top; y < bottom; y++) {
    widen(canvases->current + y * row_bytes, canvases->previous + y * row_bytes, row_bytes, &first, &end);
  }
  if (top == bottom) {
    return (ccodecs_rectangle){0};
  }
  const uint32_t left = (uint32_t)(first / canvases->pixel_bytes);
  const uint32_t right = (uint32_t)((end + canvases->pixel_bytes - 1) / canvases->pixel_bytes);
  return (ccodecs_rectangle){.left = left, .top = top, .width = right - left, .height = bottom - top};
}

bool ccodecs_canvases_need_key(const ccodecs_canvases *canvases) {
  return canvases->dependent + 1 >= key_distance;
}

void ccodecs_canvases_advance(ccodecs_canvases *canvases, bool is_key) {
  canvases->dependent = is_key ? 0 : canvases->dependent + 1;
  uint8_t *previous = canvases->previous;
  canvases->previous = canvases->current;
  canvases->current = previous;
}

void ccodecs_canvases_destroy(ccodecs_canvases *canvases, ccodecs_budget *budget) {
  ccodecs_free(budget, canvases->current);
  ccodecs_free(budget, canvases->previous);
  ccodecs_free(budget, canvases->given);
  *canvases = (ccodecs_canvases){0};
}

/// Returns whether viewers show a frame for as long as it specifies.
static bool is_shown_as_stored(const ccodecs_frame *frame) {
  return (uint64_t)frame->duration * 100 > frame->duration_divisor;
}

bool ccodecs_encoder_extend_frame(ccodecs_encoder *encoder, const ccodecs_frame *frame) {
  ccodecs_frame *last = &encoder->pending;
  const bool can_extend = encoder->has_pending && !encoder->is_in_frame && !encoder->is_finished &&
                          last->duration_divisor == frame->duration_divisor && is_shown_as_stored(last) &&
                          is_shown_as_stored(frame) && frame->duration <= UINT32_MAX - last->duration;
  if (can_extend) {
    last->duration += frame->duration;
    encoder->is_animation = true;
  }
  return can_extend;
}

static ccodecs_status no_room(ccodecs_encoder *encoder) {
  return ccodecs_encoder_fail(encoder, CCODECS_NO_MEMORY, "no room for the compressed frames");
}

void ccodecs_encoder_begin_spool(ccodecs_encoder *encoder) {
  encoder->spool.max_memory = max_spooled;
  encoder->is_spooling = true;
}

ccodecs_status ccodecs_encoder_spool(ccodecs_encoder *encoder, const uint8_t *bytes, size_t count) {
  if (!encoder->options.spill.can_spill && encoder->spool.count + count > max_unspilled) {
    return ccodecs_encoder_fail(
        encoder, CCODECS_NO_MEMORY, "without a spill directory, an animation has at most %llu bytes",
        (unsigned long long)max_unspilled);
  }
  return ccodecs_spool_append(&encoder->spool, bytes, count, &encoder->options.spill, encoder->budget)
             ? CCODECS_OK
             : no_room(encoder);
}

ccodecs_status ccodecs_encoder_end_spool(ccodecs_encoder *encoder) {
  if (!ccodecs_spool_end(&encoder->spool)) {
    encoder->budget->has_machine_failed = true;
    return no_room(encoder);
  }
  encoder->is_spool_ready = true;
  return CCODECS_OK;
}
