#ifndef CLIBZ_SHIM_H
#define CLIBZ_SHIM_H

#include <stdlib.h>
#include <zlib.h>

// zlib's stream as an opaque pointer, because Swift cannot resolve its members if another module also includes zlib.

/// Creates a decompressor, with `window_bits` as for `inflateInit2`. Returns NULL if there is no memory.
static inline void *clibz_inflater_create(int window_bits) {
  z_stream *stream = (z_stream *)calloc(1, sizeof *stream);
  if (stream && inflateInit2(stream, window_bits) != Z_OK) {
    free(stream);
    stream = NULL;
  }
  return stream;
}

/// Frees a decompressor.
static inline void clibz_inflater_destroy(void *inflater) {
  inflateEnd((z_stream *)inflater);
  free(inflater);
}

/// Prepares a decompressor for a new stream. Returns zlib's status.
static inline int clibz_inflater_reset(void *inflater) {
  return inflateReset((z_stream *)inflater);
}

/// Decompresses bytes and returns zlib's status. On return, the counts are the numbers of bytes that were read and
/// written; they must not exceed 4 GiB.
static inline int clibz_inflater_push(
    void *inflater, const void *input, size_t *input_count, void *output, size_t *output_count) {
  z_stream *stream = (z_stream *)inflater;
  stream->next_in = (Bytef *)input;
  stream->avail_in = (uInt)*input_count;
  stream->next_out = (Bytef *)output;
  stream->avail_out = (uInt)*output_count;
  int status = inflate(stream, Z_NO_FLUSH);
  *input_count -= stream->avail_in;
  *output_count -= stream->avail_out;
  return status;
}

#endif
