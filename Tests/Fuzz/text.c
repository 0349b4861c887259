// Fuzzes the layout and drawing of texts: the input is the name of a font, a zero, numbers of a style, and the text.
//
// Valid UTF-8 only, without control characters: the worker refuses everything else before.

#include "ctext.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum { STYLE_BYTES = 8, MAX_PIXELS = 4 << 20 };

static ctext_fonts *fonts;

static bool is_interrupted(void *context) {
  return ++*(int *)context > 2000;
}

static bool is_accepted(const char *text, size_t count) {
  if (!g_utf8_validate(text, (gssize)count, NULL)) {
    return false;
  }
  for (const char *next = text; next < text + count; next = g_utf8_next_char(next)) {
    const gunichar character = g_utf8_get_char(next);
    if (g_unichar_type(character) == G_UNICODE_CONTROL && character != '\n') {
      return false;
    }
  }
  return true;
}

static ctext_style style_of(const uint8_t *numbers) {
  return (ctext_style){
      .size = 1 + numbers[0] * numbers[0] / 16.0,
      .max_width = 1 + numbers[1] * 8.0,
      .alignment = (ctext_alignment)(numbers[2] % 3),
      .color = {numbers[3], 128, 0},
      .outline_width = numbers[4] / 16.0,
      .has_box = numbers[5] % 2 == 1,
      .box_padding = numbers[6] / 8.0,
      .quarter_turns = numbers[7] % 4,
  };
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  if (fonts == NULL && (fonts = ctext_fonts_load(NULL)) == NULL) {
    abort();
  }
  const uint8_t *end = memchr(bytes, 0, count);
  const size_t name = end == NULL ? count : (size_t)(end - bytes);
  if (name > 255 || count < name + 1 + STYLE_BYTES || count - name - 1 - STYLE_BYTES > CTEXT_MAX_TEXT_BYTES ||
      !is_accepted((const char *)bytes, name)) {
    return 0;
  }
  ctext_style style = style_of(bytes + name + 1);
  style.font = (const char *)bytes;
  style.text = (const char *)bytes + name + 1 + STYLE_BYTES;
  style.byte_count = count - name - 1 - STYLE_BYTES;
  uint32_t width, height;
  if (!is_accepted(style.text, style.byte_count) || ctext_measure(fonts, &style, &width, &height) != CTEXT_OK ||
      (uint64_t)width * height > MAX_PIXELS) {
    return 0;
  }
  uint8_t *pixels = calloc((size_t)width * height, 4);
  int glyphs = 0;
  const ctext_interruption interruption = {is_interrupted, &glyphs};
  if (pixels != NULL) {
    ctext_draw(fonts, &style, 1, pixels, width, height, &interruption);
  }
  free(pixels);
  return 0;
}
