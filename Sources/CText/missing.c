// Builds without the libraries for text.
#include "available.h"
#include "ctext.h"

#if !defined(CTEXT_IS_AVAILABLE)
bool ctext_is_supported(void) {
  return false;
}

bool ctext_linked_library(size_t index, ctext_library *library) {
  (void)index, (void)library;
  return false;
}

ctext_fonts *ctext_fonts_load(const char *directory) {
  (void)directory;
  return NULL;
}

void ctext_fonts_destroy(ctext_fonts *fonts) {
  (void)fonts;
}

const char *ctext_fonts_family(const ctext_fonts *fonts, size_t index) {
  (void)fonts, (void)index;
  return NULL;
}

ctext_status ctext_measure(const ctext_fonts *fonts, const ctext_style *style, uint32_t *width, uint32_t *height) {
  (void)fonts, (void)style, (void)width, (void)height;
  return CTEXT_FAILED;
}

ctext_status ctext_draw(
    const ctext_fonts *fonts, const ctext_style *style, double opacity, uint8_t *pixels, uint32_t width,
    uint32_t height, const ctext_interruption *interruption) {
  (void)fonts, (void)style, (void)opacity, (void)pixels, (void)width, (void)height, (void)interruption;
  return CTEXT_FAILED;
}
#endif
