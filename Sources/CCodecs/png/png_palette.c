// PNG palettes, chosen with libimagequant.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // RTLD_DEFAULT
#endif

#include "png_encoder.h"

#ifdef CCODECS_IMAGEQUANT

#include <dlfcn.h>
#include <libimagequant.h>

/// libimagequant's speed, 1 (slow) to 10. The value is its default.
static const int speed = 4;

// Memory use of libimagequant 2.17 at this speed, measured with noise, which has the most colors. Up to four
// megapixels, it stores the image in floating point and maps of edges and noise; above, only the maps. The histogram
// has a separate limit.
static const uint64_t floating_pixels_most = 1 << 22;
static const uint64_t library_bytes = 1 << 20;

static uint64_t library_charge(const ccodecs_encode_options *options) {
  const uint64_t pixels = (uint64_t)options->width * options->height;
  const uint64_t histogram = pixels * 40 < 38u << 20 ? pixels * 40 : 38u << 20;
  return pixels <= floating_pixels_most ? pixels * 32 + histogram + library_bytes : pixels * 4 + (60u << 20);
}

bool ccodecs_png_has_palettes(void) {
  return true;
}

uint64_t ccodecs_png_palette_estimate(const ccodecs_encode_options *options) {
  return (uint64_t)options->width * options->height + library_charge(options);
}

/// Converts a buffered row to libimagequant's layout.
static void give_row(liq_color *row, int y, int width, void *owner) {
  const png_encoder *e = owner;
  const uint32_t channels = ccodecs_encoder_channels(&e->base.options);
  const uint8_t *pixel = e->buffered + (size_t)y * (size_t)width * channels;
  for (int x = 0; x < width; x++, pixel += channels) {
    row[x] = (liq_color){
        .r = pixel[0],
        .g = pixel[channels > 1 ? 1 : 0],
        .b = pixel[channels > 1 ? 2 : 0],
        .a = channels == 4 ? pixel[3] : 255};
  }
}

/// Disables OpenMP in builds of libimagequant that use it, because its threads are outside this project's control.
/// Other builds use no threads.
static void stay_on_this_thread(void) {
  void (*set_thread_count)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (set_thread_count != NULL) {
    set_thread_count(1);
  }
}

static ccodecs_status write_colors(png_encoder *e, const liq_palette *palette, uint8_t *depth) {
  uint8_t colors[3 * 256];
  uint8_t alphas[256];
  size_t alpha_count = 0;
  for (uint32_t i = 0; i < palette->count; i++) {
    colors[3 * i] = palette->entries[i].r;
    colors[3 * i + 1] = palette->entries[i].g;
    colors[3 * i + 2] = palette->entries[i].b;
    alphas[i] = palette->entries[i].a;
    alpha_count = alphas[i] < 255 ? i + 1 : alpha_count;
  }
  *depth = palette->count <= 2 ? 1 : palette->count <= 4 ? 2 : palette->count <= 16 ? 4 : 8;
  ccodecs_status status = ccodecs_png_write_beginning(e, *depth, true);
  if (status == CCODECS_OK) {
    status = ccodecs_png_write_chunk(e, "PLTE", colors, 3 * (size_t)palette->count);
  }
  return status == CCODECS_OK && alpha_count > 0 ? ccodecs_png_write_chunk(e, "tRNS", alphas, alpha_count) : status;
}

static ccodecs_status quantize(png_encoder *e, liq_attr *settings, liq_image *image, uint8_t *depth) {
  liq_result *result = NULL;
  liq_error error = liq_image_quantize(image, settings, &result);
  if (error == LIQ_OK) {
    liq_set_dithering_level(result, 1);
    error = liq_write_remapped_image(result, image, e->indices, (size_t)e->base.options.width * e->base.options.height);
  }
  // The palette is final only after the image is remapped.
  const ccodecs_status status =
      error == LIQ_OK ? write_colors(e, liq_get_palette(result), depth)
                      : ccodecs_encoder_fail(
                            &e->base, error == LIQ_OUT_OF_MEMORY ? CCODECS_NO_MEMORY : CCODECS_UNSUPPORTED,
                            "libimagequant failed with error %d", (int)error);
  if (result != NULL) {
    liq_result_destroy(result);
  }
  return status;
}

static ccodecs_status choose_colors(png_encoder *e, uint8_t *depth) {
  const ccodecs_encode_options *options = &e->base.options;
  stay_on_this_thread();
  liq_attr *settings = liq_attr_create();
  if (settings == NULL) {
    return CCODECS_NO_MEMORY;
  }
  liq_set_speed(settings, speed);
  liq_set_max_colors(settings, options->png.palette_count);
  liq_image *image = liq_image_create_custom(settings, give_row, e, (int)options->width, (int)options->height, 0);
  const ccodecs_status status = image == NULL ? CCODECS_NO_MEMORY : quantize(e, settings, image, depth);
  if (image != NULL) {
    liq_image_destroy(image);
  }
  liq_attr_destroy(settings);
  return status;
}

ccodecs_status ccodecs_png_write_palette(png_encoder *e, uint8_t *depth) {
  const ccodecs_encode_options *options = &e->base.options;
  const uint64_t charge = library_charge(options);
  e->indices = ccodecs_allocate(e->base.budget, (size_t)options->width * options->height);
  if (e->indices == NULL || charge > SIZE_MAX || !ccodecs_budget_charge(e->base.budget, (size_t)charge)) {
    return CCODECS_NO_MEMORY;
  }
  const ccodecs_status status = choose_colors(e, depth);
  ccodecs_budget_refund(e->base.budget, (size_t)charge);
  e->pixel_bytes = 1;
  return status;
}

#else

bool ccodecs_png_has_palettes(void) {
  return false;
}

uint64_t ccodecs_png_palette_estimate(const ccodecs_encode_options *options) {
  (void)options;
  return 0;
}

ccodecs_status ccodecs_png_write_palette(png_encoder *e, uint8_t *depth) {
  (void)depth;
  return ccodecs_encoder_fail(&e->base, CCODECS_UNSUPPORTED, "this worker was built without palettes (libimagequant)");
}

#endif
