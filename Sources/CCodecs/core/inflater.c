#include "inflater.h"

#include "../memory/zlib_memory.h"

#ifdef CCODECS_ISAL
#include <isa-l.h>
#endif

struct ccodecs_inflater {
  void *fast; ///< The state of ISA-L; NULL if zlib is used.
  z_stream stream;
  bool has_ended;
};

// MARK: zlib

/// How much zlib takes of the budget: a window of 32 KiB, and about 7 KB of tables (zconf.h).
enum { ZLIB_BYTES = 44 << 10 };

static bool create_slow(ccodecs_inflater *inflater, ccodecs_budget *budget) {
  inflater->stream = (z_stream){.zalloc = ccodecs_zlib_allocate, .zfree = ccodecs_zlib_free, .opaque = budget};
  return inflateInit(&inflater->stream) == Z_OK;
}

static bool run_slow(ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  z_stream *z = &inflater->stream;
  const size_t maximum = input->count < UINT32_MAX / 2 ? input->count : UINT32_MAX / 2;
  const size_t room = count < UINT32_MAX / 2 ? count : UINT32_MAX / 2;
  z->next_in = (uint8_t *)(uintptr_t)input->bytes; // zlib does not write to it
  z->avail_in = (uInt)maximum;
  z->next_out = to;
  z->avail_out = (uInt)room;
  const int result = inflate(z, Z_NO_FLUSH);
  ccodecs_input_advance(input, maximum - z->avail_in);
  inflater->has_ended = result == Z_STREAM_END;
  *produced = room - z->avail_out;
  return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR; // the last one: more input is needed
}

// MARK: ISA-L

#ifdef CCODECS_ISAL

/// The maximum length of a match in deflate (RFC 1951, section 3.2.5).
enum { MAX_MATCH_BYTES = 258 };

enum { FAST_BYTES = sizeof(struct inflate_state) };

static void restart_fast(void *fast) {
  struct inflate_state *z = fast;
  isal_inflate_init(z);
  z->crc_flag = ISAL_ZLIB;
}

static bool run_fast(ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  struct inflate_state *z = inflater->fast;
  const size_t maximum = input->count < UINT32_MAX / 2 ? input->count : UINT32_MAX / 2;
  const size_t room = count < UINT32_MAX / 2 ? count : UINT32_MAX / 2;
  z->next_in = (uint8_t *)(uintptr_t)input->bytes; // igzip does not write to it
  z->avail_in = (uint32_t)maximum;
  z->next_out = to;
  z->avail_out = (uint32_t)room;
  const int result = isal_inflate(z);
  // At the end of the stream, igzip returns whole unused bytes, which may be from an earlier window.
  ccodecs_input_advance(input, z->avail_in < maximum ? maximum - z->avail_in : 0);
  *produced = room - z->avail_out;
  inflater->has_ended = z->block_state == ISAL_BLOCK_FINISH;
  if (result == ISAL_INVALID_LOOKBACK || result == ISAL_INVALID_SYMBOL) {
    // igzip may count the bytes of the match, which it did not write: the last ones, of which it may keep some.
    const size_t kept = z->tmp_out_valid - z->tmp_out_processed;
    const size_t lost = kept < MAX_MATCH_BYTES ? MAX_MATCH_BYTES - kept : 0;
    *produced -= *produced < lost ? *produced : lost;
  }
  return result >= 0 && result != ISAL_NEED_DICT;
}

#else

enum { FAST_BYTES = 0 };

static void restart_fast(void *fast) {
  (void)fast;
}

static bool run_fast(ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  return run_slow(inflater, input, to, count, produced);
}

#endif

// MARK: Either

size_t ccodecs_inflater_estimate(void) {
  return sizeof(ccodecs_inflater) + ((size_t)FAST_BYTES > ZLIB_BYTES ? (size_t)FAST_BYTES : ZLIB_BYTES);
}

ccodecs_inflater *ccodecs_inflater_create(ccodecs_budget *budget, bool tolerates_damage) {
  ccodecs_inflater *inflater = ccodecs_allocate(budget, sizeof *inflater);
  if (inflater == NULL) {
    return NULL;
  }
  *inflater = (ccodecs_inflater){0};
  const bool is_fast = FAST_BYTES > 0 && !tolerates_damage; // zlib returns everything in front of damage
  inflater->fast = is_fast ? ccodecs_allocate(budget, FAST_BYTES) : NULL;
  if (is_fast ? inflater->fast == NULL : !create_slow(inflater, budget)) {
    ccodecs_free(budget, inflater);
    return NULL;
  }
  ccodecs_inflater_restart(inflater);
  return inflater;
}

void ccodecs_inflater_restart(ccodecs_inflater *inflater) {
  inflater->has_ended = false;
  if (inflater->fast != NULL) {
    restart_fast(inflater->fast);
  } else {
    inflateReset(&inflater->stream);
  }
}

bool ccodecs_inflater_run(
    ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  return (inflater->fast != NULL ? run_fast : run_slow)(inflater, input, to, count, produced);
}

bool ccodecs_inflater_has_ended(const ccodecs_inflater *inflater) {
  return inflater->has_ended;
}

void ccodecs_inflater_destroy(ccodecs_inflater *inflater, ccodecs_budget *budget) {
  if (inflater != NULL) {
    inflateEnd(&inflater->stream); // does nothing where zlib is not used
    ccodecs_free(budget, inflater->fast);
    ccodecs_free(budget, inflater);
  }
}
