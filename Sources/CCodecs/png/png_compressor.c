// ISA-L's deflate is over ten times as fast as zlib's at its default level 6, and makes photographs 2 to 5 % larger.
// zlib's high levels produce the smallest files. ISA-L's own level 3 finds other matches with AVX-512 than with AVX2
// and SSE; its levels up to 2 give the same bytes with each of them.

#include "png_compressor.h"
#include "../memory/zlib_memory.h"

#ifdef CCODECS_ISAL
#include <isa-l.h>
#endif

/// The functions of a library. `run` is ccodecs_png_compressor_run.
typedef struct compressor_methods {
  bool (*run)(png_compressor *c, ccodecs_input *input, uint8_t *to, size_t room, size_t *produced);
  bool (*restart)(png_compressor *c);
  void (*end)(png_compressor *c, ccodecs_budget *budget);
} compressor_methods;

struct png_compressor {
  const compressor_methods *methods;
#ifdef CCODECS_ISAL
  struct isal_zstream fast;
  uint8_t *level_buffer;
#endif
  z_stream slow;
};

// MARK: zlib

/// zlib's maximum memory for a window and hash chains (zconf.h).
static const size_t zlib_bytes = 280 << 10;

static bool run_slow(png_compressor *c, ccodecs_input *input, uint8_t *to, size_t room, size_t *produced) {
  z_stream *z = &c->slow;
  z->next_in = (uint8_t *)(uintptr_t)input->bytes; // zlib does not write to it
  z->avail_in = (uInt)input->count;
  z->next_out = to;
  z->avail_out = (uInt)room;
  const int result = deflate(z, input->is_last ? Z_FINISH : Z_NO_FLUSH);
  ccodecs_input_advance(input, input->count - z->avail_in);
  *produced = room - z->avail_out;
  return input->is_last ? result != Z_STREAM_END : input->count > 0;
}

static bool restart_slow(png_compressor *c) {
  return deflateReset(&c->slow) == Z_OK;
}

static void end_slow(png_compressor *c, ccodecs_budget *budget) {
  (void)budget;
  deflateEnd(&c->slow);
}

static bool begin_slow(png_compressor *c, uint8_t level, bool is_filtered, ccodecs_budget *budget) {
  static const compressor_methods methods = {.run = run_slow, .restart = restart_slow, .end = end_slow};
  c->methods = &methods;
  c->slow = (z_stream){.zalloc = ccodecs_zlib_allocate, .zfree = ccodecs_zlib_free, .opaque = budget};
  const int strategy = is_filtered ? Z_FILTERED : Z_DEFAULT_STRATEGY;
  return deflateInit2(&c->slow, level, Z_DEFLATED, 15, 8, strategy) == Z_OK;
}

// MARK: ISA-L

#ifdef CCODECS_ISAL

enum { LARGEST_FAST_LEVEL = 3, LARGEST_ISAL_LEVEL = 2 };

static const size_t level_bytes[LARGEST_ISAL_LEVEL + 1] = {0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT};

/// Returns ISA-L's level for a level up to LARGEST_FAST_LEVEL.
static uint8_t isal_level(uint8_t level) {
  return level < LARGEST_ISAL_LEVEL ? level : LARGEST_ISAL_LEVEL;
}

static bool run_fast(png_compressor *c, ccodecs_input *input, uint8_t *to, size_t room, size_t *produced) {
  struct isal_zstream *z = &c->fast;
  z->next_in = (uint8_t *)(uintptr_t)input->bytes; // igzip does not write to it
  z->avail_in = (uint32_t)input->count;
  z->end_of_stream = input->is_last;
  z->next_out = to;
  z->avail_out = (uint32_t)room;
  isal_deflate(z);
  ccodecs_input_advance(input, input->count - z->avail_in);
  *produced = room - z->avail_out;
  return input->is_last ? z->internal_state.state != ZSTATE_END : input->count > 0;
}

static bool restart_fast(png_compressor *c) {
  isal_deflate_reset(&c->fast);
  c->fast.gzip_flag = IGZIP_ZLIB;
  return true;
}

static void end_fast(png_compressor *c, ccodecs_budget *budget) {
  ccodecs_free(budget, c->level_buffer);
}

static bool begin_fast(png_compressor *c, uint8_t level, ccodecs_budget *budget) {
  static const compressor_methods methods = {.run = run_fast, .restart = restart_fast, .end = end_fast};
  const size_t buffer_bytes = level_bytes[isal_level(level)];
  c->methods = &methods;
  c->level_buffer = buffer_bytes == 0 ? NULL : ccodecs_allocate(budget, buffer_bytes);
  isal_deflate_init(&c->fast);
  c->fast.level = isal_level(level);
  c->fast.level_buf = c->level_buffer;
  c->fast.level_buf_size = (uint32_t)buffer_bytes;
  c->fast.gzip_flag = IGZIP_ZLIB;
  return c->level_buffer != NULL || buffer_bytes == 0;
}

#endif

// MARK: Either

size_t ccodecs_png_compressor_estimate(uint8_t level) {
#ifdef CCODECS_ISAL
  if (level <= LARGEST_FAST_LEVEL) {
    return sizeof(png_compressor) + level_bytes[isal_level(level)];
  }
#else
  (void)level;
#endif
  return sizeof(png_compressor) + zlib_bytes;
}

png_compressor *ccodecs_png_compressor_create(uint8_t level, bool is_filtered, ccodecs_budget *budget) {
  png_compressor *c = ccodecs_allocate(budget, sizeof *c);
  if (c == NULL) {
    return NULL;
  }
#ifdef CCODECS_ISAL
  const bool has_begun =
      level <= LARGEST_FAST_LEVEL ? begin_fast(c, level, budget) : begin_slow(c, level, is_filtered, budget);
#else
  const bool has_begun = begin_slow(c, level, is_filtered, budget);
#endif
  if (has_begun) {
    return c;
  }
  ccodecs_free(budget, c); // what begins allocates nothing if it fails
  return NULL;
}

bool ccodecs_png_compressor_restart(png_compressor *compressor) {
  return compressor->methods->restart(compressor);
}

bool ccodecs_png_compressor_run(
    png_compressor *compressor, ccodecs_input *input, uint8_t *to, size_t room, size_t *produced) {
  return compressor->methods->run(compressor, input, to, room, produced);
}

void ccodecs_png_compressor_destroy(png_compressor *compressor, ccodecs_budget *budget) {
  if (compressor != NULL) {
    compressor->methods->end(compressor, budget);
    ccodecs_free(budget, compressor);
  }
}
