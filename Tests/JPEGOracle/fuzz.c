#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_SEED_BYTES = 110000, ///< Longer seeds are truncated here, which is also damage.
  ROOM_BYTES = 8 * 8,      ///< Maximum number of inserted bytes.
  HEADER_BYTES = 700,      ///< Most fields that can be contradictory are in the first bytes.
  MAX_KEPT_DEFECTS = 20,
  REPORT_EVERY = 50000,
};

static const uint64_t max_pixels = 600000;

// MARK: Random numbers

typedef struct random_state {
  uint64_t value;
} random_state;

/// Returns the next random number. Each round has its own state, so that it can be repeated without the earlier ones.
/// Source: SplitMix64, Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
static uint64_t next_random(random_state *r) {
  uint64_t z = r->value += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static size_t below(random_state *r, size_t bound) {
  return next_random(r) % bound;
}

// MARK: Damage

static void insert(file *f, random_state *r, size_t at) {
  const size_t count = 1 + below(r, 8);
  memmove(f->bytes + at + count, f->bytes + at, f->count - at);
  for (size_t i = 0; i < count; i++) {
    f->bytes[at + i] = below(r, 3) == 0 ? 0xFF : (uint8_t)next_random(r);
  }
  f->count += count;
}

static void cut_out(file *f, random_state *r, size_t at) {
  const size_t count = 1 + below(r, 8);
  if (at + count < f->count) {
    memmove(f->bytes + at, f->bytes + at + count, f->count - at - count);
    f->count -= count;
  }
}

static void write_marker(file *f, random_state *r, size_t at) {
  static const uint8_t codes[] = {0xD0, 0xD1, 0xD9, 0xC4, 0xDA, 0xDB, 0xDD, 0xC0,
                                  0xC2, 0xE1, 0x00, 0xFF, 0x01, 0xDC, 0xFE, 0xD8};
  if (at + 1 < f->count) {
    f->bytes[at] = 0xFF;
    f->bytes[at + 1] = codes[below(r, sizeof codes)];
  }
}

static void copy_within(file *f, random_state *r, size_t at) {
  const size_t from = below(r, f->count);
  const size_t count = 1 + below(r, 64);
  if (at + count < f->count && from + count < f->count) {
    memmove(f->bytes + at, f->bytes + from, count);
  }
}

static void damage_once(file *f, random_state *r) {
  const bool is_header = f->count > HEADER_BYTES && below(r, 3) == 0;
  const size_t at = below(r, is_header ? HEADER_BYTES : f->count);
  switch (below(r, 10)) {
  case 0:
  case 1:
  case 2:
    f->bytes[at] ^= (uint8_t)(1u << below(r, 8));
    break;
  case 3:
    f->bytes[at] = (uint8_t)next_random(r);
    break;
  case 4:
    insert(f, r, at);
    break;
  case 5:
    cut_out(f, r, at);
    break;
  case 6:
    f->bytes[at] = below(r, 2) == 0 ? 0xFF : 0;
    break;
  case 7:
    f->count = below(r, 3) == 0 ? at + 1 : f->count;
    break;
  case 8:
    write_marker(f, r, at);
    break;
  default:
    copy_within(f, r, at);
    break;
  }
}

/// Returns a damaged copy of `seed`.
static file damaged(const file *seed, random_state *r) {
  file f = {.name = seed->name, .bytes = malloc(MAX_SEED_BYTES + ROOM_BYTES)};
  f.count = seed->count < MAX_SEED_BYTES ? seed->count : MAX_SEED_BYTES;
  memcpy(f.bytes, seed->bytes, f.count);
  const size_t times = 1 + below(r, below(r, 4) == 0 ? 8 : 2);
  for (size_t i = 0; i < times; i++) {
    damage_once(&f, r);
  }
  f.bytes = realloc(f.bytes, f.count);
  return f;
}

// MARK: Rounds

static size_t random_window(random_state *r, size_t count) {
  static const size_t windows[] = {1, 7, 64, 333, 4096};
  if (below(r, 2) == 0) {
    return count;
  }
  const size_t window = windows[below(r, sizeof windows / sizeof *windows)];
  return count > 20000 && window < 64 ? 64 : window;
}

/// Checks a reduced size, which has no oracle here: decoding must be safe, stay within its memory estimate, and have
/// the same result however the input is cut. That decides which bytes several readers read at once.
static bool is_reduced_good(const file *f, random_state *r, int spill_directory) {
  const bool is_in_file = below(r, 2) == 0;
  native_options options = {
      .eighths = (uint8_t)(1 + below(r, 7)),
      .window = random_window(r, f->count),
      .max_pixels = max_pixels * 20,
      .budget = (size_t)60 << 20,
      .max_scans = 50,
      .spill_directory = is_in_file ? spill_directory : -1,
      .buffered = is_in_file ? CCODECS_SPILL_BYTES : 0,
      .tolerates_truncation = below(r, 2) == 0,
      .tolerates_damage = below(r, 2) == 0,
      .keeps_samples = true,
  };
  native_result result = native_decode(f, &options);
  options.window = f->count / 2 + 1;
  native_result other = native_decode(f, &options);
  const difference d = planes_compare(&result.planes, &other.planes);
  const bool is_above_estimate = result.status == CCODECS_DONE && result.peak > result.estimate;
  const bool depends_on_cut = result.status == CCODECS_NO_MEMORY || other.status == CCODECS_NO_MEMORY ||
                              native_is_refused_by_size(&result) || native_is_refused_by_size(&other);
  const bool is_same_result = result.status == other.status && result.warnings == other.warnings &&
                              strcmp(result.message, other.message) == 0 && is_same(&d);
  if (!depends_on_cut && !is_same_result) {
    printf(
        "at %u/8, by cut: status %d and %d, warnings %u and %u, \"%s\" and \"%s\", %" PRIu64 " samples differ\n",
        options.eighths, result.status, other.status, result.warnings, other.warnings, result.message, other.message,
        d.differing);
  }
  if (is_above_estimate) {
    printf("at %u/8: more memory than estimated\n", options.eighths);
  }
  planes_free(&result.planes);
  planes_free(&other.planes);
  return !is_above_estimate && (is_same_result || depends_on_cut);
}

static void keep(const file *f, const char *directory, uint64_t seed, uint64_t round) {
  char path[1000];
  snprintf(path, sizeof path, "%s/%" PRIu64 "-%" PRIu64 ".jpg", directory, seed, round);
  FILE *stream = fopen(path, "wb");
  if (stream != NULL) {
    fwrite(f->bytes, 1, f->count, stream);
    fclose(stream);
    printf("  kept as %s\n", path);
  }
}

static verdict check(const file *f, random_state *r, int spill_directory, bool *has_other_defect) {
  const bool is_in_file = below(r, 4) == 0;
  const native_options options = {
      .eighths = 8,
      .window = random_window(r, f->count),
      .max_pixels = max_pixels,
      .budget = (size_t)200 << 20,
      .spill_directory = is_in_file ? spill_directory : -1,
      .buffered = is_in_file ? CCODECS_SPILL_BYTES : 0,
      .keeps_samples = true,
  };
  agreement a = agreement_of(f, &options);
  const bool is_above_estimate = a.native.status == CCODECS_DONE && a.native.peak > a.native.estimate;
  if (is_above_estimate) {
    printf("%s: more memory than estimated\n", f->name);
  }
  *has_other_defect = is_above_estimate;
  if (is_defect(a.verdict)) {
    print_disagreement(f, &a);
  }
  agreement_free(&a);
  if (a.verdict != VERDICT_TOO_LARGE && below(r, 4) == 0) {
    *has_other_defect = !is_reduced_good(f, r, spill_directory) || is_above_estimate;
  }
  return a.verdict;
}

uint64_t fuzz(uint64_t rounds, uint64_t seed, const file *seeds, size_t seed_count, const char *directory) {
  uint64_t counts[VERDICT_KINDS] = {0};
  uint64_t defects = 0;
  const int spill_directory = ccodecs_spill_open("/var/tmp");
  for (uint64_t round = 0; round < rounds; round++) {
    random_state r = {.value = (seed << 32) + round};
    r.value = next_random(&r);
    const file f = damaged(&seeds[below(&r, seed_count)], &r);
    bool has_other_defect = false;
    const verdict v = check(&f, &r, spill_directory, &has_other_defect);
    counts[v]++;
    if (has_other_defect) {
      printf("%s: DEFECT\n", f.name);
    }
    if (has_other_defect || is_defect(v)) {
      if (defects++ < MAX_KEPT_DEFECTS) {
        keep(&f, directory, seed, round);
      }
    }
    free(f.bytes);
    if ((round + 1) % REPORT_EVERY == 0) {
      fprintf(stderr, "%" PRIu64 " files, %" PRIu64 " defects\n", round + 1, defects);
    }
  }
  ccodecs_spill_close(spill_directory);
  print_verdicts(counts);
  return defects;
}
