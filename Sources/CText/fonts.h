// Fonts as the parts of this module share them.

#pragma once

#include "ctext.h"

#include <hb.h>
#include <pango/pango.h>

/// One outline font.
typedef struct ctext_face {
  char *family;
  PangoStyle style;
  int weight;  ///< As in OpenType, 1 to 1000.
  int stretch; ///< PangoStretch
  char *file;
  int index;         ///< Fontconfig's: the font of the file, and in the upper half the number of a named instance.
  hb_font_t *parent; ///< Immutable.
} ctext_face;

/// A name that stands for a family, such as "Sans".
typedef struct ctext_alias {
  const char *name;
  char *family;
} ctext_alias;

enum { CTEXT_ALIAS_COUNT = 5 };

struct ctext_fonts {
  ctext_face *faces; ///< Sorted by family.
  size_t count;
  const ctext_face **fallbacks; ///< Those that have the characters that others lack, in the order to try them.
  size_t fallback_count;
  ctext_alias aliases[CTEXT_ALIAS_COUNT];
};

/// Returns the font of a family that is closest to a description; NULL if no font has this family.
const ctext_face *ctext_closest_face(
    const ctext_fonts *fonts, const char *family, const PangoFontDescription *description);

/// Returns whether a font has a glyph for a character.
bool ctext_face_has(const ctext_face *face, uint32_t character);
