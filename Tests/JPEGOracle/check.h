// Declarations shared by the files of this program: images as component planes, decoded by either decoder.
//
//   main.c       the subcommands and their output
//   native.c     the decoder under test, Sources/CCodecs/jpeg/jpeg_decoder.h, fed in windows of any size
//   turbo.c      libjpeg-turbo as the oracle: raw planes from its accurate integer transform
//   agreement.c  comparison of one file in both decoders, and the differences that jpeg_decoder.h documents
//   fuzz.c       damaged files

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ccodecs.h"

enum { MAX_PLANES = 3 };

/// A file in memory, allocated with its exact size so that a sanitizer detects reads beyond it. The name is borrowed.
typedef struct file {
  const char *name;
  uint8_t *bytes;
  size_t count;
} file;

/// Reads a file and returns whether it succeeded. The caller frees f->bytes.
bool file_read(file *f, const char *path);

/// Component planes of 8-bit samples, before any upsampling.
typedef struct planes {
  uint32_t count;
  uint8_t *samples[MAX_PLANES]; ///< NULL if the samples were not kept.
  size_t strides[MAX_PLANES];
  uint32_t widths[MAX_PLANES];
  uint32_t heights[MAX_PLANES];
  uint32_t eighths[MAX_PLANES]; ///< N for a component decoded at N/8 of its own size.
} planes;

void planes_free(planes *p);

typedef struct difference {
  bool is_other_shape; ///< The number or size of planes differs; the other fields are then unset.
  uint64_t compared;   ///< Number of samples compared.
  uint64_t differing;
  uint32_t largest;
  double square_sum;
} difference;

/// Compares the components that both images have at the same scale.
difference planes_compare(const planes *a, const planes *b);

bool is_same(const difference *d);

double cpu_milliseconds(void);

// MARK: The decoder under test

typedef struct native_options {
  uint8_t eighths;
  size_t window; ///< Window size in bytes.
  uint64_t max_pixels;
  size_t budget;
  uint32_t max_scans;  ///< 0 for no limit.
  int spill_directory; ///< Spill directory as a descriptor; -1 for none.
  size_t buffered;     ///< Bytes charged to the budget before; CCODECS_SPILL_BYTES forces spilling.
  bool tolerates_truncation;
  bool tolerates_damage;
  bool keeps_samples;
} native_options;

typedef struct native_result {
  ccodecs_status status; ///< CCODECS_DONE or the error.
  planes planes;         ///< Empty after a failure.
  uint32_t warnings;
  size_t consumed;   ///< Consumed bytes of the file.
  size_t peak;       ///< Peak of the budget in bytes.
  uint64_t estimate; ///< The decoder's estimate of its memory in bytes.
  char message[200];
} native_result;

/// Decodes a file with the native decoder. Ends the program if the decoder breaks its contract: too many or too few
/// rows, a window that is not consumed, memory that is not released.
native_result native_decode(const file *f, const native_options *options);

/// Returns whether the decoder refused a complete file as too short for the size that its header specifies. How the
/// input is cut decides when it finds that out.
bool native_is_refused_by_size(const native_result *result);

// MARK: The oracle

typedef enum turbo_outcome {
  TURBO_DONE,
  TURBO_CUT,       ///< Complete, but a marker ended a progressive scan early.
  TURBO_DAMAGED,   ///< Complete, but some samples are invented.
  TURBO_TRUNCATED, ///< The file ended before the image was complete.
  TURBO_FAILED,
  TURBO_OTHER_KIND, ///< A kind of image that the native decoder does not support; not decoded.
  TURBO_TOO_LARGE,  ///< More pixels than this program accepts; not decoded.
} turbo_outcome;

typedef struct turbo_result {
  turbo_outcome outcome;
  bool is_too_wide; ///< It failed because a side exceeds its limit.
  bool has_warned;
  planes planes; ///< Empty unless the outcome is TURBO_DONE or TURBO_CUT.
  char message[200];
} turbo_result;

/// Decodes strictly: bytes arrive 64 at a time, which avoids the fast path of libjpeg-turbo's Huffman decoder, because
/// that path silently reads invalid codes as zeros. Blocks are not smoothed.
turbo_result turbo_decode(const file *f, uint8_t eighths, uint64_t max_pixels);

/// Decodes the whole file at once, as fast as the library can, without keeping samples. Returns false on failure.
bool turbo_run(const file *f, uint8_t eighths);

// MARK: Agreement

typedef enum verdict {
  VERDICT_SAME,
  VERDICT_BOTH_REFUSE,
  VERDICT_OTHER_KIND,
  VERDICT_TOO_LARGE,
  // Differences that jpeg_decoder.h documents.
  VERDICT_NO_SCAN,    ///< Stricter: a component without a scan.
  VERDICT_TWO_SCANS,  ///< Stricter: a component of a sequential image with two scans.
  VERDICT_CUT_SAME,   ///< More lenient: a truncated progressive scan, decoded with a warning to the same samples.
  VERDICT_CUT_OTHER,  ///< The same, but decoded to other samples.
  VERDICT_END_UNREAD, ///< More lenient: only data after the last required byte is missing or invalid.
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

/// Decodes a file at 8/8 with both decoders and compares the results.
agreement agreement_of(const file *f, const native_options *options);

void agreement_free(agreement *a);

bool is_defect(verdict v);

const char *verdict_name(verdict v);

/// Prints the count of each verdict that occurred.
void print_verdicts(const uint64_t counts[VERDICT_KINDS]);

/// Prints both decoders' results for the file.
void print_disagreement(const file *f, const agreement *a);

// MARK: Fuzzing

/// Decodes `rounds` files, each a randomly damaged copy of one of `seeds`, with both decoders. Returns the number of
/// defects, which are printed and stored as files in `directory`. Some decodings spill to an unnamed file in /var/tmp.
/// The same `seed` generates the same files.
uint64_t fuzz(uint64_t rounds, uint64_t seed, const file *seeds, size_t seed_count, const char *directory);
