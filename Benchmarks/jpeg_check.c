// Holds the project's own JPEG decoder against libjpeg-turbo. Built and run by jpeg_check.sh:
//
//   identity FILE...      every reduced sample against the exact transform of libjpeg-turbo's coefficients, in double
//                         precision, with the file cut into windows of 1, 7 and 4096 bytes and whole
//   fuzz COUNT FILE...    files damaged at random: which are refused here, and which there
//   time FILE...          CPU time at 1/8, 2/8 and 4/8, interleaved, least of seven runs

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "ccodecs.h"
#include "decode/decoder.h"

typedef ccodecs_decoder *(*constructor)(const ccodecs_limits *, ccodecs_budget *);

typedef struct file {
  uint8_t *bytes;
  size_t count;
} file;

typedef struct picture {
  ccodecs_status status;
  ccodecs_layout layout;
  uint8_t *planes[CCODECS_MAX_PLANES];
} picture;

static const size_t pushed_bytes = 128 * 1024;

static file read_file(const char *path) {
  file result = {0};
  FILE *stream = fopen(path, "rb");
  if (stream != NULL && fseek(stream, 0, SEEK_END) == 0) {
    const long count = ftell(stream);
    rewind(stream);
    result.bytes = malloc((size_t)count + 1);
    result.count = fread(result.bytes, 1, (size_t)count, stream);
  }
  if (stream != NULL) {
    fclose(stream);
  }
  return result;
}

static double cpu_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// MARK: Decoding

static void next_window(ccodecs_input *input, file f, size_t window) {
  const uint8_t *next = input->bytes + input->count;
  const size_t left = (size_t)(f.bytes + f.count - next);
  *input = (ccodecs_input){.bytes = next, .count = left < window ? left : window, .is_last = left <= window};
}

static void keep_rows(picture *p, const ccodecs_rows *rows, uint32_t have[CCODECS_MAX_PLANES]) {
  for (uint32_t i = 0; i < p->layout.plane_count; i++) {
    const size_t width = (size_t)p->layout.planes[i].width * p->layout.planes[i].channels;
    for (uint32_t row = 0; row < rows->row_counts[i]; row++, have[i]++) {
      memcpy(p->planes[i] + have[i] * width, rows->planes[i] + row * rows->row_strides[i], width);
    }
  }
}

static picture decode(constructor create, file f, int scale, size_t window, bool keeps) {
  picture p = {0};
  ccodecs_budget budget = {.limit = (size_t)1 << 30};
  const ccodecs_limits limits = {.max_pixels = 200000000, .max_scans = 100};
  ccodecs_decoder *decoder = create(&limits, &budget);
  ccodecs_input input = {.bytes = f.bytes};
  do {
    next_window(&input, f, window);
    p.status = ccodecs_decoder_read_header(decoder, &input);
  } while (p.status == CCODECS_NEEDS_INPUT);
  if (p.status == CCODECS_OK) {
    p.status = ccodecs_decoder_start(decoder, &(ccodecs_decode_options){.scale_eighths = (uint8_t)scale}, &p.layout);
  }
  for (uint32_t i = 0; keeps && p.status == CCODECS_OK && i < p.layout.plane_count; i++) {
    const ccodecs_plane *plane = &p.layout.planes[i];
    p.planes[i] = malloc((size_t)plane->width * plane->height * plane->channels);
  }
  uint32_t have[CCODECS_MAX_PLANES] = {0};
  ccodecs_rows rows;
  while (p.status == CCODECS_OK || p.status == CCODECS_ROWS_READY || p.status == CCODECS_NEEDS_INPUT) {
    if (p.status == CCODECS_NEEDS_INPUT) {
      next_window(&input, f, window);
    }
    p.status = ccodecs_decoder_read_rows(decoder, &input, &rows);
    if (keeps && p.status == CCODECS_ROWS_READY) {
      keep_rows(&p, &rows, have);
    }
  }
  ccodecs_decoder_destroy(decoder);
  if (budget.used != 0) {
    printf("LEAK: %zu bytes\n", budget.used);
    exit(1);
  }
  return p;
}

static void free_picture(picture *p) {
  for (int i = 0; i < CCODECS_MAX_PLANES; i++) {
    free(p->planes[i]);
  }
}

// MARK: Identity

static jmp_buf oracle_escape;

static void on_error(j_common_ptr info) {
  (void)info;
  longjmp(oracle_escape, 1);
}

static void on_message(j_common_ptr info, int level) {
  (void)info;
  (void)level;
}

static double reduced_sample(const JCOEF *block, const UINT16 *steps, int n, int x, int y) {
  double sum = 0;
  for (int v = 0; v < n; v++) {
    for (int u = 0; u < n; u++) {
      const double scale = sqrt((u == 0 ? 1.0 : 2.0) / n) * sqrt((v == 0 ? 1.0 : 2.0) / n);
      const double cosines = cos((2 * x + 1) * u * M_PI / (2 * n)) * cos((2 * y + 1) * v * M_PI / (2 * n));
      sum += block[v * 8 + u] * steps[v * 8 + u] * scale * cosines;
    }
  }
  sum = sum * n / 8 + 128;
  return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

/// The largest difference of a component's samples from the exact transform.
static double worst_of(struct jpeg_decompress_struct *info, jvirt_barray_ptr blocks, int i, int n, const picture *p) {
  const jpeg_component_info *c = &info->comp_info[i];
  const ccodecs_plane *plane = &p->layout.planes[i];
  double worst = 0;
  for (JDIMENSION down = 0; down < c->height_in_blocks; down++) {
    JBLOCKARRAY row = info->mem->access_virt_barray((j_common_ptr)info, blocks, down, 1, FALSE);
    for (JDIMENSION across = 0; across < c->width_in_blocks; across++) {
      for (int k = 0; k < n * n; k++) {
        const uint32_t x = across * (uint32_t)n + (uint32_t)(k % n);
        const uint32_t y = down * (uint32_t)n + (uint32_t)(k / n);
        if (x < plane->width && y < plane->height) {
          const double exact = reduced_sample(row[0][across], c->quant_table->quantval, n, k % n, k / n);
          worst = fmax(worst, fabs(exact - p->planes[i][(size_t)y * plane->width + x]));
        }
      }
    }
  }
  return worst;
}

/// The largest difference of a picture, or -1 where libjpeg-turbo decodes it in both cases.
static double worst_difference(file f, int n, const picture *p) {
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  double worst = -1;
  info.err = jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  jpeg_create_decompress(&info);
  if (setjmp(oracle_escape) == 0) {
    jpeg_mem_src(&info, f.bytes, f.count);
    jpeg_read_header(&info, TRUE);
    const bool is_gray = info.jpeg_color_space == JCS_GRAYSCALE && info.comp_info[0].h_samp_factor == 1 &&
                         info.comp_info[0].v_samp_factor == 1;
    const bool is_own = !info.progressive_mode && !info.arith_code && !jpeg_has_multiple_scans(&info) &&
                        (is_gray || info.jpeg_color_space == JCS_YCbCr);
    jvirt_barray_ptr *blocks = is_own ? jpeg_read_coefficients(&info) : NULL;
    for (int i = 0; is_own && i < info.num_components; i++) {
      worst = fmax(worst, worst_of(&info, blocks[i], i, n, p));
    }
  }
  jpeg_destroy_decompress(&info);
  return worst;
}

static bool is_same(const picture *a, const picture *b) {
  bool same = a->status == b->status && a->layout.plane_count == b->layout.plane_count;
  for (uint32_t i = 0; same && a->status == CCODECS_DONE && i < a->layout.plane_count; i++) {
    const ccodecs_plane *plane = &a->layout.planes[i];
    same = memcmp(a->planes[i], b->planes[i], (size_t)plane->width * plane->height * plane->channels) == 0;
  }
  return same;
}

static int identity(int count, char **paths) {
  static const size_t windows[] = {1, 7, 4096};
  int exact = 0;
  int elsewhere = 0;
  int wrong = 0;
  for (int i = 0; i < count; i++) {
    const file f = read_file(paths[i]);
    for (int scale = 1; f.count > 2 && scale <= 4; scale *= 2) {
      picture whole = decode(ccodecs_jpeg_decoder_create, f, scale, f.count, true);
      for (size_t w = 0; w < 3; w++) {
        picture cut = decode(ccodecs_jpeg_decoder_create, f, scale, windows[w], true);
        if (!is_same(&whole, &cut)) {
          printf("%s at %d/8: windows of %zu bytes change the picture\n", paths[i], scale, windows[w]);
          wrong++;
        }
        free_picture(&cut);
      }
      const double worst = whole.status == CCODECS_DONE ? worst_difference(f, scale, &whole) : -1;
      if (worst > 0.51) {
        printf("%s at %d/8: off by %.2f\n", paths[i], scale, worst);
      }
      wrong += worst > 0.51;
      exact += worst >= 0 && worst <= 0.51;
      elsewhere += worst < 0;
      free_picture(&whole);
    }
    free(f.bytes);
  }
  printf("exact %d, refused or decoded by libjpeg-turbo %d, wrong %d\n", exact, elsewhere, wrong);
  return wrong > 0;
}

// MARK: Fuzzing

static uint64_t random_state = 88172645463325252u;

static uint32_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 32);
}

static void damage(file *f) {
  for (uint32_t times = 1 + next_random() % 4; times > 0; times--) {
    const size_t at = next_random() % f->count;
    const size_t cut = next_random() % 16;
    switch (next_random() % 5) {
    case 0:
      f->bytes[at] ^= (uint8_t)(1u << next_random() % 8);
      break;
    case 1:
      f->bytes[at] = (uint8_t)next_random();
      break;
    case 2:
      f->bytes[at] = 0xFF;
      break;
    case 3:
      if (at + cut < f->count) {
        memmove(f->bytes + at, f->bytes + at + cut, f->count - at - cut);
        f->count -= cut;
      }
      break;
    default:
      f->count = next_random() % 8 == 0 ? at + 1 : f->count;
      break;
    }
  }
}

static int fuzz(long rounds, int count, char **paths) {
  long agreed = 0;
  long here = 0;
  long there = 0;
  for (long i = 0; i < rounds; i++) {
    file f = read_file(paths[next_random() % (uint32_t)count]);
    if (f.count >= 16 && f.count <= 100000) {
      damage(&f);
      // A block of its exact size, so that a sanitizer sees a byte read too far.
      file exact = {.bytes = malloc(f.count), .count = f.count};
      memcpy(exact.bytes, f.bytes, f.count);
      const int scale = 1 << next_random() % 3;
      picture own = decode(ccodecs_jpeg_decoder_create, exact, scale, 1 + next_random() % 5000, true);
      const picture turbo = decode(ccodecs_jpeg_turbo_decoder_create, exact, scale, f.count, false);
      agreed += (own.status == CCODECS_DONE) == (turbo.status == CCODECS_DONE);
      here += own.status != CCODECS_DONE && turbo.status == CCODECS_DONE;
      there += own.status == CCODECS_DONE && turbo.status != CCODECS_DONE;
      free_picture(&own);
      free(exact.bytes);
    }
    free(f.bytes);
  }
  printf("agreed %ld, refused here alone %ld, refused by libjpeg-turbo alone %ld\n", agreed, here, there);
  return 0;
}

// MARK: Time

static int measure(int count, char **paths) {
  printf("| picture | scale | CPU ms | libjpeg-turbo CPU ms | ratio |\n|---|---|---|---|---|\n");
  for (int i = 0; i < count; i++) {
    const file f = read_file(paths[i]);
    for (int scale = 1; scale <= 4; scale *= 2) {
      double least[2] = {INFINITY, INFINITY};
      for (int run = 0; run < 14; run++) {
        const double began = cpu_milliseconds();
        decode(
            run % 2 == 0 ? ccodecs_jpeg_decoder_create : ccodecs_jpeg_turbo_decoder_create, f, scale, pushed_bytes,
            false);
        least[run % 2] = fmin(least[run % 2], cpu_milliseconds() - began);
      }
      const char *name = strrchr(paths[i], '/');
      printf(
          "| %s | %d/8 | %.1f | %.1f | %.2f |\n", name == NULL ? paths[i] : name + 1, scale, least[0], least[1],
          least[1] / least[0]);
    }
    free(f.bytes);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "identity") == 0) {
    return identity(argc - 2, argv + 2);
  }
  if (argc > 3 && strcmp(argv[1], "fuzz") == 0) {
    return fuzz(atol(argv[2]), argc - 3, argv + 3);
  }
  if (argc > 2 && strcmp(argv[1], "time") == 0) {
    return measure(argc - 2, argv + 2);
  }
  fprintf(stderr, "usage: jpeg_check identity FILE... | fuzz COUNT FILE... | time FILE...\n");
  return 2;
}
