// A font map of Pango over fonts that are loaded already. Pango's own maps look for fonts in threads, and open their
// files when they are used, which a sandboxed process cannot; and threads share them only with locks.

#include "available.h"

#if defined(CTEXT_IS_AVAILABLE)
#include "font_map.h"

// MARK: Fonts

typedef struct TextFont {
  PangoFont parent_instance;
  PangoFontMap *map; ///< Outlives the font.
  const ctext_face *face;
  PangoFontDescription *description;
  PangoCoverage *coverage; ///< Of the characters of the map's text.
} TextFont;

typedef struct TextFontClass {
  PangoFontClass parent_class;
} TextFontClass;

static GType text_font_get_type(void);
G_DEFINE_TYPE(TextFont, text_font, PANGO_TYPE_FONT)

static TextFont *text_font(gpointer font) {
  return G_TYPE_CHECK_INSTANCE_CAST(font, text_font_get_type(), TextFont);
}

static PangoFontDescription *text_font_describe(PangoFont *font) {
  return pango_font_description_copy(text_font(font)->description);
}

static PangoCoverage *text_font_get_coverage(PangoFont *font, PangoLanguage *language) {
  (void)language;
  return g_object_ref(text_font(font)->coverage);
}

static PangoFontMap *text_font_get_font_map(PangoFont *font) {
  return text_font(font)->map;
}

static void text_font_get_features(PangoFont *font, hb_feature_t *features, guint length, guint *count) {
  (void)font, (void)features, (void)length, (void)count;
}

static hb_font_t *text_font_create_hb_font(PangoFont *font) {
  const TextFont *own = text_font(font);
  hb_font_t *scaled = hb_font_create_sub_font(own->face->parent);
  const int size = pango_font_description_get_size(own->description);
  hb_font_set_scale(scaled, size, size);
  return scaled;
}

static void text_font_get_glyph_extents(
    PangoFont *font, PangoGlyph glyph, PangoRectangle *ink_rect, PangoRectangle *logical_rect) {
  PangoRectangle ink = {0}, logical = {0};
  if (glyph != PANGO_GLYPH_EMPTY) {
    hb_font_t *scaled = pango_font_get_hb_font(font);
    const hb_codepoint_t shown = (glyph & PANGO_GLYPH_UNKNOWN_FLAG) != 0 ? 0 : glyph;
    hb_glyph_extents_t extents = {0};
    hb_font_get_glyph_extents(scaled, shown, &extents);
    ink = (PangoRectangle){extents.x_bearing, -extents.y_bearing, extents.width, -extents.height};
    hb_font_extents_t lines;
    hb_font_get_extents_for_direction(scaled, HB_DIRECTION_LTR, &lines);
    logical = (PangoRectangle){
        0, -lines.ascender, hb_font_get_glyph_h_advance(scaled, shown), lines.ascender - lines.descender};
  }
  if (ink_rect != NULL) {
    *ink_rect = ink;
  }
  if (logical_rect != NULL) {
    *logical_rect = logical;
  }
}

static PangoFontMetrics *text_font_get_metrics(PangoFont *font, PangoLanguage *language) {
  hb_font_extents_t lines;
  hb_font_get_extents_for_direction(pango_font_get_hb_font(font), HB_DIRECTION_LTR, &lines);
  PangoFontMetrics *metrics = pango_font_get_metrics(NULL, language); // new ones, of which only lines matter here
  metrics->ascent = lines.ascender;
  metrics->descent = -lines.descender;
  metrics->height = lines.ascender - lines.descender + lines.line_gap;
  return metrics;
}

static void text_font_finalize(GObject *object) {
  TextFont *font = text_font(object);
  pango_font_description_free(font->description);
  g_clear_object(&font->coverage);
  G_OBJECT_CLASS(text_font_parent_class)->finalize(object);
}

static void text_font_init(TextFont *font) {
  (void)font;
}

static void text_font_class_init(TextFontClass *class) {
  PangoFontClass *font = PANGO_FONT_CLASS(class);
  font->describe = text_font_describe;
  font->describe_absolute = text_font_describe;
  font->get_coverage = text_font_get_coverage;
  font->get_glyph_extents = text_font_get_glyph_extents;
  font->get_metrics = text_font_get_metrics;
  font->get_font_map = text_font_get_font_map;
  font->get_features = text_font_get_features;
  font->create_hb_font = text_font_create_hb_font;
  G_OBJECT_CLASS(class)->finalize = text_font_finalize;
}

// MARK: The map

typedef struct TextFontMap {
  PangoFontMap parent_instance;
  const ctext_fonts *fonts;
  gunichar *characters; ///< Those of the text, and those that Pango adds.
  glong count;
  PangoFontDescription *wanted; ///< That of `set`, which each paragraph asks for.
  PangoFontset *set;
} TextFontMap;

typedef struct TextFontMapClass {
  PangoFontMapClass parent_class;
} TextFontMapClass;

static GType text_font_map_get_type(void);
G_DEFINE_TYPE(TextFontMap, text_font_map, PANGO_TYPE_FONT_MAP)

static TextFontMap *text_font_map(gpointer map) {
  return G_TYPE_CHECK_INSTANCE_CAST(map, text_font_map_get_type(), TextFontMap);
}

static PangoFont *create_font(TextFontMap *map, const ctext_face *face, const PangoFontDescription *wanted) {
  TextFont *font = g_object_new(text_font_get_type(), NULL);
  font->map = PANGO_FONT_MAP(map);
  font->face = face;
  font->description = pango_font_description_new();
  pango_font_description_set_family(font->description, face->family);
  pango_font_description_set_style(font->description, face->style);
  pango_font_description_set_weight(font->description, (PangoWeight)face->weight);
  pango_font_description_set_stretch(font->description, (PangoStretch)face->stretch);
  pango_font_description_set_absolute_size(font->description, pango_font_description_get_size(wanted));
  font->coverage = pango_coverage_new();
  for (glong i = 0; i < map->count; i++) {
    if (ctext_face_has(face, map->characters[i])) {
      pango_coverage_set(font->coverage, (int)map->characters[i], PANGO_COVERAGE_EXACT);
    }
  }
  return PANGO_FONT(font);
}

/// Returns the closest font of the first of the wanted families that is known, or of any.
static const ctext_face *first_face(const ctext_fonts *fonts, const PangoFontDescription *wanted) {
  const char *names = pango_font_description_get_family(wanted);
  char **families = g_strsplit(names == NULL ? "" : names, ",", -1);
  const ctext_face *face = NULL;
  for (char **family = families; *family != NULL && face == NULL; family++) {
    face = ctext_closest_face(fonts, g_strstrip(*family), wanted);
  }
  g_strfreev(families);
  if (face == NULL) {
    face = ctext_closest_face(fonts, "Sans", wanted);
  }
  return face == NULL ? &fonts->faces[0] : face;
}

static PangoFont *text_font_map_load_font(
    PangoFontMap *map, PangoContext *context, const PangoFontDescription *wanted) {
  (void)context;
  TextFontMap *own = text_font_map(map);
  return create_font(own, first_face(own->fonts, wanted), wanted);
}

static void append(
    PangoFontsetSimple *set, TextFontMap *map, const ctext_face *face, const PangoFontDescription *wanted) {
  pango_fontset_simple_append(set, create_font(map, face, wanted));
}

static PangoFontset *create_set(TextFontMap *own, const PangoFontDescription *wanted, PangoLanguage *language) {
  PangoFontsetSimple *set = pango_fontset_simple_new(language);
  const ctext_face *first = first_face(own->fonts, wanted);
  append(set, own, first, wanted);
  // Fallbacks that have any of the characters which the fonts before them lack.
  bool *is_covered = g_new0(bool, (gsize)own->count + 1);
  const ctext_face *face = first;
  for (size_t next = 0; face != NULL; next++) {
    bool is_used = face == first, is_complete = true;
    for (glong i = 0; i < own->count; i++) {
      if (!is_covered[i] && ctext_face_has(face, own->characters[i])) {
        is_covered[i] = is_used = true;
      }
      is_complete = is_complete && is_covered[i];
    }
    if (is_used && face != first) {
      const ctext_face *styled = ctext_closest_face(own->fonts, face->family, wanted);
      append(set, own, styled, wanted);
      if (styled != face) {
        append(set, own, face, wanted); // which may have characters that its family lacks in this style
      }
    }
    face = is_complete || next >= own->fonts->fallback_count ? NULL : own->fonts->fallbacks[next];
  }
  g_free(is_covered);
  return PANGO_FONTSET(set);
}

static PangoFontset *text_font_map_load_fontset(
    PangoFontMap *map, PangoContext *context, const PangoFontDescription *wanted, PangoLanguage *language) {
  (void)context;
  TextFontMap *own = text_font_map(map);
  if (own->set == NULL || !pango_font_description_equal(own->wanted, wanted)) {
    PangoFontset *set = create_set(own, wanted, language);
    g_clear_object(&own->set);
    pango_font_description_free(own->wanted);
    own->set = set;
    own->wanted = pango_font_description_copy(wanted);
  }
  return g_object_ref(own->set);
}

static void text_font_map_list_families(PangoFontMap *map, PangoFontFamily ***families, int *count) {
  (void)map;
  if (families != NULL) {
    *families = NULL;
  }
  *count = 0;
}

static guint text_font_map_get_serial(PangoFontMap *map) {
  (void)map;
  return 1;
}

static PangoFontFace *text_font_map_get_face(PangoFontMap *map, PangoFont *font) {
  (void)map, (void)font;
  return NULL;
}

static void text_font_map_finalize(GObject *object) {
  TextFontMap *map = text_font_map(object);
  g_clear_object(&map->set);
  pango_font_description_free(map->wanted);
  g_free(map->characters);
  G_OBJECT_CLASS(text_font_map_parent_class)->finalize(object);
}

static void text_font_map_init(TextFontMap *map) {
  (void)map;
}

static void text_font_map_class_init(TextFontMapClass *class) {
  PangoFontMapClass *map = PANGO_FONT_MAP_CLASS(class);
  map->load_font = text_font_map_load_font;
  map->load_fontset = text_font_map_load_fontset;
  map->list_families = text_font_map_list_families;
  map->get_serial = text_font_map_get_serial;
  map->get_face = text_font_map_get_face;
  G_OBJECT_CLASS(class)->finalize = text_font_map_finalize;
}

PangoFontMap *ctext_font_map_create(const ctext_fonts *fonts, const char *text, size_t byte_count) {
  static const gunichar added[] = {' ', '-', 0x2010 /* hyphen */, 0x2026 /* ellipsis */};
  TextFontMap *map = g_object_new(text_font_map_get_type(), NULL);
  glong count = 0;
  gunichar *characters = g_utf8_to_ucs4_fast(text, (glong)byte_count, &count);
  map->characters = g_renew(gunichar, characters, (gsize)count + G_N_ELEMENTS(added));
  for (gsize i = 0; i < G_N_ELEMENTS(added); i++) {
    map->characters[count++] = added[i];
  }
  map->fonts = fonts;
  map->count = count;
  return PANGO_FONT_MAP(map);
}
#endif
