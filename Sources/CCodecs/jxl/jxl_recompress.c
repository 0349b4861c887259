// Lossless recompression of JPEG: libjxl codes the same coefficients with fewer bits, and stores what else the JPEG's
// bytes consist of, so that the file can be reconstructed.
//
// libjxl needs the whole JPEG, and produces no output before it has compressed all of it.

#include "../core/quiet.h"
#include "../core/rewriter.h"
#include "../formats.h"

#ifdef CCODECS_JXL

#include "jxl_library.h"

#include <stdio.h>

/// libjxl 0.7's memory, measured with noise at quality 100, which is the worst case: for each pixel, and in addition
/// for each sample of all components.
static const uint64_t library_bytes_per_pixel = 18;
static const uint64_t library_bytes_per_sample = 12;
static const uint64_t library_bytes = (uint64_t)8 << 20;
/// The maximum effort: above it, libjxl takes five times as long for less than half a percent.
static const uint8_t max_effort = 7;

typedef struct jxl_recompressor {
  ccodecs_transform base;
  ccodecs_budget *budget;
  ccodecs_interrupt *interrupt;
  uint64_t charge;
  uint8_t effort;
  bool has_profile;
  size_t given; ///< Bytes of the output that were returned.
  ccodecs_bytes file;
  ccodecs_bytes output;
  jxl_library library;
} jxl_recompressor;

static ccodecs_status push(ccodecs_transform *transform, const uint8_t *bytes, size_t count) {
  jxl_recompressor *r = (jxl_recompressor *)transform;
  return ccodecs_bytes_append(&r->file, bytes, count, r->budget) ? CCODECS_OK : CCODECS_NO_MEMORY;
}

/// Passes the file to libjxl and compresses it.
static ccodecs_status compress(jxl_recompressor *r) {
  if (!ccodecs_jxl_library_create(&r->library, r->charge, r->interrupt, r->budget)) {
    return CCODECS_NO_MEMORY;
  }
  JxlEncoder *encoder = r->library.encoder;
  JxlEncoderFrameSettings *frame = JxlEncoderFrameSettingsCreate(encoder, NULL);
  const bool is_added =
      frame != NULL && JxlEncoderStoreJPEGMetadata(encoder, JXL_TRUE) == JXL_ENC_SUCCESS &&
      JxlEncoderFrameSettingsSetOption(frame, JXL_ENC_FRAME_SETTING_EFFORT, r->effort) == JXL_ENC_SUCCESS &&
      JxlEncoderAddJPEGFrame(frame, ccodecs_bytes_start(&r->file), r->file.count) == JXL_ENC_SUCCESS;
  if (!is_added) {
    const ccodecs_status status = ccodecs_jxl_library_failure(&r->library);
    return status == CCODECS_UNSUPPORTED && !r->has_profile ? CCODECS_CORRUPT : status;
  }
  ccodecs_bytes_free(&r->file, r->budget); // libjxl has read it
  return ccodecs_jxl_library_finish(&r->library, &r->output, r->budget);
}

static ccodecs_status finish(ccodecs_transform *transform) {
  jxl_recompressor *r = (jxl_recompressor *)transform;
  ccodecs_quiet_begin();
  const ccodecs_status status = compress(r);
  ccodecs_quiet_end();
  const int error = r->library.encoder == NULL ? 0 : (int)JxlEncoderGetError(r->library.encoder);
  snprintf(
      r->base.message, sizeof r->base.message,
      status == CCODECS_INTERRUPTED ? "recompression was interrupted"
      : status == CCODECS_NO_MEMORY ? "no room for the coefficients of the JPEG"
      : r->has_profile              ? "libjxl cannot recompress the JPEG or accept its profile (error %d)"
                                    : "libjxl cannot recompress the JPEG (error %d); always_encode encodes its pixels",
      error);
  ccodecs_jxl_library_destroy(&r->library, r->budget);
  return status;
}

static ccodecs_status read(ccodecs_transform *transform, ccodecs_piece *piece) {
  enum { PIECE_BYTES = 64 << 10 };
  jxl_recompressor *r = (jxl_recompressor *)transform;
  const size_t left = r->output.count - r->given;
  *piece = (ccodecs_piece){
      .bytes = ccodecs_bytes_start(&r->output) + r->given, .count = left < PIECE_BYTES ? left : PIECE_BYTES};
  r->given += piece->count;
  return piece->count > 0 ? CCODECS_BYTES_READY : CCODECS_DONE;
}

static void destroy(ccodecs_transform *transform) {
  jxl_recompressor *r = (jxl_recompressor *)transform;
  ccodecs_budget *budget = r->budget;
  ccodecs_jxl_library_destroy(&r->library, budget);
  ccodecs_bytes_free(&r->file, budget);
  ccodecs_bytes_free(&r->output, budget);
}

static uint64_t library_charge(uint64_t pixel_count, uint64_t sample_count) {
  return library_bytes + pixel_count * library_bytes_per_pixel + sample_count * library_bytes_per_sample;
}

uint64_t ccodecs_jxl_recompress_estimate(uint64_t pixel_count, uint64_t sample_count) {
  // A sample of a JPEG takes up to 12 bits. The file and the result are buffered in blocks that grow by half.
  const uint64_t file = sample_count * 3 / 2 + 65536;
  return sizeof(jxl_recompressor) + library_charge(pixel_count, sample_count) + file * 5 / 2 + file * 5 / 2;
}

ccodecs_status ccodecs_jxl_recompress_create(
    uint64_t pixel_count, uint64_t sample_count, const ccodecs_rewrite_options *options, ccodecs_interrupt *interrupt,
    ccodecs_budget *budget, ccodecs_transform **transform) {
  static const ccodecs_transform_methods methods = {.push = push, .finish = finish, .read = read, .destroy = destroy};
  jxl_recompressor *r = ccodecs_allocate(budget, sizeof *r);
  if (r == NULL) {
    return CCODECS_NO_MEMORY;
  }
  memset(r, 0, sizeof *r);
  r->base.methods = &methods;
  r->budget = budget;
  r->interrupt = interrupt;
  r->charge = library_charge(pixel_count, sample_count);
  r->effort = options->jxl_effort < max_effort ? options->jxl_effort : max_effort;
  r->has_profile = options->metadata.icc_count > 0;
  *transform = &r->base;
  return CCODECS_OK;
}

#endif
