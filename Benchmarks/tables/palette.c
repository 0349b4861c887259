// Palettes of this project and of libimagequant, with their CPU times, and their similarity to the original.
// palette.py builds this as a library and calls it.

#include "palette/palette.h"
#include "cpixels.h"

#include <dlfcn.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/// An image and its palette image.
typedef struct quantized {
  const uint8_t *rgba;
  uint32_t width, height;
  uint32_t max_colors;
  uint32_t color_count;
  uint8_t colors[256][4];
  uint8_t *indices;
  double milliseconds; ///< CPU time.
} quantized;

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/// Returns 0, or 1 without memory.
int quantize(quantized *q) {
  const double began = milliseconds();
  ccodecs_budget budget = {.limit = SIZE_MAX};
  ccodecs_palette_histogram *histogram;
  ccodecs_palette_mapper *mapper;
  ccodecs_palette palette;
  if (ccodecs_palette_histogram_create(CCODECS_PALETTE_ALPHA, &budget, &histogram) != CCODECS_OK) {
    return 1;
  }
  for (uint32_t y = 0; y < q->height; y++) {
    ccodecs_palette_histogram_add(histogram, q->rgba + (size_t)4 * q->width * y, 4, q->width);
  }
  const ccodecs_status status = ccodecs_palette_build(histogram, q->max_colors, &palette);
  ccodecs_palette_histogram_destroy(histogram);
  if (status != CCODECS_OK || ccodecs_palette_mapper_create(&palette, q->width, &budget, &mapper) != CCODECS_OK) {
    return 1;
  }
  for (uint32_t y = 0; y < q->height; y++) {
    const size_t offset = (size_t)q->width * y;
    ccodecs_palette_mapper_map(mapper, q->rgba + 4 * offset, 4, q->width, NULL, q->indices + offset);
  }
  ccodecs_palette_mapper_destroy(mapper);
  q->milliseconds = milliseconds() - began;
  q->color_count = palette.count;
  memcpy(q->colors, palette.colors, sizeof q->colors);
  return 0;
}

// MARK: libimagequant

typedef struct liq_palette {
  unsigned int count;
  uint8_t entries[256][4];
} liq_palette;

/// Returns 1 if the library is not installed, 2 if it fails.
int quantize_liq(quantized *q, int speed) {
  void *library = dlopen("libimagequant.so.0", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    return 1;
  }
#define FUNCTION(type, name, ...) type (*name)(__VA_ARGS__) = (type(*)(__VA_ARGS__))dlsym(library, "liq_" #name)
  FUNCTION(void *, attr_create, void);
  FUNCTION(int, set_speed, void *, int);
  FUNCTION(int, set_max_colors, void *, int);
  FUNCTION(void *, image_create_rgba, void *, const void *, int, int, double);
  FUNCTION(int, image_quantize, void *, void *, void **);
  FUNCTION(int, set_dithering_level, void *, float);
  FUNCTION(int, write_remapped_image, void *, void *, void *, size_t);
  FUNCTION(const liq_palette *, get_palette, void *);
  FUNCTION(void, result_destroy, void *);
  FUNCTION(void, image_destroy, void *);
  FUNCTION(void, attr_destroy, void *);
#undef FUNCTION
  void (*set_thread_count)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (set_thread_count != NULL) {
    set_thread_count(1);
  }
  const double began = milliseconds();
  void *attributes = attr_create(), *result = NULL;
  set_speed(attributes, speed);
  set_max_colors(attributes, (int)q->max_colors);
  void *image = image_create_rgba(attributes, q->rgba, (int)q->width, (int)q->height, 0);
  if (image_quantize(image, attributes, &result) != 0) {
    return 2;
  }
  set_dithering_level(result, 1);
  write_remapped_image(result, image, q->indices, (size_t)q->width * q->height);
  const liq_palette *palette = get_palette(result);
  q->color_count = palette->count;
  memcpy(q->colors, palette->entries, sizeof q->colors);
  result_destroy(result);
  image_destroy(image);
  attr_destroy(attributes);
  q->milliseconds = milliseconds() - began;
  return 0;
}

// MARK: Measures

/// Returns the size of `bytes` compressed by ISA-L, as the worker does at its default level.
size_t compressed_size(const uint8_t *bytes, size_t count) {
  struct isal_zstream stream;
  isal_deflate_init(&stream);
  const size_t room = count + count / 8 + 1024;
  uint8_t *output = malloc(room), *buffer = malloc(ISAL_DEF_LVL2_DEFAULT);
  stream.level = 2;
  stream.level_buf = buffer;
  stream.level_buf_size = ISAL_DEF_LVL2_DEFAULT;
  stream.gzip_flag = IGZIP_ZLIB;
  stream.end_of_stream = 1;
  stream.next_in = (uint8_t *)(uintptr_t)bytes;
  stream.avail_in = (uint32_t)count;
  stream.next_out = output;
  stream.avail_out = (uint32_t)room;
  isal_deflate(&stream);
  free(buffer);
  free(output);
  return stream.total_out;
}

/// Returns the SSIMULACRA2 score of the palette image, in front of black and white, whichever is lower.
double similarity(const quantized *q) {
  uint8_t *result = malloc((size_t)q->width * q->height * 4);
  for (size_t i = 0; i < (size_t)q->width * q->height; i++) {
    memcpy(result + 4 * i, q->colors[q->indices[i]], 4);
  }
  double minimum = 101;
  for (int background = 0; background < 2; background++) {
    const cpixels_similarity_options options = {
        .width = q->width, .height = q->height, .channels = 4, .background = background, .isa = CPIXELS_ISA_BEST};
    size_t size;
    if (!cpixels_similarity_measure(&options, &size)) {
      break;
    }
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    cpixels_similarity *comparison = cpixels_similarity_init(&options, memory);
    cpixels_similarity_push(comparison, q->rgba, (size_t)q->width * 4, result, (size_t)q->width * 4, q->height);
    const double score = cpixels_similarity_score(comparison);
    minimum = score < minimum ? score : minimum;
    free(memory);
  }
  free(result);
  return minimum;
}
