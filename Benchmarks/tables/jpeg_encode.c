// The native JPEG encoder, others with the interface of libjpeg, and measures of quality. jpeg_encoder.py builds this
// as a library and calls it.
//
// All encoders receive the same planes, so that conversion and chroma subsampling are not measured.

#include "cpixels.h"
#include "formats.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#ifdef HAS_BUTTERAUGLI
#include <jxl/butteraugli.h>
#endif

// MARK: Planes

typedef struct planes {
  uint32_t width, height, factor;
  uint32_t widths[3], heights[3]; ///< Padded to whole MCUs.
  uint8_t *samples[3];
} planes;

static uint8_t level(double value) {
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

/// Converts RGB to YCbCr, with chroma averaged over squares of `factor` pixels.
planes *planes_create(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t factor) {
  planes *p = calloc(1, sizeof *p);
  *p = (planes){.width = width, .height = height, .factor = factor};
  const uint32_t side = 8 * factor;
  for (uint32_t c = 0; c < 3; c++) {
    static const double factors[3][3] = {
        {0.299, 0.587, 0.114}, {-0.168736, -0.331264, 0.5}, {0.5, -0.418688, -0.081312}};
    const uint32_t n = c == 0 ? 1 : factor;
    p->widths[c] = (width + side - 1) / side * side / n;
    p->heights[c] = (height + side - 1) / side * side / n;
    p->samples[c] = malloc((size_t)p->widths[c] * p->heights[c]);
    for (uint32_t i = 0; i < p->widths[c] * p->heights[c]; i++) {
      double sum = 0;
      for (uint32_t k = 0; k < n * n; k++) {
        const uint32_t x = i % p->widths[c] * n + k % n, y = i / p->widths[c] * n + k / n;
        const uint8_t *pixel = rgb + 3 * ((size_t)(y < height ? y : height - 1) * width + (x < width ? x : width - 1));
        sum += level(factors[c][0] * pixel[0] + factors[c][1] * pixel[1] + factors[c][2] * pixel[2] + (c ? 128 : 0));
      }
      p->samples[c][i] = level(sum / (n * n));
    }
  }
  return p;
}

void planes_destroy(planes *p) {
  for (uint32_t c = 0; c < 3; c++) {
    free(p->samples[c]);
  }
  free(p);
}

// MARK: The native encoder

static size_t encode_native(const planes *p, int quality, bool is_progressive, uint8_t *output) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  const ccodecs_encode_options options = {
      .format = CCODECS_FORMAT_JPEG,
      .width = p->width,
      .height = p->height,
      .pixels = CCODECS_PIXELS_YCC8,
      .subsampling = p->factor == 2 ? CCODECS_SUBSAMPLING_420 : CCODECS_SUBSAMPLING_444,
      .quality = (uint8_t)quality,
      .jpeg = {.is_progressive = is_progressive}};
  ccodecs_encoder *encoder = ccodecs_encoder_allocate(&ccodecs_jpeg_encoder, &options, &budget);
  size_t count = 0;
  for (uint32_t y = 0; y < p->height; y += 16) {
    ccodecs_rows rows = {0};
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t n = c == 0 ? 1 : p->factor, first = y / n;
      const uint32_t height = (p->height + n - 1) / n;
      rows.planes[c] = p->samples[c] + (size_t)first * p->widths[c];
      rows.row_strides[c] = p->widths[c];
      rows.row_counts[c] = height - first < 16 / n ? height - first : 16 / n;
    }
    if (ccodecs_encoder_write(encoder, &rows) != CCODECS_OK) {
      abort();
    }
    count += ccodecs_encoder_read(encoder, output + count, SIZE_MAX);
  }
  if (ccodecs_encoder_finish(encoder) != CCODECS_OK) {
    abort();
  }
  count += ccodecs_encoder_read(encoder, output + count, SIZE_MAX);
  ccodecs_encoder_destroy(encoder);
  return count;
}

// MARK: Encoders with the interface of libjpeg

enum { STANDARD_TABLES, OPTIMIZED_TABLES, PROGRESSIVE };

/// The functions of libjpeg-turbo, mozjpeg or jpegli.
typedef struct library {
  struct jpeg_error_mgr *(*std_error)(struct jpeg_error_mgr *);
  void (*create)(j_compress_ptr, int, size_t);
  void (*mem_dest)(j_compress_ptr, unsigned char **, unsigned long *);
  void (*set_defaults)(j_compress_ptr);
  void (*set_quality)(j_compress_ptr, int, boolean);
  void (*simple_progression)(j_compress_ptr);
  void (*start)(j_compress_ptr, boolean);
  JDIMENSION (*write_raw_data)(j_compress_ptr, JSAMPIMAGE, JDIMENSION);
  void (*finish)(j_compress_ptr);
  void (*destroy)(j_compress_ptr);
  void (*set_bool)(j_compress_ptr, int, boolean); ///< Only of mozjpeg.
} library;

/// Loads a library whose functions begin with `prefix`. Returns NULL if it has none of them.
library *library_open(const char *path, const char *prefix) {
  static const char *const names[] = {"std_error",       "CreateCompress",     "mem_dest",        "set_defaults",
                                      "set_quality",     "simple_progression", "start_compress",  "write_raw_data",
                                      "finish_compress", "destroy_compress",   "c_set_bool_param"};
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return NULL;
  }
  library *l = calloc(1, sizeof *l);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", prefix, names[i]);
    void *function = dlsym(handle, name);
    if (function == NULL && i + 1 < sizeof names / sizeof *names) {
      fprintf(stderr, "%s has no %s\n", path, name);
      free(l);
      return NULL;
    }
    memcpy((char *)l + i * sizeof function, &function, sizeof function);
  }
  return l;
}

static size_t encode_with(const library *l, const planes *p, int quality, int kind, uint8_t *output) {
  enum { OPTIMIZE_SCANS = 0x680C061E }; // JBOOLEAN_OPTIMIZE_SCANS of mozjpeg
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  unsigned char *bytes = NULL;
  unsigned long count = 0;
  info.err = l->std_error(&errors);
  l->create(&info, JPEG_LIB_VERSION, sizeof info);
  l->mem_dest(&info, &bytes, &count);
  info.image_width = p->width;
  info.image_height = p->height;
  info.input_components = 3;
  info.in_color_space = JCS_YCbCr;
  l->set_defaults(&info);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = (int)p->factor;
  for (int c = 1; c < 3; c++) {
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
  }
  l->set_quality(&info, quality, TRUE);
  info.raw_data_in = TRUE;
  info.optimize_coding = kind != STANDARD_TABLES;
  if (kind == PROGRESSIVE) {
    l->simple_progression(&info);
  } else if (l->set_bool != NULL) {
    l->set_bool(&info, OPTIMIZE_SCANS, FALSE);
    info.num_scans = 0;
    info.scan_info = NULL;
  }
  l->start(&info, TRUE);
  for (uint32_t y = 0; y < p->height; y += 8 * p->factor) {
    JSAMPROW rows[3][16];
    JSAMPARRAY arrays[3];
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t n = c == 0 ? 1 : p->factor;
      for (uint32_t i = 0; i < 8 * p->factor / n; i++) {
        rows[c][i] = p->samples[c] + (size_t)(y / n + i) * p->widths[c];
      }
      arrays[c] = rows[c];
    }
    l->write_raw_data(&info, arrays, 8 * p->factor);
  }
  l->finish(&info);
  l->destroy(&info);
  memcpy(output, bytes, count);
  free(bytes);
  return count;
}

/// Encodes with a library, or with the native encoder if there is none. Returns the size of the file.
size_t encode(const library *l, const planes *p, int quality, int kind, uint8_t *output, double *milliseconds) {
  struct timespec began, ended;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  const size_t count =
      l == NULL ? encode_native(p, quality, kind == PROGRESSIVE, output) : encode_with(l, p, quality, kind, output);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
  *milliseconds = (double)(ended.tv_sec - began.tv_sec) * 1e3 + (double)(ended.tv_nsec - began.tv_nsec) / 1e6;
  return count;
}

// MARK: Measures

/// Returns SSIMULACRA2 of an RGB image.
double similarity(const uint8_t *original, const uint8_t *result, uint32_t width, uint32_t height) {
  const cpixels_similarity_options options = {.width = width, .height = height, .channels = 3, .isa = CPIXELS_ISA_BEST};
  size_t size = 0;
  if (!cpixels_similarity_measure(&options, &size)) {
    abort();
  }
  void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
  cpixels_similarity *comparison = cpixels_similarity_init(&options, memory);
  cpixels_similarity_push(comparison, original, (size_t)width * 3, result, (size_t)width * 3, height);
  const double score = cpixels_similarity_score(comparison);
  free(memory);
  return score;
}

/// Returns the 3-norm of butteraugli of an RGB image, or -1 if libjxl lacks it.
double butteraugli(const uint8_t *original, const uint8_t *result, uint32_t width, uint32_t height) {
#ifdef HAS_BUTTERAUGLI
  const JxlPixelFormat format = {3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  const size_t size = (size_t)width * height * 3;
  JxlButteraugliApi *api = JxlButteraugliApiCreate(NULL);
  JxlButteraugliResult *compared =
      JxlButteraugliCompute(api, width, height, &format, original, size, &format, result, size);
  const double distance = (double)JxlButteraugliResultGetDistance(compared, 3);
  JxlButteraugliResultDestroy(compared);
  JxlButteraugliApiDestroy(api);
  return distance;
#else
  (void)original, (void)result, (void)width, (void)height;
  return -1;
#endif
}
