// The common part of all encoders: row counts, sticky failures and pending output.

#include "encoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ccodecs_encoder *ccodecs_encoder_allocate(
    const ccodecs_encoder_methods *methods, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  ccodecs_encoder *encoder = ccodecs_allocate(budget, methods->byte_count);
  if (encoder == NULL) {
    return NULL;
  }
  memset(encoder, 0, methods->byte_count);
  encoder->methods = methods;
  encoder->budget = budget;
  encoder->options = *options;
  if (methods->create(encoder, options, budget)) {
    return encoder;
  }
  ccodecs_encoder_destroy(encoder);
  return NULL;
}

ccodecs_status ccodecs_encoder_fail(ccodecs_encoder *encoder, ccodecs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(encoder->message, sizeof encoder->message, format, arguments);
  va_end(arguments);
  encoder->failure = status;
  return status;
}

uint32_t ccodecs_encoder_plane_count(const ccodecs_encode_options *options) {
  return options->pixels == CCODECS_PIXELS_YCC8 ? 3 : 1;
}

uint32_t ccodecs_encoder_plane_width(const ccodecs_encode_options *options, uint32_t plane) {
  const bool is_halved = plane > 0 && options->subsampling != CCODECS_SUBSAMPLING_444;
  return is_halved ? options->width / 2 + (options->width & 1) : options->width;
}

uint32_t ccodecs_encoder_plane_height(const ccodecs_encode_options *options, uint32_t plane) {
  const bool is_halved = plane > 0 && options->subsampling == CCODECS_SUBSAMPLING_420;
  return is_halved ? options->height / 2 + (options->height & 1) : options->height;
}

uint32_t ccodecs_encoder_channels(const ccodecs_encode_options *options) {
  switch (options->pixels) {
  case CCODECS_PIXELS_RGBA8:
  case CCODECS_PIXELS_RGBA16:
    return 4;
  case CCODECS_PIXELS_RGB8:
  case CCODECS_PIXELS_RGB16:
    return 3;
  default:
    return 1;
  }
}

bool ccodecs_encoder_is_deep(const ccodecs_encode_options *options) {
  return options->pixels >= CCODECS_PIXELS_GRAY16;
}

uint32_t ccodecs_encoder_pixel_bytes(const ccodecs_encode_options *options) {
  return ccodecs_encoder_channels(options) * (ccodecs_encoder_is_deep(options) ? 2 : 1);
}

/// Returns the number of samples of all planes, including block padding.
static uint64_t sample_count(const ccodecs_encode_options *options, uint32_t channels) {
  uint64_t samples = 0;
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(options); i++) {
    samples +=
        (uint64_t)(ccodecs_encoder_plane_width(options, i) + 16) * (ccodecs_encoder_plane_height(options, i) + 16);
  }
  return samples * channels;
}

uint64_t ccodecs_encoder_max_lossy_bytes(const ccodecs_encode_options *options) {
  const uint64_t samples = sample_count(options, ccodecs_encoder_pixel_bytes(options));
  return samples + samples / 2 + 65536 + ccodecs_metadata_bytes(&options->metadata);
}

uint64_t ccodecs_encoder_max_stored_bytes(const ccodecs_encode_options *options, uint32_t bytes) {
  const uint64_t samples = sample_count(options, bytes);
  return samples + samples / 64 + 65536 + ccodecs_metadata_bytes(&options->metadata);
}

/// Records a failure for which the concrete encoder gave no reason.
static ccodecs_status leave(ccodecs_encoder *encoder, ccodecs_status status) {
  if (status != CCODECS_OK && encoder->failure == CCODECS_OK) {
    return ccodecs_encoder_fail(
        encoder, status, "%s", status == CCODECS_NO_MEMORY ? "memory is exhausted" : "the image cannot be encoded");
  }
  return status;
}

ccodecs_status ccodecs_encoder_begin_frame(ccodecs_encoder *encoder, const ccodecs_frame *frame) {
  CCODECS_TRY(encoder->failure);
  if (encoder->is_in_frame || encoder->is_finished) {
    return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "a frame begins before the end of another, or after the last");
  }
  if (encoder->frame_count > 0 && !encoder->options.has_frames) {
    return ccodecs_encoder_fail(encoder, CCODECS_UNSUPPORTED, "the options allow one frame");
  }
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&encoder->options); i++) {
    encoder->rows_left[i] = ccodecs_encoder_plane_height(&encoder->options, i);
  }
  encoder->frame = *frame;
  encoder->frame_count++;
  encoder->is_animation = encoder->is_animation || encoder->frame_count > 1;
  encoder->is_in_frame = true;
  return encoder->methods->begin_frame == NULL ? CCODECS_OK : leave(encoder, encoder->methods->begin_frame(encoder));
}

/// Begins the frame of a still image.
static ccodecs_status begin_only_frame(ccodecs_encoder *encoder) {
  const ccodecs_frame whole = {.width = encoder->options.width, .height = encoder->options.height, .play_count = 1};
  return ccodecs_encoder_begin_frame(encoder, &whole);
}

ccodecs_status ccodecs_encoder_write(ccodecs_encoder *encoder, const ccodecs_rows *rows) {
  const bool is_first = encoder->failure == CCODECS_OK && !encoder->is_finished && encoder->frame_count == 0;
  CCODECS_TRY(is_first ? begin_only_frame(encoder) : encoder->failure);
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&encoder->options); i++) {
    if (!encoder->is_in_frame || rows->row_counts[i] > encoder->rows_left[i]) {
      return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "there are more rows than the image has");
    }
    encoder->rows_left[i] -= rows->row_counts[i];
  }
  return leave(encoder, encoder->methods->write(encoder, rows));
}

ccodecs_status ccodecs_encoder_repeat(ccodecs_encoder *encoder, uint32_t row_count) {
  if (encoder->failure != CCODECS_OK) {
    return encoder->failure;
  }
  if (!encoder->options.has_frames || encoder->frame_count < 2) {
    return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "there is no frame whose rows can be repeated");
  }
  const ccodecs_rows rows = {.row_counts = {row_count}};
  return ccodecs_encoder_write(encoder, &rows);
}

/// Returns whether every row of the frame was written, and there is a frame.
static bool has_all_rows(const ccodecs_encoder *encoder) {
  bool has_all = encoder->frame_count > 0;
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&encoder->options); i++) {
    has_all = has_all && encoder->rows_left[i] == 0;
  }
  return has_all;
}

ccodecs_status ccodecs_encoder_end_frame(ccodecs_encoder *encoder) {
  CCODECS_TRY(encoder->failure);
  if (!encoder->is_in_frame || !has_all_rows(encoder)) {
    return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "the frame lacks rows or has not begun");
  }
  encoder->is_in_frame = false;
  return encoder->methods->end_frame == NULL ? CCODECS_OK : leave(encoder, encoder->methods->end_frame(encoder));
}

ccodecs_status ccodecs_encoder_append_exif(ccodecs_encoder *encoder, const uint8_t *exif, size_t count) {
  CCODECS_TRY(encoder->failure);
  const bool fits =
      encoder->methods->append_exif != NULL && encoder->options.metadata.exif_count == 0 && !encoder->is_finished;
  if (!fits || count == 0 || count > CCODECS_MAX_EXIF_BYTES) {
    return CCODECS_UNSUPPORTED;
  }
  if (!has_all_rows(encoder)) {
    return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "the image lacks rows");
  }
  encoder->options.metadata.exif_count = count;
  return leave(encoder, encoder->methods->append_exif(encoder, exif, count));
}

void ccodecs_encoder_set_interrupt(ccodecs_encoder *encoder, ccodecs_interrupt interrupt) {
  encoder->interrupt = interrupt;
}

ccodecs_status ccodecs_encoder_finish(ccodecs_encoder *encoder) {
  CCODECS_TRY(encoder->failure);
  if (encoder->is_finished || !has_all_rows(encoder)) {
    return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "the image lacks rows or was finished before");
  }
  CCODECS_TRY(encoder->is_in_frame ? ccodecs_encoder_end_frame(encoder) : CCODECS_OK);
  encoder->is_finished = true;
  return leave(encoder, encoder->methods->finish(encoder));
}

size_t ccodecs_encoder_pending(const ccodecs_encoder *encoder) {
  const uint64_t spooled = encoder->is_spool_ready ? encoder->spool.count : 0;
  const uint64_t count = encoder->output.count + spooled - encoder->read_offset;
  return count < SIZE_MAX ? (size_t)count : SIZE_MAX;
}

/// Finds the bytes at `read_offset` of a complete result: its output, and behind it the spool. Returns false if the
/// disk fails.
static bool find_spooled(ccodecs_encoder *encoder, ccodecs_input *window) {
  const uint64_t offset = encoder->read_offset;
  const size_t output = encoder->output.count;
  if (offset < output) {
    *window =
        (ccodecs_input){.bytes = ccodecs_bytes_start(&encoder->output) + offset, .count = output - (size_t)offset};
    return true;
  }
  *window = (ccodecs_input){0};
  return offset - output == encoder->spool.count ||
         ccodecs_spool_window(&encoder->spool, offset - output, encoder->spool.count, window);
}

void ccodecs_encoder_rewind(ccodecs_encoder *encoder) {
  encoder->read_offset = 0;
}

size_t ccodecs_encoder_take(ccodecs_encoder *encoder, size_t capacity, const uint8_t **bytes) {
  ccodecs_input window = {0};
  if (!encoder->is_spooling) {
    window = (ccodecs_input){.bytes = ccodecs_bytes_start(&encoder->output), .count = encoder->output.count};
  } else if (encoder->is_spool_ready && !find_spooled(encoder, &window)) {
    encoder->budget->has_machine_failed = true;
    ccodecs_encoder_fail(encoder, CCODECS_NO_MEMORY, "the spooled result cannot be read");
    return 0;
  }
  const size_t count = window.count < capacity ? window.count : capacity;
  *bytes = window.bytes;
  if (encoder->is_spooling) {
    encoder->read_offset += count;
  } else {
    ccodecs_bytes_take(&encoder->output, count);
  }
  return count;
}

size_t ccodecs_encoder_read(ccodecs_encoder *encoder, uint8_t *buffer, size_t capacity) {
  size_t count = 0;
  size_t taken = 1;
  while (count < capacity && taken > 0) {
    const uint8_t *bytes;
    taken = ccodecs_encoder_take(encoder, capacity - count, &bytes);
    if (taken > 0) {
      memcpy(buffer + count, bytes, taken);
    }
    count += taken;
  }
  return count;
}

void ccodecs_encoder_keep_animation(ccodecs_encoder *encoder) {
  encoder->is_animation = encoder->options.has_frames;
}

uint32_t ccodecs_encoder_stored_frames(const ccodecs_encoder *encoder) {
  return encoder->stored_frames > 1 ? encoder->stored_frames : 1;
}

ccodecs_status ccodecs_encoder_failure(const ccodecs_encoder *encoder) {
  return encoder->failure;
}

const char *ccodecs_encoder_message(const ccodecs_encoder *encoder) {
  return encoder->message;
}

void ccodecs_encoder_destroy(ccodecs_encoder *encoder) {
  if (encoder != NULL) {
    ccodecs_spool_destroy(&encoder->spool, encoder->budget);
    if (encoder->methods->destroy != NULL) {
      encoder->methods->destroy(encoder);
    }
    ccodecs_bytes_free(&encoder->output, encoder->budget);
    ccodecs_free(encoder->budget, encoder);
  }
}
