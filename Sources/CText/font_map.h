// Fonts as Pango sees them.

#ifndef CTEXT_FONT_MAP_H
#define CTEXT_FONT_MAP_H

#include "fonts.h"

/// Creates a font map for one text, which both must outlive it.
PangoFontMap *ctext_font_map_create(const ctext_fonts *fonts, const char *text, size_t byte_count);

#endif
