// libFuzzer target: feeds arbitrary bytes to one decoder and then its rewriter, as a caller would, and checks the
// contract of both in ccodecs.h. The window size and the operation are derived from a hash of the bytes.

#include "feed.h"

static const size_t budget_bytes = (size_t)64 << 20;
static const ccodecs_limits limits = {.max_pixels = 1 << 20, .max_whole_input_pixels = 1 << 20, .max_scans = 20};

typedef struct result {
  uint8_t *bytes;
  size_t count;
} result;

static void append(result *r, const ccodecs_piece *piece) {
  check(piece->count > 0, "a piece has bytes");
  r->bytes = realloc(r->bytes, r->count + piece->count);
  check(r->bytes != NULL, "memory for the result");
  memcpy(r->bytes + r->count, piece->bytes, piece->count);
  r->count += piece->count;
}

/// Reads the image's header and notes its bytes in the rewriter. Returns whether the header is complete.
static bool read_header(ccodecs_decoder *decoder, ccodecs_rewriter *rewriter, feed *f) {
  ccodecs_status status;
  while (true) {
    const uint8_t *start = f->input.bytes;
    status = ccodecs_decoder_read_header(decoder, &f->input);
    ccodecs_rewriter_note(rewriter, start, (size_t)(f->input.bytes - start));
    if (status != CCODECS_NEEDS_INPUT) {
      return status == CCODECS_OK;
    }
    feed_more(f);
  }
}

static ccodecs_status rewrite_rest(ccodecs_rewriter *rewriter, feed *f, result *r) {
  ccodecs_status status;
  do {
    ccodecs_piece piece;
    status = ccodecs_rewriter_read(rewriter, &f->input, &piece);
    if (status == CCODECS_BYTES_READY) {
      append(r, &piece);
    } else if (status == CCODECS_NEEDS_INPUT) {
      feed_more(f);
    }
  } while (status == CCODECS_BYTES_READY || status == CCODECS_NEEDS_INPUT);
  ccodecs_piece piece;
  check(ccodecs_rewriter_read(rewriter, &f->input, &piece) == status, "an end and a failure are final");
  check(status == CCODECS_DONE || ccodecs_rewriter_message(rewriter)[0] != 0, "a failure has a reason");
  return status;
}

typedef struct outcome {
  ccodecs_status status; ///< CCODECS_UNSUPPORTED if the file cannot be rewritten.
  ccodecs_header header;
  result result;
  bool is_completed; ///< The file lacked its end, and may lack rows too.
  bool is_recoded;   ///< The result has another format.
} outcome;

/// Rewrites a file; `turn` is an EXIF orientation, which is applied if the rewriter supports it. `is_animation` selects
/// all frames. A `turn` of 0 recompresses a JPEG as JPEG XL, or copies the file. A JPEG XL becomes a JPEG.
static outcome rewrite(const uint8_t *bytes, size_t count, size_t window_bytes, uint8_t transform, bool is_animation) {
  static const uint8_t exif[26] = "II*\0\x08\0\0\0\x01\0\x3B\x01\x02\0\x02\0\0\0A\0\0\0\0\0\0";
  uint8_t profile[CCODECS_COMPACT_PROFILE_BYTES];
  const size_t profile_count = ccodecs_compact_profile(CCODECS_TARGET_DISPLAY_P3, profile);
  const ccodecs_metadata metadata = {
      .exif = exif,
      .exif_count = transform % 2 == 0 ? sizeof exif : 0,
      .icc = profile,
      .icc_count = transform % 3 == 0 ? profile_count : 0,
      .xmp = exif,
      .xmp_count = transform > 5 ? sizeof exif : 0,
      .iptc = exif,
      .iptc_count = transform == 7 ? sizeof exif : 0,
  };
  outcome o = {.status = CCODECS_UNSUPPORTED};
  feed f = {.bytes = bytes, .left = count, .window_bytes = window_bytes};
  ccodecs_budget budget = {.limit = budget_bytes};
  ccodecs_decoder *decoder = NULL;
  ccodecs_rewriter *rewriter = NULL;
  check(ccodecs_decoder_create(FUZZ_FORMAT, &limits, &budget, &decoder) == CCODECS_OK, "there is a decoder");
  check(ccodecs_rewriter_create(FUZZ_FORMAT, &limits, &budget, &rewriter) == CCODECS_OK, "there is a rewriter");
  next_window(&f);
  ccodecs_survey survey = {0};
  bool has_header = read_header(decoder, rewriter, &f);
  if (has_header && is_animation && ccodecs_decoder_header(decoder)->can_buffer_input) {
    check(ccodecs_decoder_buffer_input(decoder) == CCODECS_OK, "a file can be buffered");
    has_header = read_header(decoder, rewriter, &f);
  }
  if (has_header) {
    if (is_animation && ccodecs_decoder_header(decoder)->has_frames) {
      ccodecs_decoder_select_frames(decoder, 0, 0);
    }
    ccodecs_rewriter_survey(rewriter, decoder, &survey);
    o.header = *ccodecs_decoder_header(decoder);
  }
  if (survey.can_copy || survey.can_reconstruct) {
    check(!survey.can_copy || (survey.quality >= 1 && survey.quality <= 100), "a quality is 1 to 100");
    const bool is_whole = transform < 4 && survey.can_reconstruct_whole;
    const bool is_recompressed = transform == 0 && survey.can_recompress;
    o.is_recoded = is_recompressed || survey.can_reconstruct;
    const ccodecs_rewrite_options options = {
        .orientation = transform > 0 && (survey.rotations >> transform & 1) != 0 ? transform : 1,
        .metadata = transform == 0 || is_whole ? (ccodecs_metadata){0} : metadata,
        .may_lack_end = transform > 4,
        .jxl_effort = is_recompressed ? 3 : 0,
        .reconstruction = !survey.can_reconstruct ? CCODECS_RECONSTRUCTION_NONE
                          : is_whole              ? CCODECS_RECONSTRUCTION_WHOLE
                                                  : CCODECS_RECONSTRUCTION_STRIPPED,
    };
    const uint64_t estimate = ccodecs_rewriter_estimate(rewriter, decoder, &options);
    budget.peak = budget.used;
    o.status = ccodecs_rewriter_start(rewriter, decoder, &options);
    if (o.status == CCODECS_OK) {
      ccodecs_decoder_destroy(decoder);
      decoder = NULL;
      o.status = rewrite_rest(rewriter, &f, &o.result);
    }
    check(budget.peak <= estimate, "the estimate holds");
    o.is_completed = (ccodecs_rewriter_warnings(rewriter) & CCODECS_WARNING_NO_END) != 0;
  }
  ccodecs_decoder_destroy(decoder);
  ccodecs_rewriter_destroy(rewriter);
  check(budget.used == 0, "all memory is given back");
  free(f.block);
  return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  const uint32_t seed = hash(bytes, count);
  const size_t windows[8] = {SIZE_MAX, SIZE_MAX, 4096, 1000, 97, 7, 2, 1};
  const size_t window_bytes = windows[seed % (count < 1024 ? 8 : 4)];
  const uint8_t transform = (uint8_t)((seed >> 8) % 9);
  const bool is_animation = (seed >> 16) % 2 == 0;
  outcome first = rewrite(bytes, count, window_bytes, transform, is_animation);
  outcome whole = rewrite(bytes, count, SIZE_MAX, transform, is_animation);
  check(first.status == whole.status && first.result.count == whole.result.count, "windows do not matter");
  check(
      first.result.count == 0 || memcmp(first.result.bytes, whole.result.bytes, first.result.count) == 0,
      "windows do not matter to the bytes");
  if (first.status == CCODECS_DONE && !first.is_completed && !first.is_recoded) {
    outcome again = rewrite(first.result.bytes, first.result.count, SIZE_MAX, 1, is_animation);
    check(again.status == CCODECS_DONE, "a result can be passed on");
    check(again.header.orientation == 1, "a result is upright");
    check(
        (transform > 0 && transform % 3 == 0) || !again.header.has_profile,
        "a result has no other profile than it was given");
    outcome last = rewrite(again.result.bytes, again.result.count, SIZE_MAX, 1, is_animation);
    check(
        last.status == CCODECS_DONE && last.result.count == again.result.count &&
            memcmp(last.result.bytes, again.result.bytes, last.result.count) == 0,
        "what has no metadata is passed on as it is");
    free(again.result.bytes);
    free(last.result.bytes);
  }
  free(first.result.bytes);
  free(whole.result.bytes);
  return 0;
}
