// The state of the JPEG decoder by libjpeg-turbo, shared by its files. Private to CCodecs.

#ifndef CCODECS_JPEG_TURBO_H
#define CCODECS_JPEG_TURBO_H

#include "../core/decoder.h"
#include "../memory/bytes.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct jpeg_turbo {
  ccodecs_decoder base;
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  jmp_buf escape;
  ccodecs_status escape_status;
  bool is_created;
  bool is_started; ///< jpeg_start_decompress is done.
  bool is_raw;     ///< Planes, not converted rows.
  bool keeps_cmyk; ///< Rows of CMYK, not of RGB.
  bool is_damaged; ///< The library filled in what the file lacks.
  bool has_all;    ///< All bytes are there: those that the library lacks, the file lacks.
  bool has_ended;  ///< The source stands in an end marker that the file lacks, behind all that it was given.
  ccodecs_bytes carry;
  size_t skip;    ///< Bytes to pass over that have not come yet.
  size_t charged; ///< For what libjpeg allocates itself.
  uint8_t *strip;
  uint8_t *inverted; ///< A row of CMYK.
  uint32_t rows_left[CCODECS_MAX_PLANES];
} jpeg_turbo;

// jpeg_turbo_arithmetic.c

/// The library's source is empty: false to suspend. An arithmetic decoder is given an end, or ended.
boolean ccodecs_jpeg_turbo_source_empty(j_decompress_ptr info);

/// Whether an arithmetic decoder makes more scans than its bytes are worth.
bool ccodecs_jpeg_turbo_has_too_many_scans(const jpeg_turbo *d);

/// Holds the window's bytes, all of which must be there before the first step. CCODECS_NEEDS_INPUT, or the failure.
ccodecs_status ccodecs_jpeg_turbo_carry_all(jpeg_turbo *d, ccodecs_input *input);

#endif
