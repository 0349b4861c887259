// The state of the libjpeg-turbo based JPEG decoder, shared by its files. Private to CCodecs.

#pragma once

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
  bool is_started; ///< jpeg_start_decompress has completed.
  bool is_raw;     ///< The output is raw planes, not converted rows.
  bool keeps_cmyk; ///< The rows are CMYK, not RGB.
  bool is_damaged; ///< The library filled in data that the file lacks.
  bool has_all;    ///< The file was read to its end: whatever libjpeg still needs is missing from the file.
  bool has_ended;  ///< The source is at the end marker that stands in for the file's missing one, after all input.
  ccodecs_bytes carry;
  size_t skip; ///< Bytes to skip that have not arrived yet.
  uint8_t *strip;
  uint8_t *inverted; ///< One row of CMYK.
  uint32_t rows_left[CCODECS_MAX_PLANES];
} jpeg_turbo;

// jpeg_turbo_arithmetic.c

/// Handles an empty source of libjpeg: returns false to suspend.
///
/// The source of an arithmetic decoder, which cannot suspend, receives an end marker, or the decoding is aborted.
boolean ccodecs_jpeg_turbo_source_empty(j_decompress_ptr info);

/// Returns whether an arithmetic decoder runs more scans than the size of its input justifies. If so, records the
/// message and the limit.
bool ccodecs_jpeg_turbo_has_too_many_scans(jpeg_turbo *d);

/// Buffers the window's bytes, because all of them must be available before the first step. Returns CCODECS_NEEDS_INPUT
/// or the failure.
ccodecs_status ccodecs_jpeg_turbo_carry_all(jpeg_turbo *d, ccodecs_input *input);
