// What every encoder of this room is built from. Private to CCodecs.

#ifndef CCODECS_ENCODER_H
#define CCODECS_ENCODER_H

#include "../memory/bytes.h"

/// One encoder's functions. None is called after a failure: encoder.c sees to it.
typedef struct ccodecs_encoder_methods {
  ccodecs_status (*write)(ccodecs_encoder *encoder, const ccodecs_rows *rows);
  /// After the last row; NULL where metadata stands before the rows.
  ccodecs_status (*append_exif)(ccodecs_encoder *encoder, const uint8_t *exif, size_t count);
  ccodecs_status (*finish)(ccodecs_encoder *encoder);
  void (*destroy)(ccodecs_encoder *encoder); ///< Frees everything, the encoder itself included.
} ccodecs_encoder_methods;

/// The first member of every concrete encoder.
struct ccodecs_encoder {
  const ccodecs_encoder_methods *methods;
  ccodecs_budget *budget;
  ccodecs_encode_options options;
  ccodecs_bytes output;
  uint32_t rows_left[CCODECS_MAX_PLANES]; ///< Rows of each plane that were not written yet.
  bool is_finished;
  ccodecs_status failure;
  char message[200];
};

/// Notes why the encoder fails, and returns `status` to be returned. printf-style.
ccodecs_status ccodecs_encoder_fail(ccodecs_encoder *encoder, ccodecs_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Planes of the options' pixels, and their sizes.
uint32_t ccodecs_encoder_plane_count(const ccodecs_encode_options *options);
uint32_t ccodecs_encoder_plane_width(const ccodecs_encode_options *options, uint32_t plane);
uint32_t ccodecs_encoder_plane_height(const ccodecs_encode_options *options, uint32_t plane);

/// Interleaved samples of the options' pixels.
uint32_t ccodecs_encoder_channels(const ccodecs_encode_options *options);

/// What an APP1 segment of JPEG holds.
#define CCODECS_MAX_EXIF_BYTES (65535 - 2 - 6)

/// The bytes of the largest file, as an upper bound, of a format whose samples take up to 12 bits where noise is
/// compressed at the best quality.
uint64_t ccodecs_encoder_max_lossy_bytes(const ccodecs_encode_options *options);

/// Likewise where samples that can't be compressed are stored, `channels` for each pixel.
uint64_t ccodecs_encoder_max_stored_bytes(const ccodecs_encode_options *options, uint32_t channels);

/// Fills the base of a freshly allocated encoder.
void ccodecs_encoder_init(
    ccodecs_encoder *encoder, const ccodecs_encoder_methods *methods, const ccodecs_encode_options *options,
    ccodecs_budget *budget);

#endif
