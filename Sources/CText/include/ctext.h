// Text that is drawn: fonts, layout and pixels, by Pango, HarfBuzz and Cairo. Without the trait TEXT every function
// fails.
//
//   ctext_fonts_load, then from any thread ctext_measure and ctext_draw, as often as needed
//
// Texts and names of fonts are hostile. A name is compared with those of the fonts that were loaded, so that neither
// Fontconfig nor the file system sees it; a text is laid out as it is, without markup. Fonts are those of the operator,
// whose files are mapped when they are loaded: later calls open no files, start no threads and change nothing that
// calls share but what GLib and HarfBuzz guard themselves.

#ifndef CTEXT_H
#define CTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CTEXT_MAX_SIDE = 32767,       ///< The maximum width and height of drawn text, which is that of Cairo.
  CTEXT_MAX_TEXT_BYTES = 1000,  ///< The maximum size of a text.
  CTEXT_OVERHEAD = 1536 * 1024, ///< The bytes that measuring or drawing a text allocates at most, without its pixels.
};

/// Returns whether this build draws text.
bool ctext_is_supported(void);

/// A library that text is drawn with, and the version that is in use.
typedef struct ctext_library {
  const char *name;
  uint32_t major, minor, patch;
} ctext_library;

/// Fills `library` with the library at `index`, counted from 0. Returns false behind the last one.
bool ctext_linked_library(size_t index, ctext_library *library);

/// Outline fonts of the system, and their names. Never changes, so that all threads can use it.
typedef struct ctext_fonts ctext_fonts;

/// Loads the fonts that Fontconfig lists: those of the system, and those in `directory` unless it is NULL. Returns NULL
/// if there are none or this build draws no text.
ctext_fonts *ctext_fonts_load(const char *directory);

/// Frees fonts; NULL is ignored.
void ctext_fonts_destroy(ctext_fonts *fonts);

/// Returns the name of the family of the font at `index`, counted from 0; NULL behind the last one. The fonts of a
/// family follow each other, and families are sorted.
const char *ctext_fonts_family(const ctext_fonts *fonts, size_t index);

typedef enum ctext_alignment { CTEXT_START, CTEXT_CENTER, CTEXT_END } ctext_alignment;

typedef struct ctext_color {
  uint8_t red, green, blue;
} ctext_color;

/// How a text is drawn. Lengths are in pixels.
typedef struct ctext_style {
  const char *text; ///< UTF-8 of at most CTEXT_MAX_TEXT_BYTES.
  size_t byte_count;
  const char *font; ///< Families and style in Pango's notation, as in "DejaVu Sans Bold"; ends with 0.
  double size;      ///< Of the em square; above 0.
  double max_width; ///< Longer lines are wrapped.
  ctext_alignment alignment;
  ctext_color color;
  double outline_width; ///< Around each letter, behind all of them; 0 for none.
  ctext_color outline_color;
  bool has_box; ///< Whether there is a background.
  ctext_color box_color;
  double box_padding;     ///< Between the lines and the edges of the background.
  uint32_t quarter_turns; ///< Clockwise, after everything else.
} ctext_style;

typedef enum ctext_status {
  CTEXT_OK,
  CTEXT_UNKNOWN_FAMILY, ///< None of the families is loaded.
  CTEXT_INVALID_FONT,   ///< The font has a size, variations or features.
  CTEXT_TOO_LARGE,      ///< A side exceeds CTEXT_MAX_SIDE.
  CTEXT_INTERRUPTED,    ///< Its caller has asked to stop.
  CTEXT_FAILED,         ///< The system has no memory.
} ctext_status;

/// Measures what ctext_draw draws, in pixels. Also sets the sides for CTEXT_TOO_LARGE.
ctext_status ctext_measure(const ctext_fonts *fonts, const ctext_style *style, uint32_t *width, uint32_t *height);

/// Asked before each glyph is drawn.
typedef struct ctext_interruption {
  bool (*is_interrupted)(void *context);
  void *context;
} ctext_interruption;

/// Draws text as RGBA with straight alpha, which is multiplied by `opacity`.
///
/// `pixels` has the size that ctext_measure returned for this style, without padding; it is zeroed and aligned to 4
/// bytes.
ctext_status ctext_draw(
    const ctext_fonts *fonts, const ctext_style *style, double opacity, uint8_t *pixels, uint32_t width,
    uint32_t height, const ctext_interruption *interruption);

#endif
