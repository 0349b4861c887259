#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Returns the verdict on an image that both decoders decoded.
static verdict verdict_of_samples(const native_result *native, const turbo_result *turbo) {
  const difference d = planes_compare(&native->planes, &turbo->planes);
  if (turbo->outcome == TURBO_DONE) {
    return is_same(&d) ? VERDICT_SAME : VERDICT_SAMPLES_DIFFER;
  }
  if (turbo->outcome != TURBO_CUT || (native->warnings & CCODECS_WARNING_DAMAGED) == 0) {
    return VERDICT_MORE_LENIENT;
  }
  return is_same(&d) ? VERDICT_CUT_SAME : VERDICT_CUT_OTHER;
}

/// Returns the verdict on the first `count` bytes of the file followed by an end marker.
static verdict verdict_when_ended(const file *f, size_t count, const native_result *native) {
  file ended = {.name = f->name, .bytes = malloc(count + 2), .count = count + 2};
  memcpy(ended.bytes, f->bytes, count);
  memcpy(ended.bytes + count, "\xFF\xD9", 2);
  turbo_result turbo = turbo_decode(&ended, 8, UINT64_MAX);
  const verdict v = verdict_of_samples(native, &turbo);
  planes_free(&turbo.planes);
  free(ended.bytes);
  return v == VERDICT_SAME ? VERDICT_END_UNREAD : v;
}

enum { MAX_ENDS = 8 };

/// Returns the verdict on a file that the oracle refuses, after ending it where the decoder stopped reading or at one
/// of the last markers before, because the decoder may have read past the end of the image.
static verdict verdict_of_needed(const file *f, const native_result *native) {
  size_t end = native->consumed;
  verdict v = verdict_when_ended(f, end, native);
  for (int markers = 0; is_defect(v) && markers < MAX_ENDS && end >= 2;) {
    end--;
    const uint8_t code = f->bytes[end];
    if (f->bytes[end - 1] == 0xFF && code != 0 && code != 0xFF) {
      markers++;
      v = verdict_when_ended(f, end - 1, native);
    }
  }
  return is_defect(v) ? VERDICT_MORE_LENIENT : v;
}

static verdict verdict_of_refused(const agreement *a) {
  const char *why = a->native.message;
  if (a->native.status == CCODECS_UNSUPPORTED && a->turbo.outcome >= TURBO_TRUNCATED) {
    return VERDICT_OTHER_KIND;
  }
  if (a->turbo.outcome != TURBO_DONE && a->turbo.outcome != TURBO_OTHER_KIND) {
    return VERDICT_BOTH_REFUSE;
  }
  if (strcmp(why, "a component has no scan before EOI") == 0) {
    return VERDICT_NO_SCAN;
  }
  return strcmp(why, "a component of a sequential image has two scans") == 0 ? VERDICT_TWO_SCANS : VERDICT_STRICTER;
}

static verdict verdict_of_done(const file *f, const agreement *a) {
  switch (a->turbo.outcome) {
  case TURBO_DONE:
  case TURBO_CUT:
    return verdict_of_samples(&a->native, &a->turbo);
  case TURBO_OTHER_KIND:
    return VERDICT_MORE_LENIENT;
  default:
    return a->turbo.is_too_wide ? VERDICT_WIDE : verdict_of_needed(f, &a->native);
  }
}

agreement agreement_of(const file *f, const native_options *options) {
  agreement a = {.turbo = turbo_decode(f, 8, options->max_pixels)};
  if (a.turbo.outcome == TURBO_TOO_LARGE) {
    a.verdict = VERDICT_TOO_LARGE;
    return a;
  }
  a.native = native_decode(f, options);
  a.verdict = a.native.status == CCODECS_DONE ? verdict_of_done(f, &a) : verdict_of_refused(&a);
  return a;
}

void agreement_free(agreement *a) {
  planes_free(&a->native.planes);
  planes_free(&a->turbo.planes);
}

bool is_defect(verdict v) {
  return v >= VERDICT_SAMPLES_DIFFER;
}

const char *verdict_name(verdict v) {
  static const char *names[VERDICT_KINDS] = {
      [VERDICT_SAME] = "same samples",
      [VERDICT_BOTH_REFUSE] = "refused by both",
      [VERDICT_OTHER_KIND] = "not for the native decoder",
      [VERDICT_TOO_LARGE] = "too large for this check",
      [VERDICT_NO_SCAN] = "stricter: a component without a scan",
      [VERDICT_TWO_SCANS] = "stricter: a component with two scans",
      [VERDICT_CUT_SAME] = "more lenient: a cut progressive scan, same samples",
      [VERDICT_CUT_OTHER] = "more lenient: a cut progressive scan, other samples",
      [VERDICT_END_UNREAD] = "more lenient: damage only behind what is needed",
      [VERDICT_WIDE] = "more lenient: a side above 65500",
      [VERDICT_SAMPLES_DIFFER] = "DEFECT: samples differ",
      [VERDICT_STRICTER] = "DEFECT: refused by the native decoder alone",
      [VERDICT_MORE_LENIENT] = "DEFECT: refused by libjpeg-turbo alone",
  };
  return names[v];
}

void print_verdicts(const uint64_t counts[VERDICT_KINDS]) {
  printf("| outcome | files |\n|---|---|\n");
  for (int v = 0; v < VERDICT_KINDS; v++) {
    if (counts[v] > 0) {
      printf("| %s | %" PRIu64 " |\n", verdict_name((verdict)v), counts[v]);
    }
  }
}

void print_disagreement(const file *f, const agreement *a) {
  printf(
      "%s: %s\n  native: status %d, warnings %u, \"%s\"\n  libjpeg-turbo: outcome %d, \"%s\"\n", f->name,
      verdict_name(a->verdict), a->native.status, a->native.warnings, a->native.message, a->turbo.outcome,
      a->turbo.message);
}
