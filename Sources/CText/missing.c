// Builds without the libraries for text.
#include "available.h"
#include "ctext.h"

#if !defined(CTEXT_IS_AVAILABLE)
#pragma clang diagnostic ignored "-Wunused-parameter"

bool ctext_is_supported(void) {
  return false;
}

bool ctext_linked_library(size_t index, ctext_library *library) {
  return false;
}

ctext_fonts *ctext_fonts_load(const char *directory) {
  return NULL;
}

void ctext_fonts_destroy(ctext_fonts *fonts) {
}

const char *ctext_fonts_family(const ctext_fonts *fonts, size_t index) {
  return NULL;
}

ctext_status ctext_measure(const ctext_fonts *fonts, const ctext_style *style, uint32_t *width, uint32_t *height) {
  return CTEXT_FAILED;
}

ctext_status ctext_draw(
    const ctext_fonts *fonts, const ctext_style *style, double opacity, uint8_t *pixels, uint32_t width,
    uint32_t height, const ctext_interruption *interruption) {
  return CTEXT_FAILED;
}
#endif
