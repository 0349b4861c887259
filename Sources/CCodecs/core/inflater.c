#include "inflater.h"

#include "../memory/zlib_memory.h"

#ifdef CCODECS_ISAL
#include <isa-l.h>
#endif

struct ccodecs_inflater {
#ifdef CCODECS_ISAL
  struct inflate_state *fast; ///< NULL if zlib is used.
#endif
  z_stream stream;
  bool has_ended;
};

/// How much zlib takes of the budget: a window of 32 KiB, and about 7 KB of tables (zconf.h).
enum { ZLIB_BYTES = 44 << 10 };

static ccodecs_inflater *create_slow(ccodecs_inflater *inflater, ccodecs_budget *budget) {
  inflater->stream = (z_stream){.zalloc = ccodecs_zlib_allocate, .zfree = ccodecs_zlib_free, .opaque = budget};
  if (inflateInit(&inflater->stream) == Z_OK) {
    return inflater;
  }
  ccodecs_free(budget, inflater);
  return NULL;
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

#ifdef CCODECS_ISAL

/// The maximum length of a match in deflate (RFC 1951, section 3.2.5).
enum { MAX_MATCH_BYTES = 258 };

size_t ccodecs_inflater_estimate(void) {
  return sizeof(ccodecs_inflater) +
         (sizeof(struct inflate_state) > ZLIB_BYTES ? sizeof(struct inflate_state) : ZLIB_BYTES);
}

ccodecs_inflater *ccodecs_inflater_create(ccodecs_budget *budget, bool tolerates_damage) {
  ccodecs_inflater *inflater = ccodecs_allocate(budget, sizeof *inflater);
  if (inflater == NULL) {
    return NULL;
  }
  *inflater = (ccodecs_inflater){0};
  if (tolerates_damage) {
    return create_slow(inflater, budget);
  }
  inflater->fast = ccodecs_allocate(budget, sizeof *inflater->fast);
  if (inflater->fast == NULL) {
    ccodecs_free(budget, inflater);
    return NULL;
  }
  ccodecs_inflater_restart(inflater);
  return inflater;
}

void ccodecs_inflater_restart(ccodecs_inflater *inflater) {
  inflater->has_ended = false;
  if (inflater->fast == NULL) {
    inflateReset(&inflater->stream);
    return;
  }
  isal_inflate_init(inflater->fast);
  inflater->fast->crc_flag = ISAL_ZLIB;
}

bool ccodecs_inflater_run(
    ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  struct inflate_state *z = inflater->fast;
  if (z == NULL) {
    return run_slow(inflater, input, to, count, produced);
  }
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

void ccodecs_inflater_destroy(ccodecs_inflater *inflater, ccodecs_budget *budget) {
  if (inflater != NULL) {
    inflateEnd(&inflater->stream); // does nothing where it is not used
    ccodecs_free(budget, inflater->fast);
    ccodecs_free(budget, inflater);
  }
}

#else

size_t ccodecs_inflater_estimate(void) {
  return sizeof(ccodecs_inflater) + ZLIB_BYTES;
}

ccodecs_inflater *ccodecs_inflater_create(ccodecs_budget *budget, bool tolerates_damage) {
  (void)tolerates_damage; // zlib returns all that precedes it
  ccodecs_inflater *inflater = ccodecs_allocate(budget, sizeof *inflater);
  if (inflater == NULL) {
    return NULL;
  }
  *inflater = (ccodecs_inflater){0};
  return create_slow(inflater, budget);
}

void ccodecs_inflater_restart(ccodecs_inflater *inflater) {
  inflateReset(&inflater->stream);
  inflater->has_ended = false;
}

bool ccodecs_inflater_run(
    ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced) {
  return run_slow(inflater, input, to, count, produced);
}

void ccodecs_inflater_destroy(ccodecs_inflater *inflater, ccodecs_budget *budget) {
  if (inflater != NULL) {
    inflateEnd(&inflater->stream);
    ccodecs_free(budget, inflater);
  }
}

#endif

bool ccodecs_inflater_has_ended(const ccodecs_inflater *inflater) {
  return inflater->has_ended;
}
