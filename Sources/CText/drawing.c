#include "available.h"

#if defined(CTEXT_IS_AVAILABLE)
#include "font_map.h"

#include <cairo.h>
#include <math.h>

/// The size of the em square in pixels at which text is laid out. What is drawn is scaled, so that Pango's numbers,
/// which have 32 bits, do not grow with the text's size, and lines break at the same places.
static const double LAYOUT_SIZE = 64;

/// A text that is laid out, with coordinates in pixels of what is drawn before it is rotated.
typedef struct text_layout {
  PangoLayout *layout;
  double scale;                    ///< From Pango's units to pixels.
  double left, top, right, bottom; ///< Whole numbers.
  double box[4];                   ///< Left, top, right and bottom; whole numbers.
} text_layout;

/// Parses the name of a font. Returns NULL if it is not one for text.
static PangoFontDescription *parsed_font(const ctext_fonts *fonts, const char *name, ctext_status *status) {
  PangoFontDescription *font = pango_font_description_from_string(name);
  const PangoFontMask refused = PANGO_FONT_MASK_SIZE | PANGO_FONT_MASK_GRAVITY | PANGO_FONT_MASK_VARIATIONS;
  if ((pango_font_description_get_set_fields(font) & refused) != 0 ||
      pango_font_description_get_variant(font) != PANGO_VARIANT_NORMAL) {
    *status = CTEXT_INVALID_FONT;
  } else {
    const char *names = pango_font_description_get_family(font);
    char **families = g_strsplit(names == NULL ? "Sans" : names, ",", -1);
    *status = CTEXT_UNKNOWN_FAMILY;
    for (char **family = families; *family != NULL; family++) {
      if (ctext_closest_face(fonts, g_strstrip(*family), font) != NULL) {
        *status = CTEXT_OK;
      }
    }
    g_strfreev(families);
  }
  pango_font_description_set_absolute_size(font, LAYOUT_SIZE * PANGO_SCALE);
  return font;
}

static PangoAlignment alignment(ctext_alignment alignment) {
  switch (alignment) {
  case CTEXT_START: // Pango's left is the start of a line, also from right to left
    return PANGO_ALIGN_LEFT;
  case CTEXT_CENTER:
    return PANGO_ALIGN_CENTER;
  case CTEXT_END:
    return PANGO_ALIGN_RIGHT;
  }
  return PANGO_ALIGN_LEFT;
}

/// Sets the rectangles: the box around the lines, and what is drawn, which may reach beyond it.
static void set_bounds(text_layout *text, const ctext_style *style) {
  PangoRectangle ink, logical;
  pango_layout_get_extents(text->layout, &ink, &logical);
  const double scale = text->scale, padding = style->has_box ? style->box_padding : 0;
  text->box[0] = floor(logical.x * scale - padding);
  text->box[1] = floor(logical.y * scale - padding);
  text->box[2] = ceil((logical.x + logical.width) * scale + padding);
  text->box[3] = ceil((logical.y + logical.height) * scale + padding);
  text->left = text->box[0], text->top = text->box[1], text->right = text->box[2], text->bottom = text->box[3];
  if (ink.width > 0 && ink.height > 0) {
    const double around = style->outline_width;
    text->left = fmin(text->left, floor(ink.x * scale - around));
    text->top = fmin(text->top, floor(ink.y * scale - around));
    text->right = fmax(text->right, ceil((ink.x + ink.width) * scale + around));
    text->bottom = fmax(text->bottom, ceil((ink.y + ink.height) * scale + around));
  }
  text->right = fmax(text->right, text->left + 1);
  text->bottom = fmax(text->bottom, text->top + 1);
}

/// Makes a layout whose lines begin at both sides as narrow as its widest line.
static void narrow(PangoLayout *layout) {
  const int count = pango_layout_get_line_count(layout);
  int widest = 0;
  bool begins_left = false;
  bool begins_right = false;
  for (int i = 0; i < count; i++) {
    PangoLayoutLine *line = pango_layout_get_line_readonly(layout, i);
    PangoRectangle logical;
    pango_layout_line_get_extents(line, NULL, &logical);
    widest = logical.width > widest ? logical.width : widest;
    *(line->resolved_dir == PANGO_DIRECTION_RTL ? &begins_right : &begins_left) = true;
  }
  if (!begins_left || !begins_right) {
    return;
  }
  const int whole = pango_layout_get_width(layout);
  pango_layout_set_width(layout, widest);
  if (pango_layout_get_line_count(layout) != count) {
    pango_layout_set_width(layout, whole); // the widest line would be broken
  }
}

static ctext_status lay_out(const ctext_fonts *fonts, const ctext_style *style, text_layout *text) {
  ctext_status status;
  PangoFontDescription *font = parsed_font(fonts, style->font, &status);
  if (status != CTEXT_OK) {
    pango_font_description_free(font);
    return status;
  }
  PangoFontMap *map = ctext_font_map_create(fonts, style->text, style->byte_count);
  PangoContext *context = pango_font_map_create_context(map);
  pango_context_set_round_glyph_positions(context, FALSE);
  pango_context_set_language(context, pango_language_from_string("en"));
  PangoLayout *layout = pango_layout_new(context);
  pango_layout_set_font_description(layout, font);
  pango_layout_set_text(layout, style->text, (int)style->byte_count);
  const double width = style->max_width / style->size * LAYOUT_SIZE * PANGO_SCALE;
  pango_layout_set_width(layout, width < G_MAXINT / 4 ? (int)width : G_MAXINT / 4);
  pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
  pango_layout_set_alignment(layout, alignment(style->alignment));
  // A text is drawn as it is, also where a word is broken.
  PangoAttrList *attributes = pango_attr_list_new();
  pango_attr_list_insert(attributes, pango_attr_insert_hyphens_new(FALSE));
  pango_layout_set_attributes(layout, attributes);
  pango_attr_list_unref(attributes);
  narrow(layout);
  *text = (text_layout){.layout = layout, .scale = style->size / LAYOUT_SIZE / PANGO_SCALE};
  set_bounds(text, style);
  pango_font_description_free(font);
  g_object_unref(context);
  // The map outlives its fonts: the layout's.
  g_object_set_data_full(G_OBJECT(layout), "image-worker-font-map", map, g_object_unref);
  return CTEXT_OK;
}

ctext_status ctext_measure(const ctext_fonts *fonts, const ctext_style *style, uint32_t *width, uint32_t *height) {
  text_layout text;
  const ctext_status status = lay_out(fonts, style, &text);
  if (status != CTEXT_OK) {
    return status;
  }
  const double sides[] = {fmin(text.right - text.left, UINT32_MAX), fmin(text.bottom - text.top, UINT32_MAX)};
  const bool is_upright = style->quarter_turns % 2 == 0;
  *width = (uint32_t)sides[is_upright ? 0 : 1];
  *height = (uint32_t)sides[is_upright ? 1 : 0];
  g_object_unref(text.layout);
  return *width > CTEXT_MAX_SIDE || *height > CTEXT_MAX_SIDE ? CTEXT_TOO_LARGE : CTEXT_OK;
}

// MARK: Outlines of glyphs as a path of Cairo

static void move_to(hb_draw_funcs_t *f, void *c, hb_draw_state_t *state, float x, float y, void *data) {
  (void)f, (void)state, (void)data;
  cairo_move_to(c, (double)x, (double)y);
}

static void line_to(hb_draw_funcs_t *f, void *c, hb_draw_state_t *state, float x, float y, void *data) {
  (void)f, (void)state, (void)data;
  cairo_line_to(c, (double)x, (double)y);
}

static void cubic_to(
    hb_draw_funcs_t *f, void *c, hb_draw_state_t *state, float x1, float y1, float x2, float y2, float x, float y,
    void *data) {
  (void)f, (void)state, (void)data;
  cairo_curve_to(c, (double)x1, (double)y1, (double)x2, (double)y2, (double)x, (double)y);
}

static void close_path(hb_draw_funcs_t *f, void *c, hb_draw_state_t *state, void *data) {
  (void)f, (void)state, (void)data;
  cairo_close_path(c);
}

static hb_draw_funcs_t *create_functions(void) {
  hb_draw_funcs_t *functions = hb_draw_funcs_create();
  hb_draw_funcs_set_move_to_func(functions, move_to, NULL, NULL);
  hb_draw_funcs_set_line_to_func(functions, line_to, NULL, NULL);
  hb_draw_funcs_set_cubic_to_func(functions, cubic_to, NULL, NULL);
  hb_draw_funcs_set_close_path_func(functions, close_path, NULL, NULL);
  return functions;
}

static void add_glyph(cairo_t *cairo, PangoFont *font, PangoGlyph glyph, hb_draw_funcs_t *functions) {
  const hb_codepoint_t shown = (glyph & PANGO_GLYPH_UNKNOWN_FLAG) != 0 ? 0 : glyph;
#if HB_VERSION_ATLEAST(7, 0, 0)
  hb_font_draw_glyph(pango_font_get_hb_font(font), shown, functions, cairo);
#else
  hb_font_get_glyph_shape(pango_font_get_hb_font(font), shown, functions, cairo);
#endif
}

/// Strokes the path of a glyph as lines: Cairo leaves holes in the stroke of a curve that is tighter than its pen.
static void stroke(cairo_t *cairo) {
  cairo_path_t *lines = cairo_copy_path_flat(cairo);
  cairo_new_path(cairo);
  cairo_append_path(cairo, lines); // which records in `cairo` that there was no memory for the lines
  cairo_path_destroy(lines);
  cairo_stroke(cairo);
}

static void set_color(cairo_t *cairo, ctext_color color) {
  cairo_set_source_rgb(cairo, color.red / 255.0, color.green / 255.0, color.blue / 255.0);
}

/// A pass over all glyphs, which draws their outlines or fills them. Each is a path of its own, which bounds Cairo's
/// memory.
typedef struct glyph_pass {
  cairo_t *cairo;
  const text_layout *text;
  hb_draw_funcs_t *functions;
  bool fills;
  const ctext_interruption *interruption;
} glyph_pass;

/// Draws the glyphs of a run. Returns false if drawing is interrupted.
static bool draw_run(const glyph_pass *pass, PangoLayoutIter *place) {
  const PangoLayoutRun *run = pango_layout_iter_get_run_readonly(place);
  if (run == NULL) { // the end of a line
    return true;
  }
  const double scale = pass->text->scale;
  PangoRectangle logical;
  pango_layout_iter_get_run_extents(place, NULL, &logical);
  const int baseline = pango_layout_iter_get_baseline(place);
  int x = logical.x;
  for (int i = 0; i < run->glyphs->num_glyphs; i++) {
    if (pass->interruption->is_interrupted(pass->interruption->context)) {
      return false;
    }
    const PangoGlyphInfo *info = &run->glyphs->glyphs[i];
    if (info->glyph != PANGO_GLYPH_EMPTY) {
      cairo_save(pass->cairo);
      cairo_translate(pass->cairo, (x + info->geometry.x_offset) * scale, (baseline + info->geometry.y_offset) * scale);
      cairo_scale(pass->cairo, scale, -scale);
      add_glyph(pass->cairo, run->item->analysis.font, info->glyph, pass->functions);
      cairo_restore(pass->cairo);
      if (pass->fills) {
        cairo_fill(pass->cairo);
      } else {
        stroke(pass->cairo);
      }
    }
    x += info->geometry.width;
  }
  return true;
}

static bool draw_runs(const glyph_pass *pass) {
  PangoLayoutIter *place = pango_layout_get_iter(pass->text->layout);
  bool is_complete = true;
  do {
    is_complete = draw_run(pass, place);
  } while (is_complete && pango_layout_iter_next_run(place));
  pango_layout_iter_free(place);
  return is_complete;
}

/// Draws all of a text. Returns false if drawing is interrupted.
static bool draw(
    cairo_t *cairo, const text_layout *text, const ctext_style *style, const ctext_interruption *interruption) {
  if (style->has_box) {
    set_color(cairo, style->box_color);
    const double *box = text->box;
    cairo_rectangle(cairo, box[0], box[1], box[2] - box[0], box[3] - box[1]);
    cairo_fill(cairo);
  }
  hb_draw_funcs_t *functions = create_functions();
  glyph_pass pass = {.cairo = cairo, .text = text, .functions = functions, .interruption = interruption};
  bool is_complete = true;
  if (style->outline_width > 0) {
    set_color(cairo, style->outline_color);
    cairo_set_line_width(cairo, 2 * style->outline_width); // of which the letters cover the inner half
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    is_complete = draw_runs(&pass);
  }
  pass.fills = true;
  set_color(cairo, style->color);
  is_complete = is_complete && draw_runs(&pass);
  hb_draw_funcs_destroy(functions);
  return is_complete;
}

/// Turns the coordinates of a text into those of the pixels.
static void place_text(cairo_t *cairo, const text_layout *text, const ctext_style *style, double width, double height) {
  switch (style->quarter_turns % 4) {
  case 1:
    cairo_translate(cairo, width, 0);
    break;
  case 2:
    cairo_translate(cairo, width, height);
    break;
  case 3:
    cairo_translate(cairo, 0, height);
    break;
  default:
    break;
  }
  // An exact rotation: that of an angle is one of rounded numbers.
  static const double cosines[] = {1, 0, -1, 0}, sines[] = {0, 1, 0, -1};
  const double c = cosines[style->quarter_turns % 4], s = sines[style->quarter_turns % 4];
  const cairo_matrix_t rotation = {.xx = c, .yx = s, .xy = -s, .yy = c};
  cairo_transform(cairo, &rotation);
  cairo_translate(cairo, -text->left, -text->top);
}

/// Converts Cairo's pixels, which are numbers with premultiplied alpha, to bytes of RGBA with straight alpha.
static void convert(uint8_t *pixels, size_t count, double opacity) {
  const uint32_t factor = (uint32_t)lround(fmin(fmax(opacity, 0), 1) * 65025);
  for (size_t i = 0; i < count; i++) {
    const uint32_t pixel = ((const uint32_t *)(const void *)pixels)[i];
    const uint32_t alpha = pixel >> 24, half = alpha / 2;
    uint8_t *bytes = pixels + 4 * i;
    for (int channel = 0; channel < 3; channel++) {
      const uint32_t level = pixel >> (16 - 8 * channel) & 0xff;
      const uint32_t straight = alpha == 0 ? 0 : (level * 255 + half) / alpha;
      bytes[channel] = (uint8_t)(straight < 255 ? straight : 255);
    }
    bytes[3] = (uint8_t)((alpha * factor + 65025 / 2) / 65025);
  }
}

ctext_status ctext_draw(
    const ctext_fonts *fonts, const ctext_style *style, double opacity, uint8_t *pixels, uint32_t width,
    uint32_t height, const ctext_interruption *interruption) {
  text_layout text;
  const ctext_status status = lay_out(fonts, style, &text);
  if (status != CTEXT_OK) {
    return status;
  }
  cairo_surface_t *surface =
      cairo_image_surface_create_for_data(pixels, CAIRO_FORMAT_ARGB32, (int)width, (int)height, (int)width * 4);
  cairo_t *cairo = cairo_create(surface);
  place_text(cairo, &text, style, width, height);
  const bool is_complete = draw(cairo, &text, style, interruption);
  cairo_surface_flush(surface);
  const bool is_drawn =
      cairo_status(cairo) == CAIRO_STATUS_SUCCESS && cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS;
  cairo_destroy(cairo);
  cairo_surface_destroy(surface);
  g_object_unref(text.layout);
  convert(pixels, (size_t)width * height, opacity);
  return !is_complete ? CTEXT_INTERRUPTED : is_drawn ? CTEXT_OK : CTEXT_FAILED;
}
#endif
