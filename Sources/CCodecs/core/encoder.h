// The base of every encoder in this module. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"
#include "../memory/held.h"

/// A concrete encoder. encoder.c calls none of its functions after a failure.
typedef struct ccodecs_encoder_methods {
  size_t byte_count; ///< Size of the encoder, which is zeroed except its base.
  /// Prepares the encoder for its options. Returns false if the budget is exhausted; destroy is then called.
  bool (*create)(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget);
  uint64_t (*estimate)(const ccodecs_encode_options *options);  ///< As ccodecs_encoder_estimate.
  uint64_t (*max_bytes)(const ccodecs_encode_options *options); ///< As ccodecs_encoder_max_bytes.
  bool (*takes)(const ccodecs_encode_options *options); ///< Whether options can be combined; NULL to accept all.
  /// Begins a frame, which encoder.frame describes; NULL if a result has one frame, for which nothing needs to be done.
  ccodecs_status (*begin_frame)(ccodecs_encoder *encoder);
  /// Without a plane, the rows are those of the frame before; only with options.has_frames.
  ccodecs_status (*write)(ccodecs_encoder *encoder, const ccodecs_rows *rows);
  /// Ends a frame, all of whose rows were written; NULL if nothing needs to be done.
  ccodecs_status (*end_frame)(ccodecs_encoder *encoder);
  /// Appends EXIF after the last row; NULL if the format stores metadata before the rows.
  ccodecs_status (*append_exif)(ccodecs_encoder *encoder, const uint8_t *exif, size_t count);
  ccodecs_status (*finish)(ccodecs_encoder *encoder);
  void (*destroy)(ccodecs_encoder *encoder); ///< Frees what the concrete encoder holds; NULL for nothing.
} ccodecs_encoder_methods;

/// The first member of every concrete encoder.
struct ccodecs_encoder {
  const ccodecs_encoder_methods *methods;
  ccodecs_budget *budget;
  ccodecs_encode_options options;
  ccodecs_bytes output;
  ccodecs_spool spool;                    ///< Of an animation: the compressed frames, which follow the output.
  bool is_spooling;                       ///< The output waits for the end of the spool.
  bool is_spool_ready;                    ///< The spool may be read.
  uint64_t read_offset;                   ///< Bytes of the output and the spool that were read.
  uint32_t rows_left[CCODECS_MAX_PLANES]; ///< Rows of each plane of the frame that are not yet written.
  ccodecs_frame frame;                    ///< The frame that began last.
  uint32_t frame_count;                   ///< Number of frames that began.
  ccodecs_frame pending;                  ///< Of an animation: the compressed frame that may last longer.
  bool has_pending;
  bool is_animation; ///< More than one frame began, or ccodecs_encoder_keep_animation was called.
  bool is_in_frame;
  uint32_t stored_frames; ///< Frames of an animation that the result contains so far.
  bool is_finished;
  ccodecs_interrupt interrupt; ///< Asked during a long call of end_frame or finish.
  ccodecs_status failure;      ///< CCODECS_OK until the encoder fails.
  char message[200];           ///< The reason for the failure.
};

/// Records the failure and its printf-style reason. Returns `status`, for the caller to return.
ccodecs_status ccodecs_encoder_fail(ccodecs_encoder *encoder, ccodecs_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// The number of planes of options.pixels, and the size of each plane in samples.
uint32_t ccodecs_encoder_plane_count(const ccodecs_encode_options *options);
uint32_t ccodecs_encoder_plane_width(const ccodecs_encode_options *options, uint32_t plane);
uint32_t ccodecs_encoder_plane_height(const ccodecs_encode_options *options, uint32_t plane);

/// Returns the number of interleaved samples per pixel of options.pixels.
uint32_t ccodecs_encoder_channels(const ccodecs_encode_options *options);
/// Returns whether samples have 16 bits.
bool ccodecs_encoder_is_deep(const ccodecs_encode_options *options);
/// Returns the number of bytes per pixel of options.pixels, in one plane.
uint32_t ccodecs_encoder_pixel_bytes(const ccodecs_encode_options *options);

/// The maximum size in bytes of the EXIF block in a JPEG APP1 segment.
#define CCODECS_MAX_EXIF_BYTES (65535 - 2 - 6)

/// The maximum size in bytes of an XMP packet in a JPEG APP1 segment, and of IPTC in an APP13 segment.
#define CCODECS_MAX_XMP_BYTES (65535 - 2 - 29)
#define CCODECS_MAX_IPTC_BYTES 65000

/// Returns the size of all metadata in bytes, without what a format adds.
static inline size_t ccodecs_metadata_bytes(const ccodecs_metadata *metadata) {
  return metadata->exif_count + metadata->icc_count + metadata->xmp_count + metadata->iptc_count;
}

/// Returns an upper bound of the file size in bytes for a lossy format, which needs up to 12 bits per sample of 8 bits
/// for noise at the maximum quality.
uint64_t ccodecs_encoder_max_lossy_bytes(const ccodecs_encode_options *options);

/// Returns an upper bound of the file size in bytes for a format that stores incompressible samples as they are, with
/// `bytes` bytes per pixel.
uint64_t ccodecs_encoder_max_stored_bytes(const ccodecs_encode_options *options, uint32_t bytes);

/// Creates a concrete encoder. Returns NULL if the budget is exhausted.
ccodecs_encoder *ccodecs_encoder_allocate(
    const ccodecs_encoder_methods *methods, const ccodecs_encode_options *options, ccodecs_budget *budget);
