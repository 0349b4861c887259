// PNG, row by row: filters chosen by the smallest sum of absolute differences, deflated by ISA-L up to level 3 and by
// zlib above.
//
// ISA-L's deflate is some ten times as fast as zlib's at its usual level of 6, and photographs come out 2 to 5 % larger;
// zlib's upper levels are for whoever wants the smallest file.
//
// Sources: PNG specification (third edition), sections 5, 9 and 12.7.

#include "encoder.h"

#include <isa-l.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

enum {
  LARGEST_FAST_LEVEL = 3,
  CHUNK_BYTES = 64 << 10, ///< Of an IDAT chunk.
  FILTER_COUNT = 5,
};

static const size_t level_bytes[LARGEST_FAST_LEVEL + 1] = {
    0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};

/// What zlib allocates at its largest (zconf.h): a window and hash chains.
static const size_t zlib_bytes = 280 << 10;

typedef struct png_encoder {
  ccodecs_encoder base;
  size_t row_bytes;
  size_t pixel_bytes;
  uint8_t *rows;    ///< Zeros for the first row, then the row above, behind 8 zeros; and FILTER_COUNT candidates.
  uint8_t *above;
  uint8_t *candidates;
  struct isal_zstream *fast; ///< Up to LARGEST_FAST_LEVEL.
  uint8_t *level_buffer;
  z_stream slow;             ///< Above.
  bool has_slow;
  uint8_t *chunk;            ///< Compressed bytes that are not in a chunk yet.
  size_t chunk_count;
  bool has_ended;            ///< All of the data is in chunks.
} png_encoder;

// MARK: Chunks

static void put_be32(uint8_t *p, uint32_t v) {
  p[0] = (uint8_t)(v >> 24);
  p[1] = (uint8_t)(v >> 16);
  p[2] = (uint8_t)(v >> 8);
  p[3] = (uint8_t)v;
}

static ccodecs_status no_room(png_encoder *e) {
  return ccodecs_encoder_fail(&e->base, CCODECS_NO_MEMORY, "the budget has no room for compressed bytes");
}

static ccodecs_status write_chunk(png_encoder *e, const char *type, const uint8_t *body, size_t count) {
  uint8_t header[8];
  uint8_t trailer[4];
  put_be32(header, (uint32_t)count);
  memcpy(header + 4, type, 4);
  put_be32(trailer, crc32_gzip_refl(crc32_gzip_refl(0, header + 4, 4), body, count));
  ccodecs_bytes *output = &e->base.output;
  ccodecs_budget *budget = e->base.budget;
  const bool has_room = ccodecs_bytes_append(output, header, sizeof header, budget) &&
                        ccodecs_bytes_append(output, body, count, budget) &&
                        ccodecs_bytes_append(output, trailer, sizeof trailer, budget);
  return has_room ? CCODECS_OK : no_room(e);
}

static ccodecs_status write_beginning(png_encoder *e) {
  static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  static const uint8_t color_types[] = {
      [CCODECS_PIXELS_GRAY8] = 0, [CCODECS_PIXELS_RGB8] = 2, [CCODECS_PIXELS_RGBA8] = 6};
  uint8_t header[13] = {[8] = 8, [9] = color_types[e->base.options.pixels]};
  put_be32(header, e->base.options.width);
  put_be32(header + 4, e->base.options.height);
  if (!ccodecs_bytes_append(&e->base.output, signature, sizeof signature, e->base.budget)) {
    return no_room(e);
  }
  const ccodecs_encode_options *options = &e->base.options;
  const ccodecs_status status = write_chunk(e, "IHDR", header, sizeof header);
  return status != CCODECS_OK || options->exif_count == 0
             ? status
             : write_chunk(e, "eXIf", options->exif, options->exif_count);
}

// MARK: Deflate

/// Ends the IDAT chunk that is being filled.
static ccodecs_status flush_chunk(png_encoder *e) {
  const size_t count = e->chunk_count;
  e->chunk_count = 0;
  return count == 0 ? CCODECS_OK : write_chunk(e, "IDAT", e->chunk, count);
}

/// One call of the compressor into the chunk. Whether it may have more to give.
static bool compress_fast(png_encoder *e, const uint8_t **bytes, size_t *count, bool is_last) {
  struct isal_zstream *z = e->fast;
  z->next_in = (uint8_t *)(uintptr_t)*bytes; // igzip does not write to it
  z->avail_in = (uint32_t)*count;
  z->end_of_stream = is_last;
  z->next_out = e->chunk + e->chunk_count;
  z->avail_out = (uint32_t)(CHUNK_BYTES - e->chunk_count);
  isal_deflate(z);
  *bytes += *count - z->avail_in;
  *count = z->avail_in;
  e->chunk_count = CHUNK_BYTES - z->avail_out;
  return is_last ? z->internal_state.state != ZSTATE_END : *count > 0;
}

static bool compress_slow(png_encoder *e, const uint8_t **bytes, size_t *count, bool is_last) {
  z_stream *z = &e->slow;
  z->next_in = (uint8_t *)(uintptr_t)*bytes;
  z->avail_in = (uInt)*count;
  z->next_out = e->chunk + e->chunk_count;
  z->avail_out = (uInt)(CHUNK_BYTES - e->chunk_count);
  const int result = deflate(z, is_last ? Z_FINISH : Z_NO_FLUSH);
  *bytes += *count - z->avail_in;
  *count = z->avail_in;
  e->chunk_count = CHUNK_BYTES - z->avail_out;
  return is_last ? result != Z_STREAM_END : *count > 0;
}

static ccodecs_status compress_bytes(png_encoder *e, const uint8_t *bytes, size_t count, bool is_last) {
  bool has_more = count > 0 || is_last;
  while (has_more) {
    has_more = e->fast != NULL ? compress_fast(e, &bytes, &count, is_last) : compress_slow(e, &bytes, &count, is_last);
    if (e->chunk_count == CHUNK_BYTES) {
      const ccodecs_status status = flush_chunk(e);
      if (status != CCODECS_OK) {
        return status;
      }
    }
  }
  return CCODECS_OK;
}

// MARK: Filters

static uint8_t paeth(int left, int up, int corner) {
  const int to_left = up - corner;
  const int to_up = left - corner;
  const int distance_left = to_left < 0 ? -to_left : to_left;
  const int distance_up = to_up < 0 ? -to_up : to_up;
  const int to_corner = to_left + to_up;
  const int distance_corner = to_corner < 0 ? -to_corner : to_corner;
  const int nearest = distance_up < distance_left ? distance_up : distance_left;
  const int of_two = distance_up < distance_left ? up : left;
  return (uint8_t)(distance_corner < nearest ? corner : of_two);
}

/// The row filtered in every way. `row` and `above` have zeros in front of them.
static void filter_all(png_encoder *e, const uint8_t *row, const uint8_t *above) {
  const size_t count = e->row_bytes;
  const size_t step = e->pixel_bytes;
  const uint8_t *restrict left = row - step;
  const uint8_t *restrict corner = above - step;
  uint8_t *restrict none = e->candidates + 1;
  uint8_t *restrict sub = none + count + 1;
  uint8_t *restrict up = sub + count + 1;
  uint8_t *restrict average = up + count + 1;
  uint8_t *restrict best = average + count + 1;
  memcpy(none, row, count);
  for (size_t i = 0; i < count; i++) {
    sub[i] = (uint8_t)(row[i] - left[i]);
  }
  for (size_t i = 0; i < count; i++) {
    up[i] = (uint8_t)(row[i] - above[i]);
  }
  for (size_t i = 0; i < count; i++) {
    average[i] = (uint8_t)(row[i] - (left[i] + above[i]) / 2);
  }
  for (size_t i = 0; i < count; i++) {
    best[i] = (uint8_t)(row[i] - paeth(left[i], above[i], corner[i]));
  }
}

/// How far the bytes, taken as signed, are from zero in all.
static uint64_t distance(const uint8_t *bytes, size_t count) {
  uint64_t sum = 0;
  while (count > 0) {
    const size_t part = count < 4096 ? count : 4096;
    uint32_t partial = 0;
    for (size_t i = 0; i < part; i++) {
      const int8_t v = (int8_t)bytes[i];
      partial += (uint32_t)(v < 0 ? -v : v);
    }
    sum += partial;
    bytes += part;
    count -= part;
  }
  return sum;
}

/// The filter type and the row, filtered in the way that promises to compress best.
static const uint8_t *choose_filter(png_encoder *e, const uint8_t *row, const uint8_t *above) {
  filter_all(e, row, above);
  const size_t stride = e->row_bytes + 1;
  size_t chosen = 0;
  uint64_t least = UINT64_MAX;
  for (size_t filter = 0; filter < FILTER_COUNT; filter++) {
    uint8_t *candidate = e->candidates + filter * stride;
    candidate[0] = (uint8_t)filter;
    const uint64_t sum = distance(candidate + 1, e->row_bytes);
    if (sum < least) {
      least = sum;
      chosen = filter;
    }
  }
  return e->candidates + chosen * stride;
}

// MARK: Methods

/// Zeros that stand for the pixel left of a row.
static const size_t margin = 8;

static ccodecs_status write_rows(ccodecs_encoder *base, const ccodecs_rows *rows) {
  png_encoder *e = (png_encoder *)base;
  uint8_t *current = e->above == e->rows + margin ? e->above + e->row_bytes + margin : e->rows + margin;
  for (uint32_t i = 0; i < rows->row_counts[0]; i++) {
    memcpy(current, rows->planes[0] + i * rows->row_strides[0], e->row_bytes);
    const uint8_t *filtered = choose_filter(e, current, e->above);
    const ccodecs_status status = compress_bytes(e, filtered, e->row_bytes + 1, false);
    if (status != CCODECS_OK) {
      return status;
    }
    uint8_t *above = e->above;
    e->above = current;
    current = above;
  }
  return CCODECS_OK;
}

/// Ends the picture's data.
static ccodecs_status end_data(png_encoder *e) {
  if (e->has_ended) {
    return CCODECS_OK;
  }
  e->has_ended = true;
  const ccodecs_status status = compress_bytes(e, NULL, 0, true);
  return status == CCODECS_OK ? flush_chunk(e) : status;
}

/// eXIf may stand on either side of the data (PNG specification, third edition, section 5.6).
static ccodecs_status append_exif(ccodecs_encoder *base, const uint8_t *exif, size_t count) {
  png_encoder *e = (png_encoder *)base;
  const ccodecs_status status = end_data(e);
  return status == CCODECS_OK ? write_chunk(e, "eXIf", exif, count) : status;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  png_encoder *e = (png_encoder *)base;
  const ccodecs_status status = end_data(e);
  return status == CCODECS_OK ? write_chunk(e, "IEND", NULL, 0) : status;
}

static void destroy(ccodecs_encoder *base) {
  png_encoder *e = (png_encoder *)base;
  ccodecs_budget *budget = base->budget;
  if (e->has_slow) {
    deflateEnd(&e->slow);
  }
  ccodecs_free(budget, e->fast);
  ccodecs_free(budget, e->level_buffer);
  ccodecs_free(budget, e->rows);
  ccodecs_free(budget, e->candidates);
  ccodecs_free(budget, e->chunk);
  ccodecs_bytes_free(&base->output, budget);
  ccodecs_free(budget, e);
}

static void *on_allocate(void *owner, uInt count, uInt bytes) {
  return ccodecs_allocate(owner, (size_t)count * bytes);
}

static void on_free(void *owner, void *block) {
  ccodecs_free(owner, block);
}

static bool create_compressor(png_encoder *e) {
  const uint8_t level = e->base.options.compression_level;
  if (level > LARGEST_FAST_LEVEL) {
    e->slow = (z_stream){.zalloc = on_allocate, .zfree = on_free, .opaque = e->base.budget};
    e->has_slow = deflateInit2(&e->slow, level, Z_DEFLATED, 15, 8, Z_FILTERED) == Z_OK;
    return e->has_slow;
  }
  e->fast = ccodecs_allocate(e->base.budget, sizeof *e->fast);
  e->level_buffer = level == 0 ? NULL : ccodecs_allocate(e->base.budget, level_bytes[level]);
  if (e->fast == NULL || (level > 0 && e->level_buffer == NULL)) {
    return false;
  }
  isal_deflate_init(e->fast);
  e->fast->level = level;
  e->fast->level_buf = e->level_buffer;
  e->fast->level_buf_size = (uint32_t)level_bytes[level];
  e->fast->gzip_flag = IGZIP_ZLIB;
  return true;
}

uint64_t ccodecs_png_encoder_estimate(const ccodecs_encode_options *options) {
  const uint64_t row = (uint64_t)options->width * ccodecs_encoder_channels(options) + 16;
  const uint64_t compressor = options->compression_level > LARGEST_FAST_LEVEL
                                  ? zlib_bytes
                                  : sizeof(struct isal_zstream) + level_bytes[options->compression_level];
  return sizeof(png_encoder) + compressor + (2 + FILTER_COUNT) * row + 4 * CHUNK_BYTES;
}

ccodecs_encoder *ccodecs_png_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget) {
  static const ccodecs_encoder_methods methods = {
      .write = write_rows, .append_exif = append_exif, .finish = finish, .destroy = destroy};
  png_encoder *e = ccodecs_allocate(budget, sizeof *e);
  if (e == NULL) {
    return NULL;
  }
  memset(e, 0, sizeof *e);
  ccodecs_encoder_init(&e->base, &methods, options, budget);
  e->pixel_bytes = ccodecs_encoder_channels(options);
  e->row_bytes = options->width * e->pixel_bytes;
  const size_t rows_bytes = 2 * (margin + e->row_bytes);
  e->rows = ccodecs_allocate(budget, rows_bytes);
  e->candidates = ccodecs_allocate(budget, FILTER_COUNT * (e->row_bytes + 1));
  e->chunk = ccodecs_allocate(budget, CHUNK_BYTES);
  if (e->rows != NULL && e->candidates != NULL && e->chunk != NULL && create_compressor(e)) {
    memset(e->rows, 0, rows_bytes);
    e->above = e->rows + margin;
    if (write_beginning(e) == CCODECS_OK) {
      return &e->base;
    }
  }
  destroy(&e->base);
  return NULL;
}
