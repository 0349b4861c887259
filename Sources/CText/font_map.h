// Fonts as Pango sees them.

#pragma once

#include "fonts.h"

/// Creates a font map for one text, which both must outlive it.
PangoFontMap *ctext_font_map_create(const ctext_fonts *fonts, const char *text, size_t byte_count);
