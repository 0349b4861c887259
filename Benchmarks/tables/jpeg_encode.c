// Encodes a PPM with the native JPEG encoder or with libjpeg-turbo, and prints the CPU time. jpeg_encoder.py builds and
// calls it.
//
//   jpeg_encode native|turbo QUALITY 420|444 baseline|progressive INPUT.ppm OUTPUT.jpg RUNS
//
// Both receive the same planes, so that conversion and chroma subsampling are not measured. Output: the median of the
// runs in CPU milliseconds.

#include "jpeg/jpeg_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

typedef struct planes {
  uint32_t width, height;
  uint32_t widths[3], heights[3]; ///< Padded to whole MCUs.
  uint8_t *samples[3];
} planes;

static uint8_t level(double value) {
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

/// Reads the image and converts it to YCbCr, with chroma averaged over squares of `factor` pixels.
static planes read_planes(const char *path, uint32_t factor) {
  planes p = {0};
  FILE *file = fopen(path, "rb");
  if (file == NULL || fscanf(file, "P6 %u %u 255", &p.width, &p.height) != 2) {
    fprintf(stderr, "%s is no PPM\n", path);
    exit(2);
  }
  fgetc(file);
  uint8_t *rgb = malloc((size_t)p.width * p.height * 3);
  const size_t rows = fread(rgb, (size_t)p.width * 3, p.height, file);
  fclose(file);
  const uint32_t side = 8 * factor;
  for (uint32_t c = 0; c < 3; c++) {
    static const double factors[3][3] = {
        {0.299, 0.587, 0.114}, {-0.168736, -0.331264, 0.5}, {0.5, -0.418688, -0.081312}};
    const uint32_t n = c == 0 ? 1 : factor;
    p.widths[c] = (p.width + side - 1) / side * side / n;
    p.heights[c] = (p.height + side - 1) / side * side / n;
    p.samples[c] = malloc((size_t)p.widths[c] * p.heights[c]);
    for (uint32_t i = 0; i < p.widths[c] * p.heights[c]; i++) {
      double sum = 0;
      for (uint32_t k = 0; k < n * n; k++) {
        const uint32_t x = i % p.widths[c] * n + k % n, y = i / p.widths[c] * n + k / n;
        const uint32_t row = y < rows ? y : (uint32_t)rows - 1;
        const uint8_t *pixel = rgb + 3 * ((size_t)row * p.width + (x < p.width ? x : p.width - 1));
        sum += level(factors[c][0] * pixel[0] + factors[c][1] * pixel[1] + factors[c][2] * pixel[2] + (c ? 128 : 0));
      }
      p.samples[c][i] = level(sum / (n * n));
    }
  }
  free(rgb);
  return p;
}

static size_t encode_native(const planes *p, int quality, uint32_t factor, bool is_progressive, uint8_t *output) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  const ccodecs_encode_options options = {
      .format = CCODECS_FORMAT_JPEG,
      .width = p->width,
      .height = p->height,
      .pixels = CCODECS_PIXELS_YCC8,
      .subsampling = factor == 2 ? CCODECS_SUBSAMPLING_420 : CCODECS_SUBSAMPLING_444,
      .quality = (uint8_t)quality,
      .jpeg = {.is_progressive = is_progressive}};
  ccodecs_encoder *encoder = ccodecs_jpeg_encoder_create(&options, &budget);
  size_t count = 0;
  for (uint32_t y = 0; y < p->height; y += 16) {
    ccodecs_rows rows = {0};
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t n = c == 0 ? 1 : factor, first = y / n;
      const uint32_t height = (p->height + n - 1) / n;
      rows.planes[c] = p->samples[c] + (size_t)first * p->widths[c];
      rows.row_strides[c] = p->widths[c];
      rows.row_counts[c] = height - first < 16 / n ? height - first : 16 / n;
    }
    if (ccodecs_encoder_write(encoder, &rows) != CCODECS_OK) {
      exit(1);
    }
    count += ccodecs_encoder_read(encoder, output + count, SIZE_MAX);
  }
  if (ccodecs_encoder_finish(encoder) != CCODECS_OK) {
    exit(1);
  }
  count += ccodecs_encoder_read(encoder, output + count, SIZE_MAX);
  ccodecs_encoder_destroy(encoder);
  return count;
}

static size_t encode_turbo(const planes *p, int quality, uint32_t factor, bool is_progressive, uint8_t *output) {
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  unsigned char *bytes = NULL;
  unsigned long count = 0;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = p->width;
  info.image_height = p->height;
  info.input_components = 3;
  info.in_color_space = JCS_YCbCr;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.raw_data_in = TRUE;
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = (int)factor;
  if (is_progressive) {
    jpeg_simple_progression(&info);
  }
  jpeg_start_compress(&info, TRUE);
  for (uint32_t y = 0; y < p->height; y += 8 * factor) {
    JSAMPROW rows[3][16];
    JSAMPARRAY arrays[3];
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t n = c == 0 ? 1 : factor;
      for (uint32_t i = 0; i < 8 * factor / n; i++) {
        rows[c][i] = p->samples[c] + (size_t)(y / n + i) * p->widths[c];
      }
      arrays[c] = rows[c];
    }
    jpeg_write_raw_data(&info, arrays, 8 * factor);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  memcpy(output, bytes, count);
  free(bytes);
  return count;
}

static double cpu_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 8) {
    fprintf(stderr, "usage: see the first lines of jpeg_encode.c\n");
    return 2;
  }
  const bool is_native = strcmp(argv[1], "native") == 0, is_progressive = strcmp(argv[4], "progressive") == 0;
  const int quality = atoi(argv[2]), runs = atoi(argv[7]);
  const uint32_t factor = strcmp(argv[3], "420") == 0 ? 2 : 1;
  const planes p = read_planes(argv[5], factor);
  uint8_t *output = malloc((size_t)p.width * p.height * 6 + 65536);
  double *times = malloc((size_t)runs * sizeof *times);
  size_t count = 0;
  for (int run = 0; run < runs; run++) {
    const double began = cpu_milliseconds();
    count = (is_native ? encode_native : encode_turbo)(&p, quality, factor, is_progressive, output);
    times[run] = cpu_milliseconds() - began;
  }
  qsort(times, (size_t)runs, sizeof *times, by_value);
  FILE *file = fopen(argv[6], "wb");
  fwrite(output, 1, count, file);
  fclose(file);
  printf("%.3f\n", times[runs / 2]);
  return 0;
}
