// Entropy-coded input of the native JPEG decoder: copies the caller's window, without stuffing, up to a marker.

#include "jpeg_decoder.h"

#include <string.h>

/// Appends zeros after the last byte, so that the bit reader can read past it without a check.
static void end(jpeg_input *in, uint8_t marker) {
  in->is_ended = true;
  in->marker = marker;
  memset(in->bytes + in->count, 0, in->slack);
}

/// Reads the byte after 0xFF. Any number of 0xFF may precede a marker and, for compatibility with libjpeg, a stuffed
/// zero.
static void take_escape(jpeg_input *in, ccodecs_input *window) {
  while (window->count > 0 && *window->bytes == 0xFF) {
    window->bytes++;
    window->count--;
  }
  if (window->count == 0) {
    return;
  }
  const uint8_t code = *window->bytes++;
  window->count--;
  in->has_ff = false;
  if (code == 0) {
    in->bytes[in->count++] = 0xFF;
  } else {
    end(in, code);
  }
}

void ccodecs_jpeg_input_fill(jpeg_input *in, ccodecs_input *window) {
  if (in->is_ended) {
    return;
  }
  if (in->next > 0) {
    memmove(in->bytes, in->bytes + in->next, in->count - in->next);
    in->count -= in->next;
    in->next = 0;
  }
  while (window->count > 0 && in->count < in->capacity && !in->is_ended) {
    if (in->has_ff) {
      take_escape(in, window);
      continue;
    }
    const size_t room = in->capacity - in->count;
    const size_t maximum = window->count < room ? window->count : room;
    const uint8_t *escape = memchr(window->bytes, 0xFF, maximum);
    const size_t count = escape == NULL ? maximum : (size_t)(escape - window->bytes);
    memcpy(in->bytes + in->count, window->bytes, count);
    in->count += count;
    in->has_ff = escape != NULL;
    window->bytes += count + in->has_ff;
    window->count -= count + in->has_ff;
  }
  if (window->count == 0 && window->is_last && !in->is_ended) {
    end(in, 0);
  }
}

bool ccodecs_jpeg_input_drop(jpeg_input *in, ccodecs_input *window, bool *has_dropped) {
  // The bits in the reader beyond the last byte do not belong to the file.
  *has_dropped |= in->count * 8 + in->bit_count >= in->next * 8 + 8;
  in->bits = 0;
  in->bit_count = 0;
  in->next = in->count;
  while (!in->is_ended && window->count > 0) {
    ccodecs_jpeg_input_fill(in, window);
    *has_dropped |= in->count > in->next;
    in->next = in->count;
  }
  if (!in->is_ended && window->is_last) {
    ccodecs_jpeg_input_fill(in, window);
  }
  return in->is_ended;
}

void ccodecs_jpeg_input_reset(jpeg_input *in) {
  in->count = 0;
  in->next = 0;
  in->bits = 0;
  in->bit_count = 0;
  in->has_ff = false;
  in->is_ended = false;
  in->marker = 0;
}
