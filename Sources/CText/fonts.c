#ifndef _GNU_SOURCE
#define _GNU_SOURCE // strdup
#endif

#include "available.h"

#if defined(CTEXT_IS_AVAILABLE)
#include "fonts.h"

#include <cairo.h>
#include <fontconfig/fontconfig.h>
#include <hb-ot.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_FACES = 4096, ///< Further fonts are not loaded.
  REGULAR_WEIGHT = 400,
};

/// Names that no font has, for which Fontconfig chooses a family.
static const char *const alias_names[CTEXT_ALIAS_COUNT] = {"Sans", "Sans-Serif", "Serif", "Monospace", "System-UI"};

bool ctext_is_supported(void) {
  return true;
}

bool ctext_linked_library(size_t index, ctext_library *library) {
  const int pango = pango_version(), cairo = cairo_version(), fontconfig = FcGetVersion();
  unsigned major, minor, micro;
  hb_version(&major, &minor, &micro);
  const ctext_library libraries[] = {
      {"pango", pango / 10000, pango / 100 % 100, pango % 100},
      {"cairo", cairo / 10000, cairo / 100 % 100, cairo % 100},
      {"harfbuzz", major, minor, micro},
      {"fontconfig", fontconfig / 10000, fontconfig / 100 % 100, fontconfig % 100},
  };
  if (index >= sizeof libraries / sizeof *libraries) {
    return false;
  }
  *library = libraries[index];
  return true;
}

static int stretch_of(int width) {
  // Fontconfig's widths of PangoStretch's values.
  static const int widths[] = {50, 63, 75, 87, 100, 113, 125, 150, 200};
  int closest = 0;
  for (int i = 1; i < (int)(sizeof widths / sizeof *widths); i++) {
    if (abs(widths[i] - width) < abs(widths[closest] - width)) {
      closest = i;
    }
  }
  return closest;
}

static char *copy(const FcChar8 *text) {
  return text == NULL ? NULL : strdup((const char *)text);
}

/// Describes a font; the pattern keeps its strings. Returns false if it lacks what is needed.
static bool describe(FcPattern *pattern, ctext_face *face) {
  FcChar8 *family = NULL, *file = NULL;
  int slant = FC_SLANT_ROMAN, width = FC_WIDTH_NORMAL, index = 0;
  double weight = FC_WEIGHT_REGULAR;
  if (FcPatternGetString(pattern, FC_FAMILY, 0, &family) != FcResultMatch ||
      FcPatternGetString(pattern, FC_FILE, 0, &file) != FcResultMatch) {
    return false;
  }
  FcPatternGetInteger(pattern, FC_SLANT, 0, &slant);
  FcPatternGetInteger(pattern, FC_WIDTH, 0, &width);
  FcPatternGetInteger(pattern, FC_INDEX, 0, &index);
  FcPatternGetDouble(pattern, FC_WEIGHT, 0, &weight);
  const double open_type = FcWeightToOpenTypeDouble(weight);
  *face = (ctext_face){
      .family = copy(family),
      .style = slant == FC_SLANT_ROMAN    ? PANGO_STYLE_NORMAL
               : slant == FC_SLANT_ITALIC ? PANGO_STYLE_ITALIC
                                          : PANGO_STYLE_OBLIQUE,
      .weight = open_type > 0 ? (int)open_type : REGULAR_WEIGHT,
      .stretch = stretch_of(width),
      .file = copy(file),
      .index = index,
  };
  return face->family != NULL && face->file != NULL;
}

/// Maps the file of a font. Returns false if it is no font.
static bool map_file(ctext_face *face, const ctext_face *previous) {
  hb_face_t *loaded;
  if (previous != NULL && previous->index == (face->index & 0xffff) && strcmp(previous->file, face->file) == 0) {
    loaded = hb_face_reference(hb_font_get_face(previous->parent)); // an instance of the same variable font
  } else {
    hb_blob_t *blob = hb_blob_create_from_file(face->file);
    loaded = hb_face_create(blob, (unsigned)face->index & 0xffff);
    hb_blob_destroy(blob);
    hb_face_make_immutable(loaded);
  }
  const bool is_font = hb_face_get_glyph_count(loaded) > 0;
  if (is_font) {
    face->parent = hb_font_create(loaded);
    if (face->index >> 16 > 0) {
      hb_font_set_var_named_instance(face->parent, ((unsigned)face->index >> 16) - 1);
    }
    hb_font_make_immutable(face->parent);
  }
  hb_face_destroy(loaded);
  return is_font;
}

static void free_face(ctext_face *face) {
  hb_font_destroy(face->parent);
  free(face->family);
  free(face->file);
}

static int compare_faces(const void *first, const void *second) {
  const ctext_face *one = first, *other = second;
  const int families = g_ascii_strcasecmp(one->family, other->family);
  const int files = families != 0 ? families : strcmp(one->file, other->file);
  return files != 0 ? files : one->index - other->index;
}

static void list_faces(ctext_fonts *fonts, FcConfig *config) {
  // Fonts without outlines are those of emoji, and bitmaps. Those of variable fonts are their named instances.
  FcPattern *outlines = FcPatternBuild(NULL, FC_OUTLINE, FcTypeBool, FcTrue, FC_VARIABLE, FcTypeBool, FcFalse, NULL);
  FcObjectSet *objects =
      FcObjectSetBuild(FC_FAMILY, FC_SLANT, FC_WEIGHT, FC_WIDTH, FC_FILE, FC_INDEX, (const char *)NULL);
  FcFontSet *set = outlines == NULL || objects == NULL ? NULL : FcFontList(config, outlines, objects);
  const size_t count = set == NULL ? 0 : (size_t)set->nfont < MAX_FACES ? (size_t)set->nfont : MAX_FACES;
  fonts->faces = calloc(count + 1, sizeof *fonts->faces);
  size_t described = 0;
  for (size_t i = 0; fonts->faces != NULL && i < count; i++) {
    if (describe(set->fonts[i], &fonts->faces[described])) {
      described++;
    } else {
      free_face(&fonts->faces[described]);
      fonts->faces[described] = (ctext_face){0};
    }
  }
  if (described > 0) {
    qsort(fonts->faces, described, sizeof *fonts->faces, compare_faces);
  }
  for (size_t i = 0; i < described; i++) {
    ctext_face face = fonts->faces[i];
    if (map_file(&face, fonts->count > 0 ? &fonts->faces[fonts->count - 1] : NULL)) {
      fonts->faces[fonts->count++] = face;
    } else {
      free_face(&face);
    }
  }
  if (set != NULL) {
    FcFontSetDestroy(set);
  }
  if (objects != NULL) {
    FcObjectSetDestroy(objects);
  }
  if (outlines != NULL) {
    FcPatternDestroy(outlines);
  }
}

static FcPattern *pattern_for(FcConfig *config, const char *family) {
  FcPattern *pattern = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, family, FC_OUTLINE, FcTypeBool, FcTrue, NULL);
  if (pattern != NULL) {
    FcConfigSubstitute(config, pattern, FcMatchPattern);
    FcDefaultSubstitute(pattern);
  }
  return pattern;
}

static void resolve_aliases(ctext_fonts *fonts, FcConfig *config) {
  for (size_t i = 0; i < CTEXT_ALIAS_COUNT; i++) {
    fonts->aliases[i].name = alias_names[i];
    FcPattern *pattern = pattern_for(config, alias_names[i]);
    FcResult result;
    FcPattern *match = pattern == NULL ? NULL : FcFontMatch(config, pattern, &result);
    FcChar8 *family = NULL;
    if (match != NULL && FcPatternGetString(match, FC_FAMILY, 0, &family) == FcResultMatch) {
      fonts->aliases[i].family = copy(family);
    }
    if (match != NULL) {
      FcPatternDestroy(match);
    }
    if (pattern != NULL) {
      FcPatternDestroy(pattern);
    }
  }
}

static const ctext_face *face_of_file(const ctext_fonts *fonts, const char *file, int index) {
  for (size_t i = 0; i < fonts->count; i++) {
    if (fonts->faces[i].index == index && strcmp(fonts->faces[i].file, file) == 0) {
      return &fonts->faces[i];
    }
  }
  return NULL;
}

static void list_fallbacks(ctext_fonts *fonts, FcConfig *config) {
  FcPattern *pattern = pattern_for(config, alias_names[0]);
  FcResult result;
  // Without those that have no further characters.
  FcFontSet *set = pattern == NULL ? NULL : FcFontSort(config, pattern, FcTrue, NULL, &result);
  fonts->fallbacks = calloc(set == NULL ? 1 : (size_t)set->nfont + 1, sizeof(ctext_face *));
  for (int i = 0; fonts->fallbacks != NULL && set != NULL && i < set->nfont; i++) {
    FcChar8 *file = NULL;
    int index = 0;
    if (FcPatternGetString(set->fonts[i], FC_FILE, 0, &file) == FcResultMatch &&
        FcPatternGetInteger(set->fonts[i], FC_INDEX, 0, &index) == FcResultMatch) {
      const ctext_face *face = face_of_file(fonts, (const char *)file, index);
      if (face != NULL) {
        fonts->fallbacks[fonts->fallback_count++] = face;
      }
    }
  }
  if (set != NULL) {
    FcFontSetDestroy(set);
  }
  if (pattern != NULL) {
    FcPatternDestroy(pattern);
  }
}

ctext_fonts *ctext_fonts_load(const char *directory) {
  ctext_fonts *fonts = calloc(1, sizeof *fonts);
  FcConfig *config = fonts == NULL ? NULL : FcInitLoadConfig();
  if (config == NULL) {
    free(fonts);
    return NULL;
  }
  const bool has_directory = directory == NULL || FcConfigAppFontAddDir(config, (const FcChar8 *)directory) == FcTrue;
  if (has_directory && FcConfigBuildFonts(config) == FcTrue) {
    list_faces(fonts, config);
    resolve_aliases(fonts, config);
    list_fallbacks(fonts, config);
  }
  FcConfigDestroy(config);
  if (fonts->count > 0 && fonts->fallbacks != NULL) {
    return fonts;
  }
  ctext_fonts_destroy(fonts);
  return NULL;
}

void ctext_fonts_destroy(ctext_fonts *fonts) {
  if (fonts == NULL) {
    return;
  }
  for (size_t i = 0; i < fonts->count; i++) {
    free_face(&fonts->faces[i]);
  }
  for (size_t i = 0; i < CTEXT_ALIAS_COUNT; i++) {
    free(fonts->aliases[i].family);
  }
  free(fonts->faces);
  free(fonts->fallbacks);
  free(fonts);
}

const char *ctext_fonts_family(const ctext_fonts *fonts, size_t index) {
  return index < fonts->count ? fonts->faces[index].family : NULL;
}

/// Returns how much a font differs from a description: first in its width, then in its style, then in its weight.
static int distance(const ctext_face *face, const PangoFontDescription *description) {
  const PangoStyle style = pango_font_description_get_style(description);
  const int stretch = abs(face->stretch - (int)pango_font_description_get_stretch(description));
  const int slant = face->style == style ? 0 : face->style != PANGO_STYLE_NORMAL && style != PANGO_STYLE_NORMAL ? 1 : 2;
  const int weight = abs(face->weight - (int)pango_font_description_get_weight(description));
  return (stretch * 3 + slant) * 2000 + weight;
}

const ctext_face *ctext_closest_face(
    const ctext_fonts *fonts, const char *family, const PangoFontDescription *description) {
  for (size_t i = 0; i < CTEXT_ALIAS_COUNT; i++) {
    if (fonts->aliases[i].family != NULL && g_ascii_strcasecmp(fonts->aliases[i].name, family) == 0) {
      family = fonts->aliases[i].family;
      break;
    }
  }
  const ctext_face *closest = NULL;
  for (size_t i = 0; i < fonts->count; i++) {
    const ctext_face *face = &fonts->faces[i];
    if (g_ascii_strcasecmp(face->family, family) == 0 &&
        (closest == NULL || distance(face, description) < distance(closest, description))) {
      closest = face;
    }
  }
  return closest;
}

bool ctext_face_has(const ctext_face *face, uint32_t character) {
  hb_codepoint_t glyph;
  return hb_font_get_nominal_glyph(face->parent, character, &glyph);
}
#endif
