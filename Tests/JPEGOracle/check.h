// What the files of this program share: images as component planes, decoded by either decoder.
//
//   main.c       the subcommands, and what they print
//   native.c     the decoder under test, Sources/CCodecs/jpeg/jpeg_decoder.h, fed in windows of any size
//   turbo.c      libjpeg-turbo as the oracle: raw planes by its accurate integer transform
//   agreement.c  what becomes of one file in both, and which differences jpeg_decoder.h announces
//   fuzz.c       damaged files

#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ccodecs.h"

enum { MAX_PLANES = 3 };

/// A file in memory, in a block of its exact size, so that a sanitizer sees a byte read too far. The name is borrowed.
typedef struct file {
  const char *name;
  uint8_t *bytes;
  size_t count;
} file;

/// Whether the file could be read. To be freed with free(f->bytes).
bool file_read(file *f, const char *path);

/// Component planes of 8-bit samples, before any upsampling.
typedef struct planes {
  uint32_t count;
  uint8_t *samples[MAX_PLANES]; ///< NULL when samples were not kept.
  size_t strides[MAX_PLANES];
  uint32_t widths[MAX_PLANES];
  uint32_t heights[MAX_PLANES];
  uint32_t eighths[MAX_PLANES]; ///< N where the component was decoded at N/8 of its own size.
} planes;

void planes_free(planes *p);

typedef struct difference {
  bool is_other_shape; ///< The number or size of planes differs; nothing else is told then.
  uint64_t compared;   ///< Samples.
  uint64_t differing;
  uint32_t largest;
  double square_sum;
} difference;

/// Compares components that both have at the same scale.
difference planes_compare(const planes *a, const planes *b);

bool is_same(const difference *d);

double cpu_milliseconds(void);

// MARK: The decoder under test

typedef struct native_options {
  uint8_t eighths;
  size_t window; ///< Bytes given at a time.
  uint64_t max_pixels;
  size_t budget;
  uint32_t max_scans;  ///< 0 for no limit.
  int spill_directory; ///< A descriptor, or -1 for none.
  size_t buffered;     ///< What the budget holds before; CCODECS_SPILL_BYTES sends all that can go there to a file.
  bool tolerates_truncation;
  bool keeps_samples;
} native_options;

typedef struct native_result {
  ccodecs_status status; ///< CCODECS_DONE or the failure.
  planes planes;         ///< Empty after a failure.
  uint32_t warnings;
  size_t consumed;   ///< Bytes of the file.
  size_t peak;       ///< Of the budget.
  uint64_t estimate; ///< What the decoder said it would charge.
  char message[200];
} native_result;

/// Ends the program when the decoder breaks its contract: rows that are too many or too few, a window that is neither
/// consumed nor answered, memory that is not given back.
native_result native_decode(const file *f, const native_options *options);

// MARK: The oracle

typedef enum turbo_outcome {
  TURBO_DONE,
  TURBO_CUT,       ///< Done, but a marker cut a progressive scan short.
  TURBO_DAMAGED,   ///< Done, with made-up samples.
  TURBO_TRUNCATED, ///< Bytes behind the end were wanted.
  TURBO_FAILED,
  TURBO_OTHER_KIND, ///< An image that the native decoder leaves to others; not decoded.
  TURBO_TOO_LARGE,  ///< More pixels than this program takes; not decoded.
} turbo_outcome;

typedef struct turbo_result {
  turbo_outcome outcome;
  bool is_too_wide; ///< It failed because a side is above its limit.
  bool has_warned;
  planes planes; ///< Only of TURBO_DONE and TURBO_CUT.
  char message[200];
} turbo_result;

/// Decodes in strict terms: bytes come 64 at a time, so that the fast path of its Huffman decoder, which takes bad
/// codes for zeros without a word, is never entered; blocks are not smoothed.
turbo_result turbo_decode(const file *f, uint8_t eighths, uint64_t max_pixels);

/// Decodes as fast as the library can, the whole file at once, and keeps nothing. False when it failed.
bool turbo_run(const file *f, uint8_t eighths);

// MARK: Agreement

typedef enum verdict {
  VERDICT_SAME,
  VERDICT_BOTH_REFUSE,
  VERDICT_OTHER_KIND,
  VERDICT_TOO_LARGE,
  // Differences that jpeg_decoder.h announces.
  VERDICT_NO_SCAN,    ///< Stricter: a component without a scan.
  VERDICT_TWO_SCANS,  ///< Stricter: a component of a sequential image with two scans.
  VERDICT_CUT_SAME,   ///< More lenient: a cut progressive scan, decoded with a warning, to the same samples.
  VERDICT_CUT_OTHER,  ///< The same, to other samples.
  VERDICT_END_UNREAD, ///< More lenient: only what lies behind the last byte that is needed is missing or wrong.
  VERDICT_WIDE,       ///< More lenient: a side above 65500.
  // Defects.
  VERDICT_SAMPLES_DIFFER,
  VERDICT_STRICTER,
  VERDICT_MORE_LENIENT,
  VERDICT_KINDS,
} verdict;

typedef struct agreement {
  verdict verdict;
  native_result native;
  turbo_result turbo;
} agreement;

/// Decodes a file at 8/8 by both.
agreement agreement_of(const file *f, const native_options *options);

void agreement_free(agreement *a);

bool is_defect(verdict v);

const char *verdict_name(verdict v);

/// Prints how often each verdict came, where it did.
void print_verdicts(const uint64_t counts[VERDICT_KINDS]);

/// Prints what both said of the file.
void print_disagreement(const file *f, const agreement *a);

// MARK: Fuzzing

/// Decodes `rounds` files, each one of `seeds` damaged at random, by both. The number of defects, which are printed and
/// kept as files in `directory`. Some are decoded from a file without a name in /var/tmp. A seed gives the same files
/// again.
uint64_t fuzz(uint64_t rounds, uint64_t seed, const file *seeds, size_t seed_count, const char *directory);

#endif
