#ifndef CLIBZ_SHIM_H
#define CLIBZ_SHIM_H

#include <stdlib.h>
#include <zlib.h>

// zlib's stream without its members: Swift cannot tell to which module they belong where another one has zlib too.

/// A decompressor, or NULL when there is no memory for it; `window_bits` as `inflateInit2` has it.
static inline void *clibz_inflater_create(int window_bits) {
  z_stream *stream = (z_stream *)calloc(1, sizeof *stream);
  if (stream && inflateInit2(stream, window_bits) != Z_OK) {
    free(stream);
    stream = NULL;
  }
  return stream;
}

static inline void clibz_inflater_destroy(void *inflater) {
  inflateEnd((z_stream *)inflater);
  free(inflater);
}

static inline int clibz_inflater_reset(void *inflater) {
  return inflateReset((z_stream *)inflater);
}

/// Decompresses some bytes; the counts, at most 4 GiB, become those of what was read and written. Returns zlib's
/// status.
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
