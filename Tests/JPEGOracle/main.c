// Compares the native JPEG decoder with libjpeg-turbo. run.sh builds and runs it; the usage is below.

#include "check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: run.sh identity FILE...\n"
    "         Full size: sample for sample what libjpeg-turbo's accurate transform gives, and refused alike; of damage "
    "no\n"
    "         warning where that has none.\n"
    "         3/8, 5/8, 6/8, 7/8: within 1 of libjpeg-turbo's.\n"
    "       run.sh windows FILE...\n"
    "         However the input is cut, held in memory or in a file, also where it ends early and that is tolerated:\n"
    "         the same rows, status and warnings. Files that are refused for their size alone are left out.\n"
    "       run.sh fuzz COUNT SEED FILE...\n"
    "       run.sh fuzz-sanitized COUNT SEED FILE...\n"
    "         Damaged files: outcomes by kind; under address and undefined-behavior sanitizers.\n"
    "       run.sh time FILE...\n"
    "         CPU time beside libjpeg-turbo at every scale: medians of interleaved runs.\n"
    "The exit status is 1 when there is a difference that jpeg_decoder.h does not announce.\n";

static const native_options whole_image = {
    .eighths = 8,
    .window = SIZE_MAX,
    .max_pixels = 130000000,
    .budget = (size_t)2 << 30,
    .spill_directory = -1,
    .keeps_samples = true,
};

// MARK: Files and planes

bool file_read(file *f, const char *path) {
  const char *slash = strrchr(path, '/');
  *f = (file){.name = slash == NULL ? path : slash + 1};
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) {
    return false;
  }
  fseek(stream, 0, SEEK_END);
  const long count = ftell(stream);
  rewind(stream);
  f->bytes = malloc(count > 0 ? (size_t)count : 1);
  f->count = count > 0 ? fread(f->bytes, 1, (size_t)count, stream) : 0;
  fclose(stream);
  return count >= 0 && f->count == (size_t)count;
}

static file file_of(const char *path) {
  file f;
  if (!file_read(&f, path)) {
    fprintf(stderr, "%s can't be read\n", path);
    exit(2);
  }
  return f;
}

void planes_free(planes *p) {
  for (int i = 0; i < MAX_PLANES; i++) {
    free(p->samples[i]);
  }
  *p = (planes){0};
}

difference planes_compare(const planes *a, const planes *b) {
  difference d = {.is_other_shape = a->count != b->count};
  for (uint32_t i = 0; i < a->count && !d.is_other_shape; i++) {
    if (a->eighths[i] != b->eighths[i]) {
      continue;
    }
    d.is_other_shape = a->widths[i] != b->widths[i] || a->heights[i] != b->heights[i];
    for (uint32_t y = 0; y < a->heights[i] && !d.is_other_shape; y++) {
      const uint8_t *p = a->samples[i] + y * a->strides[i];
      const uint8_t *q = b->samples[i] + y * b->strides[i];
      d.compared += a->widths[i];
      if (memcmp(p, q, a->widths[i]) == 0) {
        continue;
      }
      for (uint32_t x = 0; x < a->widths[i]; x++) {
        const uint32_t distance = (uint32_t)abs(p[x] - q[x]);
        d.differing += distance != 0;
        d.largest = distance > d.largest ? distance : d.largest;
        d.square_sum += (double)distance * distance;
      }
    }
  }
  return d;
}

bool is_same(const difference *d) {
  return !d->is_other_shape && d->differing == 0;
}

double cpu_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// MARK: Identity

/// Adds the difference of one image at N/8. Returns false if it exceeds the limit.
static bool check_reduced(const file *f, uint8_t eighths, difference *total, uint64_t *files) {
  native_options options = whole_image;
  options.eighths = eighths;
  native_result native = native_decode(f, &options);
  turbo_result turbo = turbo_decode(f, eighths, options.max_pixels);
  const difference d = planes_compare(&native.planes, &turbo.planes);
  const bool is_close = native.status == CCODECS_DONE && !d.is_other_shape && d.largest <= 1;
  if (!is_close) {
    printf("%s at %u/8: status %d, largest difference %u\n", f->name, eighths, native.status, d.largest);
  }
  if (native.status == CCODECS_DONE && native.peak > native.estimate) {
    printf("%s at %u/8: %zu bytes held, %" PRIu64 " estimated\n", f->name, eighths, native.peak, native.estimate);
  }
  (*files)++;
  total->compared += d.compared;
  total->differing += d.differing;
  total->largest = d.largest > total->largest ? d.largest : total->largest;
  total->square_sum += d.square_sum;
  planes_free(&native.planes);
  planes_free(&turbo.planes);
  return is_close && native.peak <= native.estimate;
}

static uint64_t identity(int count, char **paths) {
  static const uint8_t scales[] = {3, 5, 6, 7};
  uint64_t counts[VERDICT_KINDS] = {0};
  uint64_t files[4] = {0};
  difference totals[4] = {{0}};
  uint64_t defects = 0;
  for (int i = 0; i < count; i++) {
    file f = file_of(paths[i]);
    agreement a = agreement_of(&f, &whole_image);
    const bool is_above = a.native.status == CCODECS_DONE && a.native.peak > a.native.estimate;
    const bool warns_alone =
        a.verdict == VERDICT_SAME && !a.turbo.has_warned && (a.native.warnings & CCODECS_WARNING_DAMAGED) != 0;
    counts[a.verdict]++;
    if (is_defect(a.verdict) || is_above || warns_alone) {
      defects++;
      print_disagreement(&f, &a);
      printf("  %zu bytes held, %" PRIu64 " estimated\n", a.native.peak, a.native.estimate);
    }
    agreement_free(&a);
    for (int k = 0; k < 4 && a.verdict == VERDICT_SAME; k++) {
      defects += !check_reduced(&f, scales[k], &totals[k], &files[k]);
    }
    free(f.bytes);
  }
  print_verdicts(counts);
  printf("\n| scale | files | samples | differ by 1 | rms | largest |\n|---|---|---|---|---|---|\n");
  for (int k = 0; k < 4; k++) {
    const difference *d = &totals[k];
    const double samples = d->compared == 0 ? 1 : (double)d->compared;
    printf(
        "| %u/8 | %" PRIu64 " | %" PRIu64 " | %.3f %% | %.4f | %u |\n", scales[k], files[k], d->compared,
        100 * (double)d->differing / samples, sqrt(d->square_sum / samples), d->largest);
  }
  return defects;
}

// MARK: Windows

/// Whether the result is the same with windows of this size and spilling to a file.
static bool is_same_cut(
    const file *f, native_options options, const native_result *whole, size_t window, int directory) {
  options.window = window;
  options.spill_directory = directory;
  options.buffered = CCODECS_SPILL_BYTES;
  native_result cut = native_decode(f, &options);
  const difference d = planes_compare(&whole->planes, &cut.planes);
  const bool is_equal = cut.status == whole->status && cut.warnings == whole->warnings && is_same(&d) &&
                        strcmp(cut.message, whole->message) == 0;
  if (!is_equal) {
    printf(
        "%s at %u/8, windows of %zu bytes: status %d and %d, warnings %u and %u, \"%s\" and \"%s\"\n", f->name,
        options.eighths, window, whole->status, cut.status, whole->warnings, cut.warnings, whole->message, cut.message);
  }
  planes_free(&cut.planes);
  return is_equal;
}

/// Decodes a file at N/8 in one window and in many. Returns the number of differences.
static uint64_t check_windows(const file *f, native_options options, int directory, uint64_t *runs) {
  static const size_t sizes[] = {1, 2, 7, 333, 4096};
  const uint8_t n = options.eighths;
  uint64_t defects = 0;
  native_result whole = native_decode(f, &options);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes && !native_is_refused_by_size(&whole); k++) {
    // Small windows over large files run at only three scales: their possible defects do not depend on the scale.
    if (f->count / sizes[k] < 50000 || n == 1 || n == 3 || n == 8) {
      defects += !is_same_cut(f, options, &whole, sizes[k], directory);
      (*runs)++;
    }
  }
  planes_free(&whole.planes);
  return defects;
}

static uint64_t windows(int count, char **paths) {
  const int directory = ccodecs_spill_open("/var/tmp");
  uint64_t runs = 0;
  uint64_t defects = 0;
  for (int i = 0; i < count; i++) {
    file f = file_of(paths[i]);
    native_options options = whole_image;
    for (uint8_t n = 1; n <= 8; n++) {
      options.eighths = n;
      defects += check_windows(&f, options, directory, &runs);
    }
    file part = {.name = f.name, .bytes = f.bytes, .count = f.count / 5 * 3};
    options.tolerates_truncation = true;
    options.eighths = 3;
    defects += check_windows(&part, options, directory, &runs);
    free(f.bytes);
  }
  ccodecs_spill_close(directory);
  printf("%d files, %" PRIu64 " decodings in windows, %" PRIu64 " different\n", count, runs, defects);
  return defects;
}

// MARK: Time

enum { TIMED_RUNS = 11 };

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a;
  const double y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double values[TIMED_RUNS]) {
  qsort(values, TIMED_RUNS, sizeof *values, by_value);
  return values[TIMED_RUNS / 2];
}

static bool time_scale(const file *f, uint8_t eighths) {
  native_options options = whole_image;
  options.eighths = eighths;
  options.keeps_samples = false;
  double native_ms[TIMED_RUNS];
  double turbo_ms[TIMED_RUNS];
  size_t peak = 0;
  for (int run = 0; run < TIMED_RUNS; run++) {
    double began = cpu_milliseconds();
    native_result native = native_decode(f, &options);
    native_ms[run] = cpu_milliseconds() - began;
    peak = native.peak;
    if (native.status != CCODECS_DONE) {
      printf("%s: %s\n", f->name, native.message);
      return false;
    }
    began = cpu_milliseconds();
    if (!turbo_run(f, eighths)) {
      printf("%s: libjpeg-turbo does not decode it\n", f->name);
      return false;
    }
    turbo_ms[run] = cpu_milliseconds() - began;
  }
  const double ours = median(native_ms);
  const double theirs = median(turbo_ms);
  printf(
      "| %s | %u/8 | %.2f | %.2f | %.2f | %.1f |\n", f->name, eighths, ours, theirs, theirs / ours, (double)peak / 1e6);
  fflush(stdout);
  return true;
}

static uint64_t measure(int count, char **paths) {
  uint64_t failures = 0;
  printf("| image | scale | CPU ms | libjpeg-turbo CPU ms | ratio | MB charged |\n|---|---|---|---|---|---|\n");
  for (int i = 0; i < count; i++) {
    file f = file_of(paths[i]);
    for (uint8_t n = 8; n >= 1; n--) {
      if (!time_scale(&f, n)) {
        failures++;
        break;
      }
    }
    free(f.bytes);
  }
  return failures;
}

// MARK: Main

static uint64_t fuzz_files(const char *directory, uint64_t rounds, uint64_t seed, int count, char **paths) {
  file *seeds = malloc((size_t)count * sizeof *seeds);
  size_t used = 0;
  for (int i = 0; i < count; i++) {
    seeds[used] = file_of(paths[i]);
    if (seeds[used].count >= 4) {
      used++;
    } else {
      free(seeds[used].bytes);
    }
  }
  const uint64_t defects = used == 0 ? 0 : fuzz(rounds, seed, seeds, used, directory);
  for (size_t i = 0; i < used; i++) {
    free(seeds[i].bytes);
  }
  free(seeds);
  return defects;
}

int main(int argc, char **argv) {
  if (argc > 3 && strcmp(argv[2], "identity") == 0) {
    return identity(argc - 3, argv + 3) > 0;
  }
  if (argc > 3 && strcmp(argv[2], "windows") == 0) {
    return windows(argc - 3, argv + 3) > 0;
  }
  if (argc > 3 && strcmp(argv[2], "time") == 0) {
    return measure(argc - 3, argv + 3) > 0;
  }
  if (argc > 5 && strncmp(argv[2], "fuzz", 4) == 0) {
    const uint64_t rounds = strtoull(argv[3], NULL, 10);
    const uint64_t seed = strtoull(argv[4], NULL, 10);
    return fuzz_files(argv[1], rounds, seed, argc - 5, argv + 5) > 0;
  }
  fputs(usage, stderr);
  return 2;
}
